package network

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// restored returns a state that was rebuilt from what storage keeps of s.
func restored(t testing.TB, s *State) *State {
	t.Helper()
	out := &State{Started: s.Started, Evicted: s.Evicted}
	for _, r := range s.Requests {
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		q := new(Request)
		if err := json.Unmarshal(b, q); err != nil {
			t.Fatal(err)
		}
		out.Restore(q)
	}
	return out
}

// checkSums checks what a state counts against what it holds.
func checkSums(s *State) error {
	var bytes int64
	running := 0
	for i, r := range s.Requests {
		messages := 0
		for i := range r.Messages {
			messages += r.Messages[i].Value.size()
		}
		if r.messages != messages || r.fixed != r.weigh() {
			return fmt.Errorf("request %s counts %d and %d bytes, has %d and %d", r.ID(), r.fixed, r.messages, r.weigh(), messages)
		}
		if r.Order != s.Evicted+uint64(i)+1 {
			return fmt.Errorf("request %s has the order %d at place %d after %d that were evicted", r.ID(), r.Order, i, s.Evicted)
		}
		bytes += r.bytes()
		if r.Ending == Running {
			running++
		}
	}
	if s.bytes != bytes || s.running != running {
		return fmt.Errorf("%d bytes and %d running, want %d and %d", s.bytes, s.running, bytes, running)
	}
	for k, r := range s.newest {
		if s.Get(r.Generation, r.ID()) != r || r.chain() != k {
			return fmt.Errorf("the chain %v ends with %s, which is not kept or not of it", k, r.ID())
		}
	}
	return nil
}

// A connection that lives long stays in sight while thousands of requests pass,
// and requests that nobody ends do not push out all others.
func TestRunningRequestsOutliveOthers(t *testing.T) {
	var s State
	keep := Keep{Requests: 20}
	apply := func(topic, data string) *Change {
		t.Helper()
		c, err := s.Apply("g", 1, topic, json.RawMessage(data), keep)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkSums(&s); err != nil {
			t.Fatal(err)
		}
		return c
	}
	apply(TopicStart, `{"id":"socket","url":"ws://a/","type":"websocket"}`)
	moved := 0
	for i := range 200 {
		moved += len(apply(TopicStart, fmt.Sprintf(`{"id":"r%d","url":"/"}`, i)).Moved)
		apply(TopicEnd, fmt.Sprintf(`{"id":"r%d"}`, i))
	}
	if s.Get("g", "socket") == nil || moved == 0 || moved > 11 || len(s.Requests) != 20 {
		t.Fatalf("the socket is %v after %d moves, %d requests are kept", s.Get("g", "socket"), moved, len(s.Requests))
	}
	for i := range 200 {
		apply(TopicStart, fmt.Sprintf(`{"id":"hung%d","url":"/"}`, i))
	}
	if s.Get("g", "socket") != nil || len(s.Requests) != 20 {
		t.Errorf("requests that never end keep the socket, or more than %d", keep.Requests)
	}
}

func TestRetentionByBytes(t *testing.T) {
	var s State
	keep := Keep{Bytes: 64 << 10}
	long := strings.Repeat("x", 4<<10)
	for i := range 100 {
		c, err := s.Apply("g", 1, TopicStart, json.RawMessage(fmt.Sprintf(`{"id":"r%d","url":"/","headers":[["Cookie",%q]]}`, i, long)), keep)
		if err != nil || c.Request.ID() != RequestID(fmt.Sprintf("r%d", i)) {
			t.Fatal(c, err)
		}
		if err := checkSums(&s); err != nil || s.bytes > keep.Bytes {
			t.Fatalf("%v; %d bytes are kept", err, s.bytes)
		}
	}
	if n := len(s.Requests); n < 10 || n > 16 {
		t.Errorf("%d requests of 5 KiB are kept in 64 KiB", n)
	}
	// One that is too large by itself is kept alone.
	if _, err := s.Apply("g", 1, TopicStart, json.RawMessage(`{"id":"big","url":"/`+strings.Repeat("y", 100<<10)+`"}`), keep); err != nil || len(s.Requests) != 1 {
		t.Errorf("%v; %d requests are kept", err, len(s.Requests))
	}
}

func TestRedirects(t *testing.T) {
	var s State
	hop := func(id, of string, response bool) *Request {
		t.Helper()
		fold(t, &s, 1, TopicStart, `{"id":"`+id+`","url":"/`+id+`","redirectOf":"`+of+`"}`)
		if response {
			fold(t, &s, 2, TopicResponse, `{"id":"`+id+`","status":302}`)
		}
		return s.Get("g", RequestID(id))
	}
	a, b, c := hop("a", "", true), hop("b", "a", true), hop("c", "b", false)
	if a.Root != "" || b.Root != "a" || c.Root != "a" {
		t.Errorf("the roots are %q, %q, %q", a.Root, b.Root, c.Root)
	}
	if s.Before(a) != nil || s.Before(b) != a || s.Before(c) != b || s.Last("g", "a") != c || !s.Continued(a) || !s.Continued(b) || s.Continued(c) {
		t.Errorf("the chain is not a, b, c")
	}
	// What cannot be true makes no chain.
	for _, of := range []string{"a", "c", "nobody", "b"} {
		if x := hop("x", of, false); x.Root != "" {
			t.Errorf("a second redirect of %s belongs to %s", of, x.Root)
		}
		s = *restored(t, &s)
		s.forget(s.Requests[len(s.Requests)-1])
		s.Requests = s.Requests[:len(s.Requests)-1]
		s.Started--
	}
	// The chain keeps its name when its beginning is gone.
	for i := range 2 {
		fold(t, &s, 3, TopicStart, fmt.Sprintf(`{"id":"y%d","url":"/"}`, i))
	}
	if s.Get("g", "a") != nil || s.Last("g", "a").ID() != "c" || s.Before(s.Get("g", "b")) != nil {
		t.Errorf("without its first request the chain ends with %v", s.Last("g", "a"))
	}
}

// TestRestored holds states that were saved and loaded, at any moment, to the
// state that was never saved: everything that follows is the same.
func TestRestored(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		keep := Keep{Requests: 1 + r.IntN(12), Bytes: int64(r.IntN(3)) * 15000}
		var a State
		b := &a
		id := func() int { return r.IntN(30) }
		for i := range 120 {
			topic, data := "", ""
			switch r.IntN(8) {
			case 0, 1, 2:
				topic, data = TopicStart, fmt.Sprintf(`{"id":"r%d","url":"/%s","redirectOf":"r%d"}`, id(), strings.Repeat("u", r.IntN(3000)), id())
			case 3:
				topic, data = TopicResponse, fmt.Sprintf(`{"id":"r%d","status":302,"headers":[["A","b"]],"tls":{"version":"TLS 1.3","names":["a"]}}`, id())
			case 4:
				topic, data = TopicMessage, fmt.Sprintf(`{"id":"r%d","data":"%s"}`, id(), strings.Repeat("m", r.IntN(3000)))
			case 5:
				topic, data = TopicEnd, fmt.Sprintf(`{"id":"r%d","error":"reset","trailers":[["T","u"]]}`, id())
			case 6:
				topic, data = TopicError, fmt.Sprintf(`{"id":"r%d","text":"refused"}`, id())
			case 7:
				if r.IntN(10) == 0 {
					x, y := len(a.Gone("g", float64(i), "gone")), 0
					if b != &a {
						if y = len(b.Gone("g", float64(i), "gone")); x != y {
							t.Fatalf("seed %d: %d requests ended, and %d of the restored ones", seed, x, y)
						}
					}
				}
				if b == &a || r.IntN(4) == 0 {
					b = restored(t, &a)
				}
				continue
			}
			x, err := a.Apply("g", float64(i), topic, json.RawMessage(data), keep)
			if err != nil {
				t.Fatal(err)
			}
			if err := checkSums(&a); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if b == &a {
				continue
			}
			y, err := b.Apply("g", float64(i), topic, json.RawMessage(data), keep)
			if err != nil {
				t.Fatal(err)
			}
			if err := checkSums(b); err != nil {
				t.Fatalf("seed %d, restored: %v", seed, err)
			}
			if (x == nil) != (y == nil) || x != nil && (len(x.Evicted) != len(y.Evicted) || len(x.Moved) != len(y.Moved)) || !reflect.DeepEqual(ids(&a), ids(b)) {
				t.Fatalf("seed %d, record %d: the states differ: %v, %v", seed, i, ids(&a), ids(b))
			}
		}
	}
}

// ids lists what is kept, and where each chain ends.
func ids(s *State) []string {
	var out []string
	for _, r := range s.Requests {
		last := s.Last(r.Generation, r.chain().id)
		out = append(out, fmt.Sprint(r.ID(), r.Order, r.Root, r.Ending, s.Before(r) != nil, s.Continued(r), last != nil && last.ID() != r.ID()))
	}
	return out
}

func BenchmarkApply(b *testing.B) {
	start := []byte(`{"id":"r00000000","url":"http://api.test/x","headers":[["Accept","*/*"],["User-Agent","Go"]]}`)
	response := []byte(`{"id":"r00000000","status":200,"headers":[["Content-Type","text/plain"]]}`)
	end := []byte(`{"id":"r00000000","bytes":0,"captured":0}`)
	var s State
	keep := Keep{Requests: 2000, Bytes: 32 << 20}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		id := fmt.Appendf(nil, "%08d", i%100000000)
		for _, x := range []struct {
			topic string
			data  []byte
		}{{TopicStart, start}, {TopicResponse, response}, {TopicEnd, end}} {
			copy(x.data[8:], id)
			if _, err := s.Apply("g", 1, x.topic, x.data, keep); err != nil {
				b.Fatal(err)
			}
		}
	}
}
