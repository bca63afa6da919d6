package tree

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

func TestTruncate(t *testing.T) {
	for name, c := range map[string]struct {
		profile Profile
		root    Node
		limits  Limits
		want    string
	}{
		"nothing":                          {ProfileComponent, example(), Limits{}, "1(2(3 4) 5(6(7)) 8)"},
		"what fits":                        {ProfileComponent, example(), Limits{Nodes: 8, Depth: 4}, "1(2(3 4) 5(6(7)) 8)"},
		"the last node":                    {ProfileComponent, example(), Limits{Nodes: 7}, "1(2(3 4) 5(6(7)))"},
		"trailing branches":                {ProfileComponent, example(), Limits{Nodes: 3}, "1(2(3))"},
		"all but the root":                 {ProfileComponent, example(), Limits{Nodes: 1}, "1"},
		"what is too deep, wherever it is": {ProfileComponent, example(), Limits{Depth: 2}, "1(2 5 8)"},
		"too deep and too many":            {ProfileComponent, example(), Limits{Depth: 3, Nodes: 6}, "1(2(3 4) 5(6))"},
		"a Fiber with its Context":         {ProfileCordis, ctx(1, fib(2), fib(4)), Limits{CordisNodes: 5}, "1(2(3) 4(5))"},
		"a Fiber whose Context cannot be":  {ProfileCordis, ctx(1, fib(2), fib(4)), Limits{CordisNodes: 4}, "1(2(3))"},
		"nothing behind it":                {ProfileCordis, ctx(1, fib(2), fib(4), ctx(6)), Limits{CordisNodes: 4}, "1(2(3))"},
		"below a Fiber":                    {ProfileCordis, ctx(1, fib(2, fib(4), ctx(6)), ctx(7)), Limits{CordisNodes: 5}, "1(2(3(4(5))))"},
		"plugins that are too deep":        {ProfileCordis, ctx(1, fib(2, fib(4)), ctx(6)), Limits{Depth: 2}, "1(2(3) 6)"},
		"a root that is a limit itself":    {ProfileCordis, ctx(1, fib(2)), Limits{CordisNodes: 2}, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			before := count(&c.root)
			dropped := Truncate(c.profile, &c.root, c.limits)
			if got := shapeOf(c.root); got != c.want || dropped != before-count(&c.root) {
				t.Errorf("%d dropped, the tree is %s, want %s", dropped, got, c.want)
			}
		})
	}
}

// randomCordis makes a Cordis tree of any shape.
func randomCordis(r *rand.Rand, next *NodeID, levels int) Node {
	n := ctx(*next)
	*next++
	for range r.IntN(4) {
		if levels == 0 {
			break
		}
		if r.IntN(3) == 0 {
			n.Children = append(n.Children, randomCordis(r, next, levels-1))
			continue
		}
		id := *next
		*next++
		n.Children = append(n.Children, FiberNode(id, object(id), uint64(id), randomCordis(r, next, levels-1)))
	}
	return n
}

// TestTruncateAtRandom shows that what is left of any tree is valid, is the
// beginning of it, and leaves nothing out that there was room for.
func TestTruncateAtRandom(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 9))
		profile, next := ProfileCordis, NodeID(1)
		var root Node
		if seed%2 == 0 {
			root = randomCordis(r, &next, 6)
		} else {
			profile, root = ProfileComponent, randomTree(r, randomIDs(r, 30, 30, true))
		}
		limits := Limits{Nodes: 1 + r.IntN(40), CordisNodes: 1 + r.IntN(40), Depth: 1 + r.IntN(8)}
		before := placed(root)
		dropped := Truncate(profile, &root, limits)
		after := placed(root)
		if err := checkerOf(profile, limits).root(&root); err != nil {
			t.Fatalf("seed %d: %+v: %v", seed, limits, err)
		}
		if dropped != len(before)-len(after) {
			t.Fatalf("seed %d: %d dropped, %d are gone", seed, dropped, len(before)-len(after))
		}
		// Without the branches that are too deep, it is a beginning.
		shallow := dropDeep(profile, before, limits)
		if !reflect.DeepEqual(ids(after), ids(shallow)[:len(after)]) {
			t.Fatalf("seed %d: %v is no beginning of %v", seed, ids(after), ids(shallow))
		}
		most := limits.of(profile).Nodes
		if len(after) < len(shallow) && len(after) < most-1 {
			t.Fatalf("seed %d: %d of %d nodes stay, the limit is %d", seed, len(after), len(shallow), most)
		}
		if again := Truncate(profile, &root, limits); again != 0 {
			t.Fatalf("seed %d: %d more are dropped the second time", seed, again)
		}
	}
}

func ids(list []PlacedNode) []NodeID {
	out := make([]NodeID, len(list))
	for i := range list {
		out[i] = list[i].Node.ID
	}
	return out
}

// dropDeep leaves out what is too deep, in a list of nodes in document order.
func dropDeep(p Profile, list []PlacedNode, l Limits) []PlacedNode {
	var out []PlacedNode
	level := make(map[NodeID]int)
	for _, x := range list {
		above, ok := level[x.Parent]
		if x.Parent != 0 && !ok {
			continue
		}
		at := above + rise(p, x.Node.Kind)
		if at > l.Depth || rise(p, x.Node.Kind) == 0 && at+1 > l.Depth {
			continue
		}
		level[x.Node.ID] = at
		out = append(out, x)
	}
	return out
}
