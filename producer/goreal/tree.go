package goreal

import (
	"fmt"

	"github.com/natscope/natscope/producer/goreal/internal/mirror"
	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/tree"
)

// maxInspected is how many nodes $0 to $4 are.
const maxInspected = 5

// isNode reports whether a pointer is the live object of a node.
func (r *Realm) isNode(pointer any) bool {
	return r.o.Tree != nil && r.o.Tree.NodeOf(pointer) != 0
}

// node returns the live object of a node.
func (r *Realm) node(id tree.NodeID) (mirror.Object, error) {
	if r.o.Tree != nil {
		if v, lock, ok := r.o.Tree.Live(id); ok {
			return mirror.OfLocked(v, lock), nil
		}
	}
	return nil, fmt.Errorf("%w: node %d has no live object", realm.ErrNotFound, id)
}

type nodeParams struct {
	ID          tree.NodeID `json:"id"`
	ObjectGroup string      `json:"objectGroup"`
}

// resolveNode is tree.resolve.
func resolveNode(c *command, p nodeParams) {
	o, err := c.s.r.node(p.ID)
	if err != nil {
		c.reply(nil, err)
		return
	}
	c.show(o, p.ObjectGroup)
}

type nodeResult struct {
	ID tree.NodeID `json:"id"`
}

// nodeOf is tree.nodeOf: the node of an object, 0 for none.
func nodeOf(c *command, p objectParams) {
	o, _, ok := c.object(p.ObjectID)
	if !ok {
		return
	}
	out := nodeResult{}
	if v, is := o.(mirror.Value); is && c.s.r.o.Tree != nil {
		if ptr, ok := v.Pointer(); ok {
			out.ID = c.s.r.o.Tree.NodeOf(ptr)
		}
	}
	c.reply(out, nil)
}

// inspected is tree.inspected: the node becomes $0, and those before it $1 to $4.
func inspected(c *command, p nodeParams) {
	o, err := c.s.r.node(p.ID)
	if err != nil {
		o = mirror.Value{}
	}
	c.s.look(o)
	c.ok()
}

// look makes an object $0.
func (s *session) look(o mirror.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes = append([]mirror.Object{o}, s.nodes[:min(len(s.nodes), maxInspected-1)]...)
}

// inspectedNode is $n.
func (s *session) inspectedNode(n int) (mirror.Object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n >= len(s.nodes) {
		return nil, false
	}
	return s.nodes[n], true
}
