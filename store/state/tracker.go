package state

import (
	"math/bits"
	"slices"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/tree"
)

// The sizes of tree shards, in nodes: a tree is spread anew when its mean shard
// leaves these bounds.
const (
	shardNodes    = 1000
	shardNodesMin = 300
	shardNodesMax = 1500
)

// always is the mark of a shard that must be written even when the saved head
// covers as much, because what changed it came from no message.
const always subjects.StreamSeq = 1<<64 - 1

// treeShard holds the nodes that share a shard, in order of their ids.
type treeShard struct {
	ids []tree.BackendNodeID
	// mark is the sequence of the last message that changed the shard.
	mark subjects.StreamSeq
}

// Tracker knows, for one source, which shard holds what and when each changed last.
type Tracker struct {
	src     *fold.Source
	tree    []treeShard
	nodes   int
	net     ring
	console ring
	history ring
	// commits is the number of the newest commit that was taken notice of.
	commits uint64
}

// ring holds the marks of the shards of a list, by slot.
type ring struct {
	size  uint64
	marks []subjects.StreamSeq
}

// NewTracker follows a source as it is now. Everything counts as changed by the
// last message that the source covers.
func NewTracker(src *fold.Source, l subjects.Limits) *Tracker {
	l = l.WithDefaults()
	t := &Tracker{
		src:     src,
		net:     newRing(requestsPerShard, max(l.Requests, len(src.Net.Requests)), src.Covered),
		console: newRing(entriesPerShard, max(l.ConsoleEntries, len(src.Console.Entries)), src.Covered),
		history: newRing(commitsPerShard, max(l.Commits, len(src.Tree.History.Commits)), src.Covered),
		commits: src.Tree.History.Count,
	}
	t.spread()
	return t
}

func newRing(size uint64, limit int, mark subjects.StreamSeq) ring {
	r := ring{size: size, marks: make([]subjects.StreamSeq, uint64(max(limit, 0))/size+2)}
	for i := range r.marks {
		r.marks[i] = mark
	}
	return r
}

func (r *ring) touch(number uint64, mark subjects.StreamSeq) {
	m := &r.marks[(number-1)/r.size%uint64(len(r.marks))]
	*m = max(*m, mark)
}

// shardsFor returns how many shards a tree of n nodes has; current is how many it has now.
func shardsFor(n, current int) int {
	if current > 0 && n <= shardNodesMax*current && (current == 1 || n >= shardNodesMin*current) {
		return current
	}
	if n <= shardNodes {
		return 1
	}
	return min(1<<bits.Len(uint((n-1)/shardNodes)), maxTreeShards/2)
}

// shardOf returns the shard of a node. Runs of 64 ids, which were made
// together and mostly change together, share one.
func shardOf(id tree.BackendNodeID, shards int) int {
	return int((uint64(id) >> 6 * 0x9e3779b97f4a7c15) >> 32 & uint64(shards-1))
}

// spread assigns all nodes to shards anew.
func (t *Tracker) spread() {
	t.nodes = t.src.Tree.Len()
	t.tree = make([]treeShard, shardsFor(t.nodes, 0))
	if t.src.Tree.Root != nil {
		t.src.Tree.Root.Walk(func(e *tree.Entry) bool {
			s := &t.tree[shardOf(e.Backend, len(t.tree))]
			s.ids = append(s.ids, e.Backend)
			return true
		})
	}
	for i := range t.tree {
		slices.Sort(t.tree[i].ids)
		t.tree[i].mark = t.src.Covered
	}
}

// Changed takes notice of one change of the tracked source, in order.
func (t *Tracker) Changed(c fold.Change) {
	switch c.Kind {
	case fold.TreeChanged:
		t.treeChanged(c.Tree)
		t.committed()
	case fold.RequestChanged:
		t.requestChanged(c.Request)
	case fold.ConsoleAdded:
		t.console.touch(c.Console.Order, t.src.Covered)
	}
}

func (t *Tracker) requestChanged(c *network.Change) {
	mark := t.src.Covered
	if c.Request.Ending == network.SourceGone {
		mark = always
	}
	t.net.touch(c.Request.Order, mark)
	for _, q := range c.Moved {
		t.net.touch(q.Order, mark)
	}
}

func (t *Tracker) treeChanged(c tree.Change) {
	switch c.Kind {
	case tree.Removed:
		c.Entry.Walk(func(e *tree.Entry) bool { t.take(e); return true })
	case tree.Inserted, tree.Moved:
		c.Entry.Walk(func(e *tree.Entry) bool { t.put(e); return true })
		t.touch(c.Entry.Parent)
	case tree.Updated:
		t.touch(c.Entry)
		return
	}
	t.touch(c.Parent)
}

// committed marks the shards of the commits that are new: one message can bring many.
func (t *Tracker) committed() {
	h := &t.src.Tree.History
	// What came and left again is nowhere.
	for t.commits = max(t.commits, h.Dropped); t.commits < h.Count; t.commits++ {
		t.history.touch(t.commits+1, t.src.Covered)
	}
}

func (t *Tracker) shard(e *tree.Entry) *treeShard { return &t.tree[shardOf(e.Backend, len(t.tree))] }

// touch marks the shard of a node, or nothing for nil.
func (t *Tracker) touch(e *tree.Entry) {
	if e == nil {
		return
	}
	s := t.shard(e)
	s.mark = max(s.mark, t.src.Covered)
}

// put makes sure that a node is in its shard. A node that only moved is there already.
func (t *Tracker) put(e *tree.Entry) {
	s := t.shard(e)
	i, found := slices.BinarySearch(s.ids, e.Backend)
	if found {
		return
	}
	s.ids = slices.Insert(s.ids, i, e.Backend)
	t.nodes++
	t.touch(e)
}

func (t *Tracker) take(e *tree.Entry) {
	s := t.shard(e)
	i, found := slices.BinarySearch(s.ids, e.Backend)
	if !found {
		return
	}
	s.ids = slices.Delete(s.ids, i, i+1)
	t.nodes--
	t.touch(e)
}

// Dirty reports whether anything changed that a head which covers the stream up
// to saved does not have.
func (t *Tracker) Dirty(saved subjects.StreamSeq) bool {
	return t.src.Covered > saved || slices.Contains(t.net.marks, always)
}
