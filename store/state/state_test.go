package state

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/internal/natstest"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

var stream = Stream{Name: "s", Created: time.Unix(5, 0)}

// saver is one store: a fold, a tracker, and what it knows of the bucket.
type saver struct {
	space   *fold.Space
	tracker *Tracker
}

// Changed passes changes to the tracker, and makes one when the source appears.
func (s *saver) changed(t testing.TB, l subjects.Limits, changes []fold.Change) {
	for _, c := range changes {
		if s.tracker == nil {
			s.tracker = NewTracker(c.Source, l)
		} else if c.Kind != fold.SourceAdded {
			s.tracker.Changed(c)
		}
	}
}

// save writes what is dirty into a bucket, and returns how many parts that took.
func (s *saver) save(t testing.TB, parts map[string][]byte) int {
	t.Helper()
	var base *Head
	var saved []string
	if data := parts[HeadPart]; data != nil {
		h, err := ParseHead(data)
		if err != nil {
			t.Fatal(err)
		}
		base, saved = &h, h.Names()
	}
	w, err := s.tracker.Capture(base, stream).Encode(saved)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(parts, w.Put)
	for _, d := range w.Delete {
		delete(parts, d)
	}
	parts[HeadPart] = w.Head
	return len(w.Put)
}

// same decodes a bucket and compares it with the fold that it was saved from.
func same(t testing.TB, l subjects.Limits, parts map[string][]byte, want *fold.Space) {
	t.Helper()
	src, h, err := Decode("a", parts, l)
	if err != nil {
		t.Fatal(err)
	}
	got := fold.New("t", l)
	got.Restore(src)
	if d := natstest.Diff(natstest.Dump(t, want), natstest.Dump(t, got)); d != "" {
		t.Fatalf("at %d: %s", h.Covered, d)
	}
	if n := len(h.Names()) + 1; n != len(parts) {
		t.Fatalf("the head names %d parts, there are %d", n, len(parts))
	}
	for name, v := range parts {
		if len(v) > partBytes {
			t.Fatalf("part %s has %d bytes", name, len(v))
		}
	}
}

// TestTakingTurns saves a source again and again, each time by one of two
// stores that fold the same, and reads it back each time.
func TestTakingTurns(t *testing.T) {
	l := subjects.Limits{Requests: 200, ConsoleEntries: 150, Commits: 45}
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			savers := []*saver{{space: fold.New("t", l)}, {space: fold.New("t", l)}}
			parts := make(map[string][]byte)
			src := natstest.NewSource(t, nil, "t", "a")
			src.Sent = func(seq uint64, subject string, h subjects.Header, data []byte) {
				for _, s := range savers {
					s.changed(t, l, s.space.Apply(subject, subjects.StreamSeq(seq), h, data))
				}
				x := savers[seq/5%2]
				if seq%4 != 0 || x.space.Source("a").Tree.Staging() {
					return
				}
				x.save(t, parts)
				same(t, l, parts, x.space)
			}
			src.Live(500, seed)
		})
	}
}

// Requests that live long move to new places, and a chain of redirects leads
// through several; both are saved where they are.
func TestLongRequestsAndRedirects(t *testing.T) {
	l := subjects.Limits{Requests: 40}
	s, parts := &saver{space: fold.New("t", l)}, make(map[string][]byte)
	src := natstest.NewSource(t, nil, "t", "a")
	src.Sent = func(seq uint64, subject string, h subjects.Header, data []byte) {
		s.changed(t, l, s.space.Apply(subject, subjects.StreamSeq(seq), h, data))
		if seq%7 == 0 {
			s.save(t, parts)
			same(t, l, parts, s.space)
		}
	}
	src.Open()
	src.Send(subjects.PlaneNet, network.TopicStart, network.Start{ID: "socket", URL: "ws://a/", Type: "websocket"})
	for i := range 300 {
		id, before := network.RequestID(fmt.Sprintf("r%d", i)), network.RequestID("")
		if i%3 > 0 {
			before = network.RequestID(fmt.Sprintf("r%d", i-1))
		}
		src.Send(subjects.PlaneNet, network.TopicStart, network.Start{ID: id, URL: "/", RedirectOf: before})
		src.Send(subjects.PlaneNet, network.TopicResponse, network.Response{ID: id, Status: 302})
		src.Send(subjects.PlaneNet, network.TopicEnd, network.End{ID: id})
	}
	n := &s.space.Source("a").Net
	gen := string(s.space.Source("a").Generation)
	if n.Get(gen, "socket") == nil || n.Last(gen, "r297") != n.Get(gen, "r299") || len(n.Requests) != 40 {
		t.Errorf("%d requests are kept, the socket is %v", len(n.Requests), n.Get(gen, "socket"))
	}
}

func TestUndo(t *testing.T) {
	l := subjects.Limits{}
	s := &saver{space: fold.New("t", l)}
	src := natstest.NewSource(t, nil, "t", "a")
	src.Sent = func(seq uint64, subject string, h subjects.Header, data []byte) {
		s.changed(t, l, s.space.Apply(subject, subjects.StreamSeq(seq), h, data))
	}
	src.Live(300, 1)
	parts := make(map[string][]byte)
	s.save(t, parts)
	x := s.space.Source("a")
	if s.tracker.Dirty(x.Covered) {
		t.Fatal("dirty after a save")
	}
	gone := x.Gone("it died")
	if len(gone) == 0 {
		t.Fatal("no request was running")
	}
	s.changed(t, l, gone)
	if !s.tracker.Dirty(x.Covered) {
		t.Fatal("not dirty after requests ended without a message")
	}
	h, err := ParseHead(parts[HeadPart])
	if err != nil {
		t.Fatal(err)
	}
	c := s.tracker.Capture(&h, stream)
	if s.tracker.Dirty(x.Covered) {
		t.Fatal("dirty while a capture is under way")
	}
	c.Undo()
	if !s.tracker.Dirty(x.Covered) {
		t.Fatal("not dirty after the capture failed")
	}
	s.save(t, parts)
	same(t, l, parts, s.space)
}

// TestLargeShard keeps nodes that do not fit one message.
func TestLargeShard(t *testing.T) {
	l := subjects.Limits{}
	s := &saver{space: fold.New("t", l)}
	src := natstest.NewSource(t, nil, "t", "a")
	src.Sent = func(seq uint64, subject string, h subjects.Header, data []byte) {
		s.changed(t, l, s.space.Apply(subject, subjects.StreamSeq(seq), h, data))
	}
	src.Open()
	snap := natstest.Tree(1, 3)
	for i := range snap.Root.Children {
		snap.Root.Children[i].Text = natstest.Pad(300<<10, i)
	}
	src.Send(subjects.PlaneTree, "snapshot", snap)
	parts := make(map[string][]byte)
	s.save(t, parts)
	if parts["t.0.1"] == nil {
		t.Fatal("nothing was continued in another part")
	}
	same(t, l, parts, s.space)
	snap.Revision = 2
	for i := range snap.Root.Children {
		snap.Root.Children[i].Text = ""
	}
	src.Send(subjects.PlaneTree, "snapshot", snap)
	s.save(t, parts)
	same(t, l, parts, s.space)
}

func TestShardsFor(t *testing.T) {
	for _, tt := range []struct{ n, current, want int }{
		{0, 0, 1}, {1000, 0, 1}, {1001, 0, 2}, {100000, 0, 128}, {100_000_000, 0, 512},
		{1500, 1, 1}, {1501, 1, 2}, {600, 2, 2}, {599, 2, 1}, {0, 128, 1}, {3001, 2, 4},
	} {
		if got := shardsFor(tt.n, tt.current); got != tt.want {
			t.Errorf("shardsFor(%d, %d) = %d, want %d", tt.n, tt.current, got, tt.want)
		}
	}
}

// saved returns the parts of a source that has lived a while.
func saved(t testing.TB) map[string][]byte {
	l := subjects.Limits{Requests: 100}
	s := &saver{space: fold.New("t", l)}
	src := natstest.NewSource(t, nil, "t", "a")
	src.Sent = func(seq uint64, subject string, h subjects.Header, data []byte) {
		s.changed(t, l, s.space.Apply(subject, subjects.StreamSeq(seq), h, data))
	}
	src.Live(400, 3)
	parts := make(map[string][]byte)
	s.save(t, parts)
	return parts
}

func TestDamage(t *testing.T) {
	whole := saved(t)
	for name := range whole {
		for what, damage := range map[string]func(map[string][]byte){
			"missing": func(p map[string][]byte) { delete(p, name) },
			"rotten":  func(p map[string][]byte) { p[name] = []byte("rotten") },
			"cut":     func(p map[string][]byte) { p[name] = p[name][:len(p[name])/2] },
		} {
			parts := maps.Clone(whole)
			damage(parts)
			_, _, err := Decode("a", parts, subjects.Limits{})
			// A slot of a ring whose entries all left holds nothing that is missed.
			if !errors.Is(err, ErrDamaged) && !strings.HasPrefix(name, "n.") && !strings.HasPrefix(name, "c.") {
				t.Errorf("%s %s: %v", name, what, err)
			}
		}
	}
	_, _, err := Decode("a", map[string][]byte{HeadPart: []byte(strings.Replace(string(whole[HeadPart]), `"version":1`, `"version":2`, 1))}, subjects.Limits{})
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("another layout version: %v", err)
	}
}

// FuzzDecode feeds a reader what no store wrote.
func FuzzDecode(f *testing.F) {
	whole := saved(f)
	f.Add(whole[HeadPart], []byte(`{"b":40000,"c":[2],"n":{"id":1,"name":"app"}}`))
	f.Add([]byte(`{"version":1,"covered":1,"element":1,"generation":"g","tree":{"root":1,"nodes":1,"parts":[1]}}`), []byte(`{"b":40000,"n":{"id":1,"name":"app"}}`))
	f.Add([]byte(`{"version":1,"covered":1,"element":1,"generation":"g","requests":{"count":18446744073709551615,"evicted":18446744073709551613,"parts":[1]}}`), []byte(`{"order":18446744073709551614}`))
	f.Add([]byte(`{"version":1,"covered":1,"element":1,"generation":"g","history":{"count":2,"evicted":1,"parts":[1]}}`), []byte(`{"seq":2,"t":5,"changes":[{"op":"add","id":1,"backend":40000,"name":"app"}]}`))
	f.Fuzz(func(t *testing.T, head, lines []byte) {
		packed := encoder.EncodeAll(lines, nil)
		parts := map[string][]byte{HeadPart: head, "t.0": packed, "t.1": lines, "n.0": packed, "c.0": packed, "h.0": packed}
		src, h, err := Decode("a", parts, subjects.Limits{})
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatalf("error without its kind: %v", err)
			}
			return
		}
		if src.Covered != h.Covered || src.Tree.Len() != h.Tree.Nodes || uint64(len(src.Tree.History.Commits)) != h.History.Count-h.History.Evicted {
			t.Fatalf("decoded %+v from %+v", src, h)
		}
	})
}
