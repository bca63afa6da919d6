package tree

import (
	"fmt"
	"strconv"
)

// The two kinds of nodes of a tree of ProfileCordis. Their names are CordisContext and CordisFiber.
const (
	// KindContext is a Cordis Context.
	KindContext = "context"
	// KindFiber is a Cordis Fiber.
	KindFiber = "fiber"
)

// What nodes of ProfileCordis are called, and the one attribute that they may have.
const (
	// CordisContext is the name of every node of KindContext.
	CordisContext = "Context"
	// CordisFiber is the name of every node of KindFiber.
	CordisFiber = "Fiber"
	// AttrUID is the only attribute of a Fiber: its uid, a whole number from 1 in decimal digits. A Context has none.
	AttrUID = "uid"
)

// maxObject is how many bytes an ObjectRef of a Cordis tree may have.
const maxObject = 256

// maxUID is the largest uid: what JavaScript counts exactly.
const maxUID = 1<<53 - 1

// ContextNode returns the node of a Context.
func ContextNode(id NodeID, object ObjectRef, children ...Node) Node {
	return Node{ID: id, Kind: KindContext, Name: CordisContext, Object: object, Children: children}
}

// FiberNode returns the node of a Fiber with the Context that it owns.
func FiberNode(id NodeID, object ObjectRef, uid uint64, context Node) Node {
	return Node{
		ID: id, Kind: KindFiber, Name: CordisFiber, Object: object, Children: []Node{context},
		Attrs: []Attr{{Name: AttrUID, Value: strconv.FormatUint(uid, 10)}},
	}
}

// UID returns the uid of a Fiber's node, 0 for every other one.
func (n *Node) UID() uint64 {
	if n.Kind != KindFiber || len(n.Attrs) != 1 || n.Attrs[0].Name != AttrUID {
		return 0
	}
	uid, err := strconv.ParseUint(n.Attrs[0].Value, 10, 64)
	if err != nil || uid > maxUID || strconv.FormatUint(uid, 10) != n.Attrs[0].Value {
		return 0
	}
	return uid
}

// cordisNames says who has which object and uid in a Cordis tree.
type cordisNames struct {
	objects map[ObjectRef]NodeID
	uids    map[uint64]NodeID
}

func newCordisNames() *cordisNames {
	return &cordisNames{objects: make(map[ObjectRef]NodeID), uids: make(map[uint64]NodeID)}
}

// add enters a node. The receiver may be nil, for a tree that needs no names.
func (c *cordisNames) add(n *Node) {
	if c == nil {
		return
	}
	c.objects[n.Object] = n.ID
	if uid := n.UID(); uid != 0 {
		c.uids[uid] = n.ID
	}
}

// drop takes a node out. The receiver may be nil.
func (c *cordisNames) drop(n *Node) {
	if c == nil {
		return
	}
	delete(c.objects, n.Object)
	delete(c.uids, n.UID())
}

// cordisRules are the rules of the cordis profile for the content of nodes.
type cordisRules struct {
	// tree holds the names of the tree that nodes join, or is nil; own those of the nodes that were checked.
	tree *cordisNames
	own  *cordisNames
}

func newCordisRules(tree *cordisNames) *cordisRules {
	return &cordisRules{tree: tree, own: newCordisNames()}
}

// content checks a node and takes its names. old is the entry that the node updates, if it does.
func (r *cordisRules) content(n *Node, old *Entry) error {
	if err := checkCordis(n); err != nil {
		return err
	}
	for _, names := range []*cordisNames{r.tree, r.own} {
		if names == nil {
			continue
		}
		if owner := names.objects[n.Object]; owner != 0 && (old == nil || owner != old.ID) {
			return fmt.Errorf("%w: object %.40q of node %d is that of node %d too", ErrPayload, n.Object, n.ID, owner)
		}
		if owner := names.uids[n.UID()]; owner != 0 && (old == nil || owner != old.ID) {
			return fmt.Errorf("%w: uid %d of node %d is that of node %d too", ErrPayload, n.UID(), n.ID, owner)
		}
	}
	r.own.add(n)
	return nil
}

// checkCordis checks a node for itself: its kind, its name and which fields it has.
func checkCordis(n *Node) error {
	name := CordisContext
	switch n.Kind {
	case KindContext:
		if len(n.Attrs) > 0 {
			return fmt.Errorf("%w: attrs of node %d: a context has none", ErrPayload, n.ID)
		}
	case KindFiber:
		name = CordisFiber
		if len(n.Attrs) != 1 || n.Attrs[0].Name != AttrUID {
			return fmt.Errorf("%w: attrs of node %d: a fiber has %s and nothing else", ErrPayload, n.ID, AttrUID)
		}
		if n.UID() == 0 {
			return fmt.Errorf("%w: uid of node %d is %.40q, not a whole number from 1 to %d", ErrPayload, n.ID, n.Attrs[0].Value, uint64(maxUID))
		}
	default:
		return fmt.Errorf("%w: kind of node %d is %.40q, neither %s nor %s", ErrPayload, n.ID, n.Kind, KindContext, KindFiber)
	}
	switch {
	case n.Name != name:
		return fmt.Errorf("%w: name of node %d is %.40q, that of a %s is %q", ErrPayload, n.ID, n.Name, n.Kind, name)
	case n.Object == "" || len(n.Object) > maxObject:
		return fmt.Errorf("%w: object of node %d has %d bytes, not 1 to %d", ErrPayload, n.ID, len(n.Object), maxObject)
	}
	for _, f := range []struct {
		name string
		here bool
	}{
		{"text", n.Text != ""}, {"values", len(n.Values) > 0}, {"valueKinds", len(n.ValueKinds) > 0},
		{"writable", len(n.Writable) > 0}, {"loc", n.Loc != ""}, {"snippets", len(n.Snippets) > 0},
	} {
		if f.here {
			return fmt.Errorf("%w: %s of node %d: a cordis node has no such field", ErrPayload, f.name, n.ID)
		}
	}
	return nil
}

// checkFamily checks that a Fiber has exactly the one child that it owns.
func checkFamily(n *Node) error {
	if n.Kind != KindFiber {
		return nil
	}
	if len(n.Children) != 1 || n.Children[0].Kind != KindContext {
		return fmt.Errorf("%w: children of node %d: a fiber has exactly one %s, this one has %d nodes", ErrPayload, n.ID, KindContext, len(n.Children))
	}
	return nil
}

// checkParent refuses ops that would give a Fiber another child, or take the one that it has.
func (s *State) checkParent(op string, parent *Entry) error {
	if s.Profile == ProfileCordis && parent != nil && parent.Kind == KindFiber {
		return fmt.Errorf("%w: %s changes the children of node %d: a fiber has exactly one %s", ErrPayload, op, parent.ID, KindContext)
	}
	return nil
}

// cordisNames returns the names of a Cordis tree, nil for every other tree.
// They are gathered when the first ops ask for them, and kept up to date until
// the tree is replaced.
func (s *State) cordisNames() *cordisNames {
	if s.Profile != ProfileCordis || s.Root == nil {
		s.names = nil
		return nil
	}
	if s.names == nil {
		s.names = newCordisNames()
		s.Root.Walk(func(e *Entry) bool { s.names.add(&e.Node); return true })
	}
	return s.names
}
