package tree

// replace turns the tree into the one below root with as few changes as its
// node ids allow. Nodes that keep id, kind and name keep their BackendNodeID;
// all removals come first.
func (s *State) replace(root *Node, take taker) ([]Change, error) {
	if s.Root == nil || s.Detached || !s.keeps(root) || s.byID[root.ID] != s.Root {
		e, err := s.build(root, take)
		if err != nil {
			return nil, err
		}
		var changes []Change
		if old := s.Root; old != nil {
			changes = append(changes, Change{Kind: Removed, Entry: old})
			old.Walk(func(x *Entry) bool { delete(s.byBackend, x.Backend); return true })
		}
		s.byID = make(map[NodeID]*Entry)
		s.link(nil, nil, e)
		s.index(e)
		return append(changes, Change{Kind: Inserted, Entry: e}), nil
	}

	// New entries are built before anything changes, since ids may run out.
	d := differ{s: s, kept: make(map[*Entry]bool), built: make(map[NodeID]*Entry)}
	d.keep(root)
	if err := d.buildNew(root, take); err != nil {
		return nil, err
	}
	d.removeGone(s.Root)
	d.arrange(root, s.Root)
	return d.changes, nil
}

// keeps reports whether the tree has a node that n continues.
func (s *State) keeps(n *Node) bool {
	e := s.byID[n.ID]
	return e != nil && e.Name == n.Name && e.Kind == n.Kind
}

type differ struct {
	s       *State
	kept    map[*Entry]bool
	built   map[NodeID]*Entry
	changes []Change
}

func (d *differ) keep(n *Node) {
	if d.s.keeps(n) {
		d.kept[d.s.byID[n.ID]] = true
	}
	for i := range n.Children {
		d.keep(&n.Children[i])
	}
}

// buildNew makes an entry for each node that does not continue one, without children.
func (d *differ) buildNew(n *Node, take taker) error {
	if !d.s.keeps(n) {
		backend, err := take(n.ID)
		if err != nil {
			return err
		}
		e := &Entry{Node: *n, Backend: backend}
		e.Node.Children = nil
		d.built[n.ID] = e
	}
	for i := range n.Children {
		if err := d.buildNew(&n.Children[i], take); err != nil {
			return err
		}
	}
	return nil
}

// removeGone removes every subtree whose top is not kept. Kept nodes below
// such a top are lifted out and built anew, since a removed subtree leaves as a whole.
func (d *differ) removeGone(e *Entry) {
	for i := len(e.Children) - 1; i >= 0; i-- {
		c := e.Children[i]
		if d.kept[c] {
			d.removeGone(c)
			continue
		}
		d.rescue(c, e)
		d.changes = append(d.changes, Change{Kind: Removed, Entry: c, Parent: e})
		d.s.unlink(c)
		d.s.forget(c)
	}
}

// rescue moves the kept nodes below a subtree that goes to its parent's end,
// from where arrange takes them to their new place.
func (d *differ) rescue(gone, to *Entry) {
	for i := len(gone.Children) - 1; i >= 0; i-- {
		c := gone.Children[i]
		if !d.kept[c] {
			d.rescue(c, to)
			continue
		}
		var last *Entry
		if n := len(to.Children); n > 0 {
			last = to.Children[n-1]
		}
		d.changes = append(d.changes, Change{Kind: Moved, Entry: c, Parent: gone, Previous: last})
		d.s.unlink(c)
		d.s.link(to, last, c)
		d.removeGone(c)
	}
}

// arrange brings the children of e into the order of n, moving and inserting as needed.
func (d *differ) arrange(n *Node, e *Entry) {
	if c := update(e, n); c.Kind != 0 {
		d.changes = append(d.changes, c)
	}
	var previous *Entry
	at := 0
	for i := range n.Children {
		want := &n.Children[i]
		child := d.built[want.ID]
		if child != nil {
			d.insertNew(want, child, e, previous)
		} else {
			child = d.s.byID[want.ID]
			if at >= len(e.Children) || e.Children[at] != child {
				d.changes = append(d.changes, Change{Kind: Moved, Entry: child, Parent: child.Parent, Previous: previous})
				d.s.unlink(child)
				d.s.link(e, previous, child)
			}
			d.arrange(want, child)
		}
		previous = child
		at++
	}
}

// insertNew links a new entry with all new entries below it as one insert;
// kept nodes below it follow as moves.
func (d *differ) insertNew(n *Node, e, parent, previous *Entry) {
	d.attachNew(n, e)
	d.s.link(parent, previous, e)
	d.s.index(e)
	d.changes = append(d.changes, Change{Kind: Inserted, Entry: e, Parent: parent, Previous: previous})
	d.arrangeBelow(n, e)
}

func (d *differ) attachNew(n *Node, e *Entry) {
	for i := range n.Children {
		if c := d.built[n.Children[i].ID]; c != nil {
			c.Parent = e
			e.Children = append(e.Children, c)
			d.attachNew(&n.Children[i], c)
		}
	}
}

// arrangeBelow moves kept nodes to their places below entries that were just inserted.
func (d *differ) arrangeBelow(n *Node, e *Entry) {
	var previous *Entry
	for i := range n.Children {
		want := &n.Children[i]
		child := d.built[want.ID]
		if child != nil {
			d.arrangeBelow(want, child)
		} else {
			child = d.s.byID[want.ID]
			d.changes = append(d.changes, Change{Kind: Moved, Entry: child, Parent: child.Parent, Previous: previous})
			d.s.unlink(child)
			d.s.link(e, previous, child)
			d.arrange(want, child)
		}
		previous = child
	}
}
