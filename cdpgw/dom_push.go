package cdpgw

import (
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/tree"
)

// NodeID names a node on one connection. It is given when the node is first
// told to the client, and never to another node.
type NodeID int64

// domState is what the client was told of the document.
type domState struct {
	enabled  bool
	last     NodeID
	byID     map[NodeID]*pushed
	byNode   map[tree.BackendNodeID]*pushed
	searches searches
	// inspected are the nodes that were selected, the newest first: $0 to $4.
	inspected []hit
	watched   watchedNodes
}

// pushed is a node that the client knows.
type pushed struct {
	id     NodeID
	node   tree.BackendNodeID
	source subjects.SourceID
	parent *pushed
	// open says that the client knows the children, which are these, in order.
	open     bool
	children []*pushed
	// count is the number of children that the client was told.
	count int
	// attributes and value are what the client was told.
	attributes []string
	value      string
}

// domNode is a node as the protocol describes it.
type domNode struct {
	NodeID         NodeID             `json:"nodeId"`
	ParentID       NodeID             `json:"parentId,omitempty"`
	BackendNodeID  tree.BackendNodeID `json:"backendNodeId"`
	NodeType       int                `json:"nodeType"`
	NodeName       string             `json:"nodeName"`
	LocalName      string             `json:"localName"`
	NodeValue      string             `json:"nodeValue"`
	ChildNodeCount *int               `json:"childNodeCount,omitempty"`
	// Children is empty, and not nil, where the client now knows that there are none.
	Children          []*domNode `json:"children,omitzero"`
	Attributes        []string   `json:"attributes,omitempty"`
	DocumentURL       string     `json:"documentURL,omitempty"`
	BaseURL           string     `json:"baseURL,omitempty"`
	XMLVersion        *string    `json:"xmlVersion,omitempty"`
	FrameID           FrameID    `json:"frameId,omitempty"`
	CompatibilityMode string     `json:"compatibilityMode,omitempty"`
}

type setChildNodesEvent struct {
	ParentID NodeID     `json:"parentId"`
	Nodes    []*domNode `json:"nodes"`
}

// reset forgets everything that the client was told of nodes. Numbers are not used again.
func (d *domState) reset() {
	d.byID, d.byNode = make(map[NodeID]*pushed), make(map[tree.BackendNodeID]*pushed)
	d.watched.reset()
}

// describe returns a node without ids of this connection and without children.
func (s *session) describe(n node) *domNode {
	out := &domNode{BackendNodeID: n.id(), NodeType: n.nodeType(), NodeName: n.name(), NodeValue: n.value(), Attributes: s.attributes(n)}
	if out.NodeType != textNode {
		c := s.children(n).len()
		out.ChildNodeCount = &c
	}
	switch n.place {
	case placeDocument:
		out.DocumentURL, out.BaseURL, out.XMLVersion = s.target.url(), s.target.url(), new(string)
		out.FrameID, out.CompatibilityMode = FrameID(s.target.id()), "NoQuirksMode"
	case placeSource:
		out.FrameID = frameOf(n.source.ID)
		out.LocalName = out.NodeName
	case placeText:
	default:
		out.LocalName = out.NodeName
	}
	return out
}

// push registers a node as told to the client and returns its description with
// depth levels of children; -1 means all. A text that is an only child is always
// included: DevTools shows it inside its element's row.
func (s *session) push(n node, parent *pushed, depth int) (*pushed, *domNode) {
	out := s.describe(n)
	s.dom.last++
	p := &pushed{id: s.dom.last, node: n.id(), parent: parent, attributes: out.Attributes, value: out.NodeValue}
	if n.source != nil {
		p.source = n.source.ID
	}
	s.dom.byID[p.id], s.dom.byNode[p.node] = p, p
	out.NodeID = p.id
	if parent != nil {
		out.ParentID = parent.id
	}
	if out.ChildNodeCount == nil {
		return p, out
	}
	p.count = *out.ChildNodeCount
	if depth != 0 || onlyText(n) {
		out.Children = s.pushInto(p, n, depth)
	}
	return p, out
}

// onlyText reports whether a node has a text and nothing else.
func onlyText(n node) bool {
	return n.place == placeTree && n.entry.Text != "" && len(n.entry.Children) == 0
}

// pushInto registers the children of a node, which become known with it.
func (s *session) pushInto(p *pushed, n node, depth int) []*domNode {
	children := s.children(n)
	p.open, p.count = true, children.len()
	s.dom.watched.opened(n)
	p.children = make([]*pushed, 0, p.count)
	out := make([]*domNode, 0, p.count)
	for i := range p.count {
		child, d := s.push(children.at(i), p, max(depth-1, min(depth, 0)))
		p.children = append(p.children, child)
		out = append(out, d)
	}
	return out
}

// forget drops a node and everything below it that the client knew.
func (d *domState) forget(p *pushed) {
	d.watched.closed(p.node)
	delete(d.byID, p.id)
	if d.byNode[p.node] == p {
		delete(d.byNode, p.node)
	}
	for _, c := range p.children {
		d.forget(c)
	}
}

// open makes sure that the client knows depth levels of children below a node, -1 means all.
func (s *session) open(p *pushed, depth int) {
	n, ok := s.find(p.node, p.source)
	if !ok {
		return
	}
	if !p.open {
		if s.children(n).len() > 0 {
			s.event("DOM.setChildNodes", setChildNodesEvent{ParentID: p.id, Nodes: s.pushInto(p, n, depth)})
		}
		return
	}
	if depth == 1 {
		return
	}
	for _, c := range p.children {
		s.open(c, max(depth-1, min(depth, 0)))
	}
}

// pushPath makes sure that the client knows a node, by telling it all nodes on
// the way to it. It returns nil when the document was never asked for.
func (s *session) pushPath(n node) *pushed {
	if p := s.dom.byNode[n.id()]; p != nil {
		return p
	}
	parent, ok := s.parent(n)
	if !ok {
		return nil
	}
	above := s.pushPath(parent)
	if above == nil {
		return nil
	}
	s.open(above, 1)
	return s.dom.byNode[n.id()]
}
