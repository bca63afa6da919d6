package engine

import (
	"context"
	"strings"

	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/query/filter"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/tree"
)

// maxAnswerChanges is how many changes of one commit an answer has.
const maxAnswerChanges = 200

func historyLane(src *fold.Source) lane[tree.HistoryCommit] {
	h := &src.Tree.History
	return lane[tree.HistoryCommit]{
		src: src, items: h.Commits, count: h.Count,
		number: func(c *tree.HistoryCommit) uint64 { return c.Seq },
		wall:   func(c *tree.HistoryCommit) float64 { return c.T },
	}
}

// History implements query.API.
func (e *Engine) History(ctx context.Context, q query.HistoryRequest) (query.HistoryAnswer, error) {
	f, err := newFilter(q.Filter, q.Text)
	if err != nil {
		return query.HistoryAnswer{}, err
	}
	var only query.NodeName
	if q.Node != "" {
		if only, err = q.Node.Parse(); err != nil {
			return query.HistoryAnswer{}, err
		}
		q.Sources = []string{string(only.Source)}
	}
	commits, paged, err := page(ctx, e, q.Page, lister[tree.HistoryCommit, query.Commit]{
		list: query.ListHistory, lane: historyLane,
		take: func(v view, src *fold.Source, x *tree.HistoryCommit) (query.Commit, int, bool) {
			if only.Epoch != 0 && only.Epoch != v.epoch {
				return query.Commit{}, 0, false
			}
			if !f.Empty() && !f.Match(commitItem(v, src.ID, src.Name(), src.Connected, x)) {
				return query.Commit{}, 0, false
			}
			a := commitOf(src.ID, v.epoch, x, only.Backend)
			size := 100
			for i := range a.Changes {
				c := &a.Changes[i]
				size += 150 + len(c.From) + len(c.To) + len(c.Name) + len(c.Symbol)
			}
			return a, size, only.Backend == 0 || len(a.Changes) > 0
		},
	})
	return query.HistoryAnswer{Commits: commits, Paged: paged}, err
}

// commitOf makes the answer of a commit, which never changes; only, unless 0, leaves the changes of one node.
func commitOf(id subjects.SourceID, epoch query.Epoch, c *tree.HistoryCommit, only tree.BackendNodeID) query.Commit {
	out := query.Commit{Source: id, Number: c.Seq, Time: millis(c.T), Flush: c.Flush, Snapshot: c.Snapshot, Left: c.More, Changes: []query.Change{}}
	for i := range c.Changes {
		if x := &c.Changes[i]; only != 0 && x.Backend != only || len(out.Changes) == maxAnswerChanges {
			out.Left++
		} else {
			out.Changes = append(out.Changes, changeOf(id, epoch, x))
		}
	}
	return out
}

func changeOf(id subjects.SourceID, epoch query.Epoch, c *tree.HistoryChange) query.Change {
	return query.Change{
		Op: c.Op, Node: query.NodeName{Source: id, Backend: c.Backend, Epoch: epoch}.ID(), Name: c.Name, Nodes: c.Nodes,
		Part: string(c.Part), Symbol: c.Symbol, From: c.From, To: c.To,
	}
}

// commitItem is a commit as filters see it: its text has a line for each change.
func commitItem(v view, id subjects.SourceID, name string, connected bool, c *tree.HistoryCommit) *filter.Item {
	var b strings.Builder
	for i := range c.Changes {
		x := &c.Changes[i]
		b.WriteString(x.Op + " " + x.Name + " " + x.Symbol + " " + string(x.From) + " " + string(x.To) + "\n")
	}
	return &filter.Item{
		What: filter.WhatCommit, Source: string(id), SourceName: name, Connected: connected, Number: int(c.Seq), Age: age(v.now, c.T), Text: b.String(),
	}
}
