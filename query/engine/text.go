package engine

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/value"
)

// The bounds of texts in answers, in bytes.
const (
	maxURL     = 2000
	maxText    = 8000
	maxHitText = 300
	maxPath    = 500
)

// clean returns valid UTF-8 of at most limit bytes, and "…" if something was cut.
func clean(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}

// argText is one argument of a console call as people read it: texts without quotes.
func argText(raw json.RawMessage) string {
	v, err := value.Parse(raw)
	if err != nil {
		return string(raw)
	}
	switch v.Kind {
	case value.String:
		if v.Partial {
			return v.Text + "…"
		}
		return v.Text
	case value.Error:
		if v.Stack != "" {
			return v.Stack
		}
		return v.Name + ": " + v.Text
	case value.Object, value.Instance:
		return fieldsText(v)
	}
	return value.Preview(v)
}

// maxField is how many bytes of one field of an object a text has.
const maxField = 500

// fieldsText is an object with its fields as they are: the preview of DevTools
// cuts them, but the attributes of a log line are what people search for.
func fieldsText(v value.Value) string {
	var b strings.Builder
	if v.Kind == value.Instance {
		b.WriteString(v.Name + " ")
	}
	b.WriteByte('{')
	for i, f := range v.Fields {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(f.Name + ": ")
		switch x := f.Value; x.Kind {
		case value.String:
			b.WriteString(strconv.Quote(clean(x.Text, maxField)))
		case value.Error:
			b.WriteString(clean(x.Name+": "+x.Text, maxField))
		default:
			b.WriteString(value.Preview(x))
		}
	}
	if v.Partial {
		b.WriteString(", …")
	}
	b.WriteByte('}')
	return b.String()
}

// argsText joins the arguments of a console call.
func argsText(args []json.RawMessage) string {
	if len(args) == 1 {
		return argText(args[0])
	}
	var b strings.Builder
	for i, a := range args {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(argText(a))
		if b.Len() > maxText {
			break
		}
	}
	return b.String()
}

// place is a line of a stack without its function.
func place(f network.Frame) string {
	if f.Line == 0 {
		return f.URL
	}
	return f.URL + ":" + strconv.Itoa(f.Line)
}

// stackLines returns a stack as lines of text.
func stackLines(stack []network.Frame) []string {
	var out []string
	for _, f := range stack[:min(len(stack), 50)] {
		name := f.Function
		if name == "" {
			name = "(anonymous)"
		}
		out = append(out, clean(name+" ("+place(f)+")", maxURL))
	}
	return out
}
