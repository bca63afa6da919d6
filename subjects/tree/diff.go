package tree

import "slices"

// replace turns the tree into the one below root, whose nodes are given by id,
// with as few changes as their ids allow. Nodes that keep id, kind and name
// keep their BackendNodeID. Nothing changes when it fails.
func (s *State) replace(root *Node, nodes map[NodeID]*Node, take taker) ([]Change, error) {
	d := differ{s: s, nodes: nodes, take: take}
	// The names of a Cordis tree are gathered anew when they are needed.
	s.names = nil
	if s.Root == nil || s.Detached || !s.keeps(root) || s.byID[root.ID] != s.Root {
		return d.all(root)
	}
	d.findDead(root)
	d.built = make(map[NodeID]*Entry)
	if err := d.build(root); err != nil {
		return nil, err
	}
	d.remove(s.Root)
	d.arrange(root, s.Root)
	return d.changes, nil
}

// keeps reports whether the tree has a node that n continues.
func (s *State) keeps(n *Node) bool {
	e := s.byID[n.ID]
	return e != nil && e.Name == n.Name && e.Kind == n.Kind
}

// differ compares the tree with a new one. An entry lives on if the new tree
// continues it and all entries above it, before and after, live on too; every
// other one is dead. Dead entries leave with the removal of a subtree. Nodes
// that continue a dead entry come back in the insertion of a subtree, with its
// BackendNodeID but as an entry of their own, since a reader must be able to
// look at both subtrees. So a moved entry never meets a subtree that comes or goes.
type differ struct {
	s     *State
	nodes map[NodeID]*Node
	take  taker
	dead  map[*Entry]bool
	// built holds the tops of the subtrees to insert.
	built   map[NodeID]*Entry
	changes []Change
}

// all replaces the whole tree.
func (d *differ) all(root *Node) ([]Change, error) {
	s := d.s
	e, err := build(root, d.backend)
	if err != nil {
		return nil, err
	}
	if s.Root != nil {
		d.changes = append(d.changes, Change{Kind: Removed, Entry: s.Root})
	}
	s.byID, s.byBackend = make(map[NodeID]*Entry, len(d.nodes)), make(map[BackendNodeID]*Entry, len(d.nodes))
	s.Root = e
	s.index(e)
	return append(d.changes, Change{Kind: Inserted, Entry: e}), nil
}

// backend returns the BackendNodeID of a node of an inserted subtree.
func (d *differ) backend(id NodeID) (BackendNodeID, error) {
	if !d.s.Detached && d.s.keeps(d.nodes[id]) {
		return d.s.byID[id].Backend, nil
	}
	return d.take(id)
}

// findDead finds the entries that do not live on.
func (d *differ) findDead(root *Node) {
	d.dead = make(map[*Entry]bool)
	var todo []*Entry
	kill := func(e *Entry) {
		if e != nil && !d.dead[e] {
			d.dead[e] = true
			todo = append(todo, e)
		}
	}
	// killBelow kills what the new tree has below a node.
	killBelow := func(n *Node) {
		for i := range n.Children {
			kill(d.s.byID[n.Children[i].ID])
		}
	}
	d.s.Root.Walk(func(e *Entry) bool {
		if n := d.nodes[e.ID]; n == nil || !d.s.keeps(n) {
			kill(e)
		}
		return true
	})
	for _, n := range d.nodes {
		if !d.s.keeps(n) {
			killBelow(n)
		}
	}
	for len(todo) > 0 {
		e := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, c := range e.Children {
			kill(c)
		}
		if n := d.nodes[e.ID]; n != nil {
			killBelow(n)
		}
	}
}

// lives returns the entry that a node continues, nil if it is part of a subtree to insert.
func (d *differ) lives(n *Node) *Entry {
	if e := d.s.byID[n.ID]; e != nil && !d.dead[e] {
		return e
	}
	return nil
}

// build makes the subtrees to insert.
func (d *differ) build(n *Node) error {
	for i := range n.Children {
		c := &n.Children[i]
		if d.lives(c) != nil {
			if err := d.build(c); err != nil {
				return err
			}
			continue
		}
		e, err := build(c, d.backend)
		if err != nil {
			return err
		}
		d.built[c.ID] = e
	}
	return nil
}

// remove takes dead subtrees out from below an entry that lives on. The
// children lists stay as they are: arrange replaces them.
func (d *differ) remove(e *Entry) {
	for _, c := range slices.Backward(e.Children) {
		if !d.dead[c] {
			d.remove(c)
			continue
		}
		d.changes = append(d.changes, Change{Kind: Removed, Entry: c, Parent: e})
		d.s.forget(c)
		c.Parent = nil
	}
}

// arrange gives e the content and the children of n, and so on below it. Where
// it comes, everything above e is as it will be.
func (d *differ) arrange(n *Node, e *Entry) {
	if c := update(e, n); c.Kind != 0 {
		d.changes = append(d.changes, c)
	}
	children := make([]*Entry, len(n.Children))
	same := len(children) == len(e.Children)
	for i := range n.Children {
		c := d.built[n.Children[i].ID]
		if c == nil {
			c = d.s.byID[n.Children[i].ID]
		}
		children[i] = c
		same = same && e.Children[i] == c
	}
	if !same {
		d.place(e, children)
	}
	for i := range n.Children {
		if d.built[n.Children[i].ID] == nil {
			d.arrange(&n.Children[i], children[i])
		}
	}
}

// place gives e its children, and tells which of them are new and which moved.
func (d *differ) place(e *Entry, children []*Entry) {
	stays := staying(e, children)
	var previous *Entry
	for i, c := range children {
		switch {
		case d.built[c.ID] == c:
			d.changes = append(d.changes, Change{Kind: Inserted, Entry: c, Parent: e, Previous: previous})
			d.s.index(c)
		case !stays[i]:
			d.changes = append(d.changes, Change{Kind: Moved, Entry: c, Parent: c.Parent, Previous: previous})
		}
		c.Parent = e
		previous = c
	}
	e.Children = children
}

// staying says which of the future children of e need no move: the longest run
// of those that are its children already and stand in the same order.
func staying(e *Entry, children []*Entry) []bool {
	stays := make([]bool, len(children))
	at := make(map[*Entry]int, len(e.Children))
	for i, c := range e.Children {
		if c.Parent == e {
			at[c] = i
		}
	}
	// tails[k] is the index of the last child of the best run of length k+1,
	// before[i] that of the child before child i in its run.
	tails := make([]int, 0, len(children))
	before := make([]int, len(children))
	for i, c := range children {
		place, ok := at[c]
		if !ok {
			continue
		}
		k, _ := slices.BinarySearchFunc(tails, place, func(t, place int) int { return at[children[t]] - place })
		before[i] = -1
		if k > 0 {
			before[i] = tails[k-1]
		}
		if k == len(tails) {
			tails = append(tails, i)
		} else {
			tails[k] = i
		}
	}
	if len(tails) == 0 {
		return stays
	}
	for i := tails[len(tails)-1]; i >= 0; i = before[i] {
		stays[i] = true
	}
	return stays
}
