package treecap

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/natscope/natscope/subjects/value"
)

// FuzzRead reads values of any shape: what is sent of them is always readable, and bounded.
func FuzzRead(f *testing.F) {
	for _, s := range []string{`{}`, `{"":1,"\n":2," ":3}`, `[[[[1]]],{"a":{"b":{"c":1}}}]`, `{"a\tb":"x","a b":"y","__natscope":"undefined"}`, `"` + strings.Repeat("é", 9000) + `"`, `{"n":1e999}`, `null`} {
		f.Add([]byte(s))
	}
	const room = 4 << 10
	f.Fuzz(func(t *testing.T, data []byte) {
		var v any
		if json.Unmarshal(data, &v) != nil {
			v = string(data)
		}
		for _, x := range []any{v, struct{ V, W any }{v, &v}, logs{v}, []any{v, map[any]any{string(data): v}}} {
			for _, maps := range []bool{false, true} {
				s := scratches.Get().(*scratch)
				s.read(x, maps)
				s.encode(room)
				out := s.take([]setter{{name: "V"}})
				for name, raw := range out.values {
					if _, err := value.Parse(raw); err != nil || !utf8.ValidString(name) || name == "" {
						t.Fatalf("value %q is %.200s: %v", name, raw, err)
					}
				}
				for _, a := range out.attrs {
					if a.Name == "" || !utf8.ValidString(a.Value) || len(a.Value) > 8*maxPreview {
						t.Fatalf("attribute %q is %q", a.Name, a.Value)
					}
				}
				if len(out.raw) > room+32 {
					t.Fatalf("%d bytes", len(out.raw))
				}
				s.free()
			}
		}
	})
}

// logs tells a value as its own.
type logs struct{ v any }

func (l logs) LogValue() slog.Value { return slog.GroupValue(slog.Any("a", l.v), slog.Any("", l.v)) }
