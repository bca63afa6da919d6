package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/natscope/natscope/subjects/internal/wiretest"
)

func TestVectors(t *testing.T) {
	cases := wiretest.Cases(t, "console.json")
	wiretest.Payloads(t, cases, map[string]any{TopicMessage: Message{}, TopicException: Exception{}})
	var s State
	for _, c := range cases {
		count := s.Count
		e, err := s.Apply("g", c.T, 1000+c.T, c.Topic, c.Data, 100)
		if c.Error == "" {
			if err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
			continue
		}
		if !errors.Is(err, ErrPayload) || !strings.Contains(err.Error(), c.Error) || e != nil || s.Count != count {
			t.Errorf("%s: got %+v, %v, want an error that says %q", c.Name, e, err, c.Error)
		}
	}
}

// TestRetention shows which entries are kept.
func TestRetention(t *testing.T) {
	var s State
	for i := range 10 {
		e, err := s.Apply("g", float64(i), 1000+float64(i), TopicMessage, json.RawMessage(fmt.Sprintf(`{"type":"log","args":[%d]}`, i)), 3)
		if err != nil || e.Order != uint64(i+1) || e.T != float64(i) || e.Wall != 1000+float64(i) || e.Generation != "g" || e.Message == nil || e.Exception != nil {
			t.Fatalf("entry %d is %+v, %v", i, e, err)
		}
	}
	if len(s.Entries) != 3 || s.Evicted != 7 || s.Count != 10 || s.Entries[0].Order != 8 {
		t.Errorf("%d entries from %d on, %d evicted of %d", len(s.Entries), s.Entries[0].Order, s.Evicted, s.Count)
	}
	if e, err := s.Apply("g", 1, 1, "song", nil, 3); e != nil || err != nil || s.Count != 10 {
		t.Errorf("an unknown topic gives %+v, %v", e, err)
	}
	if _, err := s.Apply("g", 1, 1, TopicException, json.RawMessage(`{"text":"panic"}`), 0); err != nil || len(s.Entries) != 4 {
		t.Errorf("without a limit there are %d entries, %v", len(s.Entries), err)
	}
}

// TestRecordsThatComeAgain shows that a generation that an engine told its kept
// console adds nothing to what earlier ones recorded, and all that they missed.
func TestRecordsThatComeAgain(t *testing.T) {
	var s State
	apply := func(generation string, t0, wall float64, topic, data string, limit int) *Entry {
		t.Helper()
		e, err := s.Apply(generation, t0, wall, topic, json.RawMessage(data), limit)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	const log, again = `{"type":"log","args":["a"]}`, `{"type":"log","args":["a"],"again":true}`
	apply("g1", 1, 1.7e12+1, TopicMessage, log, 3)
	apply("g1", 2, 1.7e12+2, TopicException, `{"text":"Uncaught"}`, 3)
	for _, c := range []struct {
		name             string
		wall             float64
		topic, data, gen string
		added            bool
	}{
		{"the message, with a time that was rounded otherwise", 1.7e12 + 1 + 0.0012, TopicMessage, again, "g2", false},
		{"five microseconds later", 1.7e12 + 1 + 0.005, TopicMessage, again, "g2", true},
		{"at the moment of an exception", 1.7e12 + 2, TopicMessage, again, "g3", true},
		{"the exception", 1.7e12 + 2, TopicException, `{"text":"Uncaught","again":true}`, "g4", false},
		{"not said to come again", 1.7e12 + 2, TopicMessage, log, "g5", true},
		{"of another type", 1.7e12 + 2, TopicMessage, `{"type":"error","args":[],"again":true}`, "g6", true},
		{"twice of one generation", 1.7e12 + 2, TopicMessage, `{"type":"error","args":[],"again":true}`, "g6", true},
		{"older than all that is kept", 1.7e12 - 5, TopicMessage, again, "g7", false},
		{"older, but not said to come again", 1.7e12 - 5, TopicMessage, log, "g7", true},
	} {
		before := s.Count
		if e := apply(c.gen, 1, c.wall, c.topic, c.data, 3); (e != nil) != c.added || (s.Count != before) != c.added {
			t.Errorf("%s: %+v", c.name, e)
		}
	}
}

// FuzzApply applies arbitrary records in order and checks the invariants.
func FuzzApply(f *testing.F) {
	for _, c := range wiretest.Cases(f, "console.json") {
		f.Add(c.Topic, []byte(c.Data))
	}
	f.Fuzz(func(t *testing.T, topic string, data []byte) {
		var s State
		for range 4 {
			before := s.Count
			e, err := s.Apply("g", 1, 2, topic, data, 2)
			if err != nil && (!errors.Is(err, ErrPayload) || e != nil || s.Count != before) {
				t.Fatalf("%v, %+v", err, e)
			}
			if e != nil && (e.Message == nil) == (e.Exception == nil) {
				t.Fatalf("the entry is %+v", e)
			}
			if len(s.Entries) > 2 || s.Count != s.Evicted+uint64(len(s.Entries)) {
				t.Fatalf("%d entries, %d evicted of %d", len(s.Entries), s.Evicted, s.Count)
			}
		}
	})
}
