package trials

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/store"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/tree"
)

// brisk limits let stores hear sooner of programs that share an id.
var brisk = subjects.Limits{Heartbeat: 300 * time.Millisecond}

// twin starts one of several programs that all want the id twin-1.
func twin(t *testing.T, url, name string) *load {
	t.Helper()
	return startLoad(t, url, "twin", 50, func(o *producer.Options) {
		o.Name = name
		o.Limits.Heartbeat = brisk.Heartbeat
	})
}

// without is a server on which programs cannot ask for the holder of an id, so that only stores tell them apart.
func without(o *server.Options) {
	o.Users = []*server.User{{Username: "all", Password: "x", Permissions: &server.Permissions{
		Publish: &server.SubjectPermission{Deny: []string{subjects.ClaimSubject("*", "*")}},
	}}}
	o.NoAuthUser = "all"
}

// apart reports why the programs are not all there under ids of their own, with what they keep in their trees; empty if they are.
func apart(v *view, loads ...*load) string {
	var wrong []string
	var ids []subjects.SourceID
	for _, l := range loads {
		id, generation := l.p.ID(), l.p.Generation()
		if slices.Contains(ids, id) {
			wrong = append(wrong, "two programs are "+string(id))
		}
		ids = append(ids, id)
		known := v.source(id, func(s *fold.Source) {
			switch {
			case s.Generation != generation || !s.Connected:
				wrong = append(wrong, fmt.Sprintf("%s lives as %s; shown is %s, connected %v", id, generation, s.Generation, s.Connected))
			case s.Tree.Detached || s.Tree.Len() != 2:
				wrong = append(wrong, fmt.Sprintf("%s has a tree of %d nodes, detached %v", id, s.Tree.Len(), s.Tree.Detached))
			}
		})
		if !known {
			wrong = append(wrong, string(id)+" is not shown")
		}
	}
	return strings.Join(wrong, "; ")
}

// noticed are what a source told of itself.
func noticed(v *view, id subjects.SourceID) (out []string) {
	v.source(id, func(s *fold.Source) {
		for _, f := range s.Faults {
			if f.Kind == fold.FaultNotice {
				out = append(out, f.Text)
			}
		}
	})
	return out
}

// staysApart waits until the programs are apart at all readers, and then demands that nothing moves for some heartbeats.
func staysApart(t *testing.T, within time.Duration, views []*view, loads ...*load) {
	t.Helper()
	for _, v := range views {
		explained(t, within, func() (bool, string) { why := apart(v, loads...); return why == "", v.name + ": " + why })
	}
	generations := func() (out string) {
		for _, l := range loads {
			out += fmt.Sprintf("%s %s ", l.p.ID(), l.p.Generation())
		}
		return out
	}
	before, since := generations(), time.Now()
	explained(t, patience, func() (bool, string) {
		if now := generations(); now != before {
			t.Fatalf("it does not stay so: %s became %s", before, now)
		}
		for _, v := range views {
			if why := apart(v, loads...); why != "" {
				t.Fatalf("it does not stay so at %s: %s", v.name, why)
			}
		}
		return time.Since(since) > 4*brisk.Heartbeat, "some heartbeats pass"
	})
}

// TestTwoProgramsOneIDInTurn: a program starts under the id of another one that
// lives. It gets another id before it is seen, so nothing moves in any view of the
// first one, with two stores, one, or none. Both say what happened.
func TestTwoProgramsOneIDInTurn(t *testing.T) {
	for stores := range 3 {
		t.Run(fmt.Sprint(stores), func(t *testing.T) {
			t.Parallel()
			srv := startServer(t)
			if err := store.EnsureStreams(t.Context(), jetStream(t, srv.url()), subjects.DefaultSpace, subjects.Storage{}); err != nil {
				t.Fatal(err)
			}
			views := []*view{openView(t, "a replica", srv.url(), brisk)}
			for i := range stores {
				views = append(views, watch(fmt.Sprint("store ", i+1), startStore(t, srv.url(), subjects.Storage{}, brisk).Replica()))
			}
			first := twin(t, srv.url(), "the first")
			staysApart(t, 5*time.Second, views, first)
			nodes := views[0].backends("twin-1")
			second := twin(t, srv.url(), "the second")
			until(t, 5*time.Second, "the second one is open", func() bool { return second.p.Stats().Opened })
			staysApart(t, 5*time.Second, views, first, second)
			if first.p.ID() != "twin-1" || second.p.ID() != "twin-1-2" {
				t.Errorf("the first is %s, the second %s", first.p.ID(), second.p.ID())
			}
			for _, v := range views {
				if a := noticed(v, "twin-1"); len(a) != 1 || !strings.Contains(a[0], `"the second", process `) {
					t.Errorf("%s: the first one says %q", v.name, a)
				}
				if b := noticed(v, "twin-1-2"); len(b) != 1 || !strings.Contains(b[0], `"the first", process `) {
					t.Errorf("%s: the second one says %q", v.name, b)
				}
				if n := v.count("twin-1", fold.SourceOpened); n != 1 {
					t.Errorf("%s: the first one opened %d times", v.name, n)
				}
			}
			if !sameRoot(nodes, views[0].backends("twin-1")) {
				t.Errorf("the first one has other nodes than before")
			}
			for _, l := range []*load{first, second} {
				l.finish(t)
				views[0].verifyNumbers(t, l)
			}
		})
	}
}

// sameRoot reports whether two trees have a root of the same id; attributes of the loads' nodes change all the time.
func sameRoot(a, b map[string]tree.BackendNodeID) bool {
	for place, id := range a {
		if strings.HasPrefix(place, "twin ") {
			return b[place] == id
		}
	}
	return false
}

// verifyNumbers demands that all numbers of a load came, under whatever id it has.
func (v *view) verifyNumbers(t *testing.T, l *load) {
	t.Helper()
	id, last := l.p.ID(), l.n.Load()
	until(t, 5*time.Second, "the last number of "+string(id)+" is there", func() bool { return v.newest(id) >= last })
	v.mu.Lock()
	got := slices.Clone(v.events[id])
	v.mu.Unlock()
	series(t, string(id), got, 1, last, 0)
}

// TestProgramsOneIDAtOnce: three programs of one id wait for the server and begin
// at the same moment; the stores are there before, or come later, or the programs
// cannot even ask for each other. In the end each is a source of its own.
func TestProgramsOneIDAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		stores int
		late   bool
		change []func(*server.Options)
	}{
		"one store":                 {stores: 1},
		"two stores":                {stores: 2},
		"stores that come late":     {stores: 2, late: true},
		"one store and no claims":   {stores: 1, change: []func(*server.Options){without}},
		"two stores and no claims":  {stores: 2, change: []func(*server.Options){without}},
		"stores late and no claims": {stores: 2, late: true, change: []func(*server.Options){without}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newServer(t, freePorts(t, 1)[0], c.change...)
			var loads []*load
			for i := range 3 {
				loads = append(loads, twin(t, srv.url(), fmt.Sprint("program ", i+1)))
			}
			srv.up()
			if c.late {
				if err := store.EnsureStreams(t.Context(), jetStream(t, srv.url()), subjects.DefaultSpace, subjects.Storage{}); err != nil {
					t.Fatal(err)
				}
				until(t, 10*time.Second, "all programs publish", func() bool {
					return !slices.ContainsFunc(loads, func(l *load) bool { return !l.p.Stats().Opened })
				})
			}
			var views []*view
			for i := range c.stores {
				views = append(views, watch(fmt.Sprint("store ", i+1), startStore(t, srv.url(), subjects.Storage{}, brisk).Replica()))
			}
			views = append(views, openView(t, "a replica", srv.url(), brisk))
			staysApart(t, 20*time.Second, views, loads...)
			ids := make(map[subjects.SourceID]bool)
			for _, l := range loads {
				ids[l.p.ID()] = true
			}
			// Whoever was told apart twice may leave a number free, but somebody has the id that all wanted.
			if !ids["twin-1"] {
				t.Errorf("nobody is twin-1: %v", ids)
			}
			for _, v := range views {
				for _, l := range loads {
					if id := l.p.ID(); id != "twin-1" && len(noticed(v, id)) == 0 {
						t.Errorf("%s: %s does not say why it has this id", v.name, id)
					}
				}
			}
		})
	}
}

// TestNoClaimsInTurn: where programs cannot ask for each other, stores keep the
// first one under its id, whether there is one store or two.
func TestNoClaimsInTurn(t *testing.T) {
	for stores := 1; stores <= 2; stores++ {
		t.Run(fmt.Sprint(stores), func(t *testing.T) {
			t.Parallel()
			srv := startServer(t, without)
			var views []*view
			for i := range stores {
				views = append(views, watch(fmt.Sprint("store ", i+1), startStore(t, srv.url(), subjects.Storage{}, brisk).Replica()))
			}
			views = append(views, openView(t, "a replica", srv.url(), brisk))
			first := twin(t, srv.url(), "the first")
			staysApart(t, 5*time.Second, views, first)
			second := twin(t, srv.url(), "the second")
			until(t, 5*time.Second, "the second one has moved", func() bool { return second.p.ID() != "twin-1" })
			staysApart(t, 5*time.Second, views, first, second)
			if first.p.ID() != "twin-1" || second.p.ID() != "twin-1-2" || first.p.Stats().Reopened != 1 {
				t.Errorf("the first is %s after %d more openings, the second %s", first.p.ID(), first.p.Stats().Reopened, second.p.ID())
			}
			for _, v := range views {
				a, b := noticed(v, "twin-1"), noticed(v, "twin-1-2")
				if len(a) != 1 || !strings.Contains(a[0], "the second") || len(b) != 1 || !strings.Contains(b[0], "the first") {
					t.Errorf("%s: they say %q, %q", v.name, a, b)
				}
			}
		})
	}
}

// known is a source process as it calls itself now.
func known(p *process) (id subjects.SourceID, generation subjects.Generation, opened bool) {
	var c sourceCost
	p.ask("cost", &c)
	return c.Stats.ID, c.Stats.Generation, c.Stats.Opened
}

// TestRestartKeepsTheID: a process that is killed and started again at once has its id
// within a second of its start, every time, and no view ever shows another source.
func TestRestartKeepsTheID(t *testing.T) {
	srv := startServer(t)
	views := []*view{watch("the store", startStore(t, srv.url(), subjects.Storage{}, subjects.Limits{}).Replica()), openView(t, "a replica", srv.url(), subjects.Limits{})}
	config := sourceConfig{URL: srv.url(), Service: "phoenix", Instance: "1", Nodes: 5, PerSecond: 20}
	var ready sourceReady
	p := spawn(t, "source", config, &ready)
	p.ask("flush", nil)
	for range 4 {
		p.kill()
		p = spawn(t, "source", config, &ready)
		begun := time.Now()
		explained(t, time.Second, func() (bool, string) {
			id, generation, opened := known(p)
			shown := false
			views[1].source(id, func(s *fold.Source) { shown = s.Connected && s.Generation == generation })
			return id == "phoenix-1" && opened && shown, fmt.Sprintf("it is %s, opened %v, shown %v", id, opened, shown)
		})
		t.Logf("there again %v after its start", time.Since(begun))
	}
	for _, v := range views {
		v.View(func(s *fold.Space) {
			if len(s.Sources()) != 1 || s.Sources()[0].FaultCount != 0 {
				t.Errorf("%s shows %d sources, faults %+v", v.name, len(s.Sources()), s.Sources()[0].Faults)
			}
		})
	}
}

// TestFrozenWhileRestarted: a process stands still (SIGSTOP) while another one is
// started in its place. The new one has the id within about a second; the old one
// does not fight for it when it wakes up, but goes on under another id and says so.
func TestFrozenWhileRestarted(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	var views []*view
	for i := range 2 {
		views = append(views, watch(fmt.Sprint("store ", i+1), startStore(t, srv.url(), subjects.Storage{}, subjects.Limits{}).Replica()))
	}
	config := sourceConfig{URL: srv.url(), Service: "lid", Instance: "1", Nodes: 5, PerSecond: 20}
	var ready sourceReady
	old := spawn(t, "source", config, &ready)
	old.ask("flush", nil)
	old.freeze()
	next := spawn(t, "source", config, &ready)
	explained(t, 2*time.Second, func() (bool, string) {
		id, _, opened := known(next)
		return id == "lid-1" && opened, fmt.Sprintf("the new one is %s, open %v", id, opened)
	})
	_, generation, _ := known(next)
	until(t, 5*time.Second, "the stores are sure", func() bool {
		var c sourceCost
		next.ask("cost", &c)
		return c.Stats.Admitted
	})
	old.thaw()
	explained(t, 10*time.Second, func() (bool, string) {
		id, _, opened := known(old)
		return id == "lid-1-2" && opened, fmt.Sprintf("the old one is %s, open %v", id, opened)
	})
	for _, v := range views {
		until(t, 5*time.Second, v.name+" shows both, with their trees", func() bool {
			return v.connected("lid-1") && v.connected("lid-1-2") && len(v.backends("lid-1")) == 6 && len(v.backends("lid-1-2")) == 6
		})
		v.source("lid-1", func(s *fold.Source) {
			if s.Generation != generation {
				t.Errorf("%s: the new one is shown as %s, it was %s", v.name, s.Generation, generation)
			}
		})
		until(t, 5*time.Second, v.name+" hears why", func() bool { return len(noticed(v, "lid-1-2")) == 1 })
	}
}

// TestLateGoodbye: the goodbye of a program reaches the stream after the program
// that took its place has opened. It closes nothing.
func TestLateGoodbye(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	v := watch("the store", startStore(t, srv.url(), subjects.Storage{}, brisk).Replica())
	network := newProxy(t, srv.opt.Port)
	old := twin(t, network.url(), "the old one")
	staysApart(t, 5*time.Second, []*view{v}, old)
	network.freeze(true)
	old.stop()
	closed := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		closed <- old.p.Close(ctx)
	}()
	next := twin(t, srv.url(), "the new one")
	explained(t, 3*time.Second, func() (bool, string) { why := apart(v, next); return why == "", why })
	network.freeze(false)
	if err := <-closed; err != nil {
		t.Errorf("the goodbye was not delivered: %v", err)
	}
	until(t, 5*time.Second, "the goodbye is read", func() (late bool) {
		v.source("twin-1", func(s *fold.Source) { late = s.Late > 0 })
		return late
	})
	staysApart(t, 5*time.Second, []*view{v}, next)
	if next.p.ID() != "twin-1" || v.count("twin-1", fold.SourceClosed) != 0 {
		t.Errorf("the new one is %s; %d goodbyes were shown", next.p.ID(), v.count("twin-1", fold.SourceClosed))
	}
}
