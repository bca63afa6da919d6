package trials

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
)

// TestH1H3ServerRestarts: the only server ends under load and comes back, with
// files and with memory. Views are current within five seconds, an open DevTools
// stays open and follows, and nobody spins while the server is away. With files
// nothing is lost; with memory the sources open again, and say what was lost.
func TestH1H3ServerRestarts(t *testing.T) {
	for _, memory := range []bool{false, true} {
		t.Run(map[bool]string{false: "file", true: "memory"}[memory], func(t *testing.T) {
			srv := startServer(t)
			st := startStore(t, srv.url(), subjects.Storage{Memory: memory}, subjects.Limits{})
			views := []*view{watch("the store", st.Replica()), openView(t, "a replica", srv.url(), subjects.Limits{})}
			gateway := startGateway(t, srv.url(), subjects.Limits{})
			loads := []*load{startLoad(t, srv.url(), "orders", 500), startLoad(t, srv.url(), "mail", 50)}
			current := func() time.Duration {
				t.Helper()
				start := time.Now()
				for _, v := range views {
					for _, l := range loads {
						explained(t, 5*time.Second-time.Since(start), v.becomes(t, l))
					}
				}
				return time.Since(start)
			}
			current()
			dt := dial(t, gateway, "dev/orders-1")
			dt.call("Runtime.enable", nil)
			downs := make(map[*load][]uint64)
			for range 2 {
				srv.down()
				for _, l := range loads {
					downs[l] = append(downs[l], l.n.Load())
				}
				used, from := cpuTime(), time.Now()
				pass(time.Second)
				if share := (cpuTime() - used).Seconds() / time.Since(from).Seconds(); share > 0.5 {
					t.Errorf("while the server is away the parts use %.0f %% of a processor: they spin", 100*share)
				}
				for _, l := range loads {
					if !l.p.Stats().Opened {
						t.Errorf("%s opened anew because of a pause: %+v", l.p.ID(), l.p.Stats())
					}
				}
				srv.up()
				back := time.Now()
				lines := len(dt.console())
				took := current()
				explained(t, 5*time.Second-time.Since(back), func() (bool, string) {
					return len(dt.console()) > lines, fmt.Sprintf("DevTools shows new lines; it has %d, the connection: %v", len(dt.console()), dt.lost())
				})
				t.Logf("current %v after the server is back, DevTools too", took)
			}
			for _, l := range loads {
				l.finish(t)
			}
			for _, v := range views {
				for _, l := range loads {
					if memory {
						v.verifyReplaced(t, l, downs[l])
					} else {
						v.verify(t, l)
					}
				}
			}
		})
	}
}

// verifyReplaced checks a view after the stream was lost with its server, when
// the load had made the given numbers: nothing comes twice or out of order, the
// source says that it opened again, and the view holds its newest state.
func (v *view) verifyReplaced(t testing.TB, l *load, downs []uint64) {
	t.Helper()
	id, last := l.p.ID(), l.n.Load()
	until(t, patience, v.name+" has the newest number of "+string(id), func() bool { return v.newest(id) == last })
	v.mu.Lock()
	events := append([]uint64(nil), v.events[id]...)
	v.mu.Unlock()
	missing := missingOf(events, 1, last)
	stats := l.p.Stats()
	series(t, v.name+", "+string(id), events, 1, last, uint64(len(missing)))
	if v.name == "the store" {
		// Nobody saves what it has not folded itself, so it read all of every stream:
		// what it was not told of the server had acknowledged just before it went.
		for _, m := range missing {
			if !slices.ContainsFunc(downs, func(down uint64) bool { return m <= down && m+500 > down }) {
				t.Errorf("%s, %s: number %d is missing, the server went at %v", v.name, id, m, downs)
				break
			}
		}
	}
	if stats.Reopened == 0 || stats.Gaps == 0 {
		t.Errorf("%s: the source does not say that the server lost its stream: %+v", id, stats)
	}
	t.Logf("%s, %s: it was not told of %d of %d numbers", v.name, id, len(missing), last)
	// Where other sources filled the new stream faster, the source could not tell it
	// from the old one, and a store has to tell it to open again.
	explained(t, patience, func() (ok bool, text string) {
		v.source(id, func(s *fold.Source) {
			ok = s.Connected && s.Life.Opened && s.Generation == l.p.Generation()
			text = fmt.Sprintf("%s has %s opened: connected %v, generation %s, now %s, faults %+v", v.name, id, s.Connected, s.Generation, l.p.Generation(), s.Faults)
			for plane, p := range s.Planes {
				if p.Missed != 0 {
					t.Errorf("%s, %s, plane %s: %+v", v.name, id, plane, *p)
				}
			}
			for _, f := range s.Faults {
				if f.Kind != fold.FaultUnopened && f.Kind != fold.FaultTree {
					t.Errorf("%s, %s: %+v", v.name, id, f)
				}
			}
		})
		return ok, text
	})
	until(t, patience, v.name+" has the newest tree of "+string(id), func() bool {
		for name := range v.backends(id) {
			if name == fmt.Sprintf("counter 2 [{n %d}]", last/5*5) {
				return true
			}
		}
		return false
	})
}

// TestQuietSourceOutlivesMemory: a server with memory storage restarts, and busy
// sources fill the new stream beyond what a quiet source ever saw of the old one.
// The quiet one is found by its heartbeats, and opens again with name and tree.
func TestQuietSourceOutlivesMemory(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	startStore(t, srv.url(), subjects.Storage{Memory: true}, subjects.Limits{})
	v := openView(t, "a reader", srv.url(), subjects.Limits{})
	quiet := startLoad(t, srv.url(), "quiet", 0)
	flushed(t, quiet.p)
	busy := startLoad(t, srv.url(), "busy", 1000)
	explained(t, patience, v.becomes(t, busy))
	until(t, patience, "the quiet source is there", func() bool { return len(v.backends("quiet-1")) == 2 })
	srv.down()
	srv.up()
	explained(t, 5*time.Second, v.becomes(t, busy))
	took := explained(t, 15*time.Second, func() (ok bool, text string) {
		text = "there is no quiet source"
		v.source("quiet-1", func(s *fold.Source) {
			ok = s.Connected && s.Life.Opened && s.Name() == "quiet" && s.Tree.Len() == 2
			text = fmt.Sprintf("the quiet source is there with its name and its tree: %q, %d nodes, %+v, %+v", s.Name(), s.Tree.Len(), s.Life, s.Faults)
		})
		return ok, text
	})
	t.Logf("the quiet source is back after %v", took)
}
