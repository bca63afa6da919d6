package natstest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/source"
	"github.com/natscope/natscope/subjects/tree"
)

// firstAdded is the id before that of the first node that an op adds.
const firstAdded = 10_000

// life is a source that does at random whatever sources do.
type life struct {
	*Source
	rnd      *rand.Rand
	revision uint64
	nodes    []tree.NodeID
	next     tree.NodeID
	// parent and children mirror the shape of the tree.
	parent   map[tree.NodeID]tree.NodeID
	children map[tree.NodeID]int
	// first is the name of the nodes of the snapshot.
	first    string
	requests int
	n        int
}

// Live opens the source and writes that many records of all kinds, in frames
// of random size, with new generations and losses between them.
func (s *Source) Live(records int, seed uint64) {
	l := &life{Source: s, rnd: rand.New(rand.NewPCG(seed, 1))}
	l.Open()
	for l.n < records && !s.t.Failed() {
		if s.Between != nil {
			s.Between()
		}
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
	l.next = firstAdded
	size := 20 + l.rnd.IntN(100)
	if l.rnd.IntN(4) == 0 {
		size = 2500
	}
	l.nodes, l.parent, l.children = append(l.nodes[:0], 1), make(map[tree.NodeID]tree.NodeID), make(map[tree.NodeID]int)
	for i := range size {
		l.grow(tree.NodeID(i+2), 1)
	}
	if l.rnd.IntN(2) == 0 {
		l.first = "item"
		l.Send(subjects.PlaneTree, tree.TopicSnapshot, Tree(1, size))
		return
	}
	l.first = "part"
	l.Send(subjects.PlaneTree, tree.TopicBegin, tree.Snapshot{Version: tree.SchemaVersion, Profile: tree.ProfileComponent, Revision: 1})
	l.Send(subjects.PlaneTree, tree.TopicNodes, tree.Nodes{Revision: 1, Nodes: []tree.PlacedNode{{Node: tree.Node{ID: 1, Name: "app"}}}})
	for from := 2; from <= size+1; from += 500 {
		var part []tree.PlacedNode
		for id := from; id <= min(size+1, from+499); id++ {
			part = append(part, tree.PlacedNode{Parent: 1, Node: tree.Node{ID: tree.NodeID(id), Name: l.first}})
		}
		l.Send(subjects.PlaneTree, tree.TopicNodes, tree.Nodes{Revision: 1, Nodes: part})
	}
	l.Send(subjects.PlaneTree, tree.TopicCommit, tree.Commit{Revision: 1, Count: size + 1})
}

// grow notes that a node is new.
func (l *life) grow(id, parent tree.NodeID) {
	l.nodes = append(l.nodes, id)
	l.hang(id, parent)
}

func (l *life) hang(id, parent tree.NodeID) {
	l.parent[id] = parent
	l.children[parent]++
}

// below reports whether id is top or a node below it.
func (l *life) below(id, top tree.NodeID) bool {
	for ; id != 0; id = l.parent[id] {
		if id == top {
			return true
		}
	}
	return false
}

// op is one change of the tree. Very rarely it is one that no source should
// send, which leaves the tree stuck until the next snapshot.
func (l *life) op() tree.Op {
	at := 1 + l.rnd.IntN(len(l.nodes)-1)
	id, other := l.nodes[at], l.nodes[l.rnd.IntN(len(l.nodes))]
	switch l.rnd.IntN(24) {
	case 0, 1, 2, 3, 4, 5, 6, 7:
		name := l.first
		if id > firstAdded {
			name = "new"
		}
		node := &tree.Node{ID: id, Name: name, Text: fmt.Sprint(l.n)}
		if l.rnd.IntN(4) == 0 {
			node.Attrs = []tree.Attr{{Name: "n", Value: fmt.Sprint(l.n % 3)}}
			node.Values = map[string]json.RawMessage{"v": json.RawMessage(`[ ` + fmt.Sprint(l.n%9) + `]`)}
		}
		return tree.Op{Op: tree.OpUpdate, Node: node}
	case 8, 9, 10:
		if len(l.nodes) > 10 && l.children[id] == 0 {
			l.nodes = append(l.nodes[:at], l.nodes[at+1:]...)
			l.children[l.parent[id]]--
			return tree.Op{Op: tree.OpRemove, ID: id}
		}
	case 11, 12, 13:
		if !l.below(other, id) {
			l.children[l.parent[id]]--
			l.hang(id, other)
			return tree.Op{Op: tree.OpMove, ID: id, Parent: other}
		}
	case 14:
		if l.rnd.IntN(20) == 0 {
			return tree.Op{Op: tree.OpRemove, ID: 1}
		}
	}
	l.next++
	l.grow(l.next, other)
	return tree.Op{Op: tree.OpAdd, Parent: other, Node: &tree.Node{ID: l.next, Name: "new", Text: Pad(40, l.n)}}
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
