package value

import "testing"

// TestPreview covers what the vectors do not.
func TestPreview(t *testing.T) {
	fields := []Field{{"a", Value{Kind: Number, Text: "1"}}}
	for _, c := range []struct {
		value Value
		want  string
	}{
		{Value{}, "null"},
		{Value{Kind: "hologram"}, "null"},
		{Value{Kind: Error, Name: "E", Text: "two\nlines"}, "E: two lines"},
		{Value{Kind: Instance, Name: "A\nB", Fields: fields, Size: 1}, "A B {a: 1}"},
		{Value{Kind: Object, Fields: fields, Size: 1, Partial: true}, "{a: 1}"},
		{Value{Kind: Object, Size: 7, Partial: true}, "{…}"},
		{Value{Kind: Dehydrated, Name: "hologram", Text: "Hologram!"}, "Hologram!"},
		{Value{Kind: Array, Size: 1, Items: []Value{{Kind: Dehydrated, Name: "hologram", Text: "Hologram!"}}}, "Array(1) [Hologram!]"},
		{Value{Kind: Array, Size: 1, Items: []Value{{Kind: Dehydrated, Name: "object", Text: "{}"}}}, "Array(1) [{}]"},
		{Value{Kind: Array, Size: 1, Items: []Value{{Kind: Dehydrated, Name: "array", Size: 4}}}, "Array(1) [Array(4)]"},
		{Value{Kind: Object, Size: 1, Fields: []Field{{"a\nb", Value{}}}}, `{"a\nb": null}`},
		{Value{Kind: Object, Size: 1, Fields: []Field{{"1a", Value{}}}}, `{"1a": null}`},
	} {
		if got := Preview(c.value); got != c.want {
			t.Errorf("%+v is shown as %s, want %s", c.value, got, c.want)
		}
	}
}
