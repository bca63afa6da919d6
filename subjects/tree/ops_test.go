package tree

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func add(parent, after NodeID, node Node) Op {
	return Op{Op: OpAdd, Parent: parent, After: after, Node: &node}
}
func change(node Node) Op                { return Op{Op: OpUpdate, Node: &node} }
func drop(id NodeID) Op                  { return Op{Op: OpRemove, ID: id} }
func move(id, parent, after NodeID) Op   { return Op{Op: OpMove, ID: id, Parent: parent, After: after} }
func withText(id NodeID, s string) Node  { return Node{ID: id, Name: "n" + fmt.Sprint(id), Text: s} }
func example() Node                      { return n(1, n(2, n(3), n(4)), n(5, n(6, n(7))), n(8)) }
func exampleClient(t testing.TB) *client { k := newClient(t); k.snapshot(example()); return k }

func TestOps(t *testing.T) {
	for name, c := range map[string]struct {
		ops   []Op
		shape string
		want  string
	}{
		"none":                       {nil, "1(2(3 4) 5(6(7)) 8)", ""},
		"add":                        {[]Op{add(1, 8, n(9, n(10)))}, "1(2(3 4) 5(6(7)) 8 9(10))", "+9 "},
		"add first":                  {[]Op{add(1, 0, n(9))}, "1(9 2(3 4) 5(6(7)) 8)", "+9 "},
		"add behind an added one":    {[]Op{add(1, 0, n(9)), add(1, 9, n(10))}, "1(9 10 2(3 4) 5(6(7)) 8)", "+9 +10 "},
		"add below an added one":     {[]Op{add(1, 8, n(9)), add(9, 0, n(10)), add(10, 0, n(11))}, "1(2(3 4) 5(6(7)) 8 9(10(11)))", "+9 "},
		"add and update":             {[]Op{add(1, 8, n(9)), change(withText(9, "x"))}, "1(2(3 4) 5(6(7)) 8 9)", "+9 "},
		"add and remove":             {[]Op{add(1, 8, n(9)), drop(9)}, "1(2(3 4) 5(6(7)) 8)", ""},
		"add and remove a part":      {[]Op{add(1, 8, n(9, n(10))), drop(10)}, "1(2(3 4) 5(6(7)) 8 9)", "+9 "},
		"remove":                     {[]Op{drop(5)}, "1(2(3 4) 8)", "-5 "},
		"remove twice in one branch": {[]Op{drop(7), drop(5)}, "1(2(3 4) 8)", "-7 -5 "},
		"remove, then add again":     {[]Op{drop(8), add(2, 4, n(8))}, "1(2(3 4 8) 5(6(7)))", "-8 +8 "},
		"remove behind an add":       {[]Op{add(1, 8, n(9)), drop(2)}, "1(5(6(7)) 8 9)", "-2 +9 "},
		"update":                     {[]Op{change(withText(8, "x"))}, "1(2(3 4) 5(6(7)) 8)", "=8 "},
		"update without a change":    {[]Op{change(n(8))}, "1(2(3 4) 5(6(7)) 8)", ""},
		"update twice":               {[]Op{change(withText(8, "x")), change(withText(8, "y"))}, "1(2(3 4) 5(6(7)) 8)", "=8 "},
		"update and back":            {[]Op{change(withText(8, "x")), change(n(8))}, "1(2(3 4) 5(6(7)) 8)", ""},
		"update, remove another":     {[]Op{change(withText(8, "x")), drop(2)}, "1(5(6(7)) 8)", "=8 -2 "},
		"update, remove its parent":  {[]Op{change(withText(7, "x")), drop(5)}, "1(2(3 4) 8)", "-5 "},
		"move":                       {[]Op{move(2, 8, 0)}, "1(5(6(7)) 8(2(3 4)))", ">2 "},
		"move within":                {[]Op{move(3, 2, 4)}, "1(2(4 3) 5(6(7)) 8)", ">3 "},
		"move twice":                 {[]Op{move(3, 5, 0), move(3, 8, 0)}, "1(2(4) 5(6(7)) 8(3))", ">3 "},
		"move and back":              {[]Op{move(3, 5, 0), move(3, 2, 0)}, "1(2(3 4) 5(6(7)) 8)", ""},
		"move to a new node":         {[]Op{add(1, 8, n(9)), move(2, 9, 0)}, "1(5(6(7)) 8 9(2(3 4)))", "-2 +9 "},
		"move out of a removed node": {[]Op{move(7, 1, 0), drop(5)}, "1(7 2(3 4) 8)", "-5 +7 "},
		"move a parent below":        {[]Op{move(6, 1, 0), move(5, 6, 7)}, "1(6(7 5) 2(3 4) 8)", ">6 >5 "},
		"move, then add below":       {[]Op{move(2, 8, 0), add(2, 4, n(9))}, "1(5(6(7)) 8(2(3 4 9)))", ">2 +9 "},
	} {
		t.Run(name, func(t *testing.T) {
			k := exampleClient(t)
			got := describe(k.ops(c.ops...))
			if got != c.want {
				t.Errorf("changes %q, want %q", got, c.want)
			}
			if got := shape(k.state.Root); got != c.shape {
				t.Errorf("the tree is %s, want %s", got, c.shape)
			}
		})
	}
}

// TestOpsRefused shows that a bad op refuses its whole record, whatever came before it.
func TestOpsRefused(t *testing.T) {
	before := []Op{drop(4), add(1, 0, n(20, n(21))), change(withText(8, "x")), move(7, 20, 0), drop(5), add(2, 3, n(4))}
	for name, c := range map[string]struct {
		op   Op
		says string
	}{
		"unknown op":                     {Op{Op: "explode"}, `unknown op "explode"`},
		"add without a node":             {Op{Op: OpAdd, Parent: 1}, "add without a node"},
		"add a node that is there":       {add(1, 0, n(2)), "node 2 is there twice"},
		"add a node twice":               {add(1, 0, n(30, n(31), n(31))), "node 31 is there twice"},
		"add a child that is there":      {add(1, 0, n(30, n(8))), "node 8 is there twice"},
		"add a node without id":          {add(1, 0, Node{Name: "x"}), "no id"},
		"add a node without name":        {add(1, 0, Node{ID: 30}), "node 30 has no name"},
		"add below an unknown node":      {add(99, 0, n(30)), "unknown node 99"},
		"add behind an unknown node":     {add(1, 99, n(30)), "behind node 99"},
		"add behind another's child":     {add(1, 3, n(30)), "behind node 3, which is no child of node 1"},
		"update without a node":          {Op{Op: OpUpdate}, "update without a node"},
		"update an unknown node":         {change(n(99)), "unknown node 99"},
		"update of the name":             {change(Node{ID: 8, Name: "other"}), "changes its name or kind"},
		"update of the kind":             {change(Node{ID: 8, Name: "n8", Kind: "worker"}), "changes its name or kind"},
		"remove an unknown node":         {drop(99), "unknown node 99"},
		"remove a node that was removed": {drop(6), "unknown node 6"},
		"remove the root":                {drop(1), "remove of the root"},
		"move an unknown node":           {move(99, 1, 0), "unknown node or root 99"},
		"move the root":                  {move(1, 2, 0), "unknown node or root 1"},
		"move below itself":              {move(2, 3, 0), "under itself"},
		"move behind itself":             {move(2, 1, 2), "behind itself"},
		"move below an unknown node":     {move(2, 99, 0), "unknown node 99"},
		"add too deep":                   {add(7, 0, n(30, n(31, n(32, n(33))))), "6 levels deep"},
		"move too deep":                  {move(20, 2, 0), "more than 5 levels"},
		"add too many":                   {add(1, 0, n(30, n(31), n(32), n(33), n(34), n(35))), "more than 12 nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			k := exampleClient(t)
			k.limits = Limits{Depth: 5, Nodes: 12}
			was := content(&k.state)
			ops := append(slices.Clone(before), c.op)
			if name == "move too deep" {
				ops = append(slices.Clone(before[:3]), move(7, 21, 0), move(3, 7, 0), c.op)
			}
			changes, err := k.try(TopicOps, Ops{Revision: 2, Ops: ops})
			if !errors.Is(err, ErrRevision) || !strings.Contains(err.Error(), c.says) || changes != nil {
				t.Fatalf("got %v and %d changes, want an error that says %q", err, len(changes), c.says)
			}
			if got := content(&k.state); got != was {
				t.Errorf("the tree was\n%s\nand is\n%s", was, got)
			}
			if err := k.model.equals(&k.state); err != nil {
				t.Error(err)
			}
			// The tree is whole, so ops that fit still apply.
			k.ops(before...)
		})
	}
}

// TestOpsOfRevisions is case C5 for ops: older and doubled ones change nothing.
func TestOpsOfRevisions(t *testing.T) {
	k := exampleClient(t)
	ops := Ops{Revision: 2, Commit: 1, Ops: []Op{add(1, 0, n(9))}}
	k.apply(TopicOps, ops)
	for range 2 {
		if changes := k.apply(TopicOps, ops); len(changes) > 0 {
			t.Errorf("doubled ops give the changes %s", describe(changes))
		}
	}
	if _, err := k.try(TopicOps, Ops{Revision: 4}); !errors.Is(err, ErrRevision) {
		t.Errorf("ops of revision 4 on revision 2 give the error %v", err)
	}
	k.apply(TopicOps, Ops{Revision: 3, Truncated: true})
	if !k.state.Truncated || k.state.Revision != 3 {
		t.Errorf("the state is truncated %v at revision %d", k.state.Truncated, k.state.Revision)
	}
	var empty State
	data, _ := json.Marshal(ops)
	if _, err := empty.Apply(TopicOps, data, IDsOf(1), Limits{}, 0); !errors.Is(err, ErrRevision) {
		t.Errorf("ops without a snapshot give the error %v", err)
	}
	k.state.Reset(true)
	if _, err := k.try(TopicOps, Ops{Revision: 1}); !errors.Is(err, ErrRevision) {
		t.Errorf("ops of a new generation without a snapshot give the error %v", err)
	}
}

// randomOps makes ops that fit a tree, in any order, and sometimes one that does not.
func randomOps(r *rand.Rand, s *State, next *NodeID) []Op {
	var ids []NodeID
	for id := range s.byID {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	pick := func() NodeID {
		if r.IntN(60) == 0 {
			return NodeID(r.IntN(200))
		}
		return ids[r.IntN(len(ids))]
	}
	after := func(parent NodeID) NodeID {
		if e := s.byID[parent]; e != nil && len(e.Children) > 0 && r.IntN(3) > 0 {
			return e.Children[r.IntN(len(e.Children))].ID
		}
		return 0
	}
	var ops []Op
	for range r.IntN(6) {
		switch r.IntN(4) {
		case 0:
			*next++
			p := pick()
			x := n(*next)
			if r.IntN(2) == 0 {
				*next++
				x.Children = []Node{n(*next)}
			}
			ids = append(ids, *next)
			ops = append(ops, add(p, after(p), x))
		case 1:
			ops = append(ops, change(withText(pick(), fmt.Sprint(r.IntN(3)))))
		case 2:
			ops = append(ops, drop(pick()))
		case 3:
			p := pick()
			ops = append(ops, move(pick(), p, after(p)))
		}
	}
	return ops
}

// TestRandomOps follows random ops with a strict client, and compares the tree
// with one to which the same ops came one by one.
func TestRandomOps(t *testing.T) {
	refused, applied := 0, 0
	for seed := range uint64(250) {
		r := rand.New(rand.NewPCG(seed, 2))
		k := newClient(t)
		k.snapshot(randomTree(r, randomIDs(r, 12, 12, true)))
		for range 12 {
			next := NodeID(k.seq * 1000)
			ops := randomOps(r, &k.state, &next)
			for i := range ops { // the random tree gave some nodes other names
				if x := ops[i].Node; x != nil && ops[i].Op == OpUpdate {
					if e := k.state.byID[x.ID]; e != nil {
						x.Name = e.Name
					}
				}
			}
			was := content(&k.state)
			root := exported(&k.state)
			_, err := k.try(TopicOps, Ops{Revision: k.state.Revision + 1, Ops: ops})
			if err != nil {
				refused++
				if got := content(&k.state); got != was {
					t.Fatalf("seed %d: refused ops left\n%s\nof\n%s", seed, got, was)
				}
				continue
			}
			applied++
			single := newClient(t)
			single.snapshot(*root)
			for _, op := range ops {
				single.ops(op)
			}
			if got, want := shape(k.state.Root), shape(single.state.Root); got != want {
				t.Fatalf("seed %d: together %s, one by one %s", seed, got, want)
			}
		}
	}
	if refused < 50 || applied < 400 {
		t.Errorf("%d refused and %d applied records are too few to show anything", refused, applied)
	}
}

// TestOpsOnWideTrees shows that common ops on wide parents cost no time in the square of their width.
func TestOpsOnWideTrees(t *testing.T) {
	width := 10000 / raceFactor
	for name, op := range map[string]func(i int) Op{
		"append":       func(i int) Op { return add(1, NodeID(width+1+i), n(NodeID(width+2+i))) },
		"prepend":      func(i int) Op { return add(1, 0, n(NodeID(width+2+i))) },
		"remove first": func(i int) Op { return drop(NodeID(i + 2)) },
		"remove last":  func(i int) Op { return drop(NodeID(width + 1 - i)) },
		"reverse":      func(i int) Op { return move(NodeID(i+2), 1, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			var records []json.RawMessage
			for i := range width {
				data, err := json.Marshal(Ops{Revision: uint64(i + 2), Ops: []Op{op(i)}})
				if err != nil {
					t.Fatal(err)
				}
				records = append(records, data)
			}
			root, err := json.Marshal(snapshotOf(1, wideTree(width, func(i int) int { return i })))
			if err != nil {
				t.Fatal(err)
			}
			d := fastest(func() time.Duration {
				var s State
				if _, err := s.Apply(TopicSnapshot, root, IDsOf(1), Limits{}, 0); err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				for i, data := range records {
					changes, err := s.Apply(TopicOps, data, IDsOf(uint64(i+2)), Limits{}, 0)
					if err != nil || len(changes) != 1 {
						t.Fatalf("record %d: %v, %d changes", i, err, len(changes))
					}
				}
				spent := time.Since(start)
				if err := checkState(&s, Limits{}); err != nil {
					t.Error(err)
				}
				return spent
			})
			if d > time.Second {
				t.Errorf("took %s", d)
			}
		})
	}
}
