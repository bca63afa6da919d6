package value

import (
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"
)

// Encode encodes any Go value one level deep; Of says how. It never fails and
// never panics. The result is valid UTF-8 JSON on one line.
func Encode(v any) json.RawMessage {
	return Append(make([]byte, 0, 64), Of(v))
}

// Append appends the encoding of v to dst: valid UTF-8 JSON on one line.
func Append(dst []byte, v Value) []byte {
	if isContainer(v.Kind) {
		if v.Partial {
			dst = append(openMarker(dst, "partial"), `,"value":`...)
			dst = appendContainer(dst, v)
			return append(appendInt(append(dst, `,"size":`...), v.Size), '}')
		}
		return appendContainer(dst, v)
	}
	switch v.Kind {
	case Bool:
		return strconv.AppendBool(dst, v.Text == "true")
	case Number:
		return appendNumber(dst, v.Text)
	case String:
		if v.Partial {
			dst = appendText(openMarker(dst, "string"), "head", v.Text)
			return append(appendInt(append(dst, `,"length":`...), v.Size), '}')
		}
		return AppendString(dst, v.Text)
	case Undefined:
		return append(openMarker(dst, "undefined"), '}')
	case BigInt, Symbol:
		return append(appendText(openMarker(dst, string(v.Kind)), "value", v.Text), '}')
	case Date:
		dst = append(openMarker(dst, "date"), `,"iso":`...)
		if v.Text == "" {
			return append(dst, `null}`...)
		}
		return append(AppendString(dst, v.Text), '}')
	case RegExp:
		dst = appendText(openMarker(dst, "regexp"), "source", v.Text)
		return append(appendText(dst, "flags", v.Name), '}')
	case Error:
		dst = appendText(openMarker(dst, "error"), "name", v.Name)
		dst = appendText(dst, "message", v.Text)
		if v.Stack != "" {
			dst = appendText(dst, "stack", v.Stack)
		}
		return append(dst, '}')
	case Function:
		return append(appendText(openMarker(dst, "function"), "name", v.Name), '}')
	case Threw:
		return append(appendText(openMarker(dst, "threw"), "message", v.Text), '}')
	case Dehydrated:
		dst = appendText(openMarker(dst, "dehydrated"), "type", v.Name)
		dst = appendText(dst, "preview", v.Text)
		dst = appendInt(append(dst, `,"size":`...), v.Size)
		if v.Opaque {
			dst = append(dst, `,"opaque":true`...)
		}
		return append(dst, '}')
	}
	return append(dst, "null"...)
}

// appendContainer appends a container without saying that it is partial.
func appendContainer(dst []byte, v Value) []byte {
	switch v.Kind {
	case Array:
		return appendItems(dst, v.Items)
	case Set:
		return append(appendItems(append(openMarker(dst, "set"), `,"values":`...), v.Items), '}')
	case Instance:
		dst = appendText(openMarker(dst, "instance"), "name", v.Name)
		return append(appendFields(append(dst, `,"fields":`...), v.Fields), '}')
	case Map, URLSearchParams:
		dst = append(openMarker(dst, string(v.Kind)), `,"entries":`...)
		return append(appendEntries(dst, v.Entries), '}')
	}
	if !needsMarker(v.Fields) {
		return appendFields(dst, v.Fields)
	}
	dst = append(openMarker(dst, "object"), `,"entries":[`...)
	for i, f := range v.Fields {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendString(append(dst, '['), f.Name), ',')
		dst = append(Append(dst, f.Value), ']')
	}
	return append(dst, "]}"...)
}

// needsMarker reports whether a JSON object cannot hold the fields of a plain
// object: one is named like a marker, or there are two of a name.
func needsMarker(fields []Field) bool {
	ordered := true
	for i := range fields {
		if fields[i].Name == Tag {
			return true
		}
		ordered = ordered && (i == 0 || fields[i-1].Name < fields[i].Name)
	}
	if ordered {
		return false
	}
	seen := make(map[string]struct{}, len(fields))
	for i := range fields {
		seen[fields[i].Name] = struct{}{}
	}
	return len(seen) < len(fields)
}

func appendItems(dst []byte, items []Value) []byte {
	dst = append(dst, '[')
	for i := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = Append(dst, items[i])
	}
	return append(dst, ']')
}

func appendFields(dst []byte, fields []Field) []byte {
	dst = append(dst, '{')
	for i := range fields {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendString(dst, fields[i].Name), ':')
		dst = Append(dst, fields[i].Value)
	}
	return append(dst, '}')
}

func appendEntries(dst []byte, entries []Entry) []byte {
	dst = append(dst, '[')
	for i := range entries {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(Append(append(dst, '['), entries[i].Key), ',')
		dst = append(Append(dst, entries[i].Value), ']')
	}
	return append(dst, ']')
}

// openMarker begins a marker and leaves it open.
func openMarker(dst []byte, kind string) []byte {
	return append(append(append(dst, `{"`+Tag+`":"`...), kind...), '"')
}

func appendText(dst []byte, key, text string) []byte {
	dst = append(append(append(dst, `,"`...), key...), `":`...)
	return AppendString(dst, text)
}

func appendInt(dst []byte, n int) []byte { return strconv.AppendInt(dst, int64(n), 10) }

// appendNumber appends the literal of a number, as a marker where JSON has no literal for it.
func appendNumber(dst []byte, text string) []byte {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(f, 0) {
		f = math.NaN()
	}
	if text = numberText(f, 64); isSpecial(text) {
		return append(appendText(openMarker(dst, "number"), "value", text), '}')
	}
	return append(dst, text...)
}

// isSpecial reports whether a number's text is one that JSON cannot hold or would not keep.
func isSpecial(text string) bool {
	switch text {
	case "NaN", "Infinity", "-Infinity", "-0":
		return true
	}
	return false
}

// numberText writes a number as JavaScript does.
func numberText(f float64, bits int) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case f == 0:
		if math.Signbit(f) {
			return "-0"
		}
		return "0"
	}
	if abs := math.Abs(f); abs >= 1e-6 && abs < 1e21 {
		return strconv.FormatFloat(f, 'f', -1, bits)
	}
	b := strconv.AppendFloat(make([]byte, 0, 24), f, 'e', -1, bits)
	// JavaScript writes 1e-7 where Go writes 1e-07.
	if n := len(b); n >= 4 && b[n-4] == 'e' && b[n-2] == '0' {
		b[n-2] = b[n-1]
		b = b[:n-1]
	}
	return string(b)
}

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. Invalid UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
			dst = append(append(dst, s[from:i]...), "\ufffd"...)
			i++
			from = i
			continue
		}
		dst = append(dst, s[from:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		from = i
	}
	return append(append(dst, s[from:]...), '"')
}

// isContainer reports whether values of the kind are opened one level and dehydrated below it.
func isContainer(k Kind) bool {
	switch k {
	case Array, Object, Instance, Map, Set, URLSearchParams:
		return true
	}
	return false
}
