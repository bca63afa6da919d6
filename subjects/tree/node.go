package tree

import (
	"encoding/json"
	"errors"
	"fmt"
)

// The topics of the tree plane.
const (
	// TopicSnapshot carries a Snapshot: the whole tree in one record.
	TopicSnapshot = "snapshot"
	// TopicOps carries Ops: what one flush changed.
	TopicOps = "ops"
	// TopicBegin carries a Snapshot without a root and opens a snapshot of many records.
	TopicBegin = "begin"
	// TopicNodes carries Nodes: a part of the snapshot that TopicBegin opened.
	TopicNodes = "nodes"
	// TopicCommit carries a Commit and puts the snapshot that TopicBegin opened in force.
	TopicCommit = "commit"
)

// SchemaVersion is the version of snapshots that this package reads and writes.
const SchemaVersion = 1

// ErrPayload says that a tree record is malformed. The text around it names the field.
var ErrPayload = errors.New("tree: malformed payload")

// ErrRevision says that ops do not build on the tree's revision, so that the source must send a snapshot.
var ErrRevision = errors.New("tree: revision gap")

// ErrLimit says that a tree has more nodes or more depth than is accepted.
var ErrLimit = errors.New("tree: over the limit")

// NodeID names a node in its realm. Realms number their nodes from 1 and never use a number twice.
type NodeID uint64

// BackendNodeID names a node in its space, the same at every reader, for good.
// It stays below 2^53, so that JavaScript can hold it.
type BackendNodeID uint64

// ObjectRef is an opaque realm-local handle of a live object: routing data, never shown and never compared across realms.
type ObjectRef string

// Profile says which rules a tree follows.
type Profile string

// The profiles.
const (
	// ProfileComponent is a tree of named components. Unknown profiles are read as this one.
	ProfileComponent Profile = "component"
	// ProfileCordis is a tree of Cordis contexts and fibers.
	ProfileCordis Profile = "cordis"
)

// Attr is one attribute of a node: a name and a readable value.
type Attr struct {
	// Name is the attribute's name, which is not empty.
	Name string
	// Value is the readable value, any text.
	Value string
}

// MarshalJSON writes an attribute as a pair.
func (a Attr) MarshalJSON() ([]byte, error) { return json.Marshal([2]string{a.Name, a.Value}) }

// UnmarshalJSON reads an attribute from a pair.
func (a *Attr) UnmarshalJSON(b []byte) error {
	var p []string
	if err := json.Unmarshal(b, &p); err != nil {
		return err
	}
	if len(p) != 2 || p[0] == "" {
		return fmt.Errorf("%w: attrs holds %.100s, which is not a [name, value] pair", ErrPayload, b)
	}
	a.Name, a.Value = p[0], p[1]
	return nil
}

// Node is one node as it travels.
type Node struct {
	// ID is unique in the realm.
	ID NodeID `json:"id"`
	// Kind classifies the node, such as "worker" or "route"; empty for a plain component.
	Kind string `json:"kind,omitempty"`
	// Name is the component's name, which becomes the element's name.
	Name string `json:"name"`
	// Attrs are shown in order.
	Attrs []Attr `json:"attrs,omitempty"`
	// Text is shown inside the node when it is not empty.
	Text string `json:"text,omitempty"`
	// Object is the live object behind the node, if any.
	Object ObjectRef `json:"object,omitempty"`
	// Values holds the component's values, each encoded one level deep by package value.
	Values map[string]json.RawMessage `json:"values,omitempty"`
	// ValueKinds says what each value is: state, prop, derived, …
	ValueKinds map[string]string `json:"valueKinds,omitempty"`
	// Writable names the values that an edit may change.
	Writable []string `json:"writable,omitempty"`
	// Loc is where the component is defined: file:line.
	Loc string `json:"loc,omitempty"`
	// Snippets names the snippets that the component declares.
	Snippets []string `json:"snippets,omitempty"`
	// Children are the node's children in order. Only snapshots and add ops carry them.
	Children []Node `json:"children,omitempty"`
}

// Snapshot is a whole tree.
type Snapshot struct {
	// Version is SchemaVersion.
	Version int `json:"version"`
	// Profile says which rules the tree follows.
	Profile Profile `json:"profile"`
	// Revision orders the states of one generation's tree; it grows with every change.
	Revision uint64 `json:"revision"`
	// Registry names the table that resolves the nodes' ObjectRefs.
	Registry string `json:"registry,omitempty"`
	// Truncated says that limits cut trailing branches.
	Truncated bool `json:"truncated,omitempty"`
	// Root is the root node; nil in a begin record.
	Root *Node `json:"root,omitempty"`
}

// Nodes is a part of a snapshot of many records: parents come before their children.
type Nodes struct {
	// Revision is that of the begin record.
	Revision uint64 `json:"revision"`
	// Nodes holds the nodes, without children of their own.
	Nodes []PlacedNode `json:"nodes"`
}

// PlacedNode is a node and its parent; the children of one parent come in order.
type PlacedNode struct {
	// Parent is 0 for the root.
	Parent NodeID `json:"parent,omitempty"`
	// Node is the node, whose own children are ignored.
	Node Node `json:"node"`
}

// Commit puts a snapshot of many records in force.
type Commit struct {
	// Revision is that of the begin record.
	Revision uint64 `json:"revision"`
	// Count is how many nodes the snapshot has.
	Count int `json:"count"`
}

// The operations of an Op.
const (
	// OpAdd inserts Node, with all its children, under Parent behind After.
	OpAdd = "add"
	// OpUpdate replaces everything of a node but its place and its children.
	OpUpdate = "update"
	// OpRemove removes the node ID with all below it.
	OpRemove = "remove"
	// OpMove moves the node ID under Parent behind After; a move keeps the node and all below it.
	OpMove = "move"
)

// Op is one change of a tree.
type Op struct {
	// Op is one of the Op constants.
	Op string `json:"op"`
	// ID is the node of a remove or move.
	ID NodeID `json:"id,omitempty"`
	// Parent is where an add or move puts the node.
	Parent NodeID `json:"parent,omitempty"`
	// After is the sibling before the node; 0 means that the node comes first.
	After NodeID `json:"after,omitempty"`
	// Node is the node of an add or update.
	Node *Node `json:"node,omitempty"`
}

// Ops is what one flush changed.
type Ops struct {
	// Revision is one more than the revision that the ops build on.
	Revision uint64 `json:"revision"`
	// Commit numbers the flush, from 1.
	Commit uint64 `json:"commit,omitempty"`
	// Ops holds the changes in order, each applied to what those before it made.
	// Producers send removes first and mention no node twice: readers follow other
	// orders too, at the cost of comparing the whole tree.
	Ops []Op `json:"ops"`
	// Truncated says that limits cut trailing branches.
	Truncated bool `json:"truncated,omitempty"`
}

// KindWatched is the kind, in Node.ValueKinds, of a value that says whether the
// node reads what it shows. A node that has one does so while somebody looks, and
// wants to hear of that by the command tree.watch.
const KindWatched = "watched"

// Watched reports whether the node wants to hear that somebody looks at it.
func (n *Node) Watched() bool {
	for _, kind := range n.ValueKinds {
		if kind == KindWatched {
			return true
		}
	}
	return false
}

// Limits bounds a tree. Zero fields mean no limit, save that no tree is deeper than 10 000 levels.
type Limits struct {
	// Nodes is the most nodes of a tree.
	Nodes int
	// CordisNodes is the most nodes of a tree of the cordis profile, where it is less than Nodes.
	CordisNodes int
	// Depth is the most levels of a tree; the root is level 1. In a tree of the
	// cordis profile a Fiber and the Context that it owns share a level.
	Depth int
	// Commits is how many commits the history keeps.
	Commits int
}

// maxDepth bounds every tree, since some functions call themselves for each level.
const maxDepth = 10000

// of returns the limits that apply to a tree of the given profile.
func (l Limits) of(p Profile) Limits {
	if p == ProfileCordis && l.CordisNodes > 0 && (l.Nodes <= 0 || l.CordisNodes < l.Nodes) {
		l.Nodes = l.CordisNodes
	}
	if l.Depth <= 0 || l.Depth > maxDepth {
		l.Depth = maxDepth
	}
	return l
}
