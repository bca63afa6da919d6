package cdpgw

import (
	"context"
	"errors"
	"slices"
	"strings"
)

type selectorParams struct {
	NodeID   NodeID `json:"nodeId"`
	Selector string `json:"selector"`
}

// domQuerySelector finds the first element below a node that a selector matches; 0 for none.
func (s *session) domQuerySelector(p selectorParams) (any, error) {
	return s.query(p, 1, func(ids []NodeID) any {
		if len(ids) == 0 {
			return map[string]NodeID{"nodeId": 0}
		}
		return map[string]NodeID{"nodeId": ids[0]}
	})
}

// domQuerySelectorAll finds all elements below a node that a selector matches, in document order.
func (s *session) domQuerySelectorAll(p selectorParams) (any, error) {
	return s.query(p, maxResults, func(ids []NodeID) any { return map[string][]NodeID{"nodeIds": ids} })
}

// query finds at most limit elements and makes them known.
func (s *session) query(p selectorParams, limit int, result func([]NodeID) any) (any, error) {
	n, err := s.lookup(nodeParams{NodeID: p.NodeID})
	if err != nil {
		return nil, err
	}
	if n.nodeType() == textNode {
		return nil, failf("Not a container node")
	}
	if _, err := selector(p.Selector); err != nil {
		return nil, failf("DOM Error while querying: %v", err)
	}
	id := n.id()
	return s.overCopy(func(ctx context.Context, d *docCopy) (any, error) {
		below, ok := d.find(id)
		if !ok {
			return nil, errNoNode()
		}
		m := make(marks, len(d.nodes))
		if err := d.css(ctx, p.Selector, below, limit, m); err != nil {
			if errors.Is(err, errTooSlow) {
				return nil, failf("DOM Error while querying: %v; use fewer combinators and :has, or ask below a smaller node.", err)
			}
			return nil, failf("DOM Error while querying: %v", err)
		}
		var found []hit
		for i, is := range m {
			if is {
				found = append(found, d.hit(int32(i)))
			}
		}
		var ids []NodeID
		// What the client has to be told of the way to them goes out before the answer.
		s.during(func() { ids = s.pushHits(found) })
		return result(slices.DeleteFunc(ids, func(id NodeID) bool { return id == 0 })), nil
	}), nil
}

// domGetOuterHTML writes a node as markup.
func (s *session) domGetOuterHTML(p nodeParams) (any, error) {
	n, err := s.lookup(p)
	if err != nil {
		return nil, err
	}
	id := n.id()
	return s.overCopy(func(_ context.Context, d *docCopy) (any, error) {
		at, ok := d.find(id)
		if !ok {
			return nil, errNoNode()
		}
		var b strings.Builder
		d.html(&b, at)
		return map[string]string{"outerHTML": b.String()}, nil
	}), nil
}

// domCollectClassNames lists the classes of all elements of a subtree.
func (s *session) domCollectClassNames(p nodeParams) (any, error) {
	n, err := s.lookup(nodeParams{NodeID: p.NodeID})
	if err != nil {
		return nil, err
	}
	id := n.id()
	return s.overCopy(func(_ context.Context, d *docCopy) (any, error) {
		at, ok := d.find(id)
		if !ok {
			return nil, errNoNode()
		}
		names := []string{}
		seen := make(map[string]bool)
		for i := at; i < d.nodes[at].end; i++ {
			for _, a := range d.nodes[i].attrs {
				if !strings.EqualFold(a.Name, "class") {
					continue
				}
				for _, name := range strings.Fields(a.Value) {
					if !seen[name] && len(names) < maxResults {
						seen[name] = true
						names = append(names, name)
					}
				}
			}
		}
		return map[string][]string{"classNames": names}, nil
	}), nil
}

// domGetFlattenedDocument begins anew, as getDocument does, and lists all nodes in their order.
func (s *session) domGetFlattenedDocument(p nodeParams) (any, error) {
	depth, err := p.levels(2)
	if err != nil {
		return nil, err
	}
	s.dom.enabled = true
	s.dom.reset()
	_, root := s.push(node{}, nil, depth)
	return map[string][]*domNode{"nodes": flattened(root, nil)}, nil
}

// flattened appends a node and all below it, none of them with its children.
func flattened(n *domNode, out []*domNode) []*domNode {
	out = append(out, n)
	for _, c := range n.Children {
		out = flattened(c, out)
	}
	n.Children = nil
	return out
}
