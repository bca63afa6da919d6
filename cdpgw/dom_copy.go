package cdpgw

import (
	"context"
	"html"
	"slices"
	"strings"
	"sync"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/tree"
)

// Whoever looks at every node of a document does so in a copy: the state is
// locked while the copy is made, a few milliseconds for 100 000 nodes, and not
// while a selector is tried on each of them.

// maxCopies is how many copies of documents a gateway makes at a time; further commands wait.
const maxCopies = 2

// docCopy is the document of a target as it was at one moment.
type docCopy struct {
	// nodes are in document order; the first one is the document.
	nodes   []copied
	sources []subjects.SourceID
	// depth is the most levels, width the most children of one node.
	depth, width int
}

// copied is one node of a copy. Its texts and attributes are those of the state,
// which replaces and never changes them.
type copied struct {
	id     tree.BackendNodeID
	place  place
	source int32 // in sources; -1 for what belongs to none
	// parent and prev are the places of the parent and of the sibling before, -1
	// for none; end is the place behind all that is below the node.
	parent, prev, end int32
	// name and attrs are those of the element, once show has been called.
	name, kind, text string
	attrs            []tree.Attr
}

// overCopy is a slow command that runs f, without locks, over a copy of the document.
func (s *session) overCopy(f func(context.Context, *docCopy) (any, error)) any {
	return later(func(ctx context.Context) (any, error) {
		select {
		case s.gateway.copies <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		defer func() { <-s.gateway.copies }()
		d := newCopy()
		defer d.free()
		s.during(func() { s.copyInto(d) })
		if len(d.nodes) == 0 {
			return nil, failf("The document could not be read.")
		}
		d.show()
		return f(ctx, d)
	})
}

// copies keeps the memory of copies for the next one: people search again as they type.
var copies = sync.Pool{New: func() any { return new([]copied) }}

// newCopy returns a copy to fill, which must be freed.
func newCopy() *docCopy { return &docCopy{nodes: (*copies.Get().(*[]copied))[:0]} }

// free gives the memory back. Nothing may use the copy any more.
func (d *docCopy) free() {
	clear(d.nodes)
	d.nodes = d.nodes[:0]
	copies.Put(&d.nodes)
}

// copyInto fills d with the document as it is now.
func (s *session) copyInto(d *docCopy) {
	n := 16
	for _, src := range s.sources() {
		n += src.Tree.Len() + src.Tree.Len()/8 + 1
	}
	d.nodes = slices.Grow(d.nodes, n)
	s.copyNode(d, node{}, -1, -1, 1)
}

// copyNode appends a node and all below it, and returns its place.
func (s *session) copyNode(d *docCopy, n node, parent, prev int32, depth int) int32 {
	if n.place == placeSource {
		d.sources = append(d.sources, n.source.ID)
	}
	if n.place == placeTree {
		return d.entry(n.entry, parent, prev, depth)
	}
	at := d.add(copied{id: n.id(), place: n.place, source: d.source(n), parent: parent, prev: prev, name: n.name()}, depth)
	for a := s.attributes(n); len(a) > 1; a = a[2:] {
		d.nodes[at].attrs = append(d.nodes[at].attrs, tree.Attr{Name: a[0], Value: a[1]})
	}
	children := s.children(n)
	prev = -1
	for i := range children.len() {
		prev = s.copyNode(d, children.at(i), at, prev, depth+1)
	}
	d.width = max(d.width, children.len())
	d.nodes[at].end = int32(len(d.nodes))
	return at
}

func (d *docCopy) source(n node) int32 {
	if n.source == nil {
		return -1
	}
	return int32(len(d.sources)) - 1
}

func (d *docCopy) add(c copied, depth int) int32 {
	d.depth = max(d.depth, depth)
	c.end = int32(len(d.nodes)) + 1
	d.nodes = append(d.nodes, c)
	return c.end - 1
}

// entry appends a component and all below it.
func (d *docCopy) entry(e *tree.Entry, parent, prev int32, depth int) int32 {
	owner := int32(len(d.sources)) - 1
	at := d.add(copied{id: e.Backend, place: placeTree, source: owner, parent: parent, prev: prev, name: e.Name, kind: e.Kind, attrs: e.Attrs}, depth)
	before := int32(-1)
	if e.Text != "" {
		before = d.add(copied{id: e.Backend | textBit, place: placeText, source: owner, parent: at, prev: -1, name: "#text", text: e.Text}, depth+1)
	}
	for _, c := range e.Children {
		before = d.entry(c, at, before, depth+1)
	}
	d.width = max(d.width, len(e.Children)+1)
	d.nodes[at].end = int32(len(d.nodes))
	return at
}

// find returns the place of a node in the copy; false if it is not in it.
func (d *docCopy) find(id tree.BackendNodeID) (int32, bool) {
	for i := range d.nodes {
		if d.nodes[i].id == id {
			return int32(i), true
		}
	}
	return 0, false
}

// hit names the node at a place.
func (d *docCopy) hit(at int32) hit {
	c := &d.nodes[at]
	h := hit{id: c.id}
	if c.source >= 0 {
		h.source = d.sources[c.source]
	}
	return h
}

func (c *copied) nodeType() int { return node{place: c.place}.nodeType() }

// show gives every component the name and the attributes that its element has in
// DevTools. Most have them already, and cost nothing.
func (d *docCopy) show() {
	element := known(elementName)
	clean := known(func(name string) bool { return attributeName(name) == name })
	isClean := func(attrs []tree.Attr) bool {
		for i, a := range attrs {
			if !clean.of(a.Name) {
				return false
			}
			for _, b := range attrs[:i] {
				if a.Name == b.Name {
					return false
				}
			}
		}
		return true
	}
	for i := range d.nodes {
		c := &d.nodes[i]
		if c.place != placeTree {
			continue
		}
		name := element.of(c.name)
		if name != c.name || c.kind != "" || !isClean(c.attrs) {
			a := treeAttributes(c.name, c.kind, c.attrs)
			c.attrs = make([]tree.Attr, 0, len(a)/2)
			for ; len(a) > 1; a = a[2:] {
				c.attrs = append(c.attrs, tree.Attr{Name: a[0], Value: a[1]})
			}
		}
		c.name = name
	}
}

// html writes the node at a place, and all below it, as markup.
func (d *docCopy) html(b *strings.Builder, at int32) {
	c := &d.nodes[at]
	switch c.nodeType() {
	case textNode:
		b.WriteString(html.EscapeString(c.text))
		return
	case elementNode:
		b.WriteString("<" + c.name)
		for _, a := range c.attrs {
			b.WriteString(" " + a.Name + `="` + html.EscapeString(a.Value) + `"`)
		}
		b.WriteString(">")
		defer b.WriteString("</" + c.name + ">")
	}
	for i := at + 1; i < c.end; i = d.nodes[i].end {
		d.html(b, i)
	}
}
