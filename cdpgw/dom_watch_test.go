package cdpgw

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/source"
	"github.com/natscope/natscope/subjects/tree"
)

// A node that reads what it shows on demand hears when a client opens it, and
// when the client has dropped the document, begun anew, or gone.
func TestWatchedNodes(t *testing.T) {
	m := newMemory(t, subjects.Limits{})
	app := func(id tree.NodeID) *tree.Node {
		return &tree.Node{ID: 1, Name: "app", Children: []tree.Node{{ID: id, Name: "process", Values: map[string]json.RawMessage{"watched": json.RawMessage("false")}, ValueKinds: map[string]string{"watched": tree.KindWatched}, Children: []tree.Node{{ID: id + 1, Name: "build"}}}}}
	}
	m.open("orders", gen1, source.Descriptor{Name: "orders", Capabilities: []string{"tree.watch"}})
	m.snapshot("orders", gen1, 1, app(7))
	m.open("old", gen1, source.Descriptor{Name: "old"})
	m.snapshot("old", gen1, 1, app(7))
	s, server := scripted(t, m)
	c := dial(t, server, "dev")
	var doc documentResult
	open := func() {
		t.Helper()
		c.call("DOM.getDocument", map[string]int{"depth": 4}, &doc)
		for _, host := range byName(doc.Root, "workspace").Children[:2] {
			c.call("DOM.requestChildNodes", map[string]any{"nodeId": byName(host, "process").NodeID}, nil)
		}
	}
	has := func(want ...string) {
		t.Helper()
		all := strings.Join(want, "\n")
		s.until(t, all, func(sent []sent) bool { return told(sent) == all })
	}
	c.call("DOM.getDocument", map[string]int{"depth": 4}, &doc)
	c.sync()
	has()
	open()
	want := []string{`orders tree.watch {"id":7,"active":true}`}
	has(want...)
	// To open it again, or something else, says nothing new.
	c.call("DOM.requestChildNodes", map[string]any{"nodeId": byName(doc.Root, "process").NodeID, "depth": -1}, nil)
	c.call("DOM.disable", nil, nil)
	want = append(want, `orders tree.watch {"id":7}`)
	has(want...)
	open()
	want = append(want, `orders tree.watch {"id":7,"active":true}`)
	has(want...)
	// The program begins anew: what the client had open is gone.
	m.open("orders", gen2, source.Descriptor{Name: "orders", Capabilities: []string{"tree.watch"}})
	m.snapshot("orders", gen2, 1, app(9))
	want = append(want, `orders tree.watch {"id":7}`)
	has(want...)
	open()
	want = append(want, `orders tree.watch {"id":9,"active":true}`)
	has(want...)
	_ = c.ws.Close()
	has(append(want, `orders tree.watch {"id":9}`)...)
}
