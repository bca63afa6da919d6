package treecap

import (
	"slices"

	"github.com/natscope/natscope/subjects/tree"
)

// Node is one part of a tree. Its methods are safe for concurrent use and never
// block. On a node that was removed, or that a limit left out, they do nothing.
type Node struct {
	t    *Tree
	id   tree.NodeID
	kind string
	name string
	loc  string

	// All below is guarded by t.mu.

	text  string
	attrs []tree.Attr
	// lent says that a record in the making uses attrs, so that they must not be changed in place.
	lent bool

	parent, prev, next, first, last *Node
	depth                           int
	state                           state
	// dirty says that the node is in the list of updates.
	dirty bool
	// cut is how many children a limit left out.
	cut int
	// component is the live value behind the node, nil for most. It does not change.
	component *Component
}

// state is what the readers know of a node.
type state int

const (
	// fresh nodes are not sent yet.
	fresh state = iota
	// known nodes are sent.
	known
	// gone nodes are removed.
	gone
	// beyond nodes were left out by a limit, with everything below them.
	beyond
)

// Add appends a child with a name and returns it. The name becomes the element's
// name; an empty one becomes "node".
func (n *Node) Add(name string, options ...Option) *Node {
	c := &Node{t: n.t, name: cleanName(name, "node")}
	for _, o := range options {
		o(c)
	}
	n.attach(c)
	return c
}

// attach makes c the last child of n.
func (n *Node) attach(c *Node) {
	t := n.t
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case n.state == gone || t.closed:
		c.discard(gone)
		return
	case n.state == beyond:
		c.discard(beyond)
		return
	case n.depth >= t.maxDepth || t.count >= t.maxNodes:
		c.discard(beyond)
		c.parent = n
		n.cut++
		t.cut++
		t.changed()
		return
	}
	t.lastID++
	t.count++
	c.id, c.parent, c.depth, c.prev = t.lastID, n, n.depth+1, n.last
	if n.last != nil {
		n.last.next = c
	} else {
		n.first = c
	}
	n.last = c
	if t.begun {
		t.added = append(t.added, c)
	}
	if c.component != nil {
		if t.components == nil {
			t.components = make(map[tree.NodeID]*Component)
			t.pointers = make(map[any]tree.NodeID)
		}
		t.components[c.id] = c.component
		if isPointer(c.component.value) {
			t.pointers[c.component.value] = c.id
		}
	}
	t.changed()
}

// discard says that a node is not, or no longer, part of the tree. The caller holds t.mu.
func (n *Node) discard(s state) {
	n.state = s
	if n.component != nil {
		delete(n.t.components, n.id)
		if v := n.component.value; isPointer(v) && n.t.pointers[v] == n.id {
			delete(n.t.pointers, v)
		}
		n.component.release()
	}
}

// Set gives an attribute a value, which is shown as short text: strings,
// numbers, booleans, errors, fmt.Stringer and durations as they read, everything
// else as a preview. The value is read during the call only. Attributes keep the
// order in which they were set first. An attribute without a name is ignored.
func (n *Node) Set(attr string, value any) {
	attr = cleanName(attr, "")
	if attr == "" {
		return
	}
	text := readable(value)
	n.change(func() bool { return n.setAttr(attr, text) })
}

// Unset takes an attribute away.
func (n *Node) Unset(attr string) {
	attr = cleanName(attr, "")
	n.change(func() bool {
		i := n.attr(attr)
		if i < 0 {
			return false
		}
		n.own()
		n.attrs = slices.Delete(n.attrs, i, i+1)
		return true
	})
}

// SetText sets the text that is shown inside the node; empty for none.
func (n *Node) SetText(text string) {
	text = cutText(text, maxText)
	n.change(func() bool {
		if n.text == text {
			return false
		}
		n.text = text
		return true
	})
}

// Remove takes the node with everything below it out of the tree, for good. The root stays.
func (n *Node) Remove() {
	t := n.t
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return
	case n.state == beyond && n.parent != nil:
		n.parent.cut--
		t.cut--
		n.parent, n.state = nil, gone
		t.changed()
		return
	case n.parent == nil || n.state == gone:
		return
	}
	if n.state == known {
		t.removed = append(t.removed, n.id)
	}
	t.unlink(n)
	t.bury(n)
	t.changed()
}

// change runs f, which reports whether it changed the node, and notes an update.
func (n *Node) change(f func() bool) {
	t := n.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || n.state == gone || n.state == beyond || !f() || n.dirty || n.state == fresh {
		return
	}
	n.dirty = true
	t.updated = append(t.updated, n)
	t.changed()
}

func (n *Node) setAttr(name, text string) bool {
	i := n.attr(name)
	switch {
	case i < 0 && len(n.attrs) >= maxAttrs:
		return false
	case i < 0:
		n.own()
		n.attrs = append(n.attrs, tree.Attr{Name: name, Value: text})
	case n.attrs[i].Value == text:
		return false
	default:
		n.own()
		n.attrs[i].Value = text
	}
	return true
}

func (n *Node) attr(name string) int {
	return slices.IndexFunc(n.attrs, func(a tree.Attr) bool { return a.Name == name })
}

// own makes sure that attrs may be changed in place.
func (n *Node) own() {
	if n.lent {
		n.attrs, n.lent = slices.Clone(n.attrs), false
	}
}

// wire returns the node as it travels, without children. The caller holds t.mu.
func (n *Node) wire() tree.Node {
	n.lent = true
	w := tree.Node{ID: n.id, Kind: n.kind, Name: n.name, Loc: n.loc, Text: n.text, Attrs: n.attrs}
	if n.component != nil {
		w.Object = n.t.ref(n.id)
		n.component.shown.onto(&w)
	}
	room := n.t.maxNode - len(w.Text)
	for i, a := range w.Attrs {
		if room -= len(a.Name) + len(a.Value); room < 0 {
			// As many as one record can carry, and a word that there were more.
			w.Attrs = append(slices.Clone(w.Attrs[:i]), tree.Attr{Name: truncatedAttr, Value: "the attributes are too long"})
			w.Text = cutText(w.Text, n.t.maxNode/2)
			break
		}
	}
	return w
}

// size is about how many bytes the node has as JSON.
func size(w *tree.Node) int {
	s := 64 + len(w.Kind) + len(w.Name) + len(w.Loc) + len(w.Text)
	for _, a := range w.Attrs {
		s += 8 + len(a.Name) + len(a.Value)
	}
	if w.Object != "" {
		s += 64
		for name, v := range w.Values {
			s += 40 + 2*len(name) + len(v)
		}
	}
	return s
}
