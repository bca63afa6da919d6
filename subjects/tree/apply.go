package tree

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// taker returns the BackendNodeID of a node that is new.
type taker func(NodeID) (BackendNodeID, error)

func (i *IDs) taker() taker { return func(NodeID) (BackendNodeID, error) { return i.Take() } }

// Apply folds one tree record and returns what it changed, in an order that a
// strict reader accepts; Change describes it. A record is applied as a whole or
// not at all: an error wraps ErrPayload, ErrLimit or ErrRevision, names the node
// and the field, and leaves the tree as it was; after ErrRevision only a snapshot
// helps. An unchanged or older revision, and an unknown topic, change nothing.
// at is the wall-clock time of the record in milliseconds since the Unix epoch,
// which the history keeps.
func (s *State) Apply(topic string, data json.RawMessage, ids *IDs, limits Limits, at float64) ([]Change, error) {
	changes, err := s.apply(topic, data, ids, limits)
	if len(changes) == 0 {
		return nil, err
	}
	c := HistoryCommit{T: at, Snapshot: topic != TopicOps}
	if !c.Snapshot {
		c.Flush = s.Commit
	}
	c.Changes, c.More = commitFrom(changes)
	s.History.add(c, limits.Commits)
	return changes, nil
}

func (s *State) apply(topic string, data json.RawMessage, ids *IDs, limits Limits) ([]Change, error) {
	shared := borrowTexts()
	defer shared.free()
	switch topic {
	case TopicSnapshot:
		var snap Snapshot
		if err := decode(topic, data, &snap); err != nil {
			return nil, err
		}
		if snap.Root == nil {
			return nil, fmt.Errorf("%w: snapshot: root is missing", ErrPayload)
		}
		shared.node(snap.Root)
		return s.applySnapshot(snap, data, ids.taker(), limits)
	case TopicOps:
		var ops Ops
		if err := decode(topic, data, &ops); err != nil {
			return nil, err
		}
		for i := range ops.Ops {
			if n := ops.Ops[i].Node; n != nil {
				shared.node(n)
			}
		}
		return s.applyOps(ops, data, ids, limits.of(s.Profile))
	case TopicBegin:
		return nil, s.begin(data)
	case TopicNodes:
		return nil, s.stage(data, ids, limits, shared)
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

// checkHead refuses snapshots of another version and without a revision.
func checkHead(topic string, snap Snapshot) error {
	if snap.Version != SchemaVersion {
		return fmt.Errorf("%w: %s: version %d, this reader has version %d", ErrPayload, topic, snap.Version, SchemaVersion)
	}
	if snap.Revision == 0 {
		return fmt.Errorf("%w: %s: revision is 0", ErrPayload, topic)
	}
	return nil
}

// applySnapshot puts a snapshot in force. data is the record that carried it,
// nil for one of many records, whose nodes were looked at when they came.
func (s *State) applySnapshot(snap Snapshot, data json.RawMessage, take taker, limits Limits) ([]Change, error) {
	if err := checkHead(TopicSnapshot, snap); err != nil {
		return nil, err
	}
	if s.Revision != 0 && snap.Revision <= s.Revision {
		return nil, nil
	}
	if data != nil && snap.Profile == ProfileCordis {
		if err := exact(TopicSnapshot, data); err != nil {
			return nil, fmt.Errorf("snapshot: %w", err)
		}
	}
	c := checkerOf(snap.Profile, limits)
	if err := c.root(snap.Root); err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	s.init()
	changes, err := s.replace(snap.Root, c.taken, take)
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	s.Profile, s.Revision, s.Registry, s.Truncated = snap.Profile, snap.Revision, snap.Registry, snap.Truncated
	s.staged, s.Detached = nil, false
	return changes, nil
}

// build makes the entries of a subtree without linking it to the tree.
func build(n *Node, take taker) (*Entry, error) {
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
		c, err := build(&n.Children[i], take)
		if err != nil {
			return nil, err
		}
		c.Parent = e
		e.Children = append(e.Children, c)
	}
	return e, nil
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

func decode(topic string, data json.RawMessage, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrPayload, topic, err)
	}
	return nil
}
