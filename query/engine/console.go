package engine

import (
	"context"
	"time"

	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/query/filter"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/network"
)

// The levels of console entries, from the least.
const (
	levelDebug   = "debug"
	levelInfo    = "info"
	levelWarning = "warning"
	levelError   = "error"
)

var levels = map[string]int{levelDebug: 1, levelInfo: 2, levelWarning: 3, levelError: 4}

// typeException is the type of an entry that is an exception.
const typeException = "exception"

func levelOf(e *console.Entry) string {
	if e.Message == nil {
		return levelError
	}
	switch e.Message.Type {
	case "error", "assert":
		return levelError
	case "warning":
		return levelWarning
	case "debug":
		return levelDebug
	}
	return levelInfo
}

func consoleLane(src *fold.Source) lane[*console.Entry] {
	return lane[*console.Entry]{
		src: src, items: src.Console.Entries, count: src.Console.Count,
		number: func(e **console.Entry) uint64 { return (*e).Order },
		wall:   func(e **console.Entry) float64 { return (*e).Wall },
	}
}

// Console implements query.API.
func (e *Engine) Console(ctx context.Context, q query.ConsoleRequest) (query.ConsoleAnswer, error) {
	f, err := newFilter(q.Filter, q.Text)
	if err != nil {
		return query.ConsoleAnswer{}, err
	}
	least := levels[q.Level]
	if q.Level != "" && least == 0 {
		return query.ConsoleAnswer{}, query.Errorf(query.ErrMalformed, "level %.40q: use debug, info, warning or error", q.Level)
	}
	entries, paged, err := page(ctx, e, q.Page, lister[*console.Entry, query.ConsoleEntry]{
		list: query.ListConsole, lane: consoleLane,
		take: func(v view, src *fold.Source, x **console.Entry) (query.ConsoleEntry, int, bool) {
			if levels[levelOf(*x)] < least || !q.Since.IsZero() && millis((*x).Wall).Before(q.Since) {
				return query.ConsoleEntry{}, 0, false
			}
			if !f.Empty() && !f.Match(consoleItem(v.now, src.ID, src.Name(), src.Connected, *x, f)) {
				return query.ConsoleEntry{}, 0, false
			}
			a := consoleEntry(src.ID, *x)
			size := len(a.Text) + 300
			if q.Values && (*x).Message != nil {
				a.Args = (*x).Message.Args
				for _, arg := range a.Args {
					size += len(arg)
				}
			}
			if q.Stack {
				a.Stack = stackLines(stackOf(*x))
				size += 100 * len(a.Stack)
			}
			return a, size, true
		},
	})
	return query.ConsoleAnswer{Entries: entries, Paged: paged}, err
}

func stackOf(e *console.Entry) []network.Frame {
	if e.Message != nil {
		return e.Message.Stack
	}
	return e.Exception.Stack
}

// entryText is a console entry as one text.
func entryText(e *console.Entry) string {
	if e.Message != nil {
		return argsText(e.Message.Args)
	}
	text := e.Exception.Text
	if len(e.Exception.Value) > 0 {
		if text != "" {
			text += " "
		}
		text += argText(e.Exception.Value)
	}
	return text
}

// consoleEntry makes the answer of an entry, which never changes.
func consoleEntry(id subjects.SourceID, e *console.Entry) query.ConsoleEntry {
	out := query.ConsoleEntry{
		Source: id, Number: e.Order, Generation: subjects.Generation(e.Generation), Time: millis(e.Wall),
		Level: levelOf(e), Type: typeException, Text: clean(entryText(e), maxText),
	}
	if m := e.Message; m != nil {
		out.Type, out.Logger, out.Trace = clean(m.Type, 100), clean(m.Logger, maxPath), clean(m.Trace, maxPath)
		if m.Request != "" {
			out.Request = query.RequestName{Source: id, Generation: out.Generation, Request: m.Request}.ID()
		}
	}
	if s := stackOf(e); len(s) > 0 {
		out.At = clean(place(s[0]), maxURL)
	} else if e.Exception != nil && e.Exception.URL != "" {
		out.At = clean(place(network.Frame{URL: e.Exception.URL, Line: e.Exception.Line}), maxURL)
	}
	return out
}

// consoleItem is an entry as filters see it.
func consoleItem(now time.Time, id subjects.SourceID, name string, connected bool, e *console.Entry, f *filter.Filter) *filter.Item {
	out := &filter.Item{
		What: filter.WhatConsole, Source: string(id), SourceName: name, Connected: connected, Generation: e.Generation, Number: int(e.Order),
		Age: age(now, e.Wall), Level: levelOf(e), Type: typeException,
	}
	if m := e.Message; m != nil {
		out.Type, out.Logger, out.Trace = m.Type, m.Logger, m.Trace
	}
	if f.Uses("text") {
		out.Text = entryText(e)
	}
	if s := stackOf(e); len(s) > 0 && (f.Uses("loc") || f.Text() != "") {
		out.Loc = place(s[0])
	}
	return out
}

// age is how long ago a time in milliseconds was, in seconds.
func age(now time.Time, ms float64) float64 { return (float64(now.UnixMicro())/1000 - ms) / 1000 }
