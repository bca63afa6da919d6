package cdpgw

import (
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/source"
	"github.com/natscope/natscope/subjects/tree"
)

// The document of a target:
//
//	#document
//	  <workspace name="dev">
//	    <host name="orders"> its tree </host>
//	    <clients>
//	      <client name="shop" url="http://…"> its tree </client>
//	    </clients>
//	  </workspace>
//
// A source that is not connected keeps its element and its tree and carries
// state="disconnected". Nodes of trees never carry connection state. One whose
// tree is over the limits carries truncated="true".

// The backend ids of nodes that belong to no source; the ids of trees begin at tree.FirstID.
const (
	documentID  tree.BackendNodeID = 1
	workspaceID tree.BackendNodeID = 2
	clientsID   tree.BackendNodeID = 3
)

// textBit makes the backend id of a node's text from that of the node: a text
// has no id of its own in a tree. Ids of the space stay far below it, and with it
// they still fit a JavaScript number.
const textBit tree.BackendNodeID = 1 << 52

// The types of nodes in the DOM.
const (
	elementNode  = 1
	textNode     = 3
	documentNode = 9
)

// place says what a node of the document stands for.
type place int8

const (
	placeDocument place = iota
	placeWorkspace
	placeClients
	placeSource
	placeTree
	placeText
)

// node is a node of the document, resolved in the current state. It is valid
// while the state is locked.
type node struct {
	place  place
	source *fold.Source
	entry  *tree.Entry
}

// id returns the node's backend id, the same at every gateway.
func (n node) id() tree.BackendNodeID {
	switch n.place {
	case placeDocument:
		return documentID
	case placeWorkspace:
		return workspaceID
	case placeClients:
		return clientsID
	case placeSource:
		return n.source.Element
	case placeTree:
		return n.entry.Backend
	}
	return n.entry.Backend | textBit
}

// nodeType returns the node's type in the DOM.
func (n node) nodeType() int {
	switch n.place {
	case placeDocument:
		return documentNode
	case placeText:
		return textNode
	}
	return elementNode
}

// childList is the children of a node, without a copy of those of a tree: a node may have thousands.
type childList struct {
	fixed  []node
	source *fold.Source
	entry  *tree.Entry
	text   bool
}

// children returns the node's children within a target.
func (s *session) children(n node) childList {
	switch n.place {
	case placeDocument:
		return childList{fixed: []node{{place: placeWorkspace}}}
	case placeWorkspace:
		out := s.elements(source.KindHost)
		if s.hasClients() {
			out = append(out, node{place: placeClients})
		}
		return childList{fixed: out}
	case placeClients:
		return childList{fixed: s.elements(source.KindClient)}
	case placeSource:
		if n.source.Tree.Root != nil {
			return childList{fixed: []node{{placeTree, n.source, n.source.Tree.Root}}}
		}
	case placeTree:
		return childList{source: n.source, entry: n.entry, text: n.entry.Text != ""}
	}
	return childList{}
}

// len returns how many children there are.
func (l childList) len() int {
	if l.entry == nil {
		return len(l.fixed)
	}
	if l.text {
		return len(l.entry.Children) + 1
	}
	return len(l.entry.Children)
}

// at returns child i, from 0. A node's text comes before its components.
func (l childList) at(i int) node {
	switch {
	case l.entry == nil:
		return l.fixed[i]
	case !l.text:
		return node{placeTree, l.source, l.entry.Children[i]}
	case i == 0:
		return node{placeText, l.source, l.entry}
	}
	return node{placeTree, l.source, l.entry.Children[i-1]}
}

// parent returns the node's parent; false for the document.
func (s *session) parent(n node) (node, bool) {
	switch n.place {
	case placeWorkspace:
		return node{}, true
	case placeClients:
		return node{place: placeWorkspace}, true
	case placeSource:
		if kindOf(n.source) == source.KindClient {
			return node{place: placeClients}, true
		}
		return node{place: placeWorkspace}, true
	case placeTree:
		if n.entry.Parent != nil {
			return node{placeTree, n.source, n.entry.Parent}, true
		}
		return node{place: placeSource, source: n.source}, true
	case placeText:
		return node{placeTree, n.source, n.entry}, true
	}
	return node{}, false
}

// elements lists the sources of one kind.
func (s *session) elements(kind source.Kind) []node {
	var out []node
	for _, src := range s.sources() {
		if kindOf(src) == kind {
			out = append(out, node{place: placeSource, source: src})
		}
	}
	return out
}

// hasClients reports whether the document has a <clients> element: always, but
// where the target cannot have any.
func (s *session) hasClients() bool {
	if s.target.source == "" {
		return s.target.kind != source.KindHost
	}
	src := s.source(s.target.source)
	return src != nil && kindOf(src) == source.KindClient
}

// find returns the node with a backend id. hint names its source; empty if unknown.
func (s *session) find(id tree.BackendNodeID, hint subjects.SourceID) (node, bool) {
	switch id {
	case documentID:
		return node{}, true
	case workspaceID:
		return node{place: placeWorkspace}, true
	case clientsID:
		return node{place: placeClients}, s.hasClients()
	}
	if hint != "" {
		if src := s.source(hint); src != nil {
			return findIn(src, id)
		}
		return node{}, false
	}
	for _, src := range s.sources() {
		if n, ok := findIn(src, id); ok {
			return n, true
		}
	}
	return node{}, false
}

func findIn(src *fold.Source, id tree.BackendNodeID) (node, bool) {
	if id == src.Element {
		return node{place: placeSource, source: src}, true
	}
	if e := src.Tree.Backend(id &^ textBit); e != nil {
		if id&textBit == 0 {
			return node{placeTree, src, e}, true
		}
		return node{placeText, src, e}, e.Text != ""
	}
	return node{}, false
}

// name returns the node's name as DevTools shows it.
func (n node) name() string {
	switch n.place {
	case placeDocument:
		return "#document"
	case placeWorkspace:
		return "workspace"
	case placeClients:
		return "clients"
	case placeSource:
		return string(kindOf(n.source))
	case placeTree:
		return elementName(n.entry.Name)
	}
	return "#text"
}

// value returns the text of a text node.
func (n node) value() string {
	if n.place == placeText {
		return n.entry.Text
	}
	return ""
}
