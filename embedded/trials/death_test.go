package trials

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// deathWithin is how soon every gateway shows that a source is dead.
const deathWithin = 8 * time.Second

// seenDead waits until gateways and replicas show that a source is gone, and returns how long it took.
func seenDead(t *testing.T, since time.Time, id subjects.SourceID, gateways []string, views []*view) time.Duration {
	t.Helper()
	for _, v := range views {
		until(t, deathWithin-time.Since(since), v.name+" shows that "+string(id)+" is gone", func() bool { return !v.connected(id) })
	}
	for _, g := range gateways {
		explained(t, deathWithin-time.Since(since), func() (bool, string) {
			titles := rows(t, g, string(id))
			return len(titles) == 1 && strings.HasSuffix(titles[0], "(disconnected)"), "the list shows once that it is disconnected: " + strings.Join(titles, ", ")
		})
	}
	return time.Since(since)
}

// TestH4SourceIsKilled, with B3 and H11: a source dies without a word. Its
// running requests end as failed, every gateway shows it within eight seconds,
// and whoever asks it hears at once that nobody is there. Started again it is
// the same source, in the same row, under the same address.
func TestH4SourceIsKilled(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	st := startStore(t, srv.url(), subjects.Storage{}, subjects.Limits{})
	views := []*view{watch("the store", st.Replica()), openView(t, "a replica", srv.url(), subjects.Limits{})}
	gateways := []string{startGateway(t, srv.url(), subjects.Limits{}), startGateway(t, srv.url(), subjects.Limits{})}
	config := sourceConfig{URL: srv.url(), Service: "orders", Instance: "blue", Nodes: 20, PerSecond: 50}
	var first sourceReady
	p := spawn(t, "source", config, &first)
	p.ask("request r-open", nil)
	p.ask("flush", nil)
	id := first.ID
	dt := dial(t, gateways[0], "dev/"+string(id))
	dt.call("Runtime.enable", nil)
	dt.call("Network.enable", nil)
	for _, v := range views {
		until(t, patience, v.name+" has the running request", func() (ok bool) {
			v.source(id, func(s *fold.Source) {
				q := s.Net.Get(string(first.Generation), "r-open")
				ok = s.Connected && s.Tree.Len() == 21 && q != nil && q.Ending == network.Running
			})
			return ok
		})
	}

	p.kill()
	died := time.Now()
	nc := connect(t, srv.url())
	explained(t, time.Second, func() (bool, string) {
		_, err := nc.Request(subjects.Command(subjects.DefaultSpace, id, first.Generation), []byte(`{"method":"ping"}`), 5*time.Second)
		return errors.Is(err, nats.ErrNoResponders), "case H11: a command to the dead source is refused at once: " + jsonOf(err)
	})
	t.Logf("dead everywhere after %v", seenDead(t, died, id, gateways, views))
	for _, v := range views {
		v.source(id, func(s *fold.Source) {
			if q := s.Net.Get(string(first.Generation), "r-open"); q.Ending != network.SourceGone || q.Error == nil {
				t.Errorf("%s: the running request ended as %q, %+v", v.name, q.Ending, q.Error)
			}
			if s.Tree.Len() != 21 {
				t.Errorf("%s: of the tree %d nodes are left", v.name, s.Tree.Len())
			}
		})
	}
	until(t, 2*time.Second, "DevTools hears that the request failed", func() bool { return len(dt.events("Network.loadingFailed")) == 1 })

	// Case B3: the same name, another process.
	var second sourceReady
	again := spawn(t, "source", config, &second)
	again.ask("flush", nil)
	if second.ID != id || second.Generation <= first.Generation {
		t.Errorf("the restarted source is %+v, it was %+v", second, first)
	}
	for _, v := range views {
		until(t, 5*time.Second, v.name+" shows the source again", func() (ok bool) {
			v.source(id, func(s *fold.Source) {
				ok = s.Connected && s.Generation == second.Generation && s.Tree.Len() == 21 && !s.Tree.Detached
			})
			return ok
		})
		if n := v.count(id, fold.SourceAdded); v != views[0] && n > 1 {
			t.Errorf("%s: the source was added %d times", v.name, n)
		}
	}
	for _, g := range gateways {
		explained(t, 5*time.Second, func() (bool, string) {
			titles := rows(t, g, string(id))
			return slices.Equal(titles, []string{"orders"}), "one living row: " + strings.Join(titles, ", ")
		})
		saved := dial(t, g, "dev/"+string(id))
		if m := saved.call("DOM.getDocument", map[string]any{"depth": -1}); m.Error != nil || !strings.Contains(string(m.Result), "worker") {
			t.Errorf("the saved address no longer opens the source: %s %+v", m.Result, m.Error)
		}
	}
	until(t, 5*time.Second, "the open DevTools gets a new context", func() bool {
		return len(dt.events("Runtime.executionContextDestroyed")) > 0 && len(dt.events("Runtime.executionContextCreated")) >= 3
	})
	if err := dt.lost(); err != nil {
		t.Errorf("the open DevTools lost its connection: %v", err)
	}
	again.terminate(10 * time.Second)
	until(t, 2*time.Second, "a goodbye is seen at once", func() bool { return !views[1].connected(id) })
}

// TestB6SourceIsFrozen: a source stands still for longer than the presence
// patience, as a suspended machine does, so long that the server drops its
// connection. It is shown as disconnected with its tree kept, and returns as the
// same source with the same nodes.
func TestB6SourceIsFrozen(t *testing.T) {
	t.Parallel()
	srv := startServer(t, func(o *natsOptions) { o.PingInterval, o.MaxPingsOut = time.Second, 2 })
	st := startStore(t, srv.url(), subjects.Storage{}, subjects.Limits{})
	views := []*view{watch("the store", st.Replica()), openView(t, "a replica", srv.url(), subjects.Limits{})}
	gateways := []string{startGateway(t, srv.url(), subjects.Limits{}), startGateway(t, srv.url(), subjects.Limits{})}
	var ready sourceReady
	p := spawn(t, "source", sourceConfig{URL: srv.url(), Service: "laptop", Instance: "1", Nodes: 50, PerSecond: 50}, &ready)
	p.ask("flush", nil)
	id := ready.ID
	for _, v := range views {
		until(t, patience, v.name+" has the tree", func() bool { return len(v.backends(id)) == 51 })
	}
	before := views[1].backends(id)
	dt := dial(t, gateways[0], "dev/"+string(id))
	document := dt.call("DOM.getDocument", map[string]any{"depth": -1}).Result

	p.freeze()
	frozen := time.Now()
	t.Logf("seen as gone after %v", seenDead(t, frozen, id, gateways, views))
	for _, v := range views {
		if d := differentNodes(before, v.backends(id)); d != "" {
			t.Errorf("%s, while the source is frozen: %s", v.name, d)
		}
	}
	p.thaw()
	back := time.Now()
	for _, v := range views {
		until(t, 5*time.Second, v.name+" shows that it is back", func() bool { return v.connected(id) })
	}
	t.Logf("back after %v", time.Since(back))
	p.ask("console 12345678", nil)
	p.ask("flush", nil)
	for _, v := range views {
		until(t, 5*time.Second, v.name+" is current", func() bool {
			v.mu.Lock()
			defer v.mu.Unlock()
			return slices.Contains(v.lines[id], 12345678)
		})
		v.source(id, func(s *fold.Source) {
			if s.Generation != ready.Generation || s.Lost() != 0 || s.FaultCount != 0 {
				t.Errorf("%s: generation %s (was %s), %d lost, faults %+v", v.name, s.Generation, ready.Generation, s.Lost(), s.Faults)
			}
		})
		if d := differentNodes(before, v.backends(id)); d != "" {
			t.Errorf("%s, after the source is back: %s", v.name, d)
		}
		if n := v.count(id, fold.SourceOpened); n > 1 {
			t.Errorf("%s: the source opened %d times", v.name, n)
		}
	}
	for _, g := range gateways {
		explained(t, 2*time.Second, func() (bool, string) {
			titles := rows(t, g, string(id))
			return slices.Equal(titles, []string{"laptop"}), "one living row: " + strings.Join(titles, ", ")
		})
	}
	if n := len(dt.events("DOM.documentUpdated")); n != 0 {
		t.Errorf("DevTools was told %d times to forget the document, so that it folds everything up", n)
	}
	if again := dt.call("DOM.getDocument", map[string]any{"depth": -1}).Result; backendIDs(string(again)) != backendIDs(string(document)) {
		t.Errorf("DevTools sees other nodes than before:\n%.400s\n%.400s", document, again)
	}
}
