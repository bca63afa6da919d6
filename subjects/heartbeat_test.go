package subjects

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// beatCase is one line of heartbeats.json.
type beatCase struct {
	Name string `json:"name"`
	Body string `json:"body"`
	Beat *Beat  `json:"beat"`
	// Error is "heartbeat" or "version" where readers refuse it.
	Error string `json:"error"`
}

func TestBeatVectors(t *testing.T) {
	for _, c := range golden[beatCase](t, "heartbeats.json") {
		t.Run(c.Name, func(t *testing.T) {
			got, err := ParseBeat([]byte(c.Body))
			want := map[string]error{"": nil, "heartbeat": ErrHeartbeat, "version": ErrVersion}[c.Error]
			if !errors.Is(err, want) || (err == nil) != (want == nil) {
				t.Fatalf("the error is %v, want %v", err, want)
			}
			if err == nil && !reflect.DeepEqual(got, *c.Beat) {
				t.Errorf("got %+v, want %+v", got, *c.Beat)
			}
		})
	}
}

func TestBeatIsBounded(t *testing.T) {
	long := `{"version":1,"generation":"g","t":1,"pad":"` + strings.Repeat("x", maxBeat) + `"}`
	if _, err := ParseBeat([]byte(long)); !errors.Is(err, ErrHeartbeat) {
		t.Errorf("a heartbeat of %d bytes gives the error %v", len(long), err)
	}
}

// FuzzParseBeat shows that no message makes a reader panic, and that valid heartbeats survive.
func FuzzParseBeat(f *testing.F) {
	for _, c := range golden[beatCase](f, "heartbeats.json") {
		f.Add([]byte(c.Body))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := ParseBeat(data)
		if err != nil {
			if !errors.Is(err, ErrHeartbeat) {
				t.Fatalf("%v wraps no ErrHeartbeat", err)
			}
			return
		}
		again, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := ParseBeat(again); err != nil && len(again) <= maxBeat || err == nil && len(b.Seqs) > 0 && !reflect.DeepEqual(back.Seqs, b.Seqs) {
			t.Fatalf("%+v came back as %+v, %v", b, back, err)
		}
	})
}
