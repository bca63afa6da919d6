package engine

import (
	"context"
	"slices"
	"strconv"

	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/query/filter"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/tree"
	"github.com/natscope/natscope/subjects/value"
)

// searchKinds are what a search finds, in the order of its answer.
var searchKinds = []string{query.KindRequest, query.KindConsole, query.KindNode, query.KindValue}

// Search implements query.API.
func (e *Engine) Search(ctx context.Context, q query.SearchRequest) (query.SearchAnswer, error) {
	f, err := newFilter(q.Filter, q.Text)
	if err != nil {
		return query.SearchAnswer{}, err
	}
	if f.Empty() {
		return query.SearchAnswer{}, query.Errorf(query.ErrMalformed, "say what to find: text, or filter, an expression such as: status >= 500")
	}
	kinds := q.Kinds
	for _, k := range kinds {
		if !slices.Contains(searchKinds, k) {
			return query.SearchAnswer{}, query.Errorf(query.ErrMalformed, "kind %.40q: use request, console, node or value", k)
		}
	}
	if len(kinds) == 0 {
		kinds = searchKinds
	}
	s := searcher{ctx: ctx, e: e, f: f, q: q, limit: bound(q.Limit, query.DefaultHits, query.MaxHits)}
	s.out.Hits = []query.Hit{}
	for _, k := range searchKinds {
		if !slices.Contains(kinds, k) {
			continue
		}
		var more bool
		switch k {
		case query.KindRequest:
			more, err = s.requests()
		case query.KindConsole:
			more, err = s.console()
		default:
			more, err = s.nodes(k)
		}
		if err != nil {
			return query.SearchAnswer{}, err
		}
		if more {
			s.out.More = append(s.out.More, k)
		}
	}
	return s.out, nil
}

// searcher is one search.
type searcher struct {
	ctx   context.Context
	e     *Engine
	f     *filter.Filter
	q     query.SearchRequest
	limit int
	out   query.SearchAnswer
}

// add appends hits that a page brought, the newest first.
func (s *searcher) add(hits []query.Hit) {
	slices.Reverse(hits)
	s.out.Hits = append(s.out.Hits, hits...)
}

func (s *searcher) page() query.Page { return query.Page{Sources: s.q.Sources, Limit: s.limit} }

func (s *searcher) requests() (bool, error) {
	hits, paged, err := page(s.ctx, s.e, s.page(), lister[*network.Request, query.Hit]{
		list: query.ListSearch, lane: requestLane,
		take: func(v view, src *fold.Source, x **network.Request) (query.Hit, int, bool) {
			if !s.f.Match(requestItem(v.now, src, *x, s.f)) {
				return query.Hit{}, 0, false
			}
			a := summary(src.ID, *x)
			text := a.Method + " " + a.URL + " " + a.State
			if a.Status != 0 {
				text = a.Method + " " + a.URL + " " + strconv.Itoa(a.Status)
			}
			if a.Error != "" {
				text += ": " + a.Error
			}
			return query.Hit{Kind: query.KindRequest, Source: src.ID, ID: string(a.ID), Time: a.Time, Text: clean(text, maxHitText)}, len(text), true
		},
	})
	s.add(hits)
	return paged.More, err
}

func (s *searcher) console() (bool, error) {
	hits, paged, err := page(s.ctx, s.e, s.page(), lister[*console.Entry, query.Hit]{
		list: query.ListSearch, lane: consoleLane,
		take: func(v view, src *fold.Source, x **console.Entry) (query.Hit, int, bool) {
			if !s.f.Match(consoleItem(v.now, src.ID, src.Name(), src.Connected, *x, s.f)) {
				return query.Hit{}, 0, false
			}
			text := clean(levelOf(*x)+": "+entryText(*x), maxHitText)
			return query.Hit{Kind: query.KindConsole, Source: src.ID, ID: strconv.FormatUint((*x).Order, 10), Time: millis((*x).Wall), Text: text}, len(text), true
		},
	})
	s.add(hits)
	return paged.More, err
}

// nodes finds nodes, or values in them.
func (s *searcher) nodes(kind string) (more bool, err error) {
	var hits []query.Hit
	s.e.view(func(v view) {
		hits, more = nil, false
		b := newBudget(s.ctx, query.MaxScan)
		err = v.walk(query.FindRequest{Sources: s.q.Sources}, func(src *fold.Source, x *tree.Entry) bool {
			if !b.spend() {
				more = true
				return false
			}
			if kind == query.KindValue {
				return len(x.Values) == 0 || s.values(v, &hits, &more, src, x)
			}
			if !matchNode(src, x, s.f) {
				return true
			}
			if more = len(hits) == s.limit; more {
				return false
			}
			hit := query.Hit{Kind: kind, Source: src.ID, ID: string(v.nodeID(src, x))}
			hit.Text = clean(pathOf(x)+nodeText(x), maxHitText)
			hits = append(hits, hit)
			return true
		})
	})
	s.out.Hits = append(s.out.Hits, hits...)
	if err == nil {
		err = s.ctx.Err()
	}
	return more, err
}

// values finds values of one node.
func (s *searcher) values(v view, hits *[]query.Hit, more *bool, src *fold.Source, x *tree.Entry) bool {
	for name, raw := range x.Values {
		parsed, err := value.Parse(raw)
		if err != nil {
			continue
		}
		preview := value.Preview(parsed)
		item := &filter.Item{
			What: filter.WhatValue, Source: string(src.ID), SourceName: src.Name(), Connected: src.Connected,
			Name: name, Kind: x.ValueKinds[name], Text: preview, Loc: x.Loc, Value: plain(raw),
		}
		if !s.f.Match(item) {
			continue
		}
		if len(*hits) == s.limit {
			*more = true
			return false
		}
		*hits = append(*hits, query.Hit{
			Kind: query.KindValue, Source: src.ID, ID: string(v.nodeID(src, x)), Text: clean(pathOf(x)+"."+name+" = "+preview, maxHitText),
		})
	}
	return true
}

// nodeText shows the attributes and the text of a node in one line.
func nodeText(e *tree.Entry) string {
	out := ""
	for _, a := range e.Attrs {
		out += " " + a.Name + "=" + strconv.Quote(clean(a.Value, 60))
	}
	if e.Text != "" {
		out += " " + clean(e.Text, 100)
	}
	return out
}
