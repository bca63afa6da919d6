package treecap

import (
	"fmt"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/natscope/natscope/subjects/value"
)

// What is kept of the texts of one node.
const (
	maxName  = 256
	maxValue = 1 << 10
	maxText  = 4 << 10
	maxAttrs = 64
)

// truncatedAttr is the attribute that says that something was left out.
const truncatedAttr = "natscope-truncated"

// Option sets something of a node when it is added.
type Option func(*Node)

// Kind classifies the node, such as "worker" or "route". It cannot change later.
func Kind(kind string) Option { return func(n *Node) { n.kind = cutText(kind, maxName) } }

// Attr sets an attribute, as Node.Set does.
func Attr(name string, v any) Option {
	return func(n *Node) {
		if name := cleanName(name, ""); name != "" {
			n.setAttr(name, readable(v))
		}
	}
}

// Text sets the text that is shown inside the node.
func Text(text string) Option { return func(n *Node) { n.text = cutText(text, maxText) } }

// Loc says where the part is defined, as file:line.
func Loc(loc string) Option { return func(n *Node) { n.loc = cutText(loc, maxValue) } }

// Here says that the part is defined where Here is called.
func Here() Option {
	_, file, line, ok := runtime.Caller(1)
	if !ok {
		return func(*Node) {}
	}
	return Loc(file + ":" + strconv.Itoa(line))
}

// Func says that the part is defined where the function f is. Anything else than
// a function with a place in the source says nothing.
func Func(f any) Option {
	v := reflect.ValueOf(f)
	if v.Kind() != reflect.Func || v.IsNil() {
		return func(*Node) {}
	}
	fn := runtime.FuncForPC(v.Pointer())
	if fn == nil {
		return func(*Node) {}
	}
	file, line := fn.FileLine(fn.Entry())
	if !strings.Contains(file, "/") {
		return func(*Node) {} // made by the compiler
	}
	return Loc(file + ":" + strconv.Itoa(line))
}

// readable is the short text of an attribute's value.
func readable(v any) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = cutText(fmt.Sprintf("[threw: %v]", r), maxValue)
		}
	}()
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return cutValue(v)
	case bool:
		return strconv.FormatBool(v)
	case int:
		return strconv.Itoa(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case uint64:
		return strconv.FormatUint(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case error:
		return cutValue(v.Error())
	case fmt.Stringer:
		return cutValue(v.String())
	}
	e := value.Of(v)
	if e.Kind == value.String {
		return cutValue(e.Text)
	}
	return cutText(value.Preview(e), maxValue)
}

// cutValue returns s as valid UTF-8 of at most maxValue bytes; of a longer one the beginning and how long it is.
func cutValue(s string) string {
	if len(s) <= maxValue {
		return cutText(s, maxValue)
	}
	end := " (" + strconv.Itoa(utf8.RuneCountInString(s)) + " characters)"
	return cutText(s, maxValue-len(end)) + end
}

// cleanName makes a name of text: valid, on one line, not empty unless other is.
func cleanName(name, other string) string {
	name = cutText(name, maxName)
	if strings.ContainsAny(name, "\r\n\t") {
		name = strings.Join(strings.Fields(name), " ")
	}
	if name == "" {
		return other
	}
	return name
}

// cutText returns s as valid UTF-8 of at most limit bytes, and shows where it was cut.
func cutText(s string, limit int) string {
	if len(s) > limit {
		at := max(limit-len("…"), 0)
		for at > 0 && !utf8.RuneStart(s[at]) && limit-at < 2*utf8.UTFMax {
			at--
		}
		s = s[:at] + "…"
	}
	return strings.ToValidUTF8(s, "?")
}
