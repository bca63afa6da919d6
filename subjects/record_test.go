package subjects

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"testing"
)

func TestAppendRecord(t *testing.T) {
	for want, r := range map[string]Record{
		`{"t":0,"topic":"x"}`:                                {Topic: "x"},
		`{"t":-0.5,"topic":"ü\"","data":null}`:               {T: -0.5, Topic: `ü"`, Data: json.RawMessage("null")},
		`{"t":1e-10,"topic":"x","data":{"a": [1,2]}}`:        {T: 1e-10, Topic: "x", Data: json.RawMessage("{\"a\": [1,\r\n2]}\n")},
		`{"t":1e+15,"topic":"` + "\ufffd" + `","data":"<>"}`: {T: MaxT, Topic: "\xff", Data: json.RawMessage(`"<>"`)},
		`{"t":1,"topic":"x","data":"` + "\ufffd" + `"}`:      {T: 1, Topic: "x", Data: json.RawMessage("\"\xff\"")},
	} {
		got, err := AppendRecord([]byte("before\n"), r)
		if err != nil || string(got) != "before\n"+want+"\n" {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	for name, r := range map[string]Record{
		"no topic":      {},
		"NaN":           {T: math.NaN(), Topic: "x"},
		"infinity":      {T: math.Inf(-1), Topic: "x"},
		"too late":      {T: 2 * MaxT, Topic: "x"},
		"no JSON":       {Topic: "x", Data: json.RawMessage(`{`)},
		"two values":    {Topic: "x", Data: json.RawMessage("1\n2")},
		"an empty line": {Topic: "x", Data: json.RawMessage("\n")},
	} {
		got, err := AppendRecord([]byte("before\n"), r)
		if !errors.Is(err, ErrFrame) || string(got) != "before\n" {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

// FuzzRecordLine shows that the fast way to read a line reads what the slow one does.
func FuzzRecordLine(f *testing.F) {
	f.Add([]byte(`{"t":1.5,"topic":"x","data":{"a":1}}`))
	f.Add([]byte(`{"t":1e3,"topic":"x"}`))
	f.Add([]byte(`{"t":0x1,"topic":"x","data":1,"topic":"y"}`))
	f.Add([]byte(`{"t":1,"topic":"x","data": null }`))
	f.Fuzz(func(t *testing.T, line []byte) {
		got, ok := parsePlain(line, "before")
		if !ok {
			return
		}
		var want Record
		if err := json.Unmarshal(line, &want); err != nil {
			t.Fatalf("%q was read as %+v, though it is refused: %v", line, got, err)
		}
		if got.T != want.T || got.Topic != want.Topic || !bytes.Equal(bytes.TrimSpace(got.Data), bytes.TrimSpace(want.Data)) {
			t.Fatalf("%q was read as %+v, want %+v", line, got, want)
		}
	})
}

func BenchmarkAppendRecord(b *testing.B) {
	r := Record{T: 12.345, Topic: "dataReceived", Data: json.RawMessage(`{"id":"r1","bytes":4096}`)}
	body := make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if body, err = AppendRecord(body[:0], r); err != nil {
			b.Fatal(err)
		}
	}
}
