package cdpgw

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// model is a strict client: it keeps the document as chromedp does and refuses
// every event that names a node which it was not told of, or whose children it was not told of.
type model struct {
	nodes map[NodeID]*modelNode
	used  map[NodeID]bool
	root  *modelNode
	// large says that looking at all nodes for each would take too long.
	large bool
}

type modelNode struct {
	id         NodeID
	backend    int64
	name       string
	value      string
	attributes []string
	count      int
	open       bool
	parent     *modelNode
	children   []*modelNode
}

func newModel() *model {
	return &model{nodes: make(map[NodeID]*modelNode), used: make(map[NodeID]bool)}
}

// document takes the answer of DOM.getDocument.
func (m *model) document(result json.RawMessage) error {
	var r struct {
		Root domNode `json:"root"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return err
	}
	m.nodes = make(map[NodeID]*modelNode)
	var err error
	m.root, err = m.add(nil, &r.Root)
	return err
}

// trusted is document for a large one, whose backend ids are not compared with each other.
func (m *model) trusted(result json.RawMessage) error {
	m.large = true
	return m.document(result)
}

func (m *model) add(parent *modelNode, d *domNode) (*modelNode, error) {
	if d.NodeID == 0 || m.used[d.NodeID] {
		return nil, fmt.Errorf("node id %d is 0 or was used before", d.NodeID)
	}
	if parent != nil && d.ParentID != parent.id {
		return nil, fmt.Errorf("node %d names parent %d under %d", d.NodeID, d.ParentID, parent.id)
	}
	for _, x := range m.nodes {
		if m.large {
			break
		}
		if x.backend == int64(d.BackendNodeID) {
			return nil, fmt.Errorf("backend id %d is there twice", x.backend)
		}
	}
	n := &modelNode{id: d.NodeID, backend: int64(d.BackendNodeID), name: d.NodeName, value: d.NodeValue, attributes: d.Attributes, parent: parent}
	m.nodes[n.id], m.used[n.id] = n, true
	if d.ChildNodeCount != nil {
		n.count = *d.ChildNodeCount
	}
	if d.Children == nil {
		return n, nil
	}
	return n, m.children(n, d.Children)
}

func (m *model) children(n *modelNode, list []*domNode) error {
	if n.open {
		return fmt.Errorf("the children of node %d come twice", n.id)
	}
	n.open = true
	for _, d := range list {
		c, err := m.add(n, d)
		if err != nil {
			return err
		}
		n.children = append(n.children, c)
	}
	if n.count != len(n.children) && n.count != 0 {
		return fmt.Errorf("node %d has %d children, %d were announced", n.id, len(n.children), n.count)
	}
	n.count = len(n.children)
	return nil
}

func (m *model) drop(n *modelNode) {
	delete(m.nodes, n.id)
	for _, c := range n.children {
		m.drop(c)
	}
}

// anyEvent holds the parameters of every DOM event.
type anyEvent struct {
	NodeID         NodeID     `json:"nodeId"`
	ParentID       NodeID     `json:"parentId"`
	ParentNodeID   NodeID     `json:"parentNodeId"`
	PreviousNodeID NodeID     `json:"previousNodeId"`
	ChildNodeCount int        `json:"childNodeCount"`
	Name           string     `json:"name"`
	Value          string     `json:"value"`
	CharacterData  string     `json:"characterData"`
	Node           *domNode   `json:"node"`
	Nodes          []*domNode `json:"nodes"`
}

// apply takes one event.
func (m *model) apply(method string, params json.RawMessage) error {
	var e anyEvent
	if err := json.Unmarshal(params, &e); err != nil {
		return err
	}
	id := max(e.NodeID, e.ParentID)
	if e.ParentNodeID != 0 {
		id = e.ParentNodeID
	}
	n := m.nodes[id]
	if n == nil {
		return fmt.Errorf("%s names the unknown node %d", method, id)
	}
	switch method {
	case "DOM.setChildNodes":
		return m.children(n, e.Nodes)
	case "DOM.childNodeInserted":
		return m.insert(n, e)
	case "DOM.childNodeRemoved":
		i := slices.IndexFunc(n.children, func(c *modelNode) bool { return c.id == e.NodeID })
		if i < 0 || !n.open {
			return fmt.Errorf("removal of node %d, which is no known child of %d", e.NodeID, n.id)
		}
		m.drop(n.children[i])
		n.children = slices.Delete(n.children, i, i+1)
		n.count = len(n.children)
	case "DOM.childNodeCountUpdated":
		if n.open && e.ChildNodeCount != len(n.children) {
			return fmt.Errorf("count %d of node %d with %d known children", e.ChildNodeCount, n.id, len(n.children))
		}
		n.count = e.ChildNodeCount
	case "DOM.attributeModified":
		n.set(e.Name, e.Value)
	case "DOM.attributeRemoved":
		i := n.index(e.Name)
		if i < 0 {
			return fmt.Errorf("removal of the unknown attribute %q", e.Name)
		}
		n.attributes = slices.Delete(n.attributes, i, i+2)
	case "DOM.characterDataModified":
		if n.name != "#text" {
			return fmt.Errorf("text for the element %d", n.id)
		}
		n.value = e.CharacterData
	default:
		return fmt.Errorf("unknown event %s", method)
	}
	return nil
}

func (m *model) insert(n *modelNode, e anyEvent) error {
	if !n.open {
		return fmt.Errorf("insertion under node %d, whose children are unknown", n.id)
	}
	at := 0
	if e.PreviousNodeID != 0 {
		i := slices.IndexFunc(n.children, func(c *modelNode) bool { return c.id == e.PreviousNodeID })
		if i < 0 {
			return fmt.Errorf("insertion behind node %d, which is no child of %d", e.PreviousNodeID, n.id)
		}
		at = i + 1
	}
	c, err := m.add(n, e.Node)
	if err != nil {
		return err
	}
	n.children = slices.Insert(n.children, at, c)
	n.count = len(n.children)
	return nil
}

func (n *modelNode) index(name string) int {
	for i := 0; i < len(n.attributes); i += 2 {
		if n.attributes[i] == name {
			return i
		}
	}
	return -1
}

func (n *modelNode) set(name, value string) {
	if i := n.index(name); i >= 0 {
		n.attributes[i+1] = value
		return
	}
	n.attributes = append(n.attributes, name, value)
}

// text writes the document; order of attributes does not matter.
func (n *modelNode) text(b *strings.Builder) {
	if n.name == "#text" {
		b.WriteString(n.value)
		return
	}
	var attributes []string
	for i := 0; i+1 < len(n.attributes); i += 2 {
		attributes = append(attributes, n.attributes[i]+"="+n.attributes[i+1])
	}
	slices.Sort(attributes)
	fmt.Fprintf(b, "<%s#%d %s>", n.name, n.backend, strings.Join(attributes, " "))
	if !n.open && n.count > 0 {
		fmt.Fprintf(b, "(%d)", n.count)
	}
	for _, c := range n.children {
		c.text(b)
	}
	fmt.Fprintf(b, "</%s>", n.name)
}
