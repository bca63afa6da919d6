package cdpgw

import (
	"slices"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects/tree"
)

type childNodeInsertedEvent struct {
	ParentNodeID   NodeID   `json:"parentNodeId"`
	PreviousNodeID NodeID   `json:"previousNodeId"`
	Node           *domNode `json:"node"`
}

type childNodeRemovedEvent struct {
	ParentNodeID NodeID `json:"parentNodeId"`
	NodeID       NodeID `json:"nodeId"`
}

type childNodeCountUpdatedEvent struct {
	NodeID         NodeID `json:"nodeId"`
	ChildNodeCount int    `json:"childNodeCount"`
}

type attributeModifiedEvent struct {
	NodeID NodeID `json:"nodeId"`
	Name   string `json:"name"`
	Value  string `json:"value"`
}

type attributeRemovedEvent struct {
	NodeID NodeID `json:"nodeId"`
	Name   string `json:"name"`
}

type characterDataModifiedEvent struct {
	NodeID        NodeID `json:"nodeId"`
	CharacterData string `json:"characterData"`
}

// syncDocument brings what the client knows to the state after a batch. It
// compares the children that the client knows with those that there are, instead
// of repeating each step: a node may have been added, moved and removed again
// within one batch, and only where it ended matters. All removals go out before
// the first insertion, so that no node is ever in two places.
func (s *session) syncDocument(b *batch) {
	if !s.dom.enabled || len(s.dom.byNode) == 0 {
		return
	}
	if b.replaced {
		s.dom.reset()
		s.event("DOM.documentUpdated", empty{})
		return
	}
	for _, c := range b.changes {
		if c.Kind == fold.SourceAdded {
			s.rebuild(c.Source)
		}
	}
	parents := s.dirtyParents(b)
	for _, p := range parents {
		s.removeGone(p)
	}
	for _, p := range parents {
		s.insertNew(p)
	}
	for _, ref := range b.nodes {
		s.syncContent(ref.id)
	}
	for _, src := range b.sources {
		s.syncContent(src.Element)
	}
}

// dirtyParents lists the known nodes whose children may have changed, parents before children.
func (s *session) dirtyParents(b *batch) []*pushed {
	var out []*pushed
	seen := make(map[*pushed]bool)
	add := func(id tree.BackendNodeID) {
		if p := s.dom.byNode[id]; p != nil && !seen[p] {
			seen[p] = true
			out = append(out, p)
		}
	}
	if len(b.sources) > 0 {
		add(workspaceID)
		add(clientsID)
	}
	for _, ref := range b.parents {
		add(ref.id)
	}
	// A text is a child of its node, so a changed node may have changed children.
	for _, ref := range b.nodes {
		add(ref.id)
	}
	if len(out) > 1 {
		// From the top down: with a node goes everything below it, which then needs no removals of its own.
		depth := make(map[*pushed]int, len(out))
		for _, p := range out {
			for x := p; x != nil; x = x.parent {
				depth[p]++
			}
		}
		slices.SortStableFunc(out, func(a, b *pushed) int { return depth[a] - depth[b] })
	}
	return out
}

// rebuild makes the client drop a source that it knows and that is new all the
// same, because the state was loaded again.
func (s *session) rebuild(src *fold.Source) {
	p := s.dom.byNode[src.Element]
	if p == nil || p.parent == nil {
		return
	}
	s.remove(p.parent, slices.Index(p.parent.children, p))
}

// remove tells the client that a child is gone.
func (s *session) remove(parent *pushed, i int) {
	child := parent.children[i]
	parent.children = slices.Delete(parent.children, i, i+1)
	parent.count = len(parent.children)
	s.dom.forget(child)
	s.event("DOM.childNodeRemoved", childNodeRemovedEvent{ParentNodeID: parent.id, NodeID: child.id})
}

// known reports whether the client still knows a node, and returns what it stands for.
func (s *session) known(p *pushed) (node, bool) {
	if s.dom.byID[p.id] != p {
		return node{}, false
	}
	return s.find(p.node, p.source)
}

// removeGone removes the known children that are not children any more, and
// those that stand in another order than the ones that stay.
func (s *session) removeGone(p *pushed) {
	n, ok := s.known(p)
	if !ok || !p.open {
		return
	}
	want := s.children(n)
	start, end := commonEnds(p.children, want)
	if start+end == len(p.children) {
		return
	}
	place := make(map[tree.BackendNodeID]int)
	for i := start; i < want.len()-end; i++ {
		place[want.at(i).id()] = i
	}
	old := p.children[start : len(p.children)-end]
	keep := increasing(old, place)
	// From the last to the first, so that the places of the others stay.
	for i := len(old) - 1; i >= 0; i-- {
		if !keep[old[i]] {
			s.remove(p, start+i)
		}
	}
}

// insertNew inserts the children that the client does not know yet.
func (s *session) insertNew(p *pushed) {
	n, ok := s.known(p)
	if !ok {
		return
	}
	if !p.open {
		s.updateCount(p, n)
		return
	}
	want := s.children(n)
	start, end := commonEnds(p.children, want)
	if start+end == want.len() {
		return
	}
	previous := NodeID(0)
	if start > 0 {
		previous = p.children[start-1].id
	}
	kept := p.children[start : len(p.children)-end]
	middle := make([]*pushed, 0, want.len()-start-end)
	for i := start; i < want.len()-end; i++ {
		c := want.at(i)
		if len(kept) > 0 && kept[0].node == c.id() {
			middle = append(middle, kept[0])
			previous, kept = kept[0].id, kept[1:]
			continue
		}
		child, d := s.push(c, p, 0)
		middle = append(middle, child)
		s.event("DOM.childNodeInserted", childNodeInsertedEvent{ParentNodeID: p.id, PreviousNodeID: previous, Node: d})
		previous = child.id
	}
	p.children = slices.Replace(p.children, start, len(p.children)-end, middle...)
	p.count = len(p.children)
}

// updateCount tells how many children a node has whose children the client does
// not know. A text that becomes the first child is told at once, as it is for new nodes.
func (s *session) updateCount(p *pushed, n node) {
	c := s.children(n).len()
	if c == p.count {
		return
	}
	if onlyText(n) && p.count == 0 {
		s.event("DOM.setChildNodes", setChildNodesEvent{ParentID: p.id, Nodes: s.pushInto(p, n, 0)})
	}
	p.count = c
	s.event("DOM.childNodeCountUpdated", childNodeCountUpdatedEvent{NodeID: p.id, ChildNodeCount: c})
}

// syncContent tells what changed in a known element's attributes and text.
func (s *session) syncContent(id tree.BackendNodeID) {
	p := s.dom.byNode[id]
	if p == nil {
		return
	}
	n, ok := s.known(p)
	if !ok {
		return
	}
	s.syncAttributes(p, s.attributes(n))
	t := s.dom.byNode[id|textBit]
	if t == nil || n.place != placeTree || t.value == n.entry.Text {
		return
	}
	t.value = n.entry.Text
	s.event("DOM.characterDataModified", characterDataModifiedEvent{NodeID: t.id, CharacterData: t.value})
}

func (s *session) syncAttributes(p *pushed, want []string) {
	old := p.attributes
	p.attributes = want
	for i := 0; i < len(old); i += 2 {
		if _, ok := attribute(want, old[i]); !ok {
			s.event("DOM.attributeRemoved", attributeRemovedEvent{NodeID: p.id, Name: old[i]})
		}
	}
	for i := 0; i < len(want); i += 2 {
		if v, ok := attribute(old, want[i]); !ok || v != want[i+1] {
			s.event("DOM.attributeModified", attributeModifiedEvent{NodeID: p.id, Name: want[i], Value: want[i+1]})
		}
	}
}

// attribute looks a name up in a list of names and values in turn.
func attribute(list []string, name string) (string, bool) {
	for i := 0; i < len(list); i += 2 {
		if list[i] == name {
			return list[i+1], true
		}
	}
	return "", false
}

// commonEnds counts the children at the start and at the end that are the same in both lists.
func commonEnds(have []*pushed, want childList) (start, end int) {
	n := min(len(have), want.len())
	for start < n && have[start].node == want.at(start).id() {
		start++
	}
	for end < n-start && have[len(have)-1-end].node == want.at(want.len()-1-end).id() {
		end++
	}
	return start, end
}

// increasing returns the longest run of old nodes that stand in the wanted
// order; nodes that are not wanted are in none.
func increasing(old []*pushed, place map[tree.BackendNodeID]int) map[*pushed]bool {
	keep := make(map[*pushed]bool, len(old))
	tails := make([]int, 0, len(old)) // index into old of the smallest end of each length
	before := make([]int, len(old))
	for i, p := range old {
		at, ok := place[p.node]
		if !ok {
			continue
		}
		j, _ := slices.BinarySearchFunc(tails, at, func(t, at int) int { return place[old[t].node] - at })
		before[i] = -1
		if j > 0 {
			before[i] = tails[j-1]
		}
		if j == len(tails) {
			tails = append(tails, i)
		} else {
			tails[j] = i
		}
	}
	if len(tails) == 0 {
		return keep
	}
	for i := tails[len(tails)-1]; i >= 0; i = before[i] {
		keep[old[i]] = true
	}
	return keep
}
