package jsonwalk

import (
	"encoding/json"
	"testing"
)

// TestScannerPassesValues checks that the scanner finds the same parts as the standard library.
func TestScannerPassesValues(t *testing.T) {
	text := ` { "a" : [ 1 , "]}\"" , { } ] , "\u0062" : null , "c":{"d":[[]]},"e":-1.5e+3 } `
	var want map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	s := New([]byte(text))
	s.Members(func(key string) { got[key] = string(s.Raw()) })
	if len(got) != len(want) {
		t.Fatalf("got %d members, want %d", len(got), len(want))
	}
	for name, raw := range got {
		if raw != string(want[name]) {
			t.Errorf("%s: got %q, want %q", name, raw, want[name])
		}
	}
	n := 0
	s = New([]byte(`[[],{},"",0,true]`))
	s.Elements(func() { s.Raw(); n++ })
	if n != 5 || s.Peek() != 0 {
		t.Errorf("passed %d elements, then %q", n, s.Peek())
	}
}

// FuzzScanner: what the standard library takes is walked to its end, and every text is its value's.
func FuzzScanner(f *testing.F) {
	for _, s := range []string{`{"a":[1,"x\"]",{"b":null}],"c":-1e9}`, `[]`, `"\u00e9"`, ` true `, `[[[]],{}]`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			return
		}
		s := New([]byte(text))
		var walk func()
		walk = func() {
			switch s.Peek() {
			case '{':
				s.Members(func(string) { walk() })
			case '[':
				s.Elements(walk)
			default:
				if raw := s.Raw(); !json.Valid(raw) {
					t.Errorf("the value %q of %q", raw, text)
				}
			}
		}
		walk()
		if s.Peek() != 0 {
			t.Errorf("%q was not walked to its end", text)
		}
		s = New([]byte(text))
		if raw := s.Raw(); !json.Valid(raw) || s.Peek() != 0 {
			t.Errorf("the whole of %q is %q", text, raw)
		}
	})
}
