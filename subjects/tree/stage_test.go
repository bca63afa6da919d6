package tree

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// placed lists a tree as a snapshot of many records carries it.
func placed(x Node) []PlacedNode {
	var out []PlacedNode
	var walk func(x Node, parent NodeID)
	walk = func(x Node, parent NodeID) {
		children := x.Children
		x.Children = nil
		out = append(out, PlacedNode{parent, x})
		for _, c := range children {
			walk(c, x.ID)
		}
	}
	walk(x, 0)
	return out
}

func begin(revision uint64) Snapshot {
	return Snapshot{Version: SchemaVersion, Profile: ProfileComponent, Revision: revision}
}

// inParts applies a snapshot as many records.
func (c *client) inParts(revision uint64, root Node, size int) []Change {
	c.t.Helper()
	list := placed(root)
	c.apply(TopicBegin, begin(revision))
	for i := 0; i < len(list); i += size {
		c.apply(TopicNodes, Nodes{revision, list[i:min(i+size, len(list))]})
		if !c.state.Staging() {
			c.t.Fatal("the snapshot on its way is forgotten")
		}
	}
	changes := c.apply(TopicCommit, Commit{revision, len(list)})
	if c.state.Staging() {
		c.t.Fatal("the snapshot is still on its way")
	}
	return changes
}

func TestSnapshotInParts(t *testing.T) {
	k := newClient(t)
	if got := describe(k.inParts(1, example(), 3)); got != "+1 " {
		t.Errorf("changes %q", got)
	}
	if got, want := shape(k.state.Root), shapeOf(example()); got != want {
		t.Errorf("the tree is %s, want %s", got, want)
	}
	before := backends(&k.state)
	if got := describe(k.inParts(2, n(1, n(2, n(3)), n(9)), 2)); got != "-4 -8 -5 +9 " && got != "-8 -5 -4 +9 " {
		t.Errorf("changes %q", got)
	}
	if after := backends(&k.state); after[1] != before[1] || after[3] != before[3] {
		t.Error("nodes that stayed have other backend ids")
	}
	// The same tree in one record and in parts is no change.
	if got := describe(k.snapshot(n(1, n(2, n(3)), n(9)))) + describe(k.inParts(4, n(1, n(2, n(3)), n(9)), 1)); got != "" {
		t.Errorf("changes %q", got)
	}
}

func TestPartsRefused(t *testing.T) {
	nodes := Nodes{2, []PlacedNode{{0, n(1)}, {1, n(2)}}}
	type record struct {
		topic   string
		payload any
	}
	for name, c := range map[string]struct {
		records []record
		want    error
		says    string
	}{
		"nodes without begin":       {[]record{{TopicNodes, nodes}}, ErrRevision, "without their begin"},
		"commit without begin":      {[]record{{TopicCommit, Commit{2, 0}}}, ErrRevision, "without its begin"},
		"begin of another version":  {[]record{{TopicBegin, Snapshot{Version: 2, Revision: 2}}}, ErrPayload, "version 2"},
		"begin without a revision":  {[]record{{TopicBegin, begin(0)}}, ErrPayload, "revision is 0"},
		"begin that is no object":   {[]record{{TopicBegin, 5}}, ErrPayload, "begin"},
		"nodes of another revision": {[]record{{TopicBegin, begin(3)}, {TopicNodes, nodes}}, ErrRevision, "without their begin"},
		"nodes that are no list":    {[]record{{TopicBegin, begin(2)}, {TopicNodes, 5}}, ErrPayload, "nodes"},
		"commit of another count":   {[]record{{TopicBegin, begin(2)}, {TopicNodes, nodes}, {TopicCommit, Commit{2, 3}}}, ErrRevision, "2 have come"},
		"commit of nothing":         {[]record{{TopicBegin, begin(2)}, {TopicCommit, Commit{2, 0}}}, ErrPayload, "not the root"},
		"commit twice":              {[]record{{TopicBegin, begin(2)}, {TopicNodes, nodes}, {TopicCommit, Commit{2, 2}}, {TopicCommit, Commit{2, 2}}}, ErrRevision, "without its begin"},
		"no root first":             {[]record{{TopicBegin, begin(2)}, {TopicNodes, Nodes{2, []PlacedNode{{5, n(1)}}}}, {TopicCommit, Commit{2, 1}}}, ErrPayload, "not the root"},
		"a second root":             {[]record{{TopicBegin, begin(2)}, {TopicNodes, Nodes{2, []PlacedNode{{0, n(1)}, {0, n(2)}}}}, {TopicCommit, Commit{2, 2}}}, ErrPayload, "before its parent 0"},
		"a node twice":              {[]record{{TopicBegin, begin(2)}, {TopicNodes, nodes}, {TopicNodes, nodes}, {TopicCommit, Commit{2, 4}}}, ErrPayload, "twice"},
		"a node without id":         {[]record{{TopicBegin, begin(2)}, {TopicNodes, Nodes{2, []PlacedNode{{0, Node{Name: "x"}}}}}, {TopicCommit, Commit{2, 1}}}, ErrPayload, "no id"},
		"a node without name":       {[]record{{TopicBegin, begin(2)}, {TopicNodes, Nodes{2, []PlacedNode{{0, Node{ID: 1}}}}}, {TopicCommit, Commit{2, 1}}}, ErrPayload, "no name"},
		"a child before its parent": {[]record{{TopicBegin, begin(2)}, {TopicNodes, Nodes{2, []PlacedNode{{0, n(1)}, {3, n(2)}, {1, n(3)}}}}, {TopicCommit, Commit{2, 3}}}, ErrPayload, "before its parent 3"},
		"too many nodes":            {[]record{{TopicBegin, begin(2)}, {TopicNodes, Nodes{2, placed(wideTree(20, func(i int) int { return i }))}}}, ErrLimit, "more than 20 nodes"},
		"too deep":                  {[]record{{TopicBegin, begin(2)}, {TopicNodes, Nodes{2, placed(chain(6))}}, {TopicCommit, Commit{2, 6}}}, ErrLimit, "6 levels"},
	} {
		t.Run(name, func(t *testing.T) {
			k := exampleClient(t)
			k.limits = Limits{Nodes: 20, Depth: 5}
			was := content(&k.state)
			var err error
			for i, r := range c.records {
				if _, err = k.try(r.topic, r.payload); err != nil && i < len(c.records)-1 {
					t.Fatalf("record %d: %v", i, err)
				}
			}
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %v that says %q", err, c.want, c.says)
			}
			if got := content(&k.state); got != was && name != "commit twice" {
				t.Errorf("the tree was\n%s\nand is\n%s", was, got)
			}
			if k.state.Staging() && name != "nodes of another revision" && name != "nodes that are no list" {
				t.Error("a refused snapshot is still on its way")
			}
			k.snapshot(n(1, n(2)))
			if k.state.Staging() {
				t.Error("a new snapshot did not abandon the one on its way")
			}
		})
	}
}

// chain makes a tree as deep as it has nodes.
func chain(depth int) Node {
	x := n(NodeID(depth))
	for id := NodeID(depth - 1); id > 0; id-- {
		x = n(id, x)
	}
	return x
}

// TestPartsInterrupted shows that a snapshot is abandoned by a new one and by a new generation.
func TestPartsInterrupted(t *testing.T) {
	k := newClient(t)
	k.apply(TopicBegin, begin(1))
	k.apply(TopicNodes, Nodes{1, []PlacedNode{{0, n(1)}}})
	k.apply(TopicBegin, begin(2))
	k.apply(TopicNodes, Nodes{2, []PlacedNode{{0, n(7)}}})
	k.apply(TopicCommit, Commit{2, 1})
	if got := shape(k.state.Root); got != "7" {
		t.Errorf("the tree is %s", got)
	}
	k.apply(TopicBegin, begin(3))
	k.state.Reset(true)
	if k.state.Staging() {
		t.Error("a new generation continues the snapshot of the former one")
	}
	// A commit of an older revision than the tree's changes nothing.
	k.snapshot(n(7, n(8)))
	k.apply(TopicBegin, begin(1))
	k.apply(TopicNodes, Nodes{1, []PlacedNode{{0, n(9)}}})
	if changes := k.apply(TopicCommit, Commit{1, 1}); len(changes) > 0 || k.state.Staging() {
		t.Errorf("an older snapshot made the changes %s", describe(changes))
	}
}

// TestLargeSnapshot brings 100 000 nodes (a tenth of that under the race detector) in many records, twice.
func TestLargeSnapshot(t *testing.T) {
	const size = 100000 / raceFactor
	root := n(1)
	for id := NodeID(2); id <= size; {
		branch := n(id)
		for id++; id <= size && len(branch.Children) < 99; id++ {
			branch.Children = append(branch.Children, n(id))
		}
		root.Children = append(root.Children, branch)
	}
	k := newClient(t)
	k.limits = Limits{Nodes: size, Depth: 256}
	k.inParts(1, root, size/5)
	root.Children = append(root.Children[:10:10], root.Children[11:]...)
	if got, want := describe(k.inParts(2, root, size/5)), "-1002 "; got != want {
		t.Errorf("changes %q, want %q", got, want)
	}
	t.Logf("%d nodes twice in %s", size, k.spent)
	if k.state.Len() != size-100 {
		t.Errorf("%d nodes", k.state.Len())
	}
}

// TestDeepTrees shows that depth ends in an error before it ends in the stack.
func TestDeepTrees(t *testing.T) {
	deep := strings.Repeat(`{"id":1,"name":"x","children":[`, 50000) + strings.Repeat("]}", 50000)
	var s State
	for _, topic := range []string{TopicSnapshot, TopicOps} {
		data := fmt.Sprintf(`{"version":1,"revision":1,"root":%s,"ops":[{"op":"add","node":%s}]}`, deep, deep)
		if _, err := s.Apply(topic, []byte(data), IDsOf(1), Limits{}, 0); !errors.Is(err, ErrPayload) {
			t.Errorf("%s of 50 000 levels gives the error %v", topic, err)
		}
	}
	k := newClient(t)
	list := make([]PlacedNode, 2*maxDepth)
	for i := range list {
		list[i] = PlacedNode{NodeID(i), n(NodeID(i + 1))}
	}
	k.apply(TopicBegin, begin(1))
	k.apply(TopicNodes, Nodes{1, list[:maxDepth]})
	k.apply(TopicNodes, Nodes{1, list[maxDepth:]})
	if _, err := k.try(TopicCommit, Commit{1, len(list)}); !errors.Is(err, ErrLimit) {
		t.Errorf("a chain of 20 000 nodes gives the error %v", err)
	}
}
