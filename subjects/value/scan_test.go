package value

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
	got := membersOf([]byte(text))
	if len(got) != len(want) {
		t.Fatalf("got %d members, want %d", len(got), len(want))
	}
	for _, m := range got {
		if string(m.raw) != string(want[m.name]) {
			t.Errorf("%s: got %q, want %q", m.name, m.raw, want[m.name])
		}
	}
	n := 0
	s := &scanner{data: []byte(`[[],{},"",0,true]`)}
	s.elements(func() { s.raw(); n++ })
	if n != 5 || s.peek() != 0 {
		t.Errorf("passed %d elements, then %q", n, s.peek())
	}
}
