package tree

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

func TestDiffCases(t *testing.T) {
	for name, c := range map[string]struct {
		from, to Node
		want     string
	}{
		"C1: children that move below their sibling": {n(1, n(2), n(3), n(4), n(5), n(6)), n(1, n(2), n(3), n(5, n(4), n(6))), ">4 >6 "},
		"nothing":                                 {n(1, n(2)), n(1, n(2)), ""},
		"append":                                  {n(1, n(2)), n(1, n(2), n(3)), "+3 "},
		"prepend":                                 {n(1, n(2)), n(1, n(3), n(2)), "+3 "},
		"remove":                                  {n(1, n(2), n(3), n(4)), n(1, n(2), n(4)), "-3 "},
		"first to last":                           {n(1, n(2), n(3), n(4)), n(1, n(3), n(4), n(2)), ">2 "},
		"last to first":                           {n(1, n(2), n(3), n(4)), n(1, n(4), n(2), n(3)), ">4 "},
		"swap":                                    {n(1, n(2), n(3)), n(1, n(3), n(2)), ">3 "},
		"a subtree is one insertion":              {n(1), n(1, n(2, n(3, n(4)), n(5))), "+2 "},
		"a subtree is one removal":                {n(1, n(2, n(3, n(4)), n(5))), n(1), "-2 "},
		"a child of a removed node":               {n(1, n(2, n(3))), n(1, n(3)), "-2 +3 "},
		"below a new node":                        {n(1, n(2)), n(1, n(3, n(2))), "-2 +3 "},
		"a new node between parent and child":     {n(1, n(2, n(3))), n(1, n(2, n(4, n(3)))), "-3 +4 "},
		"parent and child change places":          {n(1, n(2, n(3))), n(1, n(3, n(2))), ">3 >2 "},
		"from a removed node below a new one":     {n(1, n(2, n(3, n(4)))), n(1, n(5, n(3, n(4)))), "-2 +5 "},
		"another root":                            {n(1, n(2)), n(3, n(2)), "-1 +3 "},
		"a child becomes the root":                {n(1, n(2)), n(2, n(1)), "-1 +2 "},
		"only a root":                             {n(1), n(1), ""},
		"out of a removed node, into a moved one": {n(1, n(2, n(3)), n(4), n(5)), n(1, n(5), n(4, n(3))), "-2 >5 +3 "},
	} {
		t.Run(name, func(t *testing.T) {
			k := newClient(t)
			k.snapshot(c.from)
			before := backends(&k.state)
			got := describe(k.snapshot(c.to))
			if got != c.want {
				t.Errorf("changes %q, want %q", got, c.want)
			}
			for id, b := range backends(&k.state) {
				if before[id] != 0 && before[id] != b {
					t.Errorf("node %d had the backend id %d and has %d", id, before[id], b)
				}
			}
		})
	}
}

func TestDiffOfContent(t *testing.T) {
	k := newClient(t)
	k.snapshot(n(1, n(2), n(3)))
	renamed := n(1, Node{ID: 2, Name: "other"}, Node{ID: 3, Name: "n3", Text: "new"})
	before := backends(&k.state)
	if got, want := describe(k.snapshot(renamed)), "-2 +2 =3 "; got != want {
		t.Errorf("changes %q, want %q", got, want)
	}
	after := backends(&k.state)
	if before[2] == after[2] {
		t.Error("a node with another name kept its backend id")
	}
	if before[3] != after[3] {
		t.Error("an updated node has another backend id")
	}
}

// TestDiffOfDetachedTree shows that nothing of another realm's tree is continued.
func TestDiffOfDetachedTree(t *testing.T) {
	k := newClient(t)
	k.snapshot(n(1, n(2)))
	before := backends(&k.state)
	k.state.Reset(false)
	if !k.state.Detached || k.state.Node(1) != nil || k.state.Root == nil || k.state.Len() != 2 {
		t.Fatal("the tree of the former realm is not kept as one to look at")
	}
	if got, want := describe(k.snapshot(n(1, n(2)))), "-1 +1 "; got != want {
		t.Errorf("changes %q, want %q", got, want)
	}
	for id, b := range backends(&k.state) {
		if before[id] == b {
			t.Errorf("node %d of another realm has the same backend id", id)
		}
	}
	k.state.Reset(true)
	if k.state.Detached {
		t.Error("a tree is detached though its realm lives")
	}
	if got := describe(k.snapshot(n(1, n(2)))); got != "" {
		t.Errorf("changes %q after a reconnect of the same realm, want none", got)
	}
}

// randomTree makes a tree of nodes with the given ids, in any shape.
func randomTree(r *rand.Rand, ids []NodeID) Node {
	parents := make([]int, len(ids))
	for i := 1; i < len(ids); i++ {
		parents[i] = r.IntN(i)
		if r.IntN(3) == 0 {
			parents[i] = max(0, i-1-r.IntN(3))
		}
	}
	var make func(i int) Node
	make = func(i int) Node {
		x := n(ids[i])
		if r.IntN(10) == 0 {
			x.Name = "renamed"
		}
		if r.IntN(4) == 0 {
			x.Text = fmt.Sprint(r.IntN(3))
		}
		for j := i + 1; j < len(ids); j++ {
			if parents[j] == i {
				x.Children = append(x.Children, make(j))
			}
		}
		return x
	}
	return make(0)
}

func randomIDs(r *rand.Rand, count, from int, keepRoot bool) []NodeID {
	var ids []NodeID
	for _, i := range r.Perm(from)[:count] {
		ids = append(ids, NodeID(i+1))
	}
	if keepRoot {
		for i, id := range ids {
			if id == 1 {
				ids[i] = ids[0]
			}
		}
		ids[0] = 1
	}
	return ids
}

// TestDiffOfRandomTrees follows random snapshots with a strict client.
func TestDiffOfRandomTrees(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		k := newClient(t)
		for range 6 {
			from := 2 + r.IntN(30)
			root := randomTree(r, randomIDs(r, 1+r.IntN(from), from, r.IntN(8) > 0))
			before := make(map[NodeID]*Entry)
			for id, e := range k.state.byID {
				c := *e
				before[id] = &c
			}
			k.snapshot(root)
			if got, want := shape(k.state.Root), shapeOf(root); got != want {
				t.Fatalf("seed %d: the tree is %s, want %s", seed, got, want)
			}
			for id, e := range k.state.byID {
				if old := before[id]; old != nil && old.Name == e.Name && old.Backend != e.Backend {
					t.Fatalf("seed %d: node %d had the backend id %d and has %d", seed, id, old.Backend, e.Backend)
				}
			}
			if changes := k.snapshot(root); len(changes) > 0 {
				t.Fatalf("seed %d: the same snapshot gives the changes %s", seed, describe(changes))
			}
		}
	}
}

func shapeOf(x Node) string {
	e, err := build(&x, IDsOf(1).taker())
	if err != nil {
		panic(err)
	}
	return shape(e)
}

func wideTree(count int, order func(i int) int) Node {
	root := n(1)
	root.Children = make([]Node, count)
	for i := range root.Children {
		root.Children[i] = n(NodeID(order(i) + 2))
	}
	return root
}

// fastest returns the shortest time of some runs: other programs may take the
// processor during one of them.
func fastest(run func() time.Duration) time.Duration {
	best := run()
	for range 4 {
		if best < time.Second {
			break
		}
		best = min(best, run())
	}
	return best
}

// TestDiffOfWideTrees shows that common changes of wide parents cost no time in the square of their width.
func TestDiffOfWideTrees(t *testing.T) {
	width := 10000 / raceFactor
	r := rand.New(rand.NewPCG(1, 1))
	perm := r.Perm(width)
	for name, order := range map[string]func(int) int{
		"same":    func(i int) int { return i },
		"reverse": func(i int) int { return width - 1 - i },
		"rotate":  func(i int) int { return (i + 1) % width },
		"shuffle": func(i int) int { return perm[i] },
	} {
		t.Run(name, func(t *testing.T) {
			var changes []Change
			d := fastest(func() (spent time.Duration) {
				var s State
				apply := func(root Node) {
					nodes := make(map[NodeID]*Node)
					s.init()
					collect(&root, nodes)
					var err error
					if changes, err = s.replace(&root, nodes, IDsOf(1).taker()); err != nil {
						t.Fatal(err)
					}
				}
				apply(wideTree(width, func(i int) int { return i }))
				start := time.Now()
				apply(wideTree(width, order))
				spent = time.Since(start)
				if err := checkState(&s, Limits{}); err != nil {
					t.Error(err)
				}
				return spent
			})
			if d > time.Second {
				t.Errorf("took %s", d)
			}
			if name == "rotate" && len(changes) != 1 {
				t.Errorf("%d changes for one moved node", len(changes))
			}
		})
	}
}
