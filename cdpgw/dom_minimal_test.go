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

// TestPairsOfTrees brings a strict client from one random tree to another by a
// snapshot, and checks that it ends with the second one, that removals come
// before insertions, and that no event could have been left out.
func TestPairsOfTrees(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 7))
		m := newMemory(t, subjects.Limits{})
		m.open("a", gen1, source.Descriptor{Name: "a"})
		first := randomTree(r, nil)
		second := randomTree(r, first)
		m.snapshot("a", gen1, 1, first)
		g, err := New(Options{State: m})
		if err != nil {
			t.Fatal(err)
		}
		s := offline(g, target{space: "dev"})
		g.hub.add(s)
		doc := newModel()
		perform(s, "DOM.getDocument", map[string]int{"depth": -1})
		drain(t, s, doc)
		m.snapshot("a", gen1, 2, second)
		if f := m.Space().Source("a").Faults; len(f) > 0 {
			t.Fatal(f)
		}
		got := counted(t, s, doc)
		// A subtree that comes is one insertion, and opened when somebody wants to see it.
		perform(s, "DOM.requestChildNodes", map[string]any{"nodeId": doc.root.id, "depth": -1})
		drain(t, s, doc)
		fresh := offline(g, target{space: "dev"})
		want := newModel()
		perform(fresh, "DOM.getDocument", map[string]int{"depth": -1})
		drain(t, fresh, want)
		var a, b strings.Builder
		doc.root.text(&a)
		want.root.text(&b)
		if a.String() != b.String() {
			t.Fatalf("seed %d: the client has\n%s\nwant\n%s", seed, a.String(), b.String())
		}
		if least := leastEvents(first, second); got != least {
			t.Errorf("seed %d: %+v, the least is %+v\nfrom %s\nto %s", seed, got, least, a.String(), encode(second))
		}
		s.conn.cancel()
		fresh.conn.cancel()
		_ = g.Close(t.Context())
	}
}

// events counts the events of a change by what they do.
type events struct{ removed, inserted, attributes, texts int }

// counted applies what a session queued to a model and counts it.
func counted(t *testing.T, s *session, doc *model) events {
	t.Helper()
	var out events
	messages, _ := s.conn.queue.take()
	s.conn.queue.sent()
	for _, m := range messages {
		var r received
		if err := json.Unmarshal(m.bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if err := doc.apply(r.Method, r.Params); err != nil {
			t.Fatalf("%v\n%s", err, m.bytes())
		}
		switch r.Method {
		case "DOM.childNodeRemoved":
			if out.inserted > 0 {
				t.Errorf("a removal after an insertion: %s", m.bytes())
			}
			out.removed++
		case "DOM.childNodeInserted":
			out.inserted++
		case "DOM.attributeModified", "DOM.attributeRemoved":
			out.attributes++
		case "DOM.characterDataModified":
			out.texts++
		default:
			t.Errorf("unexpected: %s", m.bytes())
		}
	}
	return out
}

// randomTree makes a tree of one level below the root and one below that. With a
// former tree, its nodes are kept, dropped, moved among their siblings, changed and joined by new ones.
func randomTree(r *rand.Rand, from *tree.Node) *tree.Node {
	next := tree.NodeID(1000)
	fresh := func() tree.Node {
		next += tree.NodeID(1 + r.IntN(50))
		n := tree.Node{ID: next, Name: "Row", Attrs: []tree.Attr{{Name: "a", Value: "0"}}}
		if r.IntN(3) == 0 {
			n.Text = "text"
		}
		return n
	}
	if from == nil {
		root := &tree.Node{ID: 1, Name: "App"}
		for range 1 + r.IntN(6) {
			c := fresh()
			for range r.IntN(9) {
				c.Children = append(c.Children, fresh())
			}
			root.Children = append(root.Children, c)
		}
		return root
	}
	next = 100_000
	var change func(n *tree.Node, depth int)
	change = func(n *tree.Node, depth int) {
		switch r.IntN(6) {
		case 0:
			n.Attrs = []tree.Attr{{Name: "a", Value: fmt.Sprint(r.IntN(3))}}
		case 1:
			n.Attrs = nil
		case 2:
			if n.Text != "" {
				n.Text = "other"
			}
		}
		kept := n.Children[:0:0]
		for _, c := range n.Children {
			if r.IntN(5) == 0 {
				continue
			}
			change(&c, depth+1)
			kept = append(kept, c)
		}
		if r.IntN(2) == 0 {
			r.Shuffle(len(kept), func(i, j int) { kept[i], kept[j] = kept[j], kept[i] })
		}
		for depth < 3 && r.IntN(3) == 0 {
			at := r.IntN(len(kept) + 1)
			kept = append(kept[:at:at], append([]tree.Node{fresh()}, kept[at:]...)...)
		}
		n.Children = kept
	}
	to := clone(*from)
	change(&to, 1)
	if r.IntN(4) == 0 && len(to.Children) > 0 {
		// Another kind of node under an old number is another node.
		to.Children[0].Name = "Cell"
	}
	return &to
}

// leastEvents is how few events lead from one tree to another. Of the children of
// a node that stays, the longest sequence that both lists have in common can stay.
func leastEvents(a, b *tree.Node) events {
	var out events
	for _, x := range a.Attrs {
		if i := attrOf(b, x.Name); i < 0 || b.Attrs[i].Value != x.Value {
			out.attributes++
		}
	}
	for _, x := range b.Attrs {
		if attrOf(a, x.Name) < 0 {
			out.attributes++
		}
	}
	if a.Text != b.Text {
		out.texts++
	}
	stays := commonChildren(a.Children, b.Children)
	out.removed += len(a.Children) - len(stays)
	out.inserted += len(b.Children) - len(stays)
	for _, p := range stays {
		x := leastEvents(&a.Children[p[0]], &b.Children[p[1]])
		out.removed += x.removed
		out.inserted += x.inserted
		out.attributes += x.attributes
		out.texts += x.texts
	}
	return out
}

func attrOf(n *tree.Node, name string) int {
	for i, a := range n.Attrs {
		if a.Name == name {
			return i
		}
	}
	return -1
}

// commonChildren is a longest common subsequence, by the plain table.
func commonChildren(a, b []tree.Node) [][2]int {
	same := func(i, j int) bool { return a[i].ID == b[j].ID && a[i].Name == b[j].Name }
	best := make([][]int, len(a)+1)
	for i := range best {
		best[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			best[i][j] = max(best[i+1][j], best[i][j+1])
			if same(i, j) {
				best[i][j] = max(best[i][j], 1+best[i+1][j+1])
			}
		}
	}
	var out [][2]int
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case same(i, j) && best[i][j] == 1+best[i+1][j+1]:
			out = append(out, [2]int{i, j})
			i, j = i+1, j+1
		case best[i+1][j] >= best[i][j+1]:
			i++
		default:
			j++
		}
	}
	return out
}
