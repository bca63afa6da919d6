package natstest

import (
	"fmt"
	"math/rand/v2"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/source"
	"github.com/natscope/natscope/subjects/tree"
)

// life is a source that does at random whatever sources do.
type life struct {
	*Source
	rnd      *rand.Rand
	revision uint64
	nodes    []tree.NodeID
	next     tree.NodeID
	requests int
	n        int
}

// Live opens the source and writes that many records of all kinds, in frames
// of random size, with new generations and losses between them.
func (s *Source) Live(records int, seed uint64) {
	l := &life{Source: s, rnd: rand.New(rand.NewPCG(seed, 1))}
	l.Open()
	for l.n < records && !s.t.Failed() {
		l.step()
	}
}

func (l *life) step() {
	switch l.rnd.IntN(60) {
	case 0:
		if l.rnd.IntN(2) == 0 {
			l.Realm = source.RealmID(fmt.Sprint("realm", l.rnd.IntN(2)))
		}
		l.Open()
		l.revision = 0
		return
	case 1:
		l.Skip(subjects.PlaneConsole, 1+l.rnd.IntN(3))
		return
	case 2:
		title := fmt.Sprint(l.n)
		l.Send(subjects.PlaneLife, source.TopicUpdate, source.Update{Title: &title})
		l.n++
		return
	}
	if l.revision == 0 {
		l.snapshot()
		return
	}
	plane := []subjects.Plane{subjects.PlaneTree, subjects.PlaneNet, subjects.PlaneConsole, subjects.PlaneEvent}[l.rnd.IntN(4)]
	var out []subjects.Record
	for range 1 + l.rnd.IntN(20) {
		l.n++
		switch plane {
		case subjects.PlaneTree:
			l.revision++
			out = append(out, l.Record(tree.TopicOps, tree.Ops{Revision: l.revision, Commit: l.revision, Ops: []tree.Op{l.op()}}))
		case subjects.PlaneNet:
			out = append(out, l.request()...)
		case subjects.PlaneConsole:
			out = append(out, l.Record(console.TopicMessage, console.Message{Type: "log", Logger: Pad(30, l.n)}))
		default:
			out = append(out, l.Record("custom", l.n))
		}
	}
	l.Frame(plane, 0, out...)
}

// snapshot sends a new tree, of one record or of many; a large one spreads over several shards.
func (l *life) snapshot() {
	l.revision = 1
	l.next = 10_000
	size := 20 + l.rnd.IntN(100)
	if l.rnd.IntN(4) == 0 {
		size = 2500
	}
	l.nodes = l.nodes[:0]
	for i := range size + 1 {
		l.nodes = append(l.nodes, tree.NodeID(i+1))
	}
	if l.rnd.IntN(2) == 0 {
		l.Send(subjects.PlaneTree, tree.TopicSnapshot, Tree(1, size))
		return
	}
	l.Send(subjects.PlaneTree, tree.TopicBegin, tree.Snapshot{Version: tree.SchemaVersion, Profile: tree.ProfileComponent, Revision: 1})
	l.Send(subjects.PlaneTree, tree.TopicNodes, tree.Nodes{Revision: 1, Nodes: []tree.PlacedNode{{Node: tree.Node{ID: 1, Name: "app"}}}})
	for from := 2; from <= size+1; from += 500 {
		var part []tree.PlacedNode
		for id := from; id <= min(size+1, from+499); id++ {
			part = append(part, tree.PlacedNode{Parent: 1, Node: tree.Node{ID: tree.NodeID(id), Name: "part"}})
		}
		l.Send(subjects.PlaneTree, tree.TopicNodes, tree.Nodes{Revision: 1, Nodes: part})
	}
	l.Send(subjects.PlaneTree, tree.TopicCommit, tree.Commit{Revision: 1, Count: size + 1})
}

// op is one change of the tree. What it removes or moves has no children that
// it cares for, so some ops after it fail, as they would after a bug; then the
// tree is stuck until a snapshot.
func (l *life) op() tree.Op {
	pick := func() tree.NodeID { return l.nodes[1+l.rnd.IntN(len(l.nodes)-1)] }
	switch l.rnd.IntN(30) {
	case 0, 1, 2, 3, 4, 5, 6, 7, 8, 9:
		return tree.Op{Op: tree.OpUpdate, Node: &tree.Node{ID: pick(), Name: "new", Text: fmt.Sprint(l.n)}}
	case 10:
		i := 1 + l.rnd.IntN(len(l.nodes)-1)
		id := l.nodes[i]
		l.nodes = append(l.nodes[:i], l.nodes[i+1:]...)
		return tree.Op{Op: tree.OpRemove, ID: id}
	case 11, 12:
		return tree.Op{Op: tree.OpMove, ID: pick(), Parent: 1}
	}
	l.next++
	l.nodes = append(l.nodes, l.next)
	return tree.Op{Op: tree.OpAdd, Parent: 1, Node: &tree.Node{ID: l.next, Name: "new", Text: Pad(40, l.n)}}
}

// request begins a request, and goes on with an older one.
func (l *life) request() []subjects.Record {
	l.requests++
	id := network.RequestID(fmt.Sprintf("r%d", l.requests))
	out := []subjects.Record{l.Record(network.TopicStart, network.Start{ID: id, URL: "http://x/" + Pad(30, l.n)})}
	if l.rnd.IntN(2) == 0 {
		old := network.RequestID(fmt.Sprintf("r%d", max(1, l.requests-l.rnd.IntN(150))))
		out = append(out, l.Record(network.TopicResponse, network.Response{ID: old, Status: 200}), l.Record(network.TopicEnd, network.End{ID: old, Bytes: 1}))
	}
	return out
}
