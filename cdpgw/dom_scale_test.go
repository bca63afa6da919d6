package cdpgw

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/source"
	"github.com/natscope/natscope/subjects/tree"
)

// watcher is a session with everything open, and a strict client behind it.
func watcher(t *testing.T, g *Gateway) *follower {
	t.Helper()
	s := offline(g, target{space: "dev"})
	t.Cleanup(s.conn.cancel)
	g.hub.add(s)
	f := &follower{s, newModel()}
	perform(s, "DOM.getDocument", map[string]int{"depth": -1})
	messages, _ := s.conn.queue.take()
	s.conn.queue.sent()
	var r received
	if err := json.Unmarshal(messages[len(messages)-1].bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if err := f.m.trusted(r.Result); err != nil {
		t.Fatal(err)
	}
	return f
}

// counts returns how many events of each kind a session queued, after they were applied to its model.
func (f *follower) counts(t *testing.T) events {
	t.Helper()
	return counted(t, f.s, f.m)
}

// fiber is a Fiber with the Context that it owns, under which children are.
func fiber(uid int, children ...tree.Node) tree.Node {
	return tree.Node{
		ID: tree.NodeID(2 * uid), Kind: tree.KindFiber, Name: "Fiber", Object: tree.ObjectRef(fmt.Sprint("f", uid)),
		Attrs: []tree.Attr{{Name: "uid", Value: fmt.Sprint(uid)}},
		Children: []tree.Node{{
			ID: tree.NodeID(2*uid + 1), Kind: tree.KindContext, Name: "Context", Object: tree.ObjectRef(fmt.Sprint("c", uid)), Children: children,
		}},
	}
}

// TestFiveThousandFibers follows a Cordis tree far beyond what one process'
// inspector could show: every change is one event, none is late, no count is stale.
func TestFiveThousandFibers(t *testing.T) {
	const fibers = 5000
	m := newMemory(t, subjects.Limits{CordisNodes: 20_000})
	m.open("bot", gen1, source.Descriptor{Name: "bot"})
	root := &tree.Node{ID: 1, Kind: tree.KindContext, Name: "Context", Object: "root"}
	for uid := 1; uid <= fibers; uid += 10 {
		var below []tree.Node
		for k := 1; k < 10; k++ {
			below = append(below, fiber(uid+k))
		}
		root.Children = append(root.Children, fiber(uid, below...))
	}
	m.Publish("bot", gen1, subjects.PlaneTree, record(1, tree.TopicSnapshot, tree.Snapshot{Version: tree.SchemaVersion, Profile: tree.ProfileCordis, Revision: 1, Root: root}))
	if n, f := m.Space().Source("bot").Tree.Len(), m.Space().Source("bot").Faults; n != 2*fibers+1 || len(f) > 0 {
		t.Fatalf("%d nodes, %v", n, f)
	}
	g, err := New(Options{State: m})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Close(t.Context()) }()
	f := watcher(t, g)
	closed := offline(g, target{space: "dev"})
	defer closed.conn.cancel()
	g.hub.add(closed)
	perform(closed, "DOM.getDocument", nil)
	closed.conn.queue.take()
	closed.conn.queue.sent()
	// A second of sixty changes: plugins come under one Context and go again.
	for i := range 60 {
		n := fiber(fibers + 1 + i)
		m.ops("bot", gen1, uint64(2+i), tree.Op{Op: tree.OpAdd, Parent: 3, After: 0, Node: &n})
		if got := f.counts(t); got != (events{inserted: 1}) {
			t.Fatalf("a plugin that comes: %+v", got)
		}
	}
	for i := range 60 {
		m.ops("bot", gen1, uint64(62+i), tree.Op{Op: tree.OpRemove, ID: tree.NodeID(2 * (fibers + 1 + i))})
		if got := f.counts(t); got != (events{removed: 1}) {
			t.Fatalf("a plugin that goes: %+v", got)
		}
	}
	if messages, _ := closed.conn.queue.take(); len(messages) != 0 {
		t.Errorf("a client that has nothing open was told %s", messages[0].bytes())
	}
}

// TestTwoHundredFiftyLevels nests plugins as deep as a tree may be.
func TestTwoHundredFiftyLevels(t *testing.T) {
	const levels = 250
	m := newMemory(t, subjects.Limits{})
	m.open("bot", gen1, source.Descriptor{Name: "bot"})
	inner := fiber(levels)
	for uid := levels - 1; uid >= 1; uid-- {
		inner = fiber(uid, inner)
	}
	root := &tree.Node{ID: 1, Kind: tree.KindContext, Name: "Context", Object: "root", Children: []tree.Node{inner}}
	m.Publish("bot", gen1, subjects.PlaneTree, record(1, tree.TopicSnapshot, tree.Snapshot{Version: tree.SchemaVersion, Profile: tree.ProfileCordis, Revision: 1, Root: root}))
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	c.call("DOM.getDocument", nil, nil)
	// The deepest one is found, and the client is led to it step by step.
	if got := c.find(fmt.Sprintf(`Fiber[uid="%d"] > Context`, levels)); got != "Context" {
		t.Fatalf("found %q", got)
	}
	from := c.count()
	last := fiber(levels + 1)
	m.ops("bot", gen1, 2, tree.Op{Op: tree.OpAdd, Parent: 2*levels + 1, Node: &last})
	c.event(from, "DOM.childNodeCountUpdated", nil)
	var whole documentResult
	c.call("DOM.getDocument", map[string]int{"depth": -1}, &whole)
	depth := 0
	for n := whole.Root; n != nil; depth++ {
		next := n.Children
		n = nil
		if len(next) > 0 {
			n = next[0]
		}
	}
	if want := 3 + 1 + 2*(levels+1); depth != want {
		t.Errorf("%d levels, want %d", depth, want)
	}
}

// TestManyRealmsAtOnce changes one of forty trees of a thousand nodes: whoever
// looks at all of them hears of that one node and of nothing else.
func TestManyRealmsAtOnce(t *testing.T) {
	const realms, nodes = 40, 1000
	m := newMemory(t, subjects.Limits{})
	for i := range realms {
		id := subjects.SourceID(fmt.Sprint("page", i))
		m.open(id, gen1, source.Descriptor{Name: string(id), Kind: source.KindClient})
		root := &tree.Node{ID: 1, Name: "App"}
		for n := 2; n <= nodes; n++ {
			root.Children = append(root.Children, tree.Node{ID: tree.NodeID(n), Name: "Row"})
		}
		m.snapshot(id, gen1, 1, root)
	}
	g, err := New(Options{State: m})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Close(t.Context()) }()
	var all []*follower
	for range 2 {
		all = append(all, watcher(t, g))
	}
	for i := range 2 * realms {
		id := subjects.SourceID(fmt.Sprint("page", i%realms))
		m.ops(id, gen1, uint64(2+i/realms), tree.Op{Op: tree.OpUpdate, Node: &tree.Node{ID: 500, Name: "Row", Attrs: []tree.Attr{{Name: "i", Value: fmt.Sprint(i)}}}})
		for _, f := range all {
			if got := f.counts(t); got != (events{attributes: 1}) {
				t.Fatalf("change %d: %+v", i, got)
			}
		}
	}
	m.Remove("page7")
	if got := all[0].counts(t); got != (events{removed: 1}) {
		t.Errorf("an evicted source: %+v", got)
	}
}

// TestFiftyExpansions lets fifty clients open the same changing trees each in its own way.
func TestFiftyExpansions(t *testing.T) {
	e := newEditor(t, 99)
	g, err := New(Options{State: e.m})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Close(t.Context()) }()
	var all []*follower
	for i := range 50 {
		s := offline(g, target{space: "dev"})
		defer s.conn.cancel()
		g.hub.add(s)
		f := &follower{s, newModel()}
		perform(s, "DOM.getDocument", map[string]int{"depth": 1 + i%5})
		drain(t, s, f.m)
		all = append(all, f)
	}
	for range 25 {
		e.step()
		for _, f := range all {
			drain(t, f.s, f.m)
			f.expand(t, e.r)
		}
	}
	for _, f := range all {
		f.compare(t, g)
	}
}

// TestNodeIDsStay changes everything around a node: it keeps its number.
func TestNodeIDsStay(t *testing.T) {
	m := shop(t)
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	var doc documentResult
	c.call("DOM.getDocument", map[string]int{"depth": -1}, &doc)
	route := byName(doc.Root, "Route")
	stays := func(when string) {
		t.Helper()
		var ids nodeIDs
		c.call("DOM.pushNodesByBackendIdsToFrontend", map[string]any{"backendNodeIds": []tree.BackendNodeID{route.BackendNodeID}}, &ids)
		if ids.NodeIDs[0] != route.NodeID {
			t.Errorf("after %s the node is %d, it was %d", when, ids.NodeIDs[0], route.NodeID)
		}
	}
	m.ops("orders", gen1, 2, tree.Op{Op: tree.OpRemove, ID: 2}, tree.Op{Op: tree.OpAdd, Parent: 3, Node: &tree.Node{ID: 9, Name: "Route"}})
	stays("its siblings changed")
	m.snapshot("orders", gen1, 3, &tree.Node{ID: 1, Name: "App", Children: []tree.Node{
		{ID: 3, Name: "Router", Children: []tree.Node{{ID: 9, Name: "Route"}, {ID: 4, Name: "Route", Attrs: []tree.Attr{{Name: "path", Value: "/other"}}}, {ID: 10, Name: "Route"}}},
	}})
	stays("a whole snapshot")
	m.Remove("page")
	m.open("another", gen1, source.Descriptor{Name: "another"})
	stays("other sources came and went")
	m.Presence("orders", false)
	stays("its source was lost")
	m.open("orders", gen2, source.Descriptor{Name: "orders", Realm: source.RealmID(gen1)})
	m.snapshot("orders", gen2, 1, &tree.Node{ID: 1, Name: "App", Children: []tree.Node{{ID: 3, Name: "Router", Children: []tree.Node{{ID: 4, Name: "Route"}}}}})
	stays("its source came back in the same realm")
	c.valid()
}
