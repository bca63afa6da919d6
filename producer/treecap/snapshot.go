package treecap

import (
	"encoding/json"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/tree"
)

// snapshot returns the whole tree as records. The producer calls it when the
// tree has to be sent anew, and puts the records before all that is recorded
// after the call; revisions make what they contain harmless.
func (t *Tree) snapshot() []subjects.Record {
	t.sending.Lock()
	defer t.sending.Unlock()
	head, nodes := t.capture()
	now := t.p.Now()
	total := 0
	for i := range nodes {
		total += size(&nodes[i].Node) + 16
	}
	record := func(topic string, v any) subjects.Record {
		// Every type of package tree can be encoded.
		data, _ := json.Marshal(v)
		return subjects.Record{T: now, Topic: topic, Data: data}
	}
	if total <= t.maxRecord {
		head.Root = nest(nodes)
		return []subjects.Record{record(tree.TopicSnapshot, head)}
	}
	records := []subjects.Record{record(tree.TopicBegin, head)}
	for from := 0; from < len(nodes); {
		to, bytes := from, 0
		for to < len(nodes) && (to == from || bytes < t.maxRecord) {
			bytes += size(&nodes[to].Node) + 16
			to++
		}
		records = append(records, record(tree.TopicNodes, tree.Nodes{Revision: head.Revision, Nodes: nodes[from:to]}))
		from = to
	}
	return append(records, record(tree.TopicCommit, tree.Commit{Revision: head.Revision, Count: len(nodes)}))
}

// capture takes all nodes, parents before children, as they are now; nothing is
// left to be sent. The caller holds t.sending.
func (t *Tree) capture() (tree.Snapshot, []tree.PlacedNode) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.revision++
	t.begun, t.wasCut = true, t.cut > 0
	nodes := make([]tree.PlacedNode, 0, t.count)
	walk(t.root, func(n *Node) {
		n.state, n.dirty = known, false
		p := tree.PlacedNode{Node: n.wire()}
		if n.parent != nil {
			p.Parent = n.parent.id
		}
		nodes = append(nodes, p)
	})
	t.forget()
	return tree.Snapshot{Version: tree.SchemaVersion, Profile: tree.ProfileComponent, Revision: t.revision, Registry: t.registry, Truncated: t.wasCut}, nodes
}

// nest makes one root of a list in which parents come before their children and
// everything below a node follows it at once.
func nest(nodes []tree.PlacedNode) *tree.Node {
	next := 0
	var build func() tree.Node
	build = func() tree.Node {
		n := nodes[next].Node
		next++
		for next < len(nodes) && nodes[next].Parent == n.ID {
			n.Children = append(n.Children, build())
		}
		return n
	}
	root := build()
	return &root
}
