package state

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/tree"
)

// Capture is a copy of what changed in a source since a head was written. It
// shares nothing that changes, so that it can be encoded without a lock.
type Capture struct {
	// Head is the head to write; Encode completes its index of shards.
	Head Head

	t       *Tracker
	tree    map[int][]placed
	net     map[int][]network.Request
	console map[int][]console.Entry
	history map[int][]tree.HistoryCommit
	forced  []int
}

// Capture copies what must be written over base, the head that is saved now;
// nil means that nothing usable is saved. The caller holds the lock under which
// the source changes. What the capture took counts as saved until Undo.
func (t *Tracker) Capture(base *Head, stream Stream) *Capture {
	if t.nodes != t.src.Tree.Len() || shardsFor(t.nodes, len(t.tree)) != len(t.tree) {
		t.spread()
	}
	c := &Capture{t: t, tree: make(map[int][]placed), net: make(map[int][]network.Request), console: make(map[int][]console.Entry), history: make(map[int][]tree.HistoryCommit)}
	c.Head = headOf(t.src, stream)
	if base == nil {
		base = &Head{}
	}
	c.captureTree(base)
	c.captureRequests(base)
	c.captureConsole(base)
	c.captureHistory(base)
	return c
}

func headOf(s *fold.Source, stream Stream) Head {
	h := Head{
		Version: Version, Name: s.Name(), Stream: stream, Covered: s.Covered, Element: s.Element, Generation: s.Generation,
		Connected: s.Connected, GoneAt: s.GoneAt, LastT: s.LastT, Late: s.Late, Unknown: s.Unknown, Life: s.Life,
		Planes:     make(map[subjects.Plane]fold.Plane, len(s.Planes)),
		FaultCount: s.FaultCount, Faults: slices.Clone(s.Faults),
		Tree: Tree{
			Profile: s.Tree.Profile, Revision: s.Tree.Revision, Registry: s.Tree.Registry, Truncated: s.Tree.Truncated,
			Commit: s.Tree.Commit, Detached: s.Tree.Detached, Nodes: s.Tree.Len(),
		},
		Requests: Ring{Count: s.Net.Started, Evicted: s.Net.Evicted},
		Console:  Ring{Count: s.Console.Count, Evicted: s.Console.Evicted},
		History:  Ring{Count: s.Tree.History.Count, Evicted: s.Tree.History.Dropped},
	}
	if s.Tree.Root != nil {
		h.Tree.Root = s.Tree.Root.ID
	}
	for name, p := range s.Planes {
		h.Planes[name] = *p
	}
	return h
}

func (c *Capture) captureTree(base *Head) {
	all := len(base.Tree.Parts) != len(c.t.tree)
	c.Head.Tree.Parts = make([]int, len(c.t.tree))
	if !all {
		copy(c.Head.Tree.Parts, base.Tree.Parts)
	}
	for i := range c.t.tree {
		s := &c.t.tree[i]
		if !all && s.mark <= base.Covered {
			continue
		}
		lines := make([]placed, 0, len(s.ids))
		for _, id := range s.ids {
			if e := c.t.src.Tree.Backend(id); e != nil {
				lines = append(lines, placed{Backend: id, Children: distances(e.Children), Node: e.Node})
			}
		}
		c.tree[i] = lines
	}
}

func (c *Capture) captureRequests(base *Head) {
	r, list := &c.t.net, c.t.src.Net.Requests
	all := len(base.Requests.Parts) != len(r.marks)
	c.Head.Requests.Parts = make([]int, len(r.marks))
	if !all {
		copy(c.Head.Requests.Parts, base.Requests.Parts)
	}
	for i, m := range r.marks {
		if m == always {
			r.marks[i] = c.t.src.Covered
			c.forced = append(c.forced, i)
		}
		if all || m > base.Covered {
			c.net[i] = nil
		}
	}
	for _, q := range list {
		if slot := r.slot(q.Order); contains(c.net, slot) {
			c.net[slot] = append(c.net[slot], *q)
		}
	}
}

func (c *Capture) captureConsole(base *Head) {
	r, list := &c.t.console, c.t.src.Console.Entries
	all := len(base.Console.Parts) != len(r.marks)
	c.Head.Console.Parts = make([]int, len(r.marks))
	if !all {
		copy(c.Head.Console.Parts, base.Console.Parts)
	}
	for i, m := range r.marks {
		if all || m > base.Covered {
			c.console[i] = nil
		}
	}
	for _, e := range list {
		if slot := r.slot(e.Order); contains(c.console, slot) {
			c.console[slot] = append(c.console[slot], *e)
		}
	}
}

func (c *Capture) captureHistory(base *Head) {
	r, list := &c.t.history, c.t.src.Tree.History.Commits
	all := len(base.History.Parts) != len(r.marks)
	c.Head.History.Parts = make([]int, len(r.marks))
	if !all {
		copy(c.Head.History.Parts, base.History.Parts)
	}
	for i, m := range r.marks {
		if all || m > base.Covered {
			c.history[i] = nil
		}
	}
	// Commits never change, so that a copy of the list is a copy of everything.
	for _, h := range list {
		if slot := r.slot(h.Seq); contains(c.history, slot) {
			c.history[slot] = append(c.history[slot], h)
		}
	}
}

func (r *ring) slot(number uint64) int { return int((number - 1) / r.size % uint64(len(r.marks))) }

func contains[V any](m map[int]V, k int) bool {
	_, ok := m[k]
	return ok
}

// Undo makes the tracker forget that the capture was saved, because it was not.
func (c *Capture) Undo() {
	for _, i := range c.forced {
		c.t.net.marks[i] = always
	}
}

// Write is what a capture puts into the bucket as one.
type Write struct {
	// Head is the value of the head.
	Head []byte
	// Put holds the values of the parts that changed, Delete the parts that are no more.
	Put    map[string][]byte
	Delete []string
}

// Encode encodes a capture. saved names the parts that are in the bucket now;
// those that the new head does not have are deleted.
func (c *Capture) Encode(saved []string) (Write, error) {
	w := Write{Put: make(map[string][]byte)}
	if err := encodeShards(&w, "t", c.tree, c.Head.Tree.Parts); err != nil {
		return w, err
	}
	if err := encodeShards(&w, "n", c.net, c.Head.Requests.Parts); err != nil {
		return w, err
	}
	if err := encodeShards(&w, "c", c.console, c.Head.Console.Parts); err != nil {
		return w, err
	}
	if err := encodeShards(&w, "h", c.history, c.Head.History.Parts); err != nil {
		return w, err
	}
	names := make(map[string]bool)
	for _, n := range c.Head.Names() {
		names[n] = true
	}
	for _, n := range saved {
		if !names[n] {
			w.Delete = append(w.Delete, n)
		}
	}
	var err error
	if w.Head, err = json.Marshal(&c.Head); err != nil {
		return w, fmt.Errorf("state: head: %w", err)
	}
	return w, nil
}

func encodeShards[T any](w *Write, kind string, shards map[int][]T, parts []int) error {
	for i, lines := range shards {
		values, err := pack(lines)
		if err != nil {
			return err
		}
		parts[i] = len(values)
		for p, v := range values {
			w.Put[partName(kind, i, p)] = v
		}
	}
	return nil
}
