package cdpgw

import "slices"

// maxInspected is how many nodes $0 to $4 stand for.
const maxInspected = 5

// domSetInspectedNode notes the node that a person selected: it becomes $0, and
// what was $0 becomes $1.
func (s *session) domSetInspectedNode(p nodeParams) (any, error) {
	n, err := s.lookup(nodeParams{NodeID: p.NodeID})
	if err != nil {
		return nil, err
	}
	h := hitOf(n)
	if d := &s.dom; len(d.inspected) == 0 || d.inspected[0] != h {
		// DevTools selects again what is selected when the document was reset.
		s.realms.inspections++
		d.inspected = slices.Insert(d.inspected, 0, h)
		d.inspected = d.inspected[:min(len(d.inspected), maxInspected)]
	}
	return nil, nil
}

// inspected returns the node that $0 (i is 0) to $4 stand for in this session;
// false for one that was never selected, and for one that is gone. It is called
// with session.mu held and the state locked, as commands are, and the node is
// valid for as long. The selection outlives DOM.disable and DOM.getDocument: a
// node is remembered by what it is and not by its NodeID.
func (s *session) inspected(i int) (node, bool) {
	if i < 0 || i >= len(s.dom.inspected) {
		return node{}, false
	}
	h := s.dom.inspected[i]
	return s.find(h.id, h.source)
}
