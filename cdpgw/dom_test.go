package cdpgw

import (
	"strings"
	"testing"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/source"
	"github.com/natscope/natscope/subjects/tree"
)

type documentResult struct {
	Root *domNode `json:"root"`
}

// outline writes a document as DevTools shows it, one element a line.
func outline(n *domNode, indent string, b *strings.Builder) {
	b.WriteString(indent + n.NodeName)
	for a := n.Attributes; len(a) > 1; a = a[2:] {
		b.WriteString(" " + a[0] + "=" + a[1])
	}
	if n.NodeValue != "" {
		b.WriteString(" " + n.NodeValue)
	}
	b.WriteString("\n")
	for _, c := range n.Children {
		outline(c, indent+" ", b)
	}
}

func (c *client) outline(depth int) string {
	c.t.Helper()
	var doc documentResult
	c.call("DOM.getDocument", map[string]int{"depth": depth}, &doc)
	var b strings.Builder
	outline(doc.Root, "", &b)
	return b.String()
}

// byName finds the first element with a name in a document of full depth.
func byName(n *domNode, name string) *domNode {
	if n.NodeName == name {
		return n
	}
	for _, c := range n.Children {
		if x := byName(c, name); x != nil {
			return x
		}
	}
	return nil
}

func TestDocumentShape(t *testing.T) {
	m := shop(t)
	m.Presence("billing", false)
	_, server := serve(t, m)
	for _, tc := range []struct{ path, want string }{
		{"dev", `#document
 workspace name=dev
  host name=orders
   App
    Worker queue=mail
     #text idle
    Router
     Route path=/cart
  host name=Billing Service id=billing state=disconnected
  clients
   client name=shop id=page url=http://shop.test/cart
    Page
`},
		{"dev/billing", "#document\n workspace name=dev\n  host name=Billing Service id=billing state=disconnected\n"},
		{"dev.billing", "#document\n workspace name=dev\n  host name=Billing Service id=billing state=disconnected\n"},
		{"dev/page", "#document\n workspace name=dev\n  clients\n   client name=shop id=page url=http://shop.test/cart\n    Page\n"},
		{"dev/none", "#document\n workspace name=dev\n"},
		{"dev?source=b*", "#document\n workspace name=dev\n  host name=Billing Service id=billing state=disconnected\n  clients\n"},
		{"dev?kind=client", "#document\n workspace name=dev\n  clients\n   client name=shop id=page url=http://shop.test/cart\n    Page\n"},
		{"dev?kind=host&source=Bill*", "#document\n workspace name=dev\n  host name=Billing Service id=billing state=disconnected\n"},
	} {
		if got := dial(t, server, tc.path).outline(-1); got != tc.want {
			t.Errorf("%s:\n%s\nwant\n%s", tc.path, got, tc.want)
		}
	}
}

// A target of a source that does not exist yet is an empty document that fills when it appears.
func TestSourceAppears(t *testing.T) {
	m := newMemory(t, subjects.Limits{})
	_, server := serve(t, m)
	c := dial(t, server, "dev/late")
	c.call("Page.enable", nil, nil)
	c.call("Runtime.enable", nil, nil)
	c.outline(2)
	m.open("other", gen1, source.Descriptor{Name: "other"})
	m.open("late", gen1, source.Descriptor{Name: "late"})
	var attached frameAttachedEvent
	at := c.event(0, "Page.frameAttached", &attached)
	if attached.FrameID != "source.late" || attached.ParentFrameID != "dev.late" {
		t.Errorf("frameAttached: %+v", attached)
	}
	var inserted childNodeInsertedEvent
	c.event(at, "DOM.childNodeInserted", &inserted)
	if inserted.Node.NodeName != "host" || inserted.Node.FrameID != "source.late" {
		t.Errorf("inserted %+v", inserted.Node)
	}
	c.sync()
	c.valid()
}

// Case C4: ids of a document that was asked for again are errors, not other nodes.
func TestGetDocumentAgain(t *testing.T) {
	_, server := serve(t, shop(t))
	c := dial(t, server, "dev")
	var first, second documentResult
	c.call("DOM.getDocument", nil, &first)
	c.call("DOM.getDocument", nil, &second)
	if first.Root.NodeID == second.Root.NodeID || first.Root.BackendNodeID != second.Root.BackendNodeID {
		t.Errorf("ids %d and %d, backend ids %d and %d", first.Root.NodeID, second.Root.NodeID, first.Root.BackendNodeID, second.Root.BackendNodeID)
	}
	if e := c.fails("DOM.requestChildNodes", map[string]NodeID{"nodeId": first.Root.NodeID}, codeServer); e.Message != "Could not find node with given id" {
		t.Errorf("%q", e.Message)
	}
	c.call("DOM.disable", nil, nil)
	c.fails("DOM.getAttributes", map[string]NodeID{"nodeId": second.Root.NodeID}, codeServer)
}

// Case C5: a snapshot that comes twice, or an older one, changes nothing.
func TestRepeatedSnapshot(t *testing.T) {
	m := shop(t)
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	c.outline(-1)
	from := c.count()
	m.snapshot("page", gen1, 8, &tree.Node{ID: 1, Name: "Page"})
	m.snapshot("page", gen1, 8, &tree.Node{ID: 1, Name: "Page"})
	m.snapshot("page", gen1, 7, &tree.Node{ID: 9, Name: "Older"})
	c.sync()
	all, _, _ := c.snapshot()
	for _, e := range all[from:] {
		if e.Method != "" {
			t.Errorf("event %s", e.raw)
		}
	}
}

// Case C10: a node that comes first has 0 for the one before it, not nothing and not -1.
func TestInsertFirst(t *testing.T) {
	m := shop(t)
	_, server := serve(t, m)
	c := dial(t, server, "dev/orders")
	c.outline(-1)
	from := c.count()
	m.ops("orders", gen1, 2, tree.Op{Op: tree.OpAdd, Parent: 1, After: 0, Node: &tree.Node{ID: 9, Name: "First"}})
	m.ops("orders", gen1, 3, tree.Op{Op: tree.OpAdd, Parent: 4, After: 0, Node: &tree.Node{ID: 10, Name: "Only"}})
	for range 2 {
		var e struct{ PreviousNodeID *NodeID }
		from = c.event(from, "DOM.childNodeInserted", &e)
		if e.PreviousNodeID == nil || *e.PreviousNodeID != 0 {
			all, _, _ := c.snapshot()
			t.Errorf("got %s", all[from-1].raw)
		}
	}
	c.valid()
}

// Case C12: of a node whose children the client does not know, only their number is told.
func TestUnseenChildren(t *testing.T) {
	m := shop(t)
	_, server := serve(t, m)
	c := dial(t, server, "dev/orders")
	var doc documentResult
	c.call("DOM.getDocument", map[string]int{"depth": 4}, &doc)
	router := byName(doc.Root, "Router")
	if router.Children != nil || *router.ChildNodeCount != 1 {
		t.Fatalf("the children of Router are known: %+v", router)
	}
	from := c.count()
	m.ops("orders", gen1, 2, tree.Op{Op: tree.OpRemove, ID: 4})
	c.sync()
	all, _, _ := c.snapshot()
	want := `{"method":"DOM.childNodeCountUpdated","params":{"nodeId":` + itoa(int64(router.NodeID)) + `,"childNodeCount":0}}`
	if string(all[from].raw) != want || all[from+1].Method != "" {
		t.Errorf("got %s and %s, want only %s", all[from].raw, all[from+1].raw, want)
	}
}

func TestLiveChanges(t *testing.T) {
	m := shop(t)
	_, server := serve(t, m)
	c := dial(t, server, "dev/orders")
	var doc documentResult
	c.call("DOM.getDocument", map[string]int{"depth": -1}, &doc)
	worker, router := byName(doc.Root, "Worker"), byName(doc.Root, "Router")

	m.ops("orders", gen1, 2, tree.Op{Op: tree.OpUpdate, Node: &tree.Node{ID: 2, Name: "Worker", Attrs: []tree.Attr{{Name: "jobs", Value: "3"}}, Text: "busy"}})
	var removed attributeRemovedEvent
	at := c.event(0, "DOM.attributeRemoved", &removed)
	var modified attributeModifiedEvent
	at = c.event(at, "DOM.attributeModified", &modified)
	var text characterDataModifiedEvent
	at = c.event(at, "DOM.characterDataModified", &text)
	if removed != (attributeRemovedEvent{worker.NodeID, "queue"}) || modified != (attributeModifiedEvent{worker.NodeID, "jobs", "3"}) ||
		text != (characterDataModifiedEvent{worker.Children[0].NodeID, "busy"}) {
		t.Errorf("%+v %+v %+v", removed, modified, text)
	}

	// A move is a removal, then an insertion with new ids.
	m.ops("orders", gen1, 3, tree.Op{Op: tree.OpMove, ID: 4, Parent: 1, After: 2})
	var gone childNodeRemovedEvent
	at = c.event(at, "DOM.childNodeRemoved", &gone)
	var came childNodeInsertedEvent
	at = c.event(at, "DOM.childNodeInserted", &came)
	route := router.Children[0]
	if gone.NodeID != route.NodeID || came.PreviousNodeID != worker.NodeID || came.Node.BackendNodeID != route.BackendNodeID || came.Node.NodeID == route.NodeID {
		t.Errorf("%+v %+v", gone, came)
	}

	// Connection state is on the source's element and nowhere else.
	m.Presence("orders", false)
	at = c.event(at, "DOM.attributeModified", &modified)
	if modified.NodeID != byName(doc.Root, "host").NodeID || modified.Name != "state" || modified.Value != "disconnected" {
		t.Errorf("%+v", modified)
	}
	m.Presence("orders", true)
	c.event(at, "DOM.attributeRemoved", &removed)
	c.valid()
}

// A tree that limits cut looks like a whole one unless its source says so, also
// when the branch that was cut is all that changed.
func TestTruncatedTreeSaysSo(t *testing.T) {
	m := shop(t)
	_, server := serve(t, m)
	c := dial(t, server, "dev/orders")
	var doc documentResult
	c.call("DOM.getDocument", map[string]int{"depth": -1}, &doc)
	host := byName(doc.Root, "host").NodeID
	flush := func(revision uint64, truncated bool) {
		m.Publish("orders", gen1, subjects.PlaneTree, record(3, tree.TopicOps, tree.Ops{Revision: revision, Ops: []tree.Op{}, Truncated: truncated}))
	}
	flush(2, true)
	var modified attributeModifiedEvent
	at := c.event(0, "DOM.attributeModified", &modified)
	if modified != (attributeModifiedEvent{host, "truncated", "true"}) {
		t.Errorf("%+v", modified)
	}
	flush(3, true)
	flush(4, false)
	var removed attributeRemovedEvent
	c.event(at, "DOM.attributeRemoved", &removed)
	if removed != (attributeRemovedEvent{host, "truncated"}) {
		t.Errorf("%+v", removed)
	}
	c.valid()
}

// A restart keeps the tree on the screen until the new one is there.
func TestRestart(t *testing.T) {
	m := shop(t)
	_, server := serve(t, m)
	c := dial(t, server, "dev/orders")
	c.call("Runtime.enable", nil, nil)
	c.outline(-1)
	from := c.count()
	m.open("orders", gen2, source.Descriptor{Name: "orders"})
	c.sync()
	all, _, _ := c.snapshot()
	if got := strings.Join(methodsOf(all[from:c.count()-1]), " "); got != "Runtime.executionContextDestroyed Runtime.executionContextCreated" {
		t.Errorf("events of the restart: %s", got)
	}
	from = c.count()
	m.snapshot("orders", gen2, 1, &tree.Node{ID: 1, Name: "App"})
	at := c.event(from, "DOM.childNodeRemoved", nil)
	c.event(at, "DOM.childNodeInserted", nil)
}

func TestDocumentUpdatedWhenTheStateIsAnother(t *testing.T) {
	m := shop(t)
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	c.outline(-1)
	m.Renew()
	c.event(0, "DOM.documentUpdated", nil)
	if got := c.outline(-1); got != "#document\n workspace name=dev\n  clients\n" {
		t.Errorf("%s", got)
	}
}

func TestFindingNodes(t *testing.T) {
	_, server := serve(t, shop(t))
	c := dial(t, server, "dev")
	c.fails("DOM.pushNodesByBackendIdsToFrontend", map[string]any{"backendNodeIds": []int{1}}, codeServer)
	var whole documentResult
	c.call("DOM.getDocument", map[string]int{"depth": -1}, &whole)
	route, text := byName(whole.Root, "Route"), byName(whole.Root, "#text")
	c.call("DOM.getDocument", nil, nil)

	var pushed struct{ NodeIDs []NodeID }
	c.call("DOM.pushNodesByBackendIdsToFrontend", map[string]any{"backendNodeIds": []any{route.BackendNodeID, text.BackendNodeID, 12345, documentID}}, &pushed)
	if len(pushed.NodeIDs) != 4 || pushed.NodeIDs[0] == 0 || pushed.NodeIDs[1] == 0 || pushed.NodeIDs[2] != 0 || pushed.NodeIDs[3] == 0 {
		t.Errorf("ids %v", pushed.NodeIDs)
	}
	var byPath struct{ NodeID NodeID }
	c.call("DOM.pushNodeByPathToFrontend", map[string]string{"path": "0,WORKSPACE,0,HOST,0,APP,1,ROUTER,0,ROUTE"}, &byPath)
	if byPath.NodeID != pushed.NodeIDs[0] {
		t.Errorf("path leads to %d, want %d", byPath.NodeID, pushed.NodeIDs[0])
	}
	for _, path := range []string{"1,HTML,0,BODY", "0,workspace,99,host", "x,y", "-1,workspace"} {
		c.fails("DOM.pushNodeByPathToFrontend", map[string]string{"path": path}, codeServer)
	}
	var described struct{ Node *domNode }
	c.call("DOM.describeNode", map[string]any{"backendNodeId": route.BackendNodeID}, &described)
	if described.Node.NodeID != 0 || described.Node.NodeName != "Route" {
		t.Errorf("%+v", described.Node)
	}
	var owner struct{ NodeID, BackendNodeID int64 }
	c.call("DOM.getFrameOwner", map[string]string{"frameId": "source.orders"}, &owner)
	if owner.NodeID == 0 || owner.BackendNodeID == 0 {
		t.Errorf("%+v", owner)
	}
	c.fails("DOM.getFrameOwner", map[string]string{"frameId": "dev"}, codeServer)
	var html struct{ OuterHTML string }
	c.call("DOM.getOuterHTML", map[string]NodeID{"nodeId": byPath.NodeID}, &html)
	if html.OuterHTML != `<Route path="/cart"></Route>` {
		t.Errorf("%s", html.OuterHTML)
	}
	c.valid()
}

// Edits fail with a sentence, and nothing changes.
func TestEditsAreRefused(t *testing.T) {
	_, server := serve(t, shop(t))
	c := dial(t, server, "dev")
	before := c.outline(-1)
	for _, method := range []string{"DOM.setAttributesAsText", "DOM.setAttributeValue", "DOM.removeAttribute", "DOM.setNodeValue", "DOM.setNodeName", "DOM.setOuterHTML", "DOM.removeNode", "DOM.copyTo", "DOM.moveTo"} {
		if e := c.fails(method, map[string]any{"nodeId": 2, "name": "a", "value": "b"}, codeServer); !strings.HasSuffix(e.Message, ".") {
			t.Errorf("%s: %q is no sentence", method, e.Message)
		}
	}
	if after := c.outline(-1); after != before {
		t.Errorf("the document changed:\n%s", after)
	}
}
