package cdpgw

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/source"
	"github.com/natscope/natscope/subjects/tree"
)

// drain applies everything that a session queued to a model and returns the answers.
func drain(t *testing.T, s *session, doc *model) []received {
	t.Helper()
	var answers []received
	out, _ := s.conn.queue.take()
	s.conn.queue.sent()
	for _, m := range out {
		raw := m.bytes()
		var r received
		if err := json.Unmarshal(raw, &r); err != nil {
			t.Fatalf("not JSON: %s", raw)
		}
		switch {
		case r.Method == "":
			answers = append(answers, r)
			if strings.Contains(string(r.Result), `"root"`) {
				if err := doc.document(r.Result); err != nil {
					t.Fatal(err)
				}
			}
		case strings.HasPrefix(r.Method, "DOM."):
			if err := doc.apply(r.Method, r.Params); err != nil {
				t.Fatalf("%v\n%s", err, raw)
			}
		}
	}
	return answers
}

func perform(s *session, method string, params any) {
	b, _ := json.Marshal(map[string]any{"id": 1, "method": method, "params": params})
	s.handle(b)
}

// follower is a session with its model.
type follower struct {
	s *session
	m *model
}

// TestDocumentFollowsState edits trees at random and compares what strict
// clients have, each expanded in another way, with the document that a client
// sees which comes now. The records of a step come in one frame, so that a node
// may be added, moved, changed and removed within one batch.
func TestDocumentFollowsState(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			e := newEditor(t, seed)
			g, err := New(Options{State: e.m})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = g.Close(t.Context()) }()
			var all []*follower
			for i := range 4 {
				s := offline(g, target{space: "dev"})
				defer s.conn.cancel()
				g.hub.add(s)
				f := &follower{s, newModel()}
				perform(s, "DOM.getDocument", map[string]int{"depth": []int{-1, 1, 2, 3}[i]})
				drain(t, s, f.m)
				all = append(all, f)
			}
			for step := range 40 {
				e.step()
				for _, f := range all {
					drain(t, f.s, f.m)
					f.expand(t, e.r)
				}
				if step%10 == 9 {
					for _, f := range all {
						f.compare(t, g)
					}
				}
			}
		})
	}
}

// expand opens a random known node.
func (f *follower) expand(t *testing.T, r *rand.Rand) {
	for id := range f.m.nodes {
		if r.IntN(6) == 0 {
			perform(f.s, "DOM.requestChildNodes", map[string]any{"nodeId": id, "depth": []int{1, 2, -1}[r.IntN(3)]})
			for _, a := range drain(t, f.s, f.m) {
				if a.Error != nil {
					t.Fatalf("node %d cannot be opened: %s", id, a.Error.Message)
				}
			}
			return
		}
	}
}

// compare opens everything and compares with a client that comes now.
func (f *follower) compare(t *testing.T, g *Gateway) {
	t.Helper()
	perform(f.s, "DOM.requestChildNodes", map[string]any{"nodeId": f.m.root.id, "depth": -1})
	drain(t, f.s, f.m)
	fresh := offline(g, f.s.target)
	defer fresh.conn.cancel()
	m := newModel()
	perform(fresh, "DOM.getDocument", map[string]int{"depth": -1})
	drain(t, fresh, m)
	var got, want strings.Builder
	f.m.root.text(&got)
	m.root.text(&want)
	if got.String() != want.String() {
		t.Fatalf("the document of a client that followed differs from that of one that comes now:\n got %s\nwant %s", got.String(), want.String())
	}
	if len(f.m.nodes) != len(f.s.dom.byID) {
		t.Fatalf("the session keeps %d nodes, the client has %d", len(f.s.dom.byID), len(f.m.nodes))
	}
}

// editor makes random but valid changes.
type editor struct {
	t        *testing.T
	r        *rand.Rand
	m        *memory
	next     tree.NodeID
	revision map[subjects.SourceID]uint64
	gens     int
}

func newEditor(t *testing.T, seed uint64) *editor {
	e := &editor{t: t, r: rand.New(rand.NewPCG(seed, 1)), m: newMemory(t, subjects.Limits{}), revision: make(map[subjects.SourceID]uint64)}
	e.open("a", source.KindHost)
	e.open("b", source.KindClient)
	return e
}

func (e *editor) open(id subjects.SourceID, kind source.Kind) {
	e.gens++
	e.m.open(id, e.gen(), source.Descriptor{Name: string(id), Kind: kind})
	e.snapshot(id, e.node(3))
}

// gen is the newest generation; all sources use it, so it only ever grows.
func (e *editor) gen() subjects.Generation {
	return subjects.Generation(fmt.Sprintf("01h00000000000000000%06d", e.gens))
}

func (e *editor) genOf(id subjects.SourceID) subjects.Generation {
	return e.m.Space().Source(id).Generation
}

func (e *editor) snapshot(id subjects.SourceID, root tree.Node) {
	e.revision[id]++
	e.m.snapshot(id, e.genOf(id), e.revision[id], &root)
}

// node makes a subtree of new nodes.
func (e *editor) node(depth int) tree.Node {
	e.next++
	n := tree.Node{ID: e.next, Name: []string{"App", "Body", "my-part", "Row"}[e.r.IntN(4)], Attrs: e.attributes()}
	if e.r.IntN(3) == 0 {
		n.Text = fmt.Sprint("text", e.r.IntN(5))
	}
	for range e.r.IntN(4) * min(depth, 1) {
		n.Children = append(n.Children, e.node(depth-1))
	}
	return n
}

func (e *editor) attributes() []tree.Attr {
	var out []tree.Attr
	for _, name := range []string{"x", "y", "name"} {
		if e.r.IntN(2) == 0 {
			out = append(out, tree.Attr{Name: name, Value: fmt.Sprint(e.r.IntN(3))})
		}
	}
	return out
}

// step publishes one frame, or changes a source.
func (e *editor) step() {
	id := []subjects.SourceID{"a", "b"}[e.r.IntN(2)]
	src := e.m.Space().Source(id)
	switch {
	case src == nil:
		e.open(id, []source.Kind{source.KindHost, source.KindClient}[e.r.IntN(2)])
		return
	case e.r.IntN(20) == 0:
		e.m.Remove(id)
		return
	case e.r.IntN(12) == 0:
		e.m.Presence(id, !src.Connected)
		return
	case e.r.IntN(12) == 0:
		e.open(id, source.KindHost)
		return
	case e.r.IntN(6) == 0:
		e.snapshot(id, e.shuffled(src))
		return
	}
	e.ops(id)
}

// ops applies operations to a mirror of the tree, so that each is valid after those before it.
func (e *editor) ops(id subjects.SourceID) {
	root := toNode(e.m.Space().Source(id).Tree.Root)
	var records []subjects.Record
	for range 1 + e.r.IntN(4) {
		e.revision[id]++
		var ops []tree.Op
		for range 1 + e.r.IntN(4) {
			if op, ok := e.op(&root); ok {
				ops = append(ops, op)
			}
		}
		records = append(records, record(2, tree.TopicOps, tree.Ops{Revision: e.revision[id], Ops: ops}))
	}
	e.m.Publish(id, e.genOf(id), subjects.PlaneTree, records...)
	if got, want := toNode(e.m.Space().Source(id).Tree.Root), root; !equalNodes(got, want) {
		e.t.Fatalf("the test's mirror differs from the fold: %v", e.m.Space().Source(id).Faults)
	}
}

func (e *editor) op(root *tree.Node) (tree.Op, bool) {
	all := flatten(root, nil)
	pick := all[e.r.IntN(len(all))]
	switch e.r.IntN(5) {
	case 0, 1:
		n := e.node(2)
		at := e.r.IntN(len(pick.Children) + 1)
		added := clone(n)
		op := tree.Op{Op: tree.OpAdd, Parent: pick.ID, After: before(pick, at), Node: &added}
		pick.Children = append(pick.Children[:at:at], append([]tree.Node{n}, pick.Children[at:]...)...)
		return op, true
	case 2:
		n := *pick
		n.Attrs, n.Children = e.attributes(), nil
		n.Text = []string{"", "one", "two"}[e.r.IntN(3)]
		pick.Attrs, pick.Text = n.Attrs, n.Text
		return tree.Op{Op: tree.OpUpdate, Node: &n}, true
	case 3:
		if pick == root {
			return tree.Op{}, false
		}
		detach(root, pick.ID)
		return tree.Op{Op: tree.OpRemove, ID: pick.ID}, true
	}
	to := all[e.r.IntN(len(all))]
	if pick == root || holds(pick, to.ID) {
		return tree.Op{}, false
	}
	id, toID := pick.ID, to.ID
	n := detach(root, id)
	to = lookup(root, toID)
	at := e.r.IntN(len(to.Children) + 1)
	op := tree.Op{Op: tree.OpMove, ID: id, Parent: toID, After: before(to, at)}
	to.Children = append(to.Children[:at:at], append([]tree.Node{n}, to.Children[at:]...)...)
	return op, true
}

// shuffled is the tree of a source with nodes dropped, moved and added, for a snapshot.
func (e *editor) shuffled(src interface{ Name() string }) tree.Node {
	root := toNode(e.m.Space().Source(subjects.SourceID(src.Name())).Tree.Root)
	for range 6 {
		e.op(&root)
	}
	for _, n := range flatten(&root, nil) {
		e.r.Shuffle(len(n.Children), func(i, j int) { n.Children[i], n.Children[j] = n.Children[j], n.Children[i] })
		if e.r.IntN(4) > 0 {
			break
		}
	}
	return root
}

func before(n *tree.Node, at int) tree.NodeID {
	if at == 0 {
		return 0
	}
	return n.Children[at-1].ID
}

func toNode(e *tree.Entry) tree.Node {
	n := e.Node
	n.Children = nil
	for _, c := range e.Children {
		n.Children = append(n.Children, toNode(c))
	}
	return n
}

// clone returns a node that shares nothing with n.
func clone(n tree.Node) tree.Node {
	var out tree.Node
	b, _ := json.Marshal(n)
	_ = json.Unmarshal(b, &out)
	return out
}

func equalNodes(a, b tree.Node) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

func flatten(n *tree.Node, out []*tree.Node) []*tree.Node {
	out = append(out, n)
	for i := range n.Children {
		out = flatten(&n.Children[i], out)
	}
	return out
}

func lookup(n *tree.Node, id tree.NodeID) *tree.Node {
	for _, x := range flatten(n, nil) {
		if x.ID == id {
			return x
		}
	}
	return nil
}

func holds(n *tree.Node, id tree.NodeID) bool { return lookup(n, id) != nil }

// detach removes a node from a tree and returns it.
func detach(n *tree.Node, id tree.NodeID) tree.Node {
	for _, x := range flatten(n, nil) {
		for i := range x.Children {
			if x.Children[i].ID == id {
				out := x.Children[i]
				x.Children = append(x.Children[:i:i], x.Children[i+1:]...)
				return out
			}
		}
	}
	panic("no such node")
}

// Case C1: children that move below their sibling leave before they come, so that
// no client ever has them in two places.
func TestMoveBelowASibling(t *testing.T) {
	m := newMemory(t, subjects.Limits{})
	m.open("a", gen1, source.Descriptor{Name: "a"})
	row := func(id tree.NodeID, children ...tree.Node) tree.Node {
		return tree.Node{ID: id, Name: "Row", Children: children}
	}
	before := row(1, row(2), row(3), row(4), row(5), row(6))
	after := row(1, row(2), row(3), row(5, row(4), row(6)))
	m.snapshot("a", gen1, 1, &before)
	g, err := New(Options{State: m})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Close(t.Context()) }()
	s := offline(g, target{space: "dev"})
	defer s.conn.cancel()
	g.hub.add(s)
	f := &follower{s, newModel()}
	perform(s, "DOM.getDocument", map[string]int{"depth": -1})
	drain(t, s, f.m)
	m.snapshot("a", gen1, 2, &after)
	// counted refuses an insertion before a removal; the children of 5 were known to be none.
	if got := counted(t, s, f.m); got.removed != 2 || got.inserted != 2 {
		t.Errorf("%+v, want 2 removals and 2 insertions", got)
	}
	f.compare(t, g)
}
