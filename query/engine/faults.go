package engine

import (
	"context"

	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/query/filter"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
)

func faultLane(src *fold.Source) lane[fold.Fault] {
	return lane[fold.Fault]{
		src: src, items: src.Faults, count: src.FaultCount,
		number: func(f *fold.Fault) uint64 { return f.Number },
		wall:   func(f *fold.Fault) float64 { return f.T },
	}
}

// Faults implements query.API.
func (e *Engine) Faults(ctx context.Context, q query.FaultsRequest) (query.FaultsAnswer, error) {
	f, err := newFilter(q.Filter, q.Text)
	if err != nil {
		return query.FaultsAnswer{}, err
	}
	faults, paged, err := page(ctx, e, q.Page, lister[fold.Fault, query.Fault]{
		list: query.ListFaults, lane: faultLane,
		take: func(v view, src *fold.Source, x *fold.Fault) (query.Fault, int, bool) {
			if !f.Empty() && !f.Match(faultItem(v, src, x)) {
				return query.Fault{}, 0, false
			}
			return faultOf(src.ID, x), 200 + len(x.Text), true
		},
	})
	return query.FaultsAnswer{Faults: faults, Paged: paged}, err
}

func faultOf(id subjects.SourceID, f *fold.Fault) query.Fault {
	return query.Fault{Source: id, Number: f.Number, Time: millis(f.T), Kind: string(f.Kind), Plane: f.Plane, Text: f.Text}
}

// faultItem is a fault as filters see it.
func faultItem(v view, src *fold.Source, f *fold.Fault) *filter.Item {
	return &filter.Item{
		What: filter.WhatFault, Source: string(src.ID), SourceName: src.Name(), Connected: src.Connected, Number: int(f.Number),
		Age: age(v.now, f.T), Kind: string(f.Kind), Text: f.Text, Level: levelWarning,
	}
}
