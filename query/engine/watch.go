package engine

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/query/filter"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/tree"
)

// mark is a query.Mark in its parts.
type mark struct {
	// journal is the run whose numbers next counts in.
	journal string
	next    uint64
	// epoch and seq say the same in terms of the stream, which all gateways know.
	epoch query.Epoch
	seq   subjects.StreamSeq
}

func (m mark) String() string {
	return strings.Join([]string{m.journal, strconv.FormatUint(m.next, 36), strconv.FormatInt(int64(m.epoch), 36), strconv.FormatUint(uint64(m.seq), 36)}, "-")
}

func parseMark(s query.Mark) (mark, error) {
	parts := strings.Split(string(s), "-")
	if len(parts) == 4 && len(s) < 100 {
		next, err1 := strconv.ParseUint(parts[1], 36, 64)
		epoch, err2 := strconv.ParseInt(parts[2], 36, 64)
		seq, err3 := strconv.ParseUint(parts[3], 36, 64)
		if err1 == nil && err2 == nil && err3 == nil {
			return mark{parts[0], next, query.Epoch(epoch), subjects.StreamSeq(seq)}, nil
		}
	}
	return mark{}, query.Errorf(query.ErrMalformed, "mark %.60q cannot be read; use next of an answer of watch, or %q, or none for a snapshot", string(s), query.Now)
}

// watch is one question of a watch.
type watch struct {
	e     *Engine
	q     query.WatchRequest
	f     *filter.Filter
	kinds map[string]bool
	epoch query.Epoch
	out   query.WatchAnswer
}

// Watch implements query.API.
func (e *Engine) Watch(ctx context.Context, q query.WatchRequest) (query.WatchAnswer, error) {
	w := watch{e: e, q: q, kinds: make(map[string]bool), out: query.WatchAnswer{Events: []query.Event{}}}
	var err error
	if w.f, err = newFilter(q.Filter, q.Text); err != nil {
		return query.WatchAnswer{}, err
	}
	if len(q.Kinds) == 0 {
		q.Kinds = query.WatchKinds()
	}
	for _, k := range q.Kinds {
		if !slices.Contains(query.WatchKinds(), k) {
			return query.WatchAnswer{}, query.Errorf(query.ErrMalformed, "kind %.40q: use some of %s", k, strings.Join(query.WatchKinds(), ", "))
		}
		w.kinds[k] = true
	}
	e.journal.enter()
	defer e.journal.leave()
	m, err := w.begin()
	if err != nil {
		return query.WatchAnswer{}, err
	}
	m, err = w.follow(ctx, m)
	w.out.Next = query.Mark(m.String())
	return w.out, err
}

// begin answers what does not need waiting, and finds where to go on.
func (w *watch) begin() (mark, error) {
	switch w.q.After {
	case "":
		return w.snapshot("")
	case query.Now:
		var m mark
		w.e.view(func(v view) { m, w.epoch = w.e.journal.place(v), v.epoch })
		return m, nil
	}
	m, err := parseMark(w.q.After)
	if err != nil {
		return mark{}, err
	}
	w.epoch = epochOf(w.e.state.Stream())
	m, exact, ok := w.e.journal.find(m, w.epoch)
	if !ok {
		return w.snapshot("what happened since the mark is not known here any more; what it was is in the snapshot that follows, save things that came and were evicted again")
	}
	if !exact {
		w.e.view(w.presence)
	}
	return m, nil
}

// presence answers what each gateway finds out for itself, so that a watch which
// changed from one to another does not miss it: which sources live, and which
// requests ended since their source went.
func (w *watch) presence(v view) {
	w.out.Events = []query.Event{}
	w.sources(v)
	for _, src := range v.sources() {
		if src.Connected || !w.wants(src.ID, src.Name()) {
			continue
		}
		for _, r := range src.Net.Requests {
			if r.Ending != network.SourceGone || r.Generation != string(src.Generation) || len(w.out.Events) > query.MaxEvents {
				continue
			}
			a := summary(src.ID, r)
			if ev, ok := w.event(v.now, &happening{kind: query.EventRequest, id: src.ID, name: src.Name(), request: &a}); ok {
				ev.Snapshot = true
				w.out.Events = append(w.out.Events, ev)
			}
		}
	}
}

// snapshot answers what is there. reason, if there is one, is why the watch begins anew.
func (w *watch) snapshot(reason string) (m mark, err error) {
	last := bound(w.q.Last, query.DefaultLast, query.MaxLast)
	w.e.view(func(v view) {
		w.epoch, w.out.Events = v.epoch, []query.Event{}
		if reason != "" {
			w.out.Events = append(w.out.Events, query.Event{Kind: query.EventReset, Reason: reason})
		} else if _, err = v.selected(w.q.Sources); err != nil {
			return
		}
		m = w.e.journal.place(v)
		w.sources(v)
		if w.q.Last >= 0 {
			err = w.lists(v, last)
		}
	})
	w.out.Events = append(w.out.Events, query.Event{Kind: query.EventReady})
	return m, err
}

// sources answers the present state of the sources.
func (w *watch) sources(v view) {
	if !w.kinds[query.EventSource] {
		return
	}
	for _, src := range v.sources() {
		if w.wants(src.ID, src.Name()) {
			d := describe(src)
			w.out.Events = append(w.out.Events, query.Event{Kind: query.EventSource, SourceID: src.ID, Source: &d, Snapshot: true})
		}
	}
}

// lists answers the newest things of each list.
func (w *watch) lists(v view, last int) error {
	p := query.Page{Sources: w.q.Sources, Limit: last}
	for _, fill := range []func() error{
		func() error {
			return fillFrom(w, v, query.EventFault, p, faultLane, func(src *fold.Source, f *fold.Fault) happening {
				return happening{fault: f}
			})
		},
		func() error {
			return fillFrom(w, v, query.EventCommit, p, historyLane, func(src *fold.Source, c *tree.HistoryCommit) happening {
				return happening{commit: c}
			})
		},
		func() error {
			return fillFrom(w, v, query.EventRequest, p, requestLane, func(src *fold.Source, r **network.Request) happening {
				a := summary(src.ID, *r)
				return happening{request: &a}
			})
		},
		func() error {
			return fillFrom(w, v, query.EventConsole, p, consoleLane, func(src *fold.Source, e **console.Entry) happening {
				return happening{console: *e}
			})
		},
	} {
		if err := fill(); err != nil {
			return err
		}
	}
	return nil
}

// fillFrom appends the newest things of one list.
func fillFrom[T any](w *watch, v view, kind string, p query.Page, l func(*fold.Source) lane[T], as func(*fold.Source, *T) happening) error {
	if !w.kinds[kind] {
		return nil
	}
	r := &reader[T, query.Event]{view: v, limit: p.Limit, budget: newBudget(context.Background(), query.MaxScan), lister: lister[T, query.Event]{
		list: query.ListSearch, lane: l,
		take: func(v view, src *fold.Source, x *T) (query.Event, int, bool) {
			h := as(src, x)
			h.kind, h.id, h.name, h.connected = kind, src.ID, src.Name(), src.Connected
			ev, ok := w.event(v.now, &h)
			ev.Snapshot = true
			return ev, 300, ok
		},
	}}
	if len(p.Sources) > 0 {
		// A source that was named may have been evicted since.
		if _, err := v.selected(p.Sources); err != nil {
			return nil
		}
	}
	if err := r.open(p); err != nil {
		return err
	}
	r.read()
	w.out.Events = append(w.out.Events, r.out...)
	return nil
}

// follow reads the journal from a mark on, and waits for the first event when
// there is none and the question allows it.
func (w *watch) follow(ctx context.Context, m mark) (mark, error) {
	wait := time.Duration(min(max(w.q.WaitMS, 0), int(query.MaxWait/time.Millisecond))) * time.Millisecond
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		events, changed, id, ok := w.e.journal.read(m.next)
		if !ok || id != m.journal {
			if len(w.out.Events) > 0 {
				return m, nil
			}
			m, err := w.snapshot("so much happened, or the record stream was made anew, that the watch cannot go on; the snapshot that follows is the present state")
			return m, err
		}
		for i := range events {
			if len(w.out.Events) >= query.MaxEvents {
				if m.seq == events[i].seq {
					// Another gateway would have to repeat what else this message brought.
					m.seq--
				}
				return m, nil
			}
			m.next++
			m.seq = events[i].seq
			if ev, ok := w.event(time.Now(), &events[i]); ok {
				w.out.Events = append(w.out.Events, ev)
			}
		}
		if len(events) > 0 {
			continue
		}
		if len(w.out.Events) > 0 || wait == 0 {
			return m, nil
		}
		select {
		case <-changed:
		case <-timer.C:
			return m, nil
		case <-ctx.Done():
			return m, nil
		}
	}
}

// wants reports whether the question is about a source.
func (w *watch) wants(id subjects.SourceID, name string) bool {
	if w.e.allow != nil && !w.e.allow(id) {
		return false
	}
	return len(w.q.Sources) == 0 || slices.ContainsFunc(w.q.Sources, func(p string) bool { return matches(p, string(id)) || matches(p, name) })
}

// event makes the answer of what happened, or false if it is not wanted.
func (w *watch) event(now time.Time, h *happening) (query.Event, bool) {
	if !w.kinds[h.kind] || !w.wants(h.id, h.name) {
		return query.Event{}, false
	}
	ev := query.Event{Kind: h.kind, SourceID: h.id, Source: h.source, Removed: h.removed, Request: h.request, Event: h.published}
	if h.kind != query.EventSource && h.kind != query.EventPublished && !w.f.Empty() && !w.f.Match(w.item(now, h)) {
		return query.Event{}, false
	}
	switch {
	case h.console != nil:
		a := consoleEntry(h.id, h.console)
		ev.Console = &a
	case h.fault != nil:
		a := faultOf(h.id, h.fault)
		ev.Fault = &a
	case h.commit != nil:
		a := commitOf(h.id, w.epoch, h.commit, 0)
		ev.Commit = &a
	}
	return ev, true
}

// item is what happened as filters see it.
func (w *watch) item(now time.Time, h *happening) *filter.Item {
	switch {
	case h.console != nil:
		return consoleItem(now, h.id, h.name, h.connected, h.console, w.f)
	case h.commit != nil:
		return commitItem(view{now: now}, h.id, h.name, h.connected, h.commit)
	case h.fault != nil:
		return &filter.Item{
			What: filter.WhatFault, Source: string(h.id), SourceName: h.name, Connected: h.connected, Number: int(h.fault.Number),
			Age: age(now, h.fault.T), Kind: string(h.fault.Kind), Text: h.fault.Text, Level: levelWarning,
		}
	}
	r := h.request
	out := &filter.Item{
		What: filter.WhatRequest, Source: string(h.id), SourceName: h.name, Connected: h.connected, Number: int(r.Number), Age: now.Sub(r.Time).Seconds(),
		Method: r.Method, URL: r.URL, Text: r.Method + " " + r.URL, Status: r.Status, State: r.State, Error: r.Error, Type: r.Type, MIME: r.MIMEType,
		Direction: string(r.Direction), Duration: r.DurationMS, Bytes: int(r.Bytes), Trace: r.Trace, Route: r.Route,
	}
	switch network.Ending(r.State) {
	case network.Failed, network.Canceled, network.SourceGone:
		out.Failed = true
	default:
		out.Failed = r.Status >= 400 || r.Error != ""
	}
	if n, err := query.RequestID(r.ID).Parse(); err == nil {
		out.Generation = string(n.Generation)
	}
	if u, err := url.Parse(r.URL); err == nil {
		out.Host, out.Path = u.Host, u.Path
	}
	return out
}
