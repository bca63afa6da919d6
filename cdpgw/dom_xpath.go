package cdpgw

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/antchfx/xpath"
)

// xpath marks the nodes that an XPath leads to; for an attribute, its element.
// A path that gives a number or a text leads nowhere.
func (d *docCopy) xpath(ctx context.Context, query string, found marks) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if p == errTooSlow {
				err = errTooSlow
				return
			}
			err = fmt.Errorf("it cannot be read: %v", p)
		}
	}()
	if len(query) > maxQuery {
		return fmt.Errorf("it is longer than %d bytes", maxQuery)
	}
	expr, err := xpath.Compile(query)
	if err != nil {
		return err
	}
	nav := &navigator{walk: &walk{nodes: d.nodes, ctx: ctx, until: time.Now().Add(matchWait)}, attr: -1}
	nodes, ok := expr.Evaluate(nav).(*xpath.NodeIterator)
	if !ok {
		return nil
	}
	for nodes.MoveNext() {
		if n, ok := nodes.Current().(*navigator); ok && n.at > 0 {
			found[n.at] = true
		}
	}
	return nil
}

// walk is one evaluation. It ends one that takes too long: the library has no way
// to stop it but a panic of what it calls.
type walk struct {
	nodes []copied
	ctx   context.Context
	until time.Time
	moves uint
	// room is where the next places come from: the library copies one for nearly every
	// node it looks at, and memory for each alone would be most of what a search costs.
	room []navigator
}

// at returns a place of its own.
func (w *walk) at(n navigator) *navigator {
	if len(w.room) == 0 {
		w.room = make([]navigator, 256)
	}
	c := &w.room[0]
	w.room = w.room[1:]
	*c = n
	return c
}

func (w *walk) step() {
	if w.moves++; w.moves%4096 == 0 && (w.ctx.Err() != nil || time.Now().After(w.until)) {
		panic(errTooSlow)
	}
}

// navigator is a place in a copy. The library makes very many of them.
type navigator struct {
	walk *walk
	at   int32
	// attr is the place of an attribute of the node, -1 for the node itself.
	attr int32
}

var _ xpath.NodeNavigator = (*navigator)(nil)

func (n *navigator) node() *copied { return &n.walk.nodes[n.at] }

// NodeType implements xpath.NodeNavigator, as all methods below do.
func (n *navigator) NodeType() xpath.NodeType {
	if n.attr >= 0 {
		return xpath.AttributeNode
	}
	switch n.node().nodeType() {
	case documentNode:
		return xpath.RootNode
	case textNode:
		return xpath.TextNode
	}
	return xpath.ElementNode
}

// name is the whole name of an element or attribute.
func (n *navigator) name() string {
	switch {
	case n.attr >= 0:
		return n.node().attrs[n.attr].Name
	case n.node().nodeType() == elementNode:
		return n.node().name
	}
	return ""
}

func (n *navigator) LocalName() string {
	name := n.name()
	if i := strings.IndexByte(name, ':'); i > 0 {
		return name[i+1:]
	}
	return name
}

func (n *navigator) Prefix() string {
	name := n.name()
	if i := strings.IndexByte(name, ':'); i > 0 {
		return name[:i]
	}
	return ""
}

func (n *navigator) Value() string {
	if n.attr >= 0 {
		return n.node().attrs[n.attr].Value
	}
	c := n.node()
	if c.place == placeText {
		return c.text
	}
	var b strings.Builder
	for i := n.at + 1; i < c.end; i++ {
		n.walk.step()
		b.WriteString(n.walk.nodes[i].text)
	}
	return b.String()
}

func (n *navigator) Copy() xpath.NodeNavigator {
	return n.walk.at(*n)
}

// move goes to another node; false for none.
func (n *navigator) move(at int32) bool {
	n.walk.step()
	if at < 0 {
		return false
	}
	n.at, n.attr = at, -1
	return true
}

func (n *navigator) MoveToRoot() { n.move(0) }

func (n *navigator) MoveToParent() bool {
	if n.attr >= 0 {
		n.attr = -1
		return true
	}
	return n.move(n.node().parent)
}

func (n *navigator) MoveToNextAttribute() bool {
	n.walk.step()
	if c := n.node(); c.nodeType() != elementNode || int(n.attr)+1 >= len(c.attrs) {
		return false
	}
	n.attr++
	return true
}

func (n *navigator) MoveToChild() bool {
	if n.attr >= 0 || n.node().end == n.at+1 {
		return false
	}
	return n.move(n.at + 1)
}

func (n *navigator) MoveToFirst() bool {
	if n.attr >= 0 || n.node().prev < 0 {
		return false
	}
	return n.move(n.node().parent + 1)
}

func (n *navigator) MoveToNext() bool {
	c := n.node()
	if n.attr >= 0 || c.parent < 0 || c.end >= n.walk.nodes[c.parent].end {
		return false
	}
	return n.move(c.end)
}

func (n *navigator) MoveToPrevious() bool {
	if n.attr >= 0 {
		return false
	}
	return n.move(n.node().prev)
}

func (n *navigator) MoveTo(other xpath.NodeNavigator) bool {
	o, ok := other.(*navigator)
	if !ok {
		return false
	}
	*n = *o
	return true
}
