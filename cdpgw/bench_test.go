package cdpgw

import (
	"fmt"
	"testing"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/source"
	"github.com/natscope/natscope/subjects/tree"
)

// grown returns a state with one tree of n nodes, width children each.
func grown(t testing.TB, n, width int) *memory {
	m := newMemory(t, subjects.Limits{ComponentNodes: 2 * n})
	m.open("orders", gen1, source.Descriptor{Name: "orders"})
	m.snapshot("orders", gen1, 1, &tree.Node{ID: 1, Name: "App"})
	revision := uint64(1)
	for next := 2; next <= n; {
		var ops []tree.Op
		for ; next <= n && len(ops) < 1000; next++ {
			parent := tree.NodeID((next-2)/width + 1)
			after := tree.NodeID(0)
			if (next-2)%width > 0 {
				after = tree.NodeID(next - 1)
			}
			ops = append(ops, tree.Op{Op: tree.OpAdd, Parent: parent, After: after, Node: &tree.Node{ID: tree.NodeID(next), Name: "Row", Attrs: []tree.Attr{{Name: "n", Value: fmt.Sprint(next)}}}})
		}
		revision++
		m.ops("orders", gen1, revision, ops...)
	}
	if got := m.Space().Source("orders").Tree.Len(); got != n {
		t.Fatalf("%d nodes, want %d: %v", got, n, m.Space().Source("orders").Faults)
	}
	return m
}

// BenchmarkTreeChange is what one session adds to a change of a tree of 10 000
// nodes that it has opened completely.
func BenchmarkTreeChange(b *testing.B) {
	for _, width := range []int{10, 9999} {
		for _, kind := range []string{"attribute", "insert"} {
			b.Run(fmt.Sprintf("width=%d/%s", width, kind), func(b *testing.B) {
				m := grown(b, 10000, width)
				g, err := New(Options{State: m})
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = g.Close(b.Context()) }()
				s := offline(g, target{space: "dev"})
				perform(s, "DOM.getDocument", map[string]int{"depth": -1})
				s.conn.queue.take()
				src := m.Space().Source("orders")
				e := src.Tree.Node(5)
				change := fold.Change{Kind: fold.TreeChanged, Source: src, Tree: tree.Change{Kind: tree.Updated, Entry: e, Parent: e.Parent}}
				if kind == "insert" {
					change.Tree = tree.Change{Kind: tree.Inserted, Entry: e, Parent: e.Parent}
				}
				b.ReportAllocs()
				for b.Loop() {
					if kind == "attribute" {
						s.dom.byNode[e.Backend].attributes = nil
					} else {
						p := s.dom.byNode[e.Parent.Backend]
						for i, c := range p.children {
							if c.node == e.Backend {
								s.dom.forget(c)
								p.children = append(p.children[:i], p.children[i+1:]...)
								break
							}
						}
					}
					s.changed(newBatch(g.hub, m.Space(), []fold.Change{change}, false))
					s.conn.queue.take()
					s.conn.queue.sent()
				}
			})
		}
	}
}

// BenchmarkJoin is what a client costs that comes to a tree of 100 000 nodes: its document at once, or all of it.
func BenchmarkJoin(b *testing.B) {
	m := grown(b, 100000, 10)
	g, err := New(Options{State: m})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = g.Close(b.Context()) }()
	for _, depth := range []int{2, -1} {
		b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := offline(g, target{space: "dev"})
				perform(s, "DOM.getDocument", map[string]int{"depth": depth})
			}
		})
	}
}

// BenchmarkSearch is a search of 100 000 nodes: the copy, while which the state
// is locked, and with it each of the three ways to find a node.
func BenchmarkSearch(b *testing.B) {
	m := grown(b, 100000, 10)
	g, err := New(Options{State: m})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = g.Close(b.Context()) }()
	s := offline(g, target{space: "dev"})
	for _, bc := range []struct{ name, query string }{
		{"locked", ""}, {"text", "9999"}, {"css", `[n="99999"]`}, {"css-child", "App > Row > Row > Row[n$='7']"}, {"xpath", `//Row[@n="99999"]`}, {"xpath-count", `//Row[count(Row)=3]`},
	} {
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			found := 0
			for b.Loop() {
				d := newCopy()
				s.during(func() { s.copyInto(d) })
				if bc.query != "" {
					d.show()
					hits, _ := d.search(b.Context(), bc.query)
					found = len(hits)
				}
				d.free()
			}
			b.ReportMetric(float64(found), "found")
		})
	}
}

// BenchmarkFanOut is what one console line costs with a hundred clients.
func BenchmarkFanOut(b *testing.B) {
	m := shop(b)
	g, err := New(Options{State: m})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = g.Close(b.Context()) }()
	var all []*session
	for range 100 {
		s := offline(g, target{space: "dev"})
		g.hub.add(s)
		perform(s, "Runtime.enable", nil)
		all = append(all, s)
	}
	src := m.Space().Source("orders")
	changes := []fold.Change{{Kind: fold.ConsoleAdded, Source: src, Console: src.Console.Entries[0]}}
	b.ReportAllocs()
	for b.Loop() {
		g.hub.Changed(m.Space(), changes)
		for _, s := range all {
			s.conn.queue.take()
			s.conn.queue.sent()
		}
	}
}
