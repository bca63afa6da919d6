package treecap

import (
	"reflect"
	"sync"

	"github.com/natscope/natscope/subjects/tree"
)

// Live returns the registered value of a node with the lock that Locked named
// for it, nil if none did; false when the node has no live value.
func (t *Tree) Live(id tree.NodeID) (value any, lock sync.Locker, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.components[id]
	if c == nil {
		return nil, nil, false
	}
	return c.value, c.guard, true
}

// NodeOf returns the node that shows a registered pointer, the newest of several;
// 0 for anything else.
func (t *Tree) NodeOf(pointer any) tree.NodeID {
	if !isPointer(pointer) {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pointers[pointer]
}

// isPointer reports whether a value is a pointer to something.
func isPointer(v any) bool {
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && !r.IsNil()
}
