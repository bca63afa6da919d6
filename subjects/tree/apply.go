package tree

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// staged is a snapshot of many records on its way.
type staged struct {
	head  Snapshot
	nodes []PlacedNode
	// ids holds the BackendNodeID of each node, should it turn out to be new:
	// it belongs to the message that brought the node, since the commit's own
	// message has not enough of them.
	ids map[NodeID]BackendNodeID
}

// taker returns the BackendNodeID of a node that is new.
type taker func(NodeID) (BackendNodeID, error)

func (i *IDs) taker() taker { return func(NodeID) (BackendNodeID, error) { return i.Take() } }

// Apply folds one tree record and returns what it changed, in an order that a
// strict reader accepts: all removes before inserts, a new subtree as one
// insert. An error wraps ErrPayload, ErrLimit or ErrRevision and leaves the
// tree as it was; after ErrRevision only a snapshot helps. An unchanged or older
// revision, and an unknown topic, change nothing.
func (s *State) Apply(topic string, data json.RawMessage, ids *IDs, limits Limits) ([]Change, error) {
	switch topic {
	case TopicSnapshot:
		var snap Snapshot
		if err := decode(topic, data, &snap); err != nil {
			return nil, err
		}
		if snap.Root == nil {
			return nil, fmt.Errorf("%w: snapshot: root is missing", ErrPayload)
		}
		return s.applySnapshot(snap, ids.taker(), limits)
	case TopicOps:
		var ops Ops
		if err := decode(topic, data, &ops); err != nil {
			return nil, err
		}
		return s.applyOps(ops, ids, limits)
	case TopicBegin:
		return nil, s.begin(data)
	case TopicNodes:
		return nil, s.stage(data, ids, limits)
	case TopicCommit:
		return s.commit(data, limits)
	}
	return nil, nil
}

// Reset prepares the state for another generation. When the realm is another
// one, the nodes mean objects that are gone: the tree is detached, stays visible,
// and goes as a whole with the next snapshot.
func (s *State) Reset(sameRealm bool) {
	s.Revision, s.Commit, s.staged = 0, 0, nil
	if !sameRealm && s.Root != nil {
		s.Detached = true
	}
}

// Staging reports whether a snapshot of many records is on its way. Its nodes
// are in no storage yet, so a state must not be saved until it is done.
func (s *State) Staging() bool { return s.staged != nil }

func (s *State) applySnapshot(snap Snapshot, take taker, limits Limits) ([]Change, error) {
	if snap.Version != SchemaVersion {
		return nil, fmt.Errorf("%w: snapshot: version %d, this reader has version %d", ErrPayload, snap.Version, SchemaVersion)
	}
	if snap.Revision == 0 {
		return nil, fmt.Errorf("%w: snapshot: revision is 0", ErrPayload)
	}
	if s.Revision != 0 && snap.Revision <= s.Revision {
		return nil, nil
	}
	s.init()
	if err := check(snap.Root, 1, limits, make(map[NodeID]bool), nil); err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	changes, err := s.replace(snap.Root, take)
	if err != nil {
		return nil, err
	}
	s.Profile, s.Revision, s.Registry, s.Truncated = snap.Profile, snap.Revision, snap.Registry, snap.Truncated
	s.staged, s.Detached = nil, false
	return changes, nil
}

// check refuses a subtree that has no valid shape. taken holds the ids of the
// subtree so far, exists those of the tree that it joins.
func check(n *Node, depth int, limits Limits, taken map[NodeID]bool, exists map[NodeID]*Entry) error {
	switch {
	case n.ID == 0:
		return fmt.Errorf("%w: a node has no id", ErrPayload)
	case taken[n.ID] || exists[n.ID] != nil:
		return fmt.Errorf("%w: node %d is there twice", ErrPayload, n.ID)
	case n.Name == "":
		return fmt.Errorf("%w: node %d has no name", ErrPayload, n.ID)
	case limits.Depth > 0 && depth > limits.Depth:
		return fmt.Errorf("%w: node %d is %d levels deep, the limit is %d", ErrLimit, n.ID, depth, limits.Depth)
	case limits.Nodes > 0 && len(taken)+len(exists) >= limits.Nodes:
		return fmt.Errorf("%w: more than %d nodes", ErrLimit, limits.Nodes)
	}
	taken[n.ID] = true
	for i := range n.Children {
		if err := check(&n.Children[i], depth+1, limits, taken, exists); err != nil {
			return err
		}
	}
	return nil
}

// build makes the entries of a subtree without linking it.
func (s *State) build(n *Node, take taker) (*Entry, error) {
	backend, err := take(n.ID)
	if err != nil {
		return nil, err
	}
	e := &Entry{Node: *n, Backend: backend}
	e.Node.Children = nil
	if len(n.Children) > 0 {
		e.Children = make([]*Entry, 0, len(n.Children))
	}
	for i := range n.Children {
		c, err := s.build(&n.Children[i], take)
		if err != nil {
			return nil, err
		}
		c.Parent = e
		e.Children = append(e.Children, c)
	}
	return e, nil
}

// index adds a subtree to the indexes.
func (s *State) index(e *Entry) {
	e.Walk(func(x *Entry) bool {
		s.byID[x.ID], s.byBackend[x.Backend] = x, x
		return true
	})
}

func (s *State) applyOps(ops Ops, ids *IDs, limits Limits) ([]Change, error) {
	switch {
	case ops.Revision <= s.Revision && s.Root != nil:
		return nil, nil
	case s.Root == nil || s.Revision == 0:
		return nil, fmt.Errorf("%w: ops of revision %d without a snapshot before them", ErrRevision, ops.Revision)
	case ops.Revision != s.Revision+1:
		return nil, fmt.Errorf("%w: ops of revision %d on a tree of revision %d", ErrRevision, ops.Revision, s.Revision)
	}
	var changes []Change
	for i, op := range ops.Ops {
		c, err := s.applyOp(op, ids, limits)
		if err != nil {
			// The ops before this one are undone by the snapshot that the fault
			// leads to; until then the tree is the one that they made, and no
			// later ops apply.
			s.Revision = 0
			return changes, fmt.Errorf("op %d of revision %d: %w: %w", i, ops.Revision, ErrRevision, err)
		}
		if c.Kind != 0 {
			changes = append(changes, c)
		}
	}
	s.Revision, s.Commit, s.Truncated = ops.Revision, ops.Commit, ops.Truncated
	return changes, nil
}

func (s *State) applyOp(op Op, ids *IDs, limits Limits) (Change, error) {
	switch op.Op {
	case OpAdd:
		return s.add(op, ids, limits)
	case OpUpdate:
		return s.updateNode(op)
	case OpRemove:
		e := s.byID[op.ID]
		if e == nil {
			return Change{}, fmt.Errorf("%w: remove of the unknown node %d", ErrPayload, op.ID)
		}
		if e.Parent == nil {
			return Change{}, fmt.Errorf("%w: remove of the root; send a snapshot", ErrPayload)
		}
		c := Change{Kind: Removed, Entry: e, Parent: e.Parent}
		s.unlink(e)
		s.forget(e)
		return c, nil
	case OpMove:
		return s.move(op, limits)
	}
	return Change{}, fmt.Errorf("%w: unknown op %.40q", ErrPayload, op.Op)
}

func (s *State) add(op Op, ids *IDs, limits Limits) (Change, error) {
	if op.Node == nil {
		return Change{}, fmt.Errorf("%w: add without a node", ErrPayload)
	}
	parent, after, err := s.place(op)
	if err != nil {
		return Change{}, err
	}
	if err := check(op.Node, parent.Depth()+1, limits, make(map[NodeID]bool), s.byID); err != nil {
		return Change{}, err
	}
	e, err := s.build(op.Node, ids.taker())
	if err != nil {
		return Change{}, err
	}
	s.link(parent, after, e)
	s.index(e)
	return Change{Kind: Inserted, Entry: e, Parent: parent, Previous: after}, nil
}

func (s *State) updateNode(op Op) (Change, error) {
	if op.Node == nil {
		return Change{}, fmt.Errorf("%w: update without a node", ErrPayload)
	}
	e := s.byID[op.Node.ID]
	if e == nil {
		return Change{}, fmt.Errorf("%w: update of the unknown node %d", ErrPayload, op.Node.ID)
	}
	if op.Node.Name != e.Name || op.Node.Kind != e.Kind {
		return Change{}, fmt.Errorf("%w: update of node %d changes its name or kind; remove and add it", ErrPayload, e.ID)
	}
	return update(e, op.Node), nil
}

func (s *State) move(op Op, limits Limits) (Change, error) {
	e := s.byID[op.ID]
	if e == nil || e.Parent == nil {
		return Change{}, fmt.Errorf("%w: move of the unknown node or root %d", ErrPayload, op.ID)
	}
	parent, after, err := s.place(op)
	if err != nil {
		return Change{}, err
	}
	if after == e {
		return Change{}, fmt.Errorf("%w: move of node %d behind itself", ErrPayload, e.ID)
	}
	for p := parent; p != nil; p = p.Parent {
		if p == e {
			return Change{}, fmt.Errorf("%w: move of node %d under itself", ErrPayload, e.ID)
		}
	}
	if limits.Depth > 0 && parent.Depth()+height(e) > limits.Depth {
		return Change{}, fmt.Errorf("%w: node %d would be more than %d levels deep", ErrLimit, e.ID, limits.Depth)
	}
	c := Change{Kind: Moved, Entry: e, Parent: e.Parent, Previous: after}
	s.unlink(e)
	s.link(parent, after, e)
	return c, nil
}

// place finds where an add or move puts its node.
func (s *State) place(op Op) (parent, after *Entry, err error) {
	if parent = s.byID[op.Parent]; parent == nil {
		return nil, nil, fmt.Errorf("%w: %s under the unknown node %d", ErrPayload, op.Op, op.Parent)
	}
	if op.After != 0 {
		if after = s.byID[op.After]; after == nil || after.Parent != parent {
			return nil, nil, fmt.Errorf("%w: %s behind node %d, which is no child of node %d", ErrPayload, op.Op, op.After, op.Parent)
		}
	}
	return parent, after, nil
}

// update gives e the content of n; the change has no kind when nothing differs.
func update(e *Entry, n *Node) Change {
	next := *n
	next.Children = nil
	if sameContent(&e.Node, &next) {
		return Change{}
	}
	c := Change{Kind: Updated, Entry: e, Parent: e.Parent, Old: e.Node}
	e.Node = next
	return c
}

func sameContent(a, b *Node) bool {
	return a.ID == b.ID && a.Kind == b.Kind && a.Name == b.Name && a.Text == b.Text &&
		a.Object == b.Object && a.Loc == b.Loc &&
		slices.Equal(a.Attrs, b.Attrs) && slices.Equal(a.Writable, b.Writable) && slices.Equal(a.Snippets, b.Snippets) &&
		maps.Equal(a.ValueKinds, b.ValueKinds) &&
		maps.EqualFunc(a.Values, b.Values, func(x, y json.RawMessage) bool { return string(x) == string(y) })
}

func height(e *Entry) int {
	h := 0
	for _, c := range e.Children {
		h = max(h, height(c))
	}
	return h + 1
}

func decode(topic string, data json.RawMessage, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrPayload, topic, err)
	}
	return nil
}
