package value

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/quick"
	"time"
	"unicode/utf8"
)

func jsonNumber(s string) json.Number { return json.Number(s) }

// TestAppendStringIsWhatJSONReads compares with the standard library's reader.
func TestAppendStringIsWhatJSONReads(t *testing.T) {
	check := func(s string) bool {
		b := AppendString(nil, s)
		var got string
		if err := json.Unmarshal(b, &got); err != nil || !utf8.Valid(b) {
			return false
		}
		return got == string([]rune(s))
	}
	for _, s := range []string{"", "\x00\x1f\x7f\"\\/", "\xff\xc3", "\u2028\u2029", "é\U0001F600", "\xed\xa0\x80"} {
		if !check(s) {
			t.Errorf("%q does not survive", s)
		}
	}
	if err := quick.Check(func(b []byte) bool { return check(string(b)) }, nil); err != nil {
		t.Error(err)
	}
}

// TestNumbersAreThoseOfJSON compares with the standard library's writer, which writes as JavaScript does.
func TestNumbersAreThoseOfJSON(t *testing.T) {
	check := func(f float64) bool {
		want, err := json.Marshal(f)
		return err != nil || math.Signbit(f) && f == 0 || numberText(f, 64) == string(want)
	}
	for _, f := range []float64{0, 1, -1, 1e-6, 9.9e-7, 1e20, 1e21, 1.5e-300, 5e-324, math.MaxFloat64, 123456789.125} {
		if !check(f) {
			t.Errorf("%v is written as %s", f, numberText(f, 64))
		}
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
}

// TestAppendOfOddValues shows that values that no reader made still become valid JSON.
func TestAppendOfOddValues(t *testing.T) {
	for _, c := range []struct {
		value Value
		want  string
	}{
		{Value{}, "null"},
		{Value{Kind: "hologram"}, "null"},
		{Value{Kind: Number, Text: "five"}, `{"__natscope":"number","value":"NaN"}`},
		{Value{Kind: Number, Text: "1e999"}, `{"__natscope":"number","value":"Infinity"}`},
		{Value{Kind: Bool, Text: "maybe"}, "false"},
		{Value{Kind: String, Text: "\xff"}, `"` + "\ufffd" + `"`},
		{Value{Kind: Array, Partial: true, Size: 3}, `{"__natscope":"partial","value":[],"size":3}`},
		{Value{Kind: Object, Fields: []Field{{"b", Value{}}, {"a", Value{}}}}, `{"b":null,"a":null}`},
	} {
		if got := string(Append(nil, c.value)); got != c.want {
			t.Errorf("%+v became %s, want %s", c.value, got, c.want)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	type order struct {
		ID    int
		Lines []string
		At    time.Time
		Err   error
	}
	wide := make(map[string]any)
	for i := range 100 {
		wide[strings.Repeat("k", i+1)] = []int{i}
	}
	for _, c := range []struct {
		name  string
		value any
	}{
		{"int", 42},
		{"string", "a line of a log"},
		{"struct", order{1, []string{"a", "b"}, time.Unix(0, 0), errors.New("bad")}},
		{"wide map", wide},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Encode(c.value)
			}
		})
	}
}
