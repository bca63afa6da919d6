package query

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/tree"
)

func TestIDs(t *testing.T) {
	for _, n := range []NodeName{{"a", 1, 0}, {"orders-1", 98304, 1_700_000_000_000}} {
		if got, err := n.ID().Parse(); err != nil || got != n {
			t.Errorf("%s is parsed as %+v, %v", n.ID(), got, err)
		}
	}
	for _, r := range []RequestName{{Source: "a", Generation: "01hx", Request: "r-1"}, {Source: "a", Order: 12}} {
		if got, err := r.ID().Parse(); err != nil || got != r {
			t.Errorf("%s is parsed as %+v, %v", r.ID(), got, err)
		}
	}
	for _, s := range []string{"", "a", "a/n", "a/n0", "a/nx", "A/n1", "a/n1.", "a/n1.-5", "a/n99999999999999999999", strings.Repeat("a", 300) + "/n1"} {
		if _, err := NodeID(s).Parse(); !errors.Is(err, ErrMalformed) {
			t.Errorf("node id %.20q: %v", s, err)
		}
	}
	for _, s := range []string{"", "a", "a#", "a#0", "a#x", "A#1", "a/b", "a/b/c/d", "a//c", "a/B/c"} {
		if _, err := RequestID(s).Parse(); !errors.Is(err, ErrMalformed) {
			t.Errorf("request id %.20q: %v", s, err)
		}
	}
}

func TestCursor(t *testing.T) {
	p := Position{List: ListConsole, Epoch: 1_700_000_000_000, At: make(map[tree.BackendNodeID]uint64)}
	for i := range 1000 {
		p.At[tree.BackendNodeID(7*i+1)<<15+tree.BackendNodeID(i%3)] = uint64(i + 1)
	}
	c := p.Cursor()
	got, err := c.Parse(ListConsole)
	if err != nil || !reflect.DeepEqual(got, p) {
		t.Errorf("another position: %v", err)
	}
	if len(c) > 8<<10 {
		t.Errorf("the cursor of 1000 sources has %d bytes", len(c))
	}
	if _, err := c.Parse(ListRequests); !errors.Is(err, ErrMalformed) {
		t.Errorf("a cursor of another list: %v", err)
	}
}

func FuzzCursor(f *testing.F) {
	f.Add(string(Position{List: ListConsole, Epoch: 5, At: map[tree.BackendNodeID]uint64{1 << 15: 3, 9<<15 + 1: 7}}.Cursor()))
	f.Add("AWP__________wE")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := Cursor(s).Parse(ListConsole)
		if err != nil {
			return
		}
		// What was read is what is written.
		again, err := p.Cursor().Parse(ListConsole)
		for id, n := range p.At {
			if n == 0 {
				delete(p.At, id)
			}
		}
		if err != nil || !reflect.DeepEqual(p, again) {
			t.Errorf("%+v, again %+v, %v", p, again, err)
		}
	})
}

func FuzzIDs(f *testing.F) {
	for _, s := range []string{"a/n1.abc", "a#7", "a/b/c", "a/n1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := NodeID(s).Parse(); err == nil {
			if again, err := n.ID().Parse(); err != nil || again != n {
				t.Errorf("%q: %+v, again %+v, %v", s, n, again, err)
			}
		}
		if r, err := RequestID(s).Parse(); err == nil {
			if again, err := r.ID().Parse(); err != nil || again != r {
				t.Errorf("%q: %+v, again %+v, %v", s, r, again, err)
			}
		}
	})
}

func TestErrorsTravel(t *testing.T) {
	for _, s := range sentinels {
		e := ErrorOf(fmt.Errorf("body: %w", Errorf(s.err, "so it is")))
		if e.Code != s.code || !errors.Is(e, s.err) || !strings.Contains(e.Message, "so it is") {
			t.Errorf("%v travels as %+v", s.err, e)
		}
	}
	if e := ErrorOf(Errorf(ErrGone, "it went")); e.Message != "it went" {
		t.Errorf("the sentinel's name is shown: %q", e.Message)
	}
}

func TestJoin(t *testing.T) {
	part := func(h, data string) *nats.Msg {
		return &nats.Msg{Header: nats.Header{subjects.HeaderChunk: {h}}, Data: []byte(data)}
	}
	var j join
	if done, err := j.add(part("1/2", "a")); done || err != nil {
		t.Fatal(done, err)
	}
	if done, err := j.add(part("2/2", "b")); !done || err != nil || string(j.data) != "ab" {
		t.Errorf("%v, %v, %s", done, err, j.data)
	}
	for _, h := range []string{"2/2", "x/2", "1", "3/2", "0/0"} {
		var j join
		if _, err := j.add(part(h, "a")); err == nil {
			t.Errorf("the first part %q is accepted", h)
		}
	}
}
