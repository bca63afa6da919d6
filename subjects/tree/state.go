package tree

import (
	"fmt"
	"slices"
)

// idBits says how many BackendNodeIDs one message of the stream may take: more
// than a frame of the default size can carry nodes.
const idBits = 15

// IDs hands out the BackendNodeIDs that belong to one message of the record
// stream. Since every reader folds the same messages in the same order, all of
// them allocate the same ids, and no id is ever used twice in a stream.
type IDs struct {
	next, end BackendNodeID
}

// FirstID is the smallest BackendNodeID that IDs ever hands out; readers may use smaller ones for elements of their own.
const FirstID BackendNodeID = 1 << idBits

// IDsOf returns the ids that belong to the message with the given stream sequence.
func IDsOf(streamSeq uint64) *IDs {
	first := BackendNodeID(streamSeq) << idBits
	return &IDs{next: first, end: first + 1<<idBits}
}

// Take returns the next id. The error wraps ErrLimit when the message has used up its ids.
func (i *IDs) Take() (BackendNodeID, error) {
	if i.next == i.end {
		return 0, fmt.Errorf("%w: one message adds more than %d nodes", ErrLimit, 1<<idBits)
	}
	id := i.next
	i.next++
	return id, nil
}

// Entry is one node of a folded tree. Readers must not change it.
type Entry struct {
	// Node is the node without its children.
	Node
	// Backend is the node's id in the space.
	Backend BackendNodeID
	// Parent is nil for the root, and for an entry that was removed.
	Parent *Entry
	// Children are the node's children in order.
	Children []*Entry
}

// Depth returns the number of levels from the root down to the entry; the root's depth is 1.
func (e *Entry) Depth() int {
	n := 0
	for ; e != nil; e = e.Parent {
		n++
	}
	return n
}

// Walk calls f for e and everything below it, parents first, until f returns false.
func (e *Entry) Walk(f func(*Entry) bool) bool {
	if !f(e) {
		return false
	}
	for _, c := range e.Children {
		if !c.Walk(f) {
			return false
		}
	}
	return true
}

// State is the fold of the tree plane of one source.
type State struct {
	// Profile, Revision, Registry and Truncated are those of the last snapshot or ops.
	Profile   Profile
	Revision  uint64
	Registry  string
	Truncated bool
	// Commit is the number of the last flush.
	Commit uint64
	// Root is nil while there is no tree.
	Root *Entry
	// Detached says that the tree is that of a former realm: its node ids and objects mean nothing any more.
	Detached bool
	// History holds the newest commits. It outlives generations and trees.
	History History

	byID      map[NodeID]*Entry
	byBackend map[BackendNodeID]*Entry
	staged    *staged
	// names holds the objects and uids of a Cordis tree, nil until ops need them.
	names *cordisNames
}

// Len returns the number of nodes.
func (s *State) Len() int { return len(s.byID) }

// Node returns the entry with the given id in the realm, or nil. A detached tree has none.
func (s *State) Node(id NodeID) *Entry {
	if s.Detached {
		return nil
	}
	return s.byID[id]
}

// Backend returns the entry with the given id in the space, or nil.
func (s *State) Backend(id BackendNodeID) *Entry { return s.byBackend[id] }

// Restore puts an entry into a state that is being rebuilt from storage:
// parents before children, children of one parent in order. The slices of n
// belong to the state from then on. The error wraps ErrPayload when the entry does not fit.
func (s *State) Restore(parent NodeID, n Node, backend BackendNodeID) (*Entry, error) {
	s.init()
	if s.byID[n.ID] != nil || s.byBackend[backend] != nil || n.ID == 0 || backend == 0 {
		return nil, fmt.Errorf("%w: node %d is there already", ErrPayload, n.ID)
	}
	e := &Entry{Node: n, Backend: backend}
	e.Node.Children = nil
	shared := borrowTexts()
	defer shared.free()
	shared.node(&e.Node)
	if parent == 0 {
		if s.Root != nil {
			return nil, fmt.Errorf("%w: node %d is a second root", ErrPayload, n.ID)
		}
		s.Root = e
	} else {
		p := s.byID[parent]
		if p == nil {
			return nil, fmt.Errorf("%w: node %d has the unknown parent %d", ErrPayload, n.ID, parent)
		}
		e.Parent = p
		p.Children = append(p.Children, e)
	}
	s.byID[e.ID], s.byBackend[backend] = e, e
	s.names = nil
	return e, nil
}

func (s *State) init() {
	if s.byID == nil {
		s.byID = make(map[NodeID]*Entry)
		s.byBackend = make(map[BackendNodeID]*Entry)
	}
}

// link puts e behind after (nil: first) under parent (nil: as root).
func (s *State) link(parent, after, e *Entry) {
	if parent == nil {
		s.Root, e.Parent = e, nil
		return
	}
	linkAt(parent, indexOf(parent, after)+1, e)
}

// linkAt makes e the child of parent at a place.
func linkAt(parent *Entry, at int, e *Entry) {
	e.Parent = parent
	parent.Children = slices.Insert(parent.Children, at, e)
}

// unlink takes e, which is not the root, out of its parent, leaves everything
// below it alone, and returns the place where it was.
func unlink(e *Entry) int {
	i := indexOf(e.Parent, e)
	e.Parent.Children = slices.Delete(e.Parent.Children, i, i+1)
	e.Parent = nil
	return i
}

// index adds e and everything below it to the indexes.
func (s *State) index(e *Entry) {
	e.Walk(func(x *Entry) bool {
		s.byID[x.ID], s.byBackend[x.Backend] = x, x
		s.names.add(&x.Node)
		return true
	})
}

// forget drops e and everything below it from the indexes.
func (s *State) forget(e *Entry) {
	e.Walk(func(x *Entry) bool {
		delete(s.byID, x.ID)
		delete(s.byBackend, x.Backend)
		s.names.drop(&x.Node)
		return true
	})
}

// indexOf returns the place of e among the children of p; -1 for nil. Most
// changes come at the ends of long lists, so it looks from both.
func indexOf(p, e *Entry) int {
	if e == nil {
		return -1
	}
	for i, j := 0, len(p.Children)-1; i <= j; i, j = i+1, j-1 {
		if p.Children[i] == e {
			return i
		}
		if p.Children[j] == e {
			return j
		}
	}
	return -1
}
