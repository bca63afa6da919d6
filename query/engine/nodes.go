package engine

import (
	"context"
	"strconv"
	"strings"

	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/query/filter"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects/tree"
	"github.com/natscope/natscope/subjects/value"
)

// FindNodes implements query.API.
func (e *Engine) FindNodes(ctx context.Context, q query.FindRequest) (query.FindAnswer, error) {
	f, err := newFilter(q.Filter, q.Text)
	if err != nil {
		return query.FindAnswer{}, err
	}
	limit := bound(q.Limit, query.DefaultLimit, query.MaxLimit)
	var out query.FindAnswer
	e.view(func(v view) {
		out, err = query.FindAnswer{Nodes: []query.FoundNode{}}, nil
		b := newBudget(ctx, query.MaxScan)
		bytes := 0
		var lastSource *fold.Source
		var last *tree.Entry
		err = v.walk(q, func(src *fold.Source, x *tree.Entry) bool {
			if len(out.Nodes) == limit || bytes > query.PageBytes || !b.spend() {
				if last != nil {
					out.Next = v.nodeID(lastSource, last)
				}
				return false
			}
			lastSource, last = src, x
			if matchNode(src, x, f) {
				n := query.FoundNode{Source: src.ID, Path: pathOf(x), Node: v.nodeOf(src, x, q.Values)}
				n.Depth = x.Depth() - 1
				out.Nodes = append(out.Nodes, n)
				bytes += sizeOf(&n.Node) + len(n.Path)
			}
			return true
		})
	})
	if err == nil {
		err = ctx.Err()
	}
	return out, err
}

// walk calls f for the nodes that a question is about, in the order of the
// document, until f returns false.
func (v view) walk(q query.FindRequest, f func(*fold.Source, *tree.Entry) bool) error {
	var after *tree.Entry
	var afterSource *fold.Source
	if q.After != "" {
		src, e, err := v.node(q.After)
		if err != nil {
			return err
		}
		after, afterSource = e, src
	}
	visit := func(src *fold.Source, root *tree.Entry) bool {
		if root == nil {
			return true
		}
		return root.Walk(func(e *tree.Entry) bool {
			if after != nil {
				if e == after {
					after = nil
				}
				return true
			}
			return f(src, e)
		})
	}
	if q.From != "" {
		src, e, err := v.node(q.From)
		if err == nil {
			visit(src, e)
		}
		return err
	}
	sources, err := v.selected(q.Sources)
	if err != nil {
		return err
	}
	for _, src := range sources {
		if afterSource != nil {
			if src != afterSource {
				continue
			}
			afterSource = nil
		}
		if !visit(src, src.Tree.Root) {
			break
		}
	}
	return nil
}

// pathOf joins the names from the root to a node.
func pathOf(e *tree.Entry) string {
	var names []string
	for ; e != nil; e = e.Parent {
		names = append(names, e.Name)
	}
	var b strings.Builder
	for i := len(names) - 1; i >= 0; i-- {
		if b.Len() > 0 {
			b.WriteString(" > ")
		}
		b.WriteString(names[i])
	}
	return clean(b.String(), maxPath)
}

// matchNode reports whether a node is wanted. A text alone is looked for without
// making anything of the node: most nodes do not have it.
func matchNode(src *fold.Source, e *tree.Entry, f *filter.Filter) bool {
	text := f.Text()
	if text != "" && !nodeContains(e, text) {
		return false
	}
	return f.TextOnly() || f.Match(nodeItem(src, e, f))
}

// nodeContains reports whether something of a node that people read contains a text in lower case.
func nodeContains(e *tree.Entry, text string) bool {
	for _, s := range [...]string{e.Name, e.Text, e.Kind, e.Loc} {
		if filter.Contains(s, text) {
			return true
		}
	}
	for _, a := range e.Attrs {
		if filter.Contains(a.Name, text) || filter.Contains(a.Value, text) {
			return true
		}
	}
	for name, raw := range e.Values {
		if filter.Contains(name, text) {
			return true
		}
		if s, ok := plain(raw).(string); ok && filter.Contains(s, text) {
			return true
		}
	}
	return false
}

// nodeItem is a node as filters see it.
func nodeItem(src *fold.Source, e *tree.Entry, f *filter.Filter) *filter.Item {
	out := &filter.Item{
		What: filter.WhatNode, Source: string(src.ID), SourceName: src.Name(), Connected: src.Connected, Number: int(e.ID),
		Name: e.Name, Kind: e.Kind, Text: e.Text, Loc: e.Loc, Children: len(e.Children),
	}
	if len(e.Attrs) > 0 && (f.Uses("attrs") || f.Text() != "") {
		out.Attrs = make(map[string]string, len(e.Attrs))
		for _, a := range e.Attrs {
			out.Attrs[a.Name] = a.Value
		}
	}
	if len(e.Values) > 0 && (f.Uses("values") || f.Text() != "") {
		out.Values = make(map[string]any, len(e.Values))
		for name, raw := range e.Values {
			out.Values[name] = plain(raw)
		}
	}
	return out
}

// plain is a value as filters see it: numbers, truth values and texts as such,
// everything else as its preview.
func plain(raw []byte) any {
	v, err := value.Parse(raw)
	if err != nil {
		return ""
	}
	switch v.Kind {
	case value.Null, value.Undefined:
		return nil
	case value.Bool:
		return v.Text == "true"
	case value.String:
		return v.Text
	case value.Number:
		if n, err := strconv.ParseFloat(v.Text, 64); err == nil {
			return n
		}
	}
	return value.Preview(v)
}

// maxNodeChanges is how many changes of its history the answer of a node has.
const maxNodeChanges = 20

// Node implements query.API.
func (e *Engine) Node(_ context.Context, q query.NodeRequest) (query.NodeAnswer, error) {
	var out query.NodeAnswer
	var err error
	e.view(func(v view) {
		var src *fold.Source
		var x *tree.Entry
		if src, x, err = v.node(q.ID); err != nil {
			return
		}
		out = query.NodeAnswer{
			FoundNode:  query.FoundNode{Source: src.ID, Path: pathOf(x), Node: v.nodeOf(src, x, true)},
			Generation: src.Generation, Live: live(src), Snippets: x.Snippets, Changes: v.changesOf(src, x.Backend),
		}
		out.Depth = x.Depth() - 1
	})
	return out, err
}

// changesOf returns the newest changes of a node, the newest last.
func (v view) changesOf(src *fold.Source, id tree.BackendNodeID) []query.NodeChange {
	var out []query.NodeChange
	commits := src.Tree.History.Commits
	for i := len(commits) - 1; i >= 0 && len(out) < maxNodeChanges; i-- {
		c := &commits[i]
		for j := len(c.Changes) - 1; j >= 0 && len(out) < maxNodeChanges; j-- {
			if c.Changes[j].Backend == id {
				out = append(out, query.NodeChange{Commit: c.Seq, Time: millis(c.T), Change: changeOf(src.ID, v.epoch, &c.Changes[j])})
			}
		}
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// Values implements query.API.
func (e *Engine) Values(ctx context.Context, q query.ValuesRequest) (query.ValuesAnswer, error) {
	var out query.ValuesAnswer
	var err error
	e.view(func(v view) {
		var src *fold.Source
		var x *tree.Entry
		if src, x, err = v.node(q.ID); err != nil {
			return
		}
		out = query.ValuesAnswer{ID: v.nodeID(src, x), Live: live(src), Values: valuesOf(x, live(src))}
		if len(q.Path) == 0 {
			return
		}
		name, ok := q.Path[0].(string)
		if !ok || len(x.Values[name]) == 0 {
			err = query.Errorf(query.ErrNotFound, "%s has no value called %.80v; leave path away to see its values", x.Name, q.Path[0])
			return
		}
		if len(q.Path) > 1 {
			return
		}
		for _, val := range out.Values {
			if val.Name == name {
				out.Values = []query.Value{val}
				break
			}
		}
	})
	if err == nil && len(q.Path) > 1 {
		return e.inspect(ctx, q)
	}
	return out, err
}

// Cordis implements query.API.
func (e *Engine) Cordis(_ context.Context, q query.CordisRequest) (query.CordisAnswer, error) {
	var out query.CordisAnswer
	var err error
	e.view(func(v view) {
		var sources []*fold.Source
		if sources, err = v.selected(q.Sources); err == nil {
			out.Tree = fold.CordisTree(sources...)
		}
	})
	return out, err
}
