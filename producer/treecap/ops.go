package treecap

import "github.com/natscope/natscope/subjects/tree"

// take turns what changed into records of operations, each a step from one
// whole state to the next. The caller holds t.sending.
func (t *Tree) take() []tree.Ops {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
	if !t.begun {
		return nil
	}
	w := writer{t: t}
	// All removes come before inserts: readers rely on it.
	for _, id := range t.removed {
		w.op(tree.Op{Op: tree.OpRemove, ID: id}, 32)
	}
	for _, n := range t.updated {
		n.dirty = false
		if n.state == known {
			node := n.wire()
			w.op(tree.Op{Op: tree.OpUpdate, Node: &node}, size(&node))
		}
	}
	for _, n := range t.added {
		if n.state == fresh {
			w.add(n)
		}
	}
	t.forget()
	cut := t.cut > 0
	if cut != t.wasCut {
		w.open()
	}
	t.wasCut = cut
	return w.records
}

// forget empties the lists of changes.
func (t *Tree) forget() {
	t.removed, t.added, t.updated = nil, nil, nil
}

// writer gathers operations into records of bounded size.
type writer struct {
	t       *Tree
	records []tree.Ops
	size    int
}

// open returns the record that takes the next operation.
func (w *writer) open() *tree.Ops {
	if len(w.records) == 0 || w.size > w.t.maxRecord {
		if len(w.records) == 0 {
			w.t.commit++
		}
		w.t.revision++
		w.records = append(w.records, tree.Ops{Revision: w.t.revision, Commit: w.t.commit, Ops: []tree.Op{}, Truncated: w.t.cut > 0})
		w.size = 0
	}
	return &w.records[len(w.records)-1]
}

func (w *writer) op(op tree.Op, size int) {
	r := w.open()
	r.Ops = append(r.Ops, op)
	w.size += size + 48
}

// add inserts n with as much below it as one record takes; the rest follows in
// operations of its own.
func (w *writer) add(n *Node) {
	pending := []*Node{n}
	for len(pending) > 0 {
		n := pending[0]
		pending = pending[1:]
		w.open()
		room := w.t.maxRecord - w.size
		node := w.build(n, &room, &pending)
		op := tree.Op{Op: tree.OpAdd, Parent: n.parent.id, Node: &node}
		if n.prev != nil {
			op.After = n.prev.id
		}
		w.op(op, w.t.maxRecord-w.size-room)
	}
}

// build makes the subtree of n. Children that find no room are put into pending,
// where they come behind those of the nodes before them.
func (w *writer) build(n *Node, room *int, pending *[]*Node) tree.Node {
	n.state = known
	node := n.wire()
	*room -= size(&node)
	for c := n.first; c != nil; c = c.next {
		if *room <= 0 {
			*pending = append(*pending, c)
			continue
		}
		node.Children = append(node.Children, w.build(c, room, pending))
	}
	return node
}
