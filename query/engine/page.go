package engine

import (
	"container/heap"
	"context"
	"slices"
	"sort"

	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects/tree"
)

// lane is the part of a list that comes from one source: numbered things, the
// oldest first, all of which are numbered from 1 to count; some may be evicted.
type lane[T any] struct {
	src    *fold.Source
	items  []T
	count  uint64
	number func(*T) uint64
	wall   func(*T) float64
}

// lister says how a list is made of sources.
type lister[T, A any] struct {
	list query.List
	lane func(*fold.Source) lane[T]
	// take returns the answer that a thing becomes, and about how many bytes it
	// has, or false if the thing is not wanted.
	take func(view, *fold.Source, *T) (A, int, bool)
}

// page reads a page of a list.
func page[T, A any](ctx context.Context, e *Engine, p query.Page, l lister[T, A]) (out []A, paged query.Paged, err error) {
	if p.After != "" && p.Before != "" {
		return nil, paged, query.Errorf(query.ErrMalformed, "after and before exclude each other")
	}
	e.view(func(v view) {
		r := &reader[T, A]{view: v, lister: l, limit: bound(p.Limit, query.DefaultLimit, query.MaxLimit), budget: newBudget(ctx, query.MaxScan)}
		if err = r.open(p); err != nil {
			return
		}
		r.read()
		out, paged = r.out, r.paged()
	})
	if err == nil {
		err = ctx.Err()
	}
	return out, paged, err
}

// reader reads one page. It merges its lanes by time, but never changes the
// order of things of one source.
type reader[T, A any] struct {
	view
	lister[T, A]
	limit  int
	budget budget
	back   bool
	reset  bool
	missed []query.Missed

	lanes []*cut[T]
	out   []A
	bytes int
	// start and end are the places of the page.
	start, end map[tree.BackendNodeID]uint64
}

// cut is a lane and what is still to be read of it.
type cut[T any] struct {
	lane[T]
	lo, hi int
}

// open finds where to begin.
func (r *reader[T, A]) open(p query.Page) error {
	sources, err := r.selected(p.Sources)
	if err != nil {
		return err
	}
	cursor := p.After
	if cursor == "" {
		cursor, r.back = p.Before, true
	}
	var at query.Position
	switch cursor {
	case "", query.Newest, query.Oldest:
	default:
		if at, err = cursor.Parse(r.list); err != nil {
			return err
		}
		if at.Epoch != r.epoch {
			r.reset, cursor = true, query.Oldest
			if r.back {
				return query.Errorf(query.ErrGone, "the record stream was made anew since this cursor, and what was before it is gone; begin again without before")
			}
		}
	}
	r.start, r.end = make(map[tree.BackendNodeID]uint64), make(map[tree.BackendNodeID]uint64)
	for _, src := range sources {
		c := &cut[T]{lane: r.lane(src)}
		position := at.At[src.Element]
		switch cursor {
		case query.Oldest:
			position = 0
		case "", query.Newest:
			position = c.count
		}
		// What lies behind the position is at and after split.
		split := sort.Search(len(c.items), func(i int) bool { return c.number(&c.items[i]) > position })
		if c.lo, c.hi = split, len(c.items); r.back {
			c.lo, c.hi = 0, split
		}
		r.start[src.Element], r.end[src.Element] = position, position
		r.skip(c, position)
		r.lanes = append(r.lanes, c)
	}
	return nil
}

// skip counts what was evicted between the cursor and the first thing that is kept.
func (r *reader[T, A]) skip(c *cut[T], position uint64) {
	if r.back {
		return
	}
	first := c.count + 1
	if len(c.items) > 0 {
		first = c.number(&c.items[0])
	}
	if first <= position+1 {
		return
	}
	r.missed = append(r.missed, query.Missed{Source: c.src.ID, Count: first - 1 - position})
	r.start[c.src.Element], r.end[c.src.Element] = first-1, first-1
}

// Len, Less, Swap, Push and Pop make a heap of the lanes, whose first is the one
// to read next.
func (r *reader[T, A]) Len() int { return len(r.lanes) }

func (r *reader[T, A]) Less(i, j int) bool {
	a, b := r.lanes[i], r.lanes[j]
	x, y := a.wall(a.head(r.back)), b.wall(b.head(r.back))
	if x != y {
		return x < y != r.back
	}
	return a.src.Element < b.src.Element != r.back
}

func (r *reader[T, A]) Swap(i, j int) { r.lanes[i], r.lanes[j] = r.lanes[j], r.lanes[i] }
func (r *reader[T, A]) Push(x any)    { r.lanes = append(r.lanes, x.(*cut[T])) }
func (r *reader[T, A]) Pop() any {
	last := r.lanes[len(r.lanes)-1]
	r.lanes = r.lanes[:len(r.lanes)-1]
	return last
}

// head is the next thing of a lane.
func (c *cut[T]) head(back bool) *T {
	if back {
		return &c.items[c.hi-1]
	}
	return &c.items[c.lo]
}

func (r *reader[T, A]) read() {
	r.lanes = slices.DeleteFunc(r.lanes, func(c *cut[T]) bool { return c.lo == c.hi })
	heap.Init(r)
	for len(r.lanes) > 0 && len(r.out) < r.limit && r.bytes < query.PageBytes && r.budget.spend() {
		c := r.lanes[0]
		item := c.head(r.back)
		if r.back {
			c.hi--
			r.start[c.src.Element] = c.number(item) - 1
		} else {
			c.lo++
			r.end[c.src.Element] = c.number(item)
		}
		if a, size, ok := r.take(r.view, c.src, item); ok {
			r.out = append(r.out, a)
			r.bytes += size
		}
		if c.lo == c.hi {
			heap.Pop(r)
		} else {
			heap.Fix(r, 0)
		}
	}
	if r.back {
		slices.Reverse(r.out)
	}
	if r.out == nil {
		r.out = []A{}
	}
}

func (r *reader[T, A]) paged() query.Paged {
	return query.Paged{
		Next:   query.Position{List: r.list, Epoch: r.epoch, At: r.end}.Cursor(),
		Prev:   query.Position{List: r.list, Epoch: r.epoch, At: r.start}.Cursor(),
		More:   len(r.lanes) > 0,
		Missed: r.missed, Reset: r.reset,
	}
}
