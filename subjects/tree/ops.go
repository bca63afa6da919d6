package tree

import (
	"encoding/json"
	"fmt"
)

// applyOps applies ops as a whole or not at all. data is the record that carried them.
func (s *State) applyOps(ops Ops, data json.RawMessage, ids *IDs, limits Limits) ([]Change, error) {
	switch {
	case ops.Revision <= s.Revision && s.Root != nil:
		return nil, nil
	case s.Root == nil || s.Revision == 0:
		return nil, fmt.Errorf("%w: ops of revision %d without a snapshot before them", ErrRevision, ops.Revision)
	case ops.Revision != s.Revision+1:
		return nil, fmt.Errorf("%w: ops of revision %d on a tree of revision %d", ErrRevision, ops.Revision, s.Revision)
	}
	t := transaction{s: s, ids: ids, limits: limits, names: s.cordisNames()}
	if t.names != nil {
		if err := exact(TopicOps, data); err != nil {
			return nil, fmt.Errorf("%w: revision %d: %w", ErrRevision, ops.Revision, err)
		}
	}
	for i, op := range ops.Ops {
		if err := t.apply(op); err != nil {
			t.rollback()
			return nil, fmt.Errorf("%w: op %d of revision %d: %w", ErrRevision, i, ops.Revision, err)
		}
	}
	changes := t.changes
	if t.tangled {
		var err error
		if changes, err = t.untangle(); err != nil {
			return nil, fmt.Errorf("%w: ops of revision %d: %w", ErrRevision, ops.Revision, err)
		}
	}
	s.Revision, s.Commit, s.Truncated = ops.Revision, ops.Commit, ops.Truncated
	return changes, nil
}

// step is what takes back one op.
type step struct {
	kind ChangeKind
	// entry is the node of the op; parent and at say where a removed or moved one was.
	entry  *Entry
	parent *Entry
	at     int
	// old is the former content of an updated one.
	old Node
}

// transaction applies the ops of one record. It takes notice of ops whose
// changes a reader could not replay from the final entries: those are tangled.
type transaction struct {
	s      *State
	ids    *IDs
	limits Limits
	// names are those of a Cordis tree, else nil.
	names *cordisNames

	steps   []step
	changes []Change
	// added holds all entries below the nodes that were added, moved and
	// updated the nodes that were there and are the subject of such an op.
	added, moved, updated map[*Entry]bool
	// late says that an add or a move came, after which a remove is too late.
	late    bool
	tangled bool
}

func (t *transaction) apply(op Op) error {
	switch op.Op {
	case OpAdd:
		return t.add(op)
	case OpUpdate:
		return t.update(op)
	case OpRemove:
		return t.remove(op)
	case OpMove:
		return t.move(op)
	}
	return fmt.Errorf("%w: unknown op %.40q", ErrPayload, op.Op)
}

// checker returns a checker for nodes that join the tree.
func (t *transaction) checker() *checker {
	c := &checker{profile: t.s.Profile, limits: t.limits, taken: make(map[NodeID]*Node), exists: t.s.byID}
	if t.names != nil {
		c.cordis = newCordisRules(t.names)
	}
	return c
}

func (t *transaction) add(op Op) error {
	if op.Node == nil {
		return fmt.Errorf("%w: add without a node", ErrPayload)
	}
	parent, after, err := t.place(op)
	if err != nil {
		return err
	}
	if err := t.s.checkParent(op.Op, parent); err != nil {
		return err
	}
	if err := t.checker().node(op.Node, t.s.level(parent)); err != nil {
		return err
	}
	e, err := build(op.Node, t.ids.taker())
	if err != nil {
		return err
	}
	t.s.link(parent, after, e)
	t.s.index(e)
	t.steps = append(t.steps, step{kind: Inserted, entry: e})
	// What is added below an added node is part of that one's insertion.
	if !t.added[parent] {
		t.changes = append(t.changes, Change{Kind: Inserted, Entry: e, Parent: parent, Previous: after})
	}
	e.Walk(func(x *Entry) bool { mark(&t.added, x); return true })
	t.late = true
	return nil
}

func (t *transaction) update(op Op) error {
	if op.Node == nil {
		return fmt.Errorf("%w: update without a node", ErrPayload)
	}
	e := t.s.byID[op.Node.ID]
	if e == nil {
		return fmt.Errorf("%w: update of the unknown node %d", ErrPayload, op.Node.ID)
	}
	if op.Node.Name != e.Name || op.Node.Kind != e.Kind {
		return fmt.Errorf("%w: update of node %d changes its name or kind; remove and add it", ErrPayload, e.ID)
	}
	if err := t.checker().content(op.Node, e); err != nil {
		return err
	}
	c := update(e, op.Node)
	if c.Kind == 0 {
		return nil
	}
	t.names.drop(&c.Old)
	t.names.add(&e.Node)
	t.steps = append(t.steps, step{kind: Updated, entry: e, old: c.Old})
	if t.added[e] {
		return nil
	}
	t.tangled = t.tangled || t.updated[e]
	mark(&t.updated, e)
	t.changes = append(t.changes, c)
	return nil
}

func (t *transaction) remove(op Op) error {
	e := t.s.byID[op.ID]
	if e == nil {
		return fmt.Errorf("%w: remove of the unknown node %d", ErrPayload, op.ID)
	}
	if e.Parent == nil {
		return fmt.Errorf("%w: remove of the root; send a snapshot", ErrPayload)
	}
	if err := t.s.checkParent(op.Op, e.Parent); err != nil {
		return err
	}
	t.tangled = t.tangled || t.late || t.hasUpdated(e)
	parent := e.Parent
	at := unlink(e)
	t.s.forget(e)
	t.steps = append(t.steps, step{kind: Removed, entry: e, parent: parent, at: at})
	t.changes = append(t.changes, Change{Kind: Removed, Entry: e, Parent: parent})
	return nil
}

// hasUpdated reports whether an op before updated e or something below it.
func (t *transaction) hasUpdated(e *Entry) bool {
	return len(t.updated) > 0 && !e.Walk(func(x *Entry) bool { return !t.updated[x] })
}

func (t *transaction) move(op Op) error {
	e := t.s.byID[op.ID]
	if e == nil || e.Parent == nil {
		return fmt.Errorf("%w: move of the unknown node or root %d", ErrPayload, op.ID)
	}
	parent, after, err := t.place(op)
	if err != nil {
		return err
	}
	if after == e {
		return fmt.Errorf("%w: move of node %d behind itself", ErrPayload, e.ID)
	}
	for p := parent; p != nil; p = p.Parent {
		if p == e {
			return fmt.Errorf("%w: move of node %d under itself", ErrPayload, e.ID)
		}
	}
	for _, p := range []*Entry{e.Parent, parent} {
		if err := t.s.checkParent(op.Op, p); err != nil {
			return err
		}
	}
	if t.limits.Depth > 0 && t.s.level(parent)+t.s.height(e) > t.limits.Depth {
		return fmt.Errorf("%w: node %d would be more than %d levels deep", ErrLimit, e.ID, t.limits.Depth)
	}
	t.tangled = t.tangled || t.added[e] || t.added[parent] || t.moved[e]
	from := e.Parent
	at := unlink(e)
	t.s.link(parent, after, e)
	t.steps = append(t.steps, step{kind: Moved, entry: e, parent: from, at: at})
	t.changes = append(t.changes, Change{Kind: Moved, Entry: e, Parent: from, Previous: after})
	mark(&t.moved, e)
	t.late = true
	return nil
}

// place finds where an add or move puts its node.
func (t *transaction) place(op Op) (parent, after *Entry, err error) {
	if parent = t.s.byID[op.Parent]; parent == nil {
		return nil, nil, fmt.Errorf("%w: %s under the unknown node %d", ErrPayload, op.Op, op.Parent)
	}
	if op.After != 0 {
		if after = t.s.byID[op.After]; after == nil || after.Parent != parent {
			return nil, nil, fmt.Errorf("%w: %s behind node %d, which is no child of node %d", ErrPayload, op.Op, op.After, op.Parent)
		}
	}
	return parent, after, nil
}

// rollback takes everything back.
func (t *transaction) rollback() {
	for i := len(t.steps) - 1; i >= 0; i-- {
		x := &t.steps[i]
		switch x.kind {
		case Inserted:
			unlink(x.entry)
			t.s.forget(x.entry)
		case Updated:
			t.names.drop(&x.entry.Node)
			t.names.add(&x.old)
			x.entry.Node = x.old
		case Removed:
			linkAt(x.parent, x.at, x.entry)
			t.s.index(x.entry)
		case Moved:
			unlink(x.entry)
			linkAt(x.parent, x.at, x.entry)
		}
	}
}

// untangle finds the changes of ops in an unusual order, by comparing the tree
// before them with the one after them.
func (t *transaction) untangle() ([]Change, error) {
	backends := make(map[NodeID]BackendNodeID)
	for e := range t.added {
		if t.s.byID[e.ID] == e {
			backends[e.ID] = e.Backend
		}
	}
	root := export(t.s.Root)
	t.rollback()
	nodes := make(map[NodeID]*Node)
	collect(root, nodes)
	return t.s.replace(root, nodes, func(id NodeID) (BackendNodeID, error) { return backends[id], nil })
}

// export copies an entry and everything below it to a node with children.
func export(e *Entry) *Node {
	n := e.Node
	if len(e.Children) > 0 {
		n.Children = make([]Node, len(e.Children))
	}
	for i, c := range e.Children {
		n.Children[i] = *export(c)
	}
	return &n
}

// collect lists a subtree by ids.
func collect(n *Node, nodes map[NodeID]*Node) {
	nodes[n.ID] = n
	for i := range n.Children {
		collect(&n.Children[i], nodes)
	}
}

func mark(set *map[*Entry]bool, e *Entry) {
	if *set == nil {
		*set = make(map[*Entry]bool)
	}
	(*set)[e] = true
}
