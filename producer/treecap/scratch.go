package treecap

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/natscope/natscope/subjects/tree"
	"github.com/natscope/natscope/subjects/value"
)

// What is kept of the values of one component.
const (
	// maxValues is how many values it has.
	maxValues = value.MaxEntries
	// maxEncoded is how many bytes of one value are sent; more is cut.
	maxEncoded = 8 << 10
	// maxHead is how many characters of a string are left when it is cut.
	maxHead = 1000
	// maxShown is how many values become attributes, besides those that can be edited.
	maxShown = 8
	// maxPreview is how many characters of a value an attribute shows.
	maxPreview = 80
)

// The kinds of values.
const (
	kindState    = "state"
	kindComputed = "derived"
)

// field is one value as it was read.
type field struct {
	name  string
	value value.Value
	kind  string
	// text is the attribute's text where it is not the value's own.
	text string
	// end is where the encoded value ends in scratch.raw; 0 when it was left out.
	start, end int
}

// scratch is the memory of one reading, so that a value that did not change
// costs little more than looking at it.
type scratch struct {
	fields []field
	raw    []byte
	// left is how many values were left out.
	left int
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// free gives the memory back; it holds on to nothing of the application.
func (s *scratch) free() {
	if cap(s.raw) > 64<<10 || cap(s.fields) > maxValues+1 {
		*s = scratch{}
	}
	clear(s.fields[:cap(s.fields)])
	*s = scratch{fields: s.fields[:0], raw: s.raw[:0]}
	scratches.Put(s)
}

// threw adds a panic in place of the value.
func (s *scratch) threw(r any) {
	s.add(field{name: "value", value: value.Value{Kind: value.Threw, Text: readable(r)}, kind: kindState})
}

// add appends a value; of two with the same name the first stays.
func (s *scratch) add(f field) {
	if slices.ContainsFunc(s.fields, func(g field) bool { return g.name == f.name }) {
		return
	}
	if len(s.fields) >= maxValues {
		s.left++
		return
	}
	s.fields = append(s.fields, f)
}

// compute adds the values that functions tell.
func (s *scratch) compute(all []computed, watched bool) {
	for _, c := range all {
		kind := kindComputed
		if watched && c.name == watchedValue {
			kind = tree.KindWatched
		}
		x := contained(c.get)
		s.add(field{name: c.name, value: reader{}.top(x), kind: kind})
	}
}

// contained runs f and shows its panic in place of its result.
func contained(f func() any) (v any) {
	defer func() {
		if r := recover(); r != nil {
			v = value.Value{Kind: value.Threw, Text: readable(r)}
		}
	}()
	return f()
}

// complete gives every setter a value, since readers take only those that exist.
func (s *scratch) complete(setters []setter) {
	for _, x := range setters {
		s.add(field{name: x.name, value: value.Value{Kind: value.Undefined}, kind: kindState})
	}
}

// encode writes the values, cut to what one node may carry.
func (s *scratch) encode(room int) {
	for i := range s.fields {
		f := &s.fields[i]
		from := len(s.raw)
		s.raw = append(append(s.raw, f.name...), 0)
		f.start = len(s.raw)
		if s.raw = value.Append(s.raw, f.value); len(s.raw)-f.start > maxEncoded {
			s.raw = value.Append(s.raw[:f.start], shorten(f.value))
		}
		if f.end = len(s.raw); f.end > room {
			s.raw, f.start, f.end = s.raw[:from], 0, 0
			s.left++
		}
	}
	if s.left > 0 {
		s.raw = strconv.AppendInt(append(s.raw, 0), int64(s.left), 10)
	}
}

// shorten makes a value that is too long for a node one that fits.
func shorten(v value.Value) value.Value {
	switch v.Kind {
	case value.String:
		n := v.Size
		if !v.Partial {
			n = utf8.RuneCountInString(v.Text)
		}
		return value.Value{Kind: value.String, Text: firstRunes(v.Text, maxHead), Size: n, Partial: true}
	case value.Object, value.Instance:
		return value.Value{Kind: value.Dehydrated, Name: string(value.Object), Text: value.Preview(v), Size: v.Size}
	case value.Array, value.Map, value.Set, value.URLSearchParams:
		return value.Value{Kind: value.Dehydrated, Name: string(v.Kind), Text: value.Preview(v), Size: v.Size}
	}
	v.Text, v.Name, v.Stack = firstRunes(v.Text, maxHead)+"…", firstRunes(v.Name, maxHead), ""
	if v.Kind == value.BigInt {
		// Digits that are cut would be another number.
		return value.Value{Kind: value.Dehydrated, Name: string(value.Object), Text: "bigint", Opaque: true}
	}
	return v
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}

// same reports whether readers see what was read already.
func (s *shown) same(x *scratch) bool { return bytes.Equal(s.raw, x.raw) }

// take makes what was read permanent.
func (s *scratch) take(setters []setter) shown {
	out := shown{raw: bytes.Clone(s.raw), kinds: make(map[string]string, len(s.fields)), values: make(map[string]json.RawMessage, len(s.fields))}
	for i := range s.fields {
		f := &s.fields[i]
		if f.end == 0 {
			continue
		}
		out.values[f.name] = out.raw[f.start:f.end:f.end]
		out.kinds[f.name] = f.kind
		canEdit := slices.ContainsFunc(setters, func(x setter) bool { return x.name == f.name })
		if canEdit {
			out.writable = append(out.writable, f.name)
		}
		if text, ok := f.preview(canEdit); ok && (canEdit || len(out.attrs)-len(out.writable) < maxShown) {
			out.attrs = append(out.attrs, tree.Attr{Name: f.name, Value: text})
		}
	}
	if s.left > 0 {
		out.attrs = append(out.attrs, tree.Attr{Name: truncatedAttr, Value: fmt.Sprintf("%d more values do not fit", s.left)})
	}
	return out
}

// preview is a field's attribute; false when it is not worth one.
func (f *field) preview(canEdit bool) (string, bool) {
	v := f.value
	switch v.Kind {
	case value.String:
		if !v.Partial {
			v.Size = utf8.RuneCountInString(v.Text)
		}
		if v.Size > maxPreview {
			return firstRunes(v.Text, maxPreview) + "… (" + strconv.Itoa(v.Size) + " characters)", true
		}
		return v.Text, true
	case value.Bool, value.Number, value.BigInt, value.Date, value.Error, value.Threw:
		text := f.text
		if text == "" {
			text = value.Preview(v)
		}
		if head := firstRunes(text, maxPreview); len(head) < len(text) {
			text = head + "…"
		}
		return text, true
	case value.Undefined:
		return "", canEdit
	}
	return value.Preview(v), canEdit
}
