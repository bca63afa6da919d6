package cdpgw

import (
	"strconv"
	"strings"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/tree"
)

// maxSearches is how many searches a connection may keep; the oldest goes first.
const maxSearches = 16

// searches are the results that a client may still page through.
type searches struct {
	last  int
	ids   []string
	found map[string][]hit
}

// hit is a node that a search found.
type hit struct {
	source subjects.SourceID
	id     tree.BackendNodeID
}

type searchParams struct {
	Query string `json:"query"`
}

type searchResult struct {
	SearchID    string `json:"searchId"`
	ResultCount int    `json:"resultCount"`
}

type searchPageParams struct {
	SearchID  string `json:"searchId"`
	FromIndex int    `json:"fromIndex"`
	ToIndex   int    `json:"toIndex"`
}

// domPerformSearch finds nodes by text: in names ("<name" finds elements by the
// start of their name), in attributes (name="value") and in texts. Case does not matter.
func (s *session) domPerformSearch(p searchParams) (any, error) {
	match := matcher(p.Query)
	var found []hit
	if match != nil {
		s.search(node{}, match, &found)
	}
	t := &s.dom.searches
	if len(t.ids) == maxSearches {
		delete(t.found, t.ids[0])
		t.ids = t.ids[1:]
	}
	t.last++
	id := "search." + strconv.Itoa(t.last)
	if t.found == nil {
		t.found = make(map[string][]hit)
	}
	t.ids, t.found[id] = append(t.ids, id), found
	return searchResult{SearchID: id, ResultCount: len(found)}, nil
}

// search walks the document in its order.
func (s *session) search(n node, match func(*session, node) bool, found *[]hit) {
	if match(s, n) {
		h := hit{id: n.id()}
		if n.source != nil {
			h.source = n.source.ID
		}
		*found = append(*found, h)
	}
	for i, children := 0, s.children(n); i < children.len(); i++ {
		s.search(children.at(i), match, found)
	}
}

// matcher returns what decides whether a node is found; nil finds nothing.
func matcher(query string) func(*session, node) bool {
	q := strings.ToLower(strings.TrimSpace(query))
	if q == "" {
		return nil
	}
	tag, start := strings.CutPrefix(q, "<")
	tag, end := strings.CutSuffix(tag, ">")
	tag = strings.TrimPrefix(tag, "/")
	return func(s *session, n node) bool {
		if n.nodeType() == documentNode {
			return false
		}
		if n.nodeType() == textNode {
			return contains(n.value(), q)
		}
		name := strings.ToLower(n.name())
		if start && tag != "" {
			if end && name == tag || !end && strings.HasPrefix(name, tag) {
				return true
			}
		}
		if strings.Contains(name, q) {
			return true
		}
		for a := s.attributes(n); len(a) > 1; a = a[2:] {
			if contains(a[0], q) || contains(a[1], q) || strings.Contains(q, "=") && contains(a[0]+`="`+a[1]+`"`, q) {
				return true
			}
		}
		return false
	}
}

func contains(text, lower string) bool { return strings.Contains(strings.ToLower(text), lower) }

// domGetSearchResults makes a range of the results known. A node that is gone has the id 0.
func (s *session) domGetSearchResults(p searchPageParams) (any, error) {
	found, ok := s.dom.searches.found[p.SearchID]
	if !ok {
		return nil, failf("No search session with given id found")
	}
	if p.FromIndex < 0 || p.ToIndex > len(found) || p.FromIndex >= p.ToIndex {
		return nil, failf("Invalid search result range")
	}
	ids := make([]NodeID, 0, p.ToIndex-p.FromIndex)
	for _, h := range found[p.FromIndex:p.ToIndex] {
		var id NodeID
		if n, ok := s.find(h.id, h.source); ok {
			if known := s.pushPath(n); known != nil {
				id = known.id
			}
		}
		ids = append(ids, id)
	}
	return map[string][]NodeID{"nodeIds": ids}, nil
}

func (s *session) domDiscardSearchResults(p searchPageParams) (any, error) {
	t := &s.dom.searches
	delete(t.found, p.SearchID)
	for i, id := range t.ids {
		if id == p.SearchID {
			t.ids = append(t.ids[:i:i], t.ids[i+1:]...)
			break
		}
	}
	return nil, nil
}
