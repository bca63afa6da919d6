package producer

import (
	"encoding/json"
	"strings"
	"testing"
)

func FuzzValidJSON(f *testing.F) {
	for _, s := range []string{
		``, ` `, `null`, `nul`, `true`, `false `, `0`, `01`, `-`, `-0`, `1.`, `1.5e+3`, `1e`, `.5`, `"`, `"a"`, `"\u12aF"`, `"\u12"`, `"\x"`, "\"\x00\"", "\"\xff\"",
		`[]`, `[1,]`, `[1 2]`, `[,]`, `{}`, `{"a":1}`, `{"a":1,}`, `{"a"}`, `{a:1}`, `{"a":{"b":[1,{"c":null}]}} x`, "\n\t{ \"a\" :\r1 }", `1 2`, `1,"topic":"x"`,
		strings.Repeat("[", 999) + strings.Repeat("]", 999), strings.Repeat("[", 1001) + strings.Repeat("]", 1001),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, want := validJSON(b), json.Valid(b)
		if got == want {
			return
		}
		if want && !got && depth(b) > maxJSONDepth {
			return
		}
		t.Fatalf("%q: %v, encoding/json says %v", b, got, want)
	})
}

// depth is the most brackets that are open at once in valid JSON.
func depth(b []byte) (most int) {
	open, inString := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '[' || c == '{':
			open++
			most = max(most, open)
		case c == ']' || c == '}':
			open--
		}
	}
	return most
}

func BenchmarkValidJSON(b *testing.B) {
	data := []byte(`{"type":"info","args":["order placed",{"id":12345,"user":"ada","total":12.5}],"stack":[{"function":"main.place","url":"/src/shop/main.go","line":42}]}`)
	b.Run("ours", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			validJSON(data)
		}
	})
	b.Run("encoding/json", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			json.Valid(data)
		}
	})
}
