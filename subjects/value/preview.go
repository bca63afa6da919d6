package value

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// previewString is how many characters of a string inside a preview are shown.
const previewString = 30

// Preview returns a short text of one line, as DevTools shows values, of at
// most MaxPreview characters, the last of which is "…" if more was cut:
//
//	undefined, null, true, 1.5, 10n, "text", Symbol(name), /source/flags
//	2024-05-01T10:20:30.000Z, or Invalid Date
//	TypeError: message
//	ƒ name()
//	{name: "x", "a b": 3, …}           an object, with its first five fields
//	Point {x: 1, y: 2}                 an instance
//	Array(7) [1, 2, 3, 4, 5, …]
//	Map(2) {"a" => 1, "b" => 2}, URLSearchParams(1) {"q" => "x"}
//	Set(2) {1, 2}
//
// Inside of a container, strings, names and the messages of errors are cut to
// 30 characters, and containers are only named: {…} ({} if empty), Point,
// Array(2), Map(1), Set(0). Binary data are named with their length, such as
// Uint8Array(3). A value that could not be read is [threw: message]. Names that
// are no identifiers are quoted as in JSON.
func Preview(v Value) string {
	if v.Kind == Dehydrated {
		return oneLine(v.Text, MaxPreview)
	}
	if !isContainer(v.Kind) {
		return oneLine(short(v, MaxPreview), MaxPreview)
	}
	var b strings.Builder
	if t := containerTitle(v); t != "" {
		b.WriteString(t + " ")
	}
	left, right := "{", "}"
	if v.Kind == Array {
		left, right = "[", "]"
	}
	b.WriteString(left)
	n := previewParts(&b, v)
	if n < v.Size {
		if n > 0 {
			b.WriteString(", ")
		}
		b.WriteString("…")
	}
	b.WriteString(right)
	return oneLine(b.String(), MaxPreview)
}

// previewParts writes the first entries of a container and returns how many.
func previewParts(b *strings.Builder, v Value) int {
	n := 0
	part := func(text string) {
		if n > 0 {
			b.WriteString(", ")
		}
		b.WriteString(text)
		n++
	}
	for _, x := range v.Items[:min(len(v.Items), previewEntries)] {
		part(short(x, previewString))
	}
	for _, f := range v.Fields[:min(len(v.Fields), previewEntries)] {
		part(fieldName(f.Name) + ": " + short(f.Value, previewString))
	}
	for _, e := range v.Entries[:min(len(v.Entries), previewEntries)] {
		part(short(e.Key, previewString) + " => " + short(e.Value, previewString))
	}
	return n
}

// containerTitle is what stands before a container's entries.
func containerTitle(v Value) string {
	size := "(" + strconv.Itoa(v.Size) + ")"
	switch v.Kind {
	case Array:
		return "Array" + size
	case Map:
		return "Map" + size
	case Set:
		return "Set" + size
	case URLSearchParams:
		return "URLSearchParams" + size
	case Instance:
		return v.Name
	}
	return ""
}

// short is the text of a value inside a container.
func short(v Value, limit int) string {
	switch v.Kind {
	case Undefined:
		return "undefined"
	case Bool, Number, Symbol:
		return v.Text
	case BigInt:
		return v.Text + "n"
	case String:
		if v.Partial {
			return quote(v.Text+"…", limit)
		}
		return quote(v.Text, limit)
	case Date:
		if v.Text == "" {
			return "Invalid Date"
		}
		return v.Text
	case RegExp:
		return "/" + v.Text + "/" + v.Name
	case Error:
		if v.Text == "" {
			return v.Name
		}
		return v.Name + ": " + oneLine(v.Text, limit)
	case Function:
		return "ƒ " + v.Name + "()"
	case Threw:
		return "[threw: " + oneLine(v.Text, limit) + "]"
	case Dehydrated:
		return dehydratedTitle(v)
	case Object:
		if v.Size == 0 {
			return "{}"
		}
		return "{…}"
	case Array, Map, Set, URLSearchParams, Instance:
		return containerTitle(v)
	}
	return "null"
}

// dehydratedTitle names a dehydrated container without its entries, which its preview has.
func dehydratedTitle(v Value) string {
	switch v.Name {
	case "array", "map", "set", "urlsearchparams":
		return containerTitle(Value{Kind: Kind(v.Name), Size: v.Size})
	case "object":
		if strings.HasPrefix(v.Text, "{") {
			return short(Value{Kind: Object, Size: v.Size}, 0)
		}
		name, _, _ := strings.Cut(v.Text, " {")
		return name
	}
	return v.Text
}

// fieldName quotes names that are no identifiers.
func fieldName(s string) string {
	for i := 0; i < len(s); i++ {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return quote(s, previewString)
		}
	}
	if s == "" {
		return `""`
	}
	return ellipsis(s, previewString)
}

func quote(s string, limit int) string {
	return string(AppendString(nil, ellipsis(s, limit)))
}

var lineBreaks = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ")

// oneLine cuts a text to its limit and keeps it on one line.
func oneLine(s string, limit int) string { return lineBreaks.Replace(ellipsis(s, limit)) }

// ellipsis cuts a text to a number of characters, the last of which is then "…". It repairs invalid UTF-8.
func ellipsis(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if len(s) <= limit {
		return s
	}
	if head, n := cut(s, limit-1); n > limit {
		return head + "…"
	}
	return s
}

// cut returns the first limit characters of a text and how many it has.
func cut(s string, limit int) (head string, n int) {
	if len(s) <= limit {
		return s, utf8.RuneCountInString(s)
	}
	for i := range s {
		if n == limit {
			return s[:i], n + utf8.RuneCountInString(s[i:])
		}
		n++
	}
	return s, n
}
