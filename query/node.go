package query

import (
	"encoding/json"
	"time"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/tree"
)

// The bounds of trees in answers.
const (
	DefaultTreeNodes = 500
	MaxTreeNodes     = 20_000
	DefaultTreeBytes = 256 << 10
	MaxTreeBytes     = 4 << 20
)

// TreeRequest asks for a part of one tree. Whichever of its bounds is met first
// ends the answer; nodes near the top come before deeper ones.
type TreeRequest struct {
	Source string `json:"source,omitempty" jsonschema:"id or name of the source whose whole tree is meant; or give from"`
	From   NodeID `json:"from,omitempty" jsonschema:"id of the node to begin at"`
	After  NodeID `json:"after,omitempty" jsonschema:"id of a child of from: answer only the children behind it, to go on in a long list"`
	Depth  int    `json:"depth,omitempty" jsonschema:"how many levels below the first node; as many as fit if not given"`
	Nodes  int    `json:"nodes,omitempty" jsonschema:"most nodes to answer; 500 if not given, at most 20000"`
	Bytes  int    `json:"bytes,omitempty" jsonschema:"about how many bytes the answer may have; 262144 if not given, at most 4194304"`
	Values bool   `json:"values,omitempty" jsonschema:"answer the values of the nodes, too"`
}

// TreeAnswer is a part of one tree. Nodes are in the order of the document:
// each parent before its children, with Depth and Parent to tell.
type TreeAnswer struct {
	Source     subjects.SourceID   `json:"source" jsonschema:"id of the source"`
	Name       string              `json:"name" jsonschema:"name of the source"`
	Generation subjects.Generation `json:"generation" jsonschema:"the source's newest generation"`
	Live       bool                `json:"live" jsonschema:"the source is connected and the tree is its present one; otherwise it is its last state, and nothing in it can be edited"`
	Profile    tree.Profile        `json:"profile,omitempty" jsonschema:"component or cordis"`
	Revision   uint64              `json:"revision" jsonschema:"revision of the tree in its generation"`
	Commit     uint64              `json:"commit" jsonschema:"number of the newest commit of the history"`
	Truncated  bool                `json:"truncated,omitempty" jsonschema:"the source itself left branches out, since the tree is over its limits"`
	Total      int                 `json:"total" jsonschema:"nodes of the whole tree"`
	Nodes      []Node              `json:"nodes" jsonschema:"the nodes, parents before children"`
	Cut        int                 `json:"cut" jsonschema:"how many nodes of the answer have children that were left out; ask from one of them to see more"`
}

// Node is one node of a tree.
type Node struct {
	ID       NodeID      `json:"id" jsonschema:"names the node for good"`
	Parent   NodeID      `json:"parent,omitempty" jsonschema:"id of its parent; absent for the root"`
	Depth    int         `json:"depth" jsonschema:"levels below the first node of the answer"`
	Name     string      `json:"name" jsonschema:"name of the component"`
	Kind     string      `json:"kind,omitempty" jsonschema:"what it is, such as worker or route"`
	Attrs    []tree.Attr `json:"attrs,omitempty" jsonschema:"attributes in order, each a pair of name and value"`
	Text     string      `json:"text,omitempty" jsonschema:"text inside of it"`
	Loc      string      `json:"loc,omitempty" jsonschema:"where it is defined, file:line"`
	Values   []Value     `json:"values,omitempty" jsonschema:"its values, when they were asked for"`
	Children int         `json:"children" jsonschema:"how many children it has"`
	Shown    int         `json:"shown" jsonschema:"how many of its children are in this answer"`
}

// Value is one value of a node as it was recorded, one level deep.
type Value struct {
	Name     string          `json:"name" jsonschema:"name of the value"`
	Kind     string          `json:"kind,omitempty" jsonschema:"what it is: state, prop, derived"`
	Writable bool            `json:"writable,omitempty" jsonschema:"an edit may change it while the source is connected"`
	Preview  string          `json:"preview" jsonschema:"the value as one line of text"`
	Value    json.RawMessage `json:"value,omitempty" jsonschema:"the value as JSON; what JSON cannot hold is an object with the key __natscope"`
	Omitted  int             `json:"omitted,omitempty" jsonschema:"size of value in bytes when it was left out for it"`
}

// FindRequest asks for nodes.
type FindRequest struct {
	Sources []string `json:"sources,omitempty" jsonschema:"ids or names of the sources to look at, * stands for any text; none means all"`
	From    NodeID   `json:"from,omitempty" jsonschema:"look only at this node and below it"`
	Filter  string   `json:"filter,omitempty" jsonschema:"an expression that nodes must fulfil, such as: kind == 'worker' && attrs.state == 'stuck'"`
	Text    string   `json:"text,omitempty" jsonschema:"text in name, attributes, text or values; case does not matter"`
	Limit   int      `json:"limit,omitempty" jsonschema:"most nodes to answer; 100 if not given, at most 1000"`
	After   NodeID   `json:"after,omitempty" jsonschema:"go on behind this node: next of an answer"`
	Values  bool     `json:"values,omitempty" jsonschema:"answer the values of the nodes, too"`
}

// FindAnswer lists nodes in the order of the document.
type FindAnswer struct {
	Nodes []FoundNode `json:"nodes" jsonschema:"the nodes found"`
	Next  NodeID      `json:"next,omitempty" jsonschema:"use it as after to go on; absent when everything was searched"`
}

// FoundNode is a node and where it is.
type FoundNode struct {
	Source subjects.SourceID `json:"source" jsonschema:"id of the source"`
	Path   string            `json:"path" jsonschema:"names of the nodes from the root to it"`
	Node
}

// NodeRequest asks for everything that is known of one node.
type NodeRequest struct {
	ID NodeID `json:"id" jsonschema:"id of the node"`
}

// NodeAnswer is one node in full.
type NodeAnswer struct {
	FoundNode
	Generation subjects.Generation `json:"generation" jsonschema:"the source's newest generation"`
	Live       bool                `json:"live" jsonschema:"the source is connected and the node is in its present tree"`
	Snippets   []string            `json:"snippets,omitempty" jsonschema:"snippets that the component declares"`
	Changes    []NodeChange        `json:"changes,omitempty" jsonschema:"the newest changes of it that the history has, the newest last"`
}

// NodeChange is one change of a node.
type NodeChange struct {
	Commit uint64    `json:"commit" jsonschema:"number of the commit"`
	Time   time.Time `json:"time,omitzero" jsonschema:"when"`
	Change
}

// ValuesRequest asks for values of a node, or for what is inside of one value.
type ValuesRequest struct {
	ID   NodeID `json:"id" jsonschema:"id of the node"`
	Path []any  `json:"path,omitempty" jsonschema:"name of the value and steps into it, names or places from 0; none means all values. More than one step asks the live program"`
}

// ValuesAnswer holds values.
type ValuesAnswer struct {
	ID     NodeID  `json:"id" jsonschema:"id of the node"`
	Live   bool    `json:"live" jsonschema:"the source is connected and the node is in its present tree"`
	Values []Value `json:"values" jsonschema:"the values"`
}
