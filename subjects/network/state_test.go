package network

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/natscope/natscope/subjects/internal/wiretest"
)

func TestVectors(t *testing.T) {
	cases := wiretest.Cases(t, "network.json")
	wiretest.Payloads(t, cases, map[string]any{
		TopicStart: Start{}, TopicRequestBodyEnd: BodyEnd{}, TopicResponse: Response{}, TopicDataReceived: DataReceived{},
		TopicMessage: Message{}, TopicEnd: End{}, TopicError: Error{},
	})
	var s State
	for _, id := range []string{"r3", "r4"} {
		fold(t, &s, 1, TopicStart, `{"id":"`+id+`","url":"/"}`)
	}
	for _, c := range cases {
		change, err := s.Apply("g", c.T, c.Topic, c.Data, Keep{Requests: 100})
		switch {
		case c.Error != "":
			if !errors.Is(err, ErrPayload) || !strings.Contains(err.Error(), c.Error) || change != nil {
				t.Errorf("%s: got %+v, %v, want an error that says %q", c.Name, change, err, c.Error)
			}
		case err != nil:
			t.Errorf("%s: %v", c.Name, err)
		case change == nil && c.Name != "an unknown topic":
			t.Errorf("%s changes nothing", c.Name)
		}
		if err := checkState(&s, 100); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
	for id, want := range map[RequestID]Ending{"r1": FinishedTruncated, "r2": Finished, "r3": Failed, "r4": Canceled, "r5": Running} {
		if r := s.Get("g", id); r == nil || r.Ending != want {
			t.Errorf("request %s is %+v, want it %q", id, r, want)
		}
	}
	r5 := s.Get("g", "r5")
	if v := r5.Start.Value; v.Method != "GET" || v.Direction != Outgoing {
		t.Errorf("the defaults are %+v", v)
	}
	if tm := r5.Response.Value.Timing; tm.DNSStart != -1 || tm.DNSEnd != -1 || tm.ConnectStart != 0 {
		t.Errorf("the timing is %+v", tm)
	}
}

// checkState checks everything that holds for every state.
func checkState(s *State, limit int) error {
	if limit > 0 && len(s.Requests) > limit || len(s.Requests) != len(s.byKey) || s.Started != s.Evicted+uint64(len(s.Requests)) {
		return fmt.Errorf("%d requests, %d by key, %d evicted of %d", len(s.Requests), len(s.byKey), s.Evicted, s.Started)
	}
	if err := checkSums(s); err != nil {
		return err
	}
	order := uint64(0)
	for _, r := range s.Requests {
		switch {
		case s.Get(r.Generation, r.ID()) != r || r.Order <= order:
			return fmt.Errorf("request %s is not found, or out of order", r.ID())
		case (r.End != nil) != (r.Ending == Finished || r.Ending == FinishedTruncated):
			return fmt.Errorf("request %s is %q with the end %+v", r.ID(), r.Ending, r.End)
		case (r.Error != nil) != (r.Ending == Failed || r.Ending == Canceled || r.Ending == SourceGone):
			return fmt.Errorf("request %s is %q with the error %+v", r.ID(), r.Ending, r.Error)
		case len(r.Messages) > MaxMessages:
			return fmt.Errorf("request %s has %d messages", r.ID(), len(r.Messages))
		case r.Received.Bytes < 0 || r.Received.Bytes > maxBytes || r.Received.Wire < 0 || r.Received.Wire > maxBytes:
			return fmt.Errorf("request %s received %+v", r.ID(), r.Received)
		}
		order = r.Order
	}
	return nil
}

func fold(t testing.TB, s *State, at float64, topic, data string) *Change {
	t.Helper()
	c, err := s.Apply("g", at, topic, json.RawMessage(data), Keep{Requests: 4})
	if err != nil {
		t.Fatal(err)
	}
	if err := checkState(s, 4); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestEndings shows that each request ends exactly once, and how.
func TestEndings(t *testing.T) {
	const response = `{"id":"r","status":200}`
	for name, c := range map[string]struct {
		records [][2]string
		want    Ending
	}{
		"running":                 {[][2]string{{TopicResponse, response}}, Running},
		"finished":                {[][2]string{{TopicResponse, response}, {TopicEnd, `{"id":"r","bytes":5,"captured":5}`}}, Finished},
		"truncated":               {[][2]string{{TopicResponse, response}, {TopicEnd, `{"id":"r","bytes":5,"captured":2,"truncated":true}`}}, FinishedTruncated},
		"broken off":              {[][2]string{{TopicResponse, response}, {TopicEnd, `{"id":"r","error":"reset"}`}}, FinishedTruncated},
		"given up after headers":  {[][2]string{{TopicResponse, response}, {TopicEnd, `{"id":"r","canceled":true}`}}, FinishedTruncated},
		"failed":                  {[][2]string{{TopicError, `{"id":"r","text":"refused"}`}}, Failed},
		"given up before headers": {[][2]string{{TopicError, `{"id":"r","text":"canceled","canceled":true}`}}, Canceled},
		"the first ending counts": {[][2]string{{TopicEnd, `{"id":"r"}`}, {TopicError, `{"id":"r","text":"late"}`}, {TopicEnd, `{"id":"r","canceled":true}`}}, Finished},
		"late data changes nothing": {[][2]string{{TopicError, `{"id":"r","text":"refused"}`}, {TopicResponse, response},
			{TopicDataReceived, `{"id":"r","bytes":5}`}, {TopicMessage, `{"id":"r","data":"x"}`}, {TopicRequestBodyEnd, `{"id":"r","bytes":1,"captured":1}`}}, Failed},
	} {
		t.Run(name, func(t *testing.T) {
			var s State
			fold(t, &s, 1, TopicStart, `{"id":"r","url":"/"}`)
			ends := 0
			for i, r := range c.records {
				if change := fold(t, &s, float64(i+2), r[0], r[1]); change != nil && change.Request.Ending != Running {
					ends++
				}
			}
			r := s.Get("g", "r")
			if r.Ending != c.want || (ends == 1) != (c.want != Running) || ends > 1 {
				t.Errorf("the ending is %q after %d endings, want %q", r.Ending, ends, c.want)
			}
			if r.Received.Bytes != 0 || len(r.Messages) != 0 || r.BodyEnd != nil || c.want == Failed && r.Response != nil {
				t.Errorf("what came late changed the request: %+v", r)
			}
			gone := s.Gone("g", 99, "the source died")
			if (len(gone) == 1) != (c.want == Running) {
				t.Errorf("the source's death ended %d requests", len(gone))
			}
			if c.want == Running && (r.Ending != SourceGone || r.Error.Text != "the source died" || r.EndedAt != 99) {
				t.Errorf("the request is %+v", r)
			}
			if again := s.Gone("g", 99, "again"); len(again) > 0 {
				t.Error("a request ended twice")
			}
		})
	}
}

// TestGenerations shows that ids belong to one generation.
func TestGenerations(t *testing.T) {
	var s State
	for _, g := range []string{"g1", "g2"} {
		if c, err := s.Apply(g, 1, TopicStart, json.RawMessage(`{"id":"r","url":"/`+g+`"}`), Keep{Requests: 4}); err != nil || c == nil {
			t.Fatal(c, err)
		}
		if c, err := s.Apply(g, 2, TopicStart, json.RawMessage(`{"id":"r","url":"/again"}`), Keep{Requests: 4}); err != nil || c != nil {
			t.Errorf("a doubled start gives %+v, %v", c, err)
		}
	}
	if gone := s.Gone("g1", 5, "x"); len(gone) != 1 || gone[0].Request.Start.Value.URL != "/g1" || s.Get("g2", "r").Ending != Running {
		t.Errorf("the end of one generation ended %+v", gone)
	}
}

func TestRetention(t *testing.T) {
	var s State
	for i := range 10 {
		c := fold(t, &s, 1, TopicStart, fmt.Sprintf(`{"id":"r%d","url":"/"}`, i))
		if want := max(0, i-3); (len(c.Evicted) == 1) != (i > 3) || s.Evicted != uint64(want) {
			t.Errorf("request %d evicted %d, all in all %d", i, len(c.Evicted), s.Evicted)
		}
	}
	if c := fold(t, &s, 1, TopicEnd, `{"id":"r0"}`); c != nil {
		t.Error("an evicted request ended")
	}
	var restored State
	for _, r := range s.Requests {
		restored.Restore(r)
	}
	restored.Started, restored.Evicted = s.Started, s.Evicted
	if err := checkState(&restored, 4); err != nil {
		t.Error(err)
	}
}

// TestSums shows that counts stay where JavaScript holds them exactly.
func TestSums(t *testing.T) {
	var s State
	fold(t, &s, 1, TopicStart, `{"id":"r","url":"/","bodyBytes":-7}`)
	for range 3 {
		fold(t, &s, 1, TopicDataReceived, fmt.Sprintf(`{"id":"r","bytes":%d,"wire":-5}`, int64(math.MaxInt64)))
	}
	r := s.Get("g", "r")
	if r.Received.Bytes != maxBytes || r.Received.Wire != 0 || r.Start.Value.BodyBytes != -1 {
		t.Errorf("received %+v, announced %d", r.Received, r.Start.Value.BodyBytes)
	}
}

func TestMessages(t *testing.T) {
	var s State
	fold(t, &s, 1, TopicStart, `{"id":"r","url":"/"}`)
	r := s.Get("g", "r")
	for i := range MaxMessages + 10 {
		fold(t, &s, float64(i), TopicMessage, fmt.Sprintf(`{"id":"r","data":"%d"}`, i))
	}
	if len(r.Messages) != MaxMessages || r.MessagesLost != 10 || r.Messages[0].Value.Data != "10" {
		t.Errorf("%d messages from %s on, %d lost", len(r.Messages), r.Messages[0].Value.Data, r.MessagesLost)
	}
	long := strings.Repeat("x", MaxMessageBytes/2)
	for range 3 {
		fold(t, &s, 1, TopicMessage, `{"id":"r","data":"`+long+`"}`)
	}
	if len(r.Messages) != 2 {
		t.Errorf("%d messages of %d bytes are kept", len(r.Messages), len(long))
	}
	fold(t, &s, 1, TopicMessage, `{"id":"r","data":"`+long+long+`x"}`)
	if len(r.Messages) != 1 || r.MessagesLost != MaxMessages+10+3 {
		t.Errorf("%d messages, %d lost, after one that is too large by itself", len(r.Messages), r.MessagesLost)
	}
}

// FuzzApply applies arbitrary records: each line is a topic, a space and a payload.
func FuzzApply(f *testing.F) {
	story := ""
	for _, c := range wiretest.Cases(f, "network.json") {
		f.Add(c.Topic + " " + string(c.Data))
		story += c.Topic + " " + string(c.Data) + "\n"
	}
	f.Add(story)
	f.Fuzz(func(t *testing.T, text string) {
		var s State
		for line := range strings.Lines(text) {
			topic, data, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			if topic == "gone" {
				s.Gone(data, 1, "gone")
				continue
			}
			before := s.Started
			c, err := s.Apply("g", 1, topic, json.RawMessage(data), Keep{Requests: 3})
			if err != nil && (!errors.Is(err, ErrPayload) || c != nil || s.Started != before) {
				t.Fatalf("%v, %+v", err, c)
			}
			if err := checkState(&s, 3); err != nil {
				t.Fatal(err)
			}
		}
	})
}
