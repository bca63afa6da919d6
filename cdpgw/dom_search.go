package cdpgw

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/tree"
)

// The bounds of searches.
const (
	// maxSearches is how many searches a connection may keep; the oldest goes first.
	maxSearches = 16
	// maxResults is how many nodes a search finds; further ones are not counted.
	maxResults = 100_000
)

// searches are the results that a client may still page through.
type searches struct {
	last  int
	ids   []string
	found map[string][]hit
}

// hit is a node that a search found, or that was selected.
type hit struct {
	source subjects.SourceID
	id     tree.BackendNodeID
}

func hitOf(n node) hit {
	h := hit{id: n.id()}
	if n.source != nil {
		h.source = n.source.ID
	}
	return h
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

// domPerformSearch finds nodes by text, CSS selector and XPath in document order,
// whether the client knows them or not.
func (s *session) domPerformSearch(p searchParams) (any, error) {
	query := strings.TrimSpace(p.Query)
	if query == "" {
		return searchResult{SearchID: s.keepSearch(nil)}, nil
	}
	return s.overCopy(func(ctx context.Context, d *docCopy) (any, error) {
		found, slow := d.search(ctx, query)
		var out searchResult
		s.during(func() {
			out = searchResult{SearchID: s.keepSearch(found), ResultCount: len(found)}
			if slow {
				s.complain("“" + cut(query, 100) + "” was looked for as a text only: as a selector or path it would take too long in a document of this size.")
			}
		})
		return out, nil
	}), nil
}

// search returns what a query finds. slow says that it was not read as everything
// that it could be, because of what that costs.
func (d *docCopy) search(ctx context.Context, query string) (found []hit, slow bool) {
	m := make(marks, len(d.nodes))
	d.text(query, m)
	if !plainWord(query) {
		// An error says that the query is none, and then it is only a text.
		slow = errors.Is(d.css(ctx, query, 0, maxResults, m), errTooSlow)
		if strings.ContainsAny(query, "/(@[*.|:") {
			slow = errors.Is(d.xpath(ctx, query, m), errTooSlow) || slow
		}
	}
	for i, is := range m {
		if is && len(found) < maxResults {
			found = append(found, d.hit(int32(i)))
		}
	}
	return found, slow
}

// keepSearch keeps the results of a search and returns its id.
func (s *session) keepSearch(found []hit) string {
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
	return id
}

// domGetSearchResults makes a range of the results known. A node that is gone has the id 0.
func (s *session) domGetSearchResults(p searchPageParams) (any, error) {
	found, ok := s.dom.searches.found[p.SearchID]
	if !ok {
		return nil, failf("No search session with given id found")
	}
	if p.FromIndex < 0 || p.ToIndex > len(found) || p.FromIndex >= p.ToIndex {
		return nil, failf("Invalid search result range")
	}
	return map[string][]NodeID{"nodeIds": s.pushHits(found[p.FromIndex:p.ToIndex])}, nil
}

// pushHits makes nodes known; 0 stands for one that is gone.
func (s *session) pushHits(found []hit) []NodeID {
	ids := make([]NodeID, 0, len(found))
	for _, h := range found {
		var id NodeID
		if n, ok := s.find(h.id, h.source); ok {
			if known := s.pushPath(n); known != nil {
				id = known.id
			}
		}
		ids = append(ids, id)
	}
	return ids
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
