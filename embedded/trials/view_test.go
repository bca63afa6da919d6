package trials

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/tree"
)

// quiet logs nothing.
var quiet = slog.New(slog.DiscardHandler)

// view is a reader: a replica, and notes of all that it was told of.
type view struct {
	*replica.Replica
	name string

	mu sync.Mutex
	// events and lines hold the numbers of each source in the order in which they came.
	events, lines map[subjects.SourceID][]uint64
	// kinds counts the changes of each source by kind.
	kinds map[subjects.SourceID]map[fold.Kind]int
}

// openView joins a replica that lives until the test ends.
func openView(t testing.TB, name, url string, limits subjects.Limits) *view {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := replica.Open(ctx, replica.Options{Conn: connect(t, url), Limits: limits})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return watch(name, r)
}

// watch makes a view of a replica.
func watch(name string, r *replica.Replica) *view {
	v := &view{
		Replica: r, name: name,
		events: make(map[subjects.SourceID][]uint64), lines: make(map[subjects.SourceID][]uint64),
		kinds: make(map[subjects.SourceID]map[fold.Kind]int),
	}
	r.Watch(nil, v)
	return v
}

// Changed notes the numbers.
func (v *view) Changed(_ *fold.Space, changes []fold.Change) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, c := range changes {
		id := c.Source.ID
		if v.kinds[id] == nil {
			v.kinds[id] = make(map[fold.Kind]int)
		}
		v.kinds[id][c.Kind]++
		switch c.Kind {
		case fold.EventPublished:
			if n, err := strconv.ParseUint(string(c.Event.Data), 10, 64); err == nil && c.Event.Topic == numbered {
				v.events[id] = append(v.events[id], n)
			}
		case fold.ConsoleAdded:
			if m := c.Console.Message; m != nil && len(m.Args) == 1 {
				if n, err := strconv.ParseUint(string(m.Args[0]), 10, 64); err == nil {
					v.lines[id] = append(v.lines[id], n)
				}
			}
		}
	}
}

// newest is the largest number that came from a source.
func (v *view) newest(id subjects.SourceID) uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := v.events[id]
	if len(all) == 0 {
		return 0
	}
	return all[len(all)-1]
}

func (v *view) count(id subjects.SourceID, k fold.Kind) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.kinds[id][k]
}

// source calls f with a source under the read lock, and reports whether there is one.
func (v *view) source(id subjects.SourceID, f func(*fold.Source)) bool {
	found := false
	v.View(func(s *fold.Space) {
		if src := s.Source(id); src != nil {
			found = true
			f(src)
		}
	})
	return found
}

// connected reports whether a source is there and lives.
func (v *view) connected(id subjects.SourceID) (yes bool) {
	v.source(id, func(s *fold.Source) { yes = s.Connected })
	return yes
}

// backends maps each node of a source's tree, named by its place, to its BackendNodeID.
func (v *view) backends(id subjects.SourceID) map[string]tree.BackendNodeID {
	out := make(map[string]tree.BackendNodeID)
	v.source(id, func(s *fold.Source) {
		if s.Tree.Root != nil {
			s.Tree.Root.Walk(func(e *tree.Entry) bool {
				out[fmt.Sprintf("%s %d %v", e.Name, e.ID, e.Attrs)] = e.Backend
				return true
			})
		}
	})
	return out
}

// series compares numbers that arrived with those that were sent: step, 2·step …
// up to last, of which dropped never left their source. Each has to come once, and in order.
func series(t testing.TB, what string, got []uint64, step, last, dropped uint64) {
	t.Helper()
	for i := 1; i < len(got); i++ {
		if got[i] <= got[i-1] {
			t.Errorf("%s: number %d came after %d: a double or a reorder", what, got[i], got[i-1])
			return
		}
	}
	want := last / step
	if uint64(len(got))+dropped == want {
		return
	}
	missing := missingOf(got, step, last)
	t.Errorf("%s: %d of %d numbers came, %d were counted as dropped at the source: %d acknowledged ones were lost, such as %v",
		what, len(got), want, dropped, len(missing)-int(dropped), missing[:min(len(missing), 10)])
}

// missingOf lists what is missing in a rising series.
func missingOf(got []uint64, step, last uint64) (missing []uint64) {
	at := 0
	for want := step; want <= last; want += step {
		if at < len(got) && got[at] == want {
			at++
			continue
		}
		missing = append(missing, want)
	}
	return missing
}

// verify compares all that a finished load recorded with what a view holds and
// was told. The load must have kept its generation, and the view must have been
// there from the start.
func (v *view) verify(t testing.TB, l *load) {
	t.Helper()
	id, stats := l.p.ID(), l.p.Stats()
	explained(t, patience, func() (bool, string) {
		behind := "there is no such source"
		v.source(id, func(s *fold.Source) {
			behind = ""
			for plane, ps := range stats.Planes {
				if p := s.Planes[plane]; ps.Published > 0 && (p == nil || p.Records < ps.Published) {
					behind += fmt.Sprintf(" %s: %d acknowledged, folded %+v;", plane, ps.Published, p)
				}
			}
		})
		return behind == "", fmt.Sprintf("%s has all of %s:%s status %+v", v.name, id, behind, v.Status())
	})
	v.mu.Lock()
	events, lines := slices.Clone(v.events[id]), slices.Clone(v.lines[id])
	v.mu.Unlock()
	who := v.name + ", " + string(id)
	last := l.n.Load()
	series(t, who+", events", events, 1, last, stats.Planes[subjects.PlaneEvent].Dropped)
	series(t, who+", console", lines, 2, last, stats.Planes[subjects.PlaneConsole].Dropped)
	v.source(id, func(s *fold.Source) {
		for plane, p := range s.Planes {
			ps := stats.Planes[plane]
			if p.Missed != 0 || p.Dropped != ps.Dropped || p.Records != ps.Published {
				t.Errorf("%s, plane %s: folded %+v; the producer says %+v", who, plane, *p, ps)
			}
		}
		if s.Generation != stats.Generation || s.Late != 0 || s.Unknown != 0 {
			t.Errorf("%s: generation %s (wanted %s), %d late frames, %d unknown", who, s.Generation, stats.Generation, s.Late, s.Unknown)
		}
		for _, f := range s.Faults {
			if f.Kind != fold.FaultDropped {
				t.Errorf("%s: fault %+v", who, f)
			}
		}
	})
	v.verifyState(t, l)
}

// verifyState compares the folded tree and requests with a finished load.
func (v *view) verifyState(t testing.TB, l *load) {
	t.Helper()
	who := v.name + ", " + string(l.p.ID())
	if !v.source(l.p.ID(), func(s *fold.Source) { l.compare(t, who, s) }) {
		t.Errorf("%s: there is no such source", who)
	}
}

// compare compares the tree and the requests of a source with the load.
func (l *load) compare(t testing.TB, who string, s *fold.Source) {
	t.Helper()
	if l.p.Stats().Planes[subjects.PlaneNet].Dropped == 0 {
		if s.Net.Started != l.requests.Load() {
			t.Errorf("%s: %d requests were folded, %d were made", who, s.Net.Started, l.requests.Load())
		}
		for _, q := range s.Net.Requests {
			if q.Ending != network.Finished {
				t.Errorf("%s: request %s ended as %q, error %+v", who, q.ID(), q.Ending, q.Error)
				break
			}
		}
	}
	want := strconv.FormatUint(l.n.Load()/5*5, 10)
	got := "no node"
	if s.Tree.Root != nil {
		s.Tree.Root.Walk(func(e *tree.Entry) bool {
			if e.Name == "counter" {
				got = e.Attrs[0].Value
			}
			return true
		})
	}
	if got != want {
		t.Errorf("%s: the tree says %s, the newest change was %s", who, got, want)
	}
}

// becomes waits until a view has a number that the load makes from now on, and returns how long that took.
func (v *view) becomes(t testing.TB, l *load) func() (bool, string) {
	t.Helper()
	from := l.n.Load()
	return func() (bool, string) {
		return v.newest(l.p.ID()) > from, fmt.Sprintf("%s is current for %s: it has %d, wanted more than %d; %+v; producer %+v",
			v.name, l.p.ID(), v.newest(l.p.ID()), from, v.Status(), l.p.Stats())
	}
}

// jsonOf is for messages.
func jsonOf(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// covers reports whether a view has folded everything that a producer has acknowledged.
func (v *view) covers(stats producer.Stats) bool {
	done := true
	found := v.source(stats.ID, func(s *fold.Source) {
		for plane, ps := range stats.Planes {
			p := s.Planes[plane]
			done = done && (ps.Published == 0 || p != nil && uint64(p.Next) > ps.Published)
		}
	})
	return found && done
}
