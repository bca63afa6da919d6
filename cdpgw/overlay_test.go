package cdpgw

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/natscope/natscope/store/command"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/source"
	"github.com/natscope/natscope/subjects/tree"
)

// told lists commands as "source method params".
func told(all []sent) string {
	var out []string
	for _, x := range all {
		out = append(out, fmt.Sprintf("%s %s %s", x.source, x.method, x.params))
	}
	return strings.Join(out, "\n")
}

func TestHighlight(t *testing.T) {
	m := editableShop(t)
	s, server := scripted(t, m)
	c := dial(t, server, "dev")
	var doc documentResult
	c.call("DOM.getDocument", map[string]int{"depth": -1}, &doc)
	n, other := byName(doc.Root, "Cart"), byName(doc.Root, "Router")
	c.call("Overlay.enable", nil, nil)
	has := func(want string) {
		t.Helper()
		s.until(t, want, func(all []sent) bool { return strings.HasSuffix(told(all), want) })
	}
	c.call("Overlay.highlightNode", map[string]any{"nodeId": n.NodeID}, nil)
	has(`page tree.highlight {"id":2}`)
	c.call("Overlay.highlightNode", map[string]any{"backendNodeId": byName(doc.Root, "App").BackendNodeID}, nil)
	// A program that shows nothing ends what is shown elsewhere.
	c.call("Overlay.highlightNode", map[string]any{"nodeId": other.NodeID}, nil)
	has(`page tree.highlight {"id":0}`)
	c.call("Overlay.highlightNode", map[string]any{"nodeId": n.NodeID}, nil)
	has(`page tree.highlight {"id":2}`)
	c.call("Overlay.hideHighlight", nil, nil)
	has(`page tree.highlight {"id":0}`)
	// What is shown when the connection ends is taken back.
	c.call("Overlay.highlightNode", map[string]any{"nodeId": n.NodeID}, nil)
	has(`page tree.highlight {"id":2}`)
	_ = c.ws.Close()
	has(`page tree.highlight {"id":0}`)
}

// While a source shows one node, only the newest of the others is kept for it, and nothing waits.
func TestNewestHighlightWins(t *testing.T) {
	m := editableShop(t)
	s, server := scripted(t, m)
	c := dial(t, server, "dev")
	var doc documentResult
	c.call("DOM.getDocument", map[string]int{"depth": -1}, &doc)
	page := byName(byName(doc.Root, "client"), "App")
	n := byName(doc.Root, "Cart")
	release := make(chan struct{})
	s.set(func(sent) (any, error) { <-release; return nil, nil })
	c.call("Overlay.highlightNode", map[string]any{"nodeId": n.NodeID}, nil)
	s.until(t, "the first", func(all []sent) bool { return len(all) == 1 })
	start := time.Now()
	for range 200 {
		c.call("Overlay.highlightNode", map[string]any{"nodeId": page.NodeID}, nil)
		c.call("Overlay.highlightNode", map[string]any{"nodeId": n.NodeID}, nil)
	}
	c.call("Overlay.highlightNode", map[string]any{"nodeId": page.NodeID}, nil)
	if d := time.Since(start); d > patience/2 {
		t.Errorf("401 highlights took %v while the source shows one", d)
	}
	close(release)
	all := s.until(t, "the newest", func(all []sent) bool { return len(all) == 2 })
	if got := told(all); got != "page tree.highlight {\"id\":2}\npage tree.highlight {\"id\":1}" {
		t.Error(got)
	}
}

func TestPick(t *testing.T) {
	m := editableShop(t)
	s, server := scripted(t, m)
	c := dial(t, server, "dev")
	c.node("Cart")
	c.call("Overlay.enable", nil, nil)
	has := func(want ...string) []sent {
		t.Helper()
		return s.until(t, strings.Join(want, ", "), func(all []sent) bool {
			for _, w := range want {
				if !strings.Contains(told(all), w) {
					return false
				}
			}
			return true
		})
	}
	begin := func() {
		c.call("Overlay.setInspectMode", map[string]any{"mode": "searchForNode", "highlightConfig": map[string]any{}}, nil)
	}
	begin()
	session := has(`page tree.pick {"active":true}`)[0].session
	tell := func(event, data string) {
		s.listener(command.Event{Source: "page", Session: subjects.SessionID(session.ID), Event: realm.Event{Event: event, Data: []byte(data)}})
	}
	// A page that comes while somebody picks joins.
	m.open("second", gen1, source.Descriptor{Name: "second", Kind: source.KindClient, Capabilities: []string{"tree.pick"}})
	has(`second tree.pick {"active":true}`)
	from := c.count()
	tell(realm.EventHighlighted, `{"id":2}`)
	var h nodeHighlightEvent
	from = c.event(from, "Overlay.nodeHighlightRequested", &h)
	tell(realm.EventHighlighted, `{"id":0}`)
	tell(realm.EventHighlighted, `rubbish`)
	tell("dance", `{"id":2}`)
	tell(realm.EventPicked, `{"id":2}`)
	var e inspectNodeEvent
	from = c.event(from, "Overlay.inspectNodeRequested", &e)
	has(`page tree.pick {"active":false}`, `second tree.pick {"active":false}`)
	var pushed struct{ NodeIDs []NodeID }
	c.call("DOM.pushNodesByBackendIdsToFrontend", map[string]any{"backendNodeIds": []tree.BackendNodeID{e.BackendNodeID}}, &pushed)
	if len(pushed.NodeIDs) != 1 || pushed.NodeIDs[0] != h.NodeID {
		t.Errorf("picked %v, pointed at %d", pushed.NodeIDs, h.NodeID)
	}
	// Nobody picks any more: what comes late is nothing.
	tell(realm.EventPicked, `{"id":1}`)
	begin()
	s.until(t, "it picks again", func(all []sent) bool { return strings.Count(told(all), `page tree.pick {"active":true}`) == 2 })
	tell(realm.EventPicked, `{"id":0}`)
	c.event(from, "Overlay.inspectModeCanceled", nil)
	all, _, _ := c.snapshot()
	n := 0
	for _, x := range all {
		if x.Method == "Overlay.inspectNodeRequested" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d nodes were shown", n)
	}
	begin()
	c.call("Overlay.setInspectMode", map[string]any{"mode": "none"}, nil)
	s.until(t, "it ends", func(all []sent) bool {
		on, off := strings.Count(told(all), `page tree.pick {"active":true}`), strings.Count(told(all), `page tree.pick {"active":false}`)
		return on == off
	})
	c.sync()
	c.valid()
}

// Where no page can pick, and when the last one goes, DevTools hears that nothing will come.
func TestPickOfNobody(t *testing.T) {
	m := editableShop(t)
	s, server := scripted(t, m)
	begin := map[string]any{"mode": "searchForNode", "highlightConfig": map[string]any{}}
	hosts, c := dial(t, server, "dev?kind=host"), dial(t, server, "dev")
	for _, x := range []*client{hosts, c} {
		x.call("Overlay.enable", nil, nil)
		x.call("Overlay.setInspectMode", begin, nil)
	}
	hosts.event(0, "Overlay.inspectModeCanceled", nil)
	s.until(t, "the page picks", func(all []sent) bool { return strings.Contains(told(all), `page tree.pick {"active":true}`) })
	from := c.count()
	m.Presence("page", false)
	c.event(from, "Overlay.inspectModeCanceled", nil)
	c.valid()
}

// A source shows one of its nodes, in every DevTools that listens and in no other.
func TestReveal(t *testing.T) {
	m := editableShop(t)
	_, server := scripted(t, m)
	c, quiet, elsewhere := dial(t, server, "dev"), dial(t, server, "dev"), dial(t, server, "dev/orders")
	for _, x := range []*client{c, elsewhere} {
		x.call("Overlay.enable", nil, nil)
	}
	reveal := func(data string) {
		m.Publish("page", gen2, subjects.PlaneEvent, subjects.Record{T: 1, Topic: realm.RevealTopic, Data: []byte(data)})
	}
	reveal(`{"id":2}`)
	var e inspectNodeEvent
	from := c.event(0, "Overlay.inspectNodeRequested", &e)
	if e.BackendNodeID == 0 {
		t.Error("no node")
	}
	reveal(`"x"`)
	reveal(`{"id":0}`)
	// The node's own record comes later.
	reveal(`{"id":9}`)
	m.ops("page", gen2, 2, tree.Op{Op: tree.OpAdd, Parent: 1, Node: &tree.Node{ID: 9, Name: "Late"}})
	first := e.BackendNodeID
	c.event(from, "Overlay.inspectNodeRequested", &e)
	if e.BackendNodeID == first {
		t.Error("the node from before is shown again")
	}
	for _, x := range []*client{quiet, elsewhere} {
		x.sync()
		all, _, _ := x.snapshot()
		if strings.Contains(strings.Join(methodsOf(all), " "), "inspectNodeRequested") {
			t.Error("who did not ask is shown a node")
		}
	}
	c.valid()
}

// What is shown is told again before sources forget it, and a lane that has nothing to tell is gone.
func TestOverlayRenewal(t *testing.T) {
	var mu sync.Mutex
	var got []string
	var work sync.WaitGroup
	l := newOverlayLanes(work.Go, func(_ context.Context, at realmOf, m realm.Method, params any) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, fmt.Sprint(at.source, " ", m, " ", params))
	})
	a := realmOf{"a", gen1}
	l.highlight(a, 3)
	l.pick([]realmOf{a})
	work.Wait()
	l.repeat()
	work.Wait()
	l.highlight(realmOf{}, 0)
	work.Wait()
	l.repeat()
	work.Wait()
	l.end()
	l.highlight(a, 5)
	l.repeat()
	l.end()
	work.Wait()
	mu.Lock()
	defer mu.Unlock()
	want := "a tree.highlight {3}|a tree.pick {true}|a tree.highlight {3}|a tree.pick {true}|a tree.highlight {0}|a tree.pick {true}|a tree.pick {false}"
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("%s\nwant %s", s, want)
	}
	if len(l.lanes) != 0 {
		t.Errorf("%d lanes are left", len(l.lanes))
	}
}
