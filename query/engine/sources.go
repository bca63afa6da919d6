package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/source"
)

// Sources implements query.API.
func (e *Engine) Sources(_ context.Context, q query.SourcesRequest) (query.SourcesAnswer, error) {
	if q.State != "" && q.State != query.StateConnected && q.State != query.StateDisconnected {
		return query.SourcesAnswer{}, query.Errorf(query.ErrMalformed, "state %.40q: use connected or disconnected", q.State)
	}
	limit := bound(q.Limit, query.DefaultSources, query.MaxSources)
	var out query.SourcesAnswer
	var err error
	waiting := e.state.Status().Waiting
	e.view(func(v view) {
		out = query.SourcesAnswer{Space: v.space.Name, Sources: []query.Source{}, Waiting: waiting}
		var sources []*fold.Source
		if sources, err = v.selected(q.Sources); err != nil {
			return
		}
		skipping := q.After != ""
		for _, src := range sources {
			if q.State != "" && q.State != stateOf(src) {
				continue
			}
			out.Total++
			switch {
			case skipping:
				skipping = string(src.ID) != q.After
			case len(out.Sources) < limit:
				out.Sources = append(out.Sources, describe(src))
			default:
				out.Next = string(out.Sources[len(out.Sources)-1].ID)
			}
		}
		if skipping {
			err = query.Errorf(query.ErrGone, "source %.80q, behind which to go on, is not there any more; begin again without after", q.After)
		}
	})
	if err != nil {
		return query.SourcesAnswer{}, err
	}
	return out, nil
}

func stateOf(src *fold.Source) string {
	if src.Connected {
		return query.StateConnected
	}
	return query.StateDisconnected
}

// describe returns what a list says of a source.
func describe(src *fold.Source) query.Source {
	d := &src.Life.Descriptor
	out := query.Source{
		ID: src.ID, Name: clean(src.Name(), maxURL), Kind: string(source.KindHost), State: stateOf(src), Generation: src.Generation,
		Title: clean(d.Title, maxURL), URL: clean(d.URL, maxURL), Runtime: clean(d.Runtime, maxURL), Hostname: clean(d.Hostname, maxURL),
		PID: d.PID, Library: clean(d.Library, maxURL), Capabilities: slices.Clone(d.Capabilities),
		Nodes: src.Tree.Len(), Requests: len(src.Net.Requests), Messages: len(src.Console.Entries),
		Commits: len(src.Tree.History.Commits), Faults: src.FaultCount, Lost: src.Lost(),
	}
	if d.Kind == source.KindClient {
		out.Kind = string(source.KindClient)
	}
	if src.Life.Opened {
		out.OpenedAt = millis(src.Life.Wall(src.Life.OpenedAt))
	}
	if !src.Connected {
		out.Reason = clean(src.Life.Reason, maxURL)
		if !src.GoneAt.IsZero() {
			out.GoneAt = src.GoneAt.UTC()
		}
	}
	for _, r := range src.Net.Requests {
		if r.Ending == network.Running {
			out.Running++
		}
		if failed(r) {
			out.Failed++
		}
	}
	for _, c := range src.Console.Entries {
		if levelOf(c) == levelError {
			out.Errors++
		}
	}
	return out
}

// selected returns the sources that a question names, all for none, in the order of their appearance.
func (v view) selected(patterns []string) ([]*fold.Source, error) {
	all := v.sources()
	if len(patterns) == 0 {
		return all, nil
	}
	if len(patterns) > maxPatterns {
		return nil, query.Errorf(query.ErrMalformed, "%d sources are named, the limit is %d; use * for many", len(patterns), maxPatterns)
	}
	var out []*fold.Source
	found := make([]bool, len(patterns))
	for _, src := range all {
		in := false
		for i, p := range patterns {
			if matches(p, string(src.ID)) || matches(p, src.Name()) {
				in, found[i] = true, true
			}
		}
		if in {
			out = append(out, src)
		}
	}
	for i, p := range patterns {
		if !found[i] && !strings.Contains(p, "*") {
			return nil, v.unknown(p)
		}
	}
	return out, nil
}

// maxPatterns is how many sources a question may name.
const maxPatterns = 100

// one returns the only source that a question names.
func (v view) one(name string) (*fold.Source, error) {
	if src := v.source(subjects.SourceID(name)); src != nil {
		return src, nil
	}
	found, err := v.selected([]string{name})
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, v.unknown(name)
	case len(found) > 1:
		return nil, query.Errorf(query.ErrMalformed, "%d sources match %.80q: %s; name one by its id", len(found), name, names(found))
	}
	return found[0], nil
}

// named returns the source that an id of something begins with. In an id that
// people typed, its name will do, as long as it is the only one of that name; a
// whole id never leads to another source.
func (v view) named(id subjects.SourceID, typed bool) (*fold.Source, error) {
	if typed {
		return v.one(string(id))
	}
	if src := v.source(id); src != nil {
		return src, nil
	}
	return nil, v.unknown(string(id))
}

// unknown is the error for a name that no source has.
func (v view) unknown(name string) error {
	if len(v.sources()) == 0 {
		return query.Errorf(query.ErrNotFound, "no source is called %.80q; there are none in space %s: start a program with a producer, or name another space", name, v.space.Name)
	}
	return query.Errorf(query.ErrNotFound, "no source is called %.80q; there are %s", name, names(v.sources()))
}

// names lists the ids of sources, the first few.
func names(sources []*fold.Source) string {
	var out []string
	for _, s := range sources {
		if len(out) == 20 {
			out = append(out, "…")
			break
		}
		out = append(out, string(s.ID))
	}
	return strings.Join(out, ", ")
}

// matches reports whether a pattern, in which * stands for any text, matches a whole name.
func matches(pattern, name string) bool {
	first, rest, many := strings.Cut(pattern, "*")
	if !many {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, first)
	for ok && many {
		first, rest, many = strings.Cut(rest, "*")
		if !many {
			return strings.HasSuffix(name, first)
		}
		_, name, ok = strings.Cut(name, first)
	}
	return ok
}
