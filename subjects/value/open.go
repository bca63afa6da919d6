package value

import (
	"bytes"
	"cmp"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// previewEntries is how many entries of a container its preview shows.
const previewEntries = 5

// maxScan is how many keys of a map are looked at to find the first ones; of a
// larger map any will do, since sorting it would take the application's time.
const maxScan = 10000

// open reads a container with at most limit entries.
func open(v reflect.Value, depth, limit int, name string) Value {
	switch v.Kind() {
	case reflect.Slice, reflect.Array:
		return openList(v, depth, limit)
	case reflect.Map:
		return openMap(v, depth, limit)
	case reflect.Struct:
		return openStruct(v, depth, limit, name)
	}
	return openOther(v, name)
}

func openList(v reflect.Value, depth, limit int) Value {
	n := v.Len()
	out := Value{Kind: Array, Size: n, Partial: n > limit}
	n = min(n, limit)
	if n == 0 {
		return out
	}
	out.Items = make([]Value, n)
	for i := range n {
		out.Items[i] = read(v.Index(i), depth+1)
	}
	return out
}

func openStruct(v reflect.Value, depth, limit int, name string) Value {
	if !v.CanAddr() && v.CanInterface() {
		// A copy can be addressed, which gives access to times in unexported fields.
		c := reflect.New(v.Type()).Elem()
		c.Set(v)
		v = c
	}
	t := v.Type()
	out := Value{Kind: Instance, Name: name}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Name == "_" {
			continue
		}
		if out.Size++; len(out.Fields) < limit {
			out.Fields = append(out.Fields, Field{f.Name, read(v.Field(i), depth+1)})
		}
	}
	out.Partial = out.Size > len(out.Fields)
	return out
}

// openOther opens what has no elements that could be read: channels and complex numbers.
func openOther(v reflect.Value, name string) Value {
	out := Value{Kind: Instance, Name: name, Size: 2}
	switch v.Kind() {
	case reflect.Chan:
		out.Fields = []Field{{"len", ofInt(int64(v.Len()))}, {"cap", ofInt(int64(v.Cap()))}}
	case reflect.Complex64, reflect.Complex128:
		bits := v.Type().Bits() / 2
		c := v.Complex()
		out.Fields = []Field{{"real", ofFloat(real(c), bits)}, {"imag", ofFloat(imag(c), bits)}}
	default:
		out.Size = 0
	}
	return out
}

type pair struct {
	key, value reflect.Value
	text       string
}

func openMap(v reflect.Value, depth, limit int) Value {
	named := v.Type().Key().Kind() == reflect.String
	out := Value{Kind: Map, Size: v.Len()}
	if named {
		out.Kind = Object
	}
	out.Partial = out.Size > limit
	if limit == 0 || depth > atTop && out.Size > MaxEntries {
		// A preview is not worth sorting a wide map, and in another order it
		// would differ each time.
		out.Partial = out.Size > 0
		return out
	}
	for _, p := range firstPairs(v, limit) {
		if named {
			name := ellipsis(p.key.String(), MaxString)
			out.Fields = append(out.Fields, Field{name, read(p.value, depth+1)})
			continue
		}
		out.Entries = append(out.Entries, Entry{read(p.key, depth+1), read(p.value, depth+1)})
	}
	return out
}

// firstPairs returns the first entries of a map in the order of their keys.
func firstPairs(v reflect.Value, limit int) []pair {
	kind := v.Type().Key().Kind()
	scan := v.Len()
	if scan > maxScan {
		scan = limit
	}
	pairs := make([]pair, 0, min(scan, v.Len()))
	it := v.MapRange()
	for len(pairs) < scan && it.Next() {
		p := pair{key: it.Key(), value: it.Value()}
		if !isNumeric(kind) && kind != reflect.String {
			p.text = Preview(read(p.key, inContainer))
		}
		pairs = append(pairs, p)
	}
	slices.SortFunc(pairs, func(a, b pair) int { return compareKeys(kind, a, b) })
	return pairs[:min(limit, len(pairs))]
}

func isNumeric(k reflect.Kind) bool { return k >= reflect.Int && k <= reflect.Float64 }

func compareKeys(kind reflect.Kind, a, b pair) int {
	switch {
	case kind == reflect.String:
		return cmp.Compare(a.key.String(), b.key.String())
	case !isNumeric(kind):
		return cmp.Compare(a.text, b.text)
	case a.key.CanInt():
		return cmp.Compare(a.key.Int(), b.key.Int())
	case a.key.CanUint():
		return cmp.Compare(a.key.Uint(), b.key.Uint())
	}
	return cmp.Compare(a.key.Float(), b.key.Float())
}

// ofAttrs reads attributes as an object in their order. Groups without a name
// stand for their own attributes, as package slog says.
func ofAttrs(attrs []slog.Attr, depth int) Value {
	limit := MaxEntries
	switch depth {
	case inContainer:
		limit = previewEntries
	case inPreview:
		limit = 0
	}
	out := Value{Kind: Object}
	addAttrs(&out, attrs, depth, limit, 0)
	out.Partial = out.Size > len(out.Fields)
	if depth == inContainer {
		return dehydrate(out)
	}
	return out
}

// maxInline is how deep groups without a name are followed: a group can hold itself.
const maxInline = 16

func addAttrs(out *Value, attrs []slog.Attr, depth, limit, level int) {
	for _, a := range attrs {
		if a.Key == "" {
			if v := a.Value.Resolve(); v.Kind() == slog.KindGroup && level < maxInline {
				addAttrs(out, v.Group(), depth, limit, level+1)
				continue
			}
		}
		if a.Equal(slog.Attr{}) {
			continue
		}
		if out.Size++; len(out.Fields) < limit {
			out.Fields = append(out.Fields, Field{ellipsis(a.Key, MaxString), ofLogged(a.Value, depth+1)})
		}
	}
}

// ofBytes shows binary data as text where they are text, else as hexadecimal digits.
func ofBytes(v reflect.Value) Value {
	if v.Kind() == reflect.Slice && v.IsNil() {
		return Value{Kind: Null}
	}
	n := v.Len()
	name := "[]byte"
	if v.Kind() == reflect.Array {
		name = "[" + strconv.Itoa(n) + "]byte"
	}
	head := make([]byte, min(n, MaxPreview))
	for i := range head {
		head[i] = byte(v.Index(i).Uint())
	}
	text := name + "(" + strconv.Itoa(n) + ")"
	if v.Kind() == reflect.Array {
		text = name
	}
	if n > 0 {
		text += " " + previewBytes(head, n > len(head))
	}
	return Value{Kind: Dehydrated, Name: "typedarray", Text: ellipsis(text, MaxPreview), Size: n, Opaque: true}
}

func previewBytes(head []byte, more bool) string {
	whole := head
	if more {
		// The last character may be cut in half.
		for i := 1; i < utf8.UTFMax && i < len(head) && !utf8.Valid(whole); i++ {
			whole = head[:len(head)-i]
		}
	}
	readable := bytes.IndexFunc(whole, func(r rune) bool {
		return r == utf8.RuneError || !unicode.IsPrint(r) && r != '\n' && r != '\t' && r != '\r'
	}) < 0
	if readable {
		return quote(string(whole), MaxPreview)
	}
	var b strings.Builder
	for i, c := range head[:min(len(head), 32)] {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteByte(hexDigits[c>>4])
		b.WriteByte(hexDigits[c&15])
	}
	if more || len(head) > 32 {
		b.WriteString(" …")
	}
	return b.String()
}
