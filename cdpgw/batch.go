package cdpgw

import (
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/tree"
)

// batch is what one message changed, prepared once for all sessions.
type batch struct {
	hub     *hub
	space   *fold.Space
	changes []fold.Change
	// replaced says that the whole state is another one.
	replaced bool
	// sources are those whose existence, descriptor or presence changed.
	sources []*fold.Source
	// parents and nodes are the tree nodes whose children or content changed.
	parents, nodes []treeRef
	// events memoises the encoded events of each change that all sessions share.
	events [][][]byte
	made   []bool
}

// treeRef is a node of a source's tree.
type treeRef struct {
	source *fold.Source
	id     tree.BackendNodeID
}

func newBatch(h *hub, space *fold.Space, changes []fold.Change, replaced bool) *batch {
	b := &batch{hub: h, space: space, changes: changes, replaced: replaced, events: make([][][]byte, len(changes)), made: make([]bool, len(changes))}
	sources := make(map[*fold.Source]bool)
	parents, nodes := make(map[tree.BackendNodeID]bool), make(map[tree.BackendNodeID]bool)
	parent := func(src *fold.Source, e *tree.Entry) {
		ref := treeRef{src, src.Element}
		if e != nil {
			ref.id = e.Backend
		}
		if !parents[ref.id] {
			parents[ref.id] = true
			b.parents = append(b.parents, ref)
		}
	}
	for _, c := range changes {
		switch c.Kind {
		case fold.SourceAdded, fold.SourceOpened, fold.SourceUpdated, fold.SourceClosed, fold.SourceRemoved, fold.PresenceChanged:
			if !sources[c.Source] {
				sources[c.Source] = true
				b.sources = append(b.sources, c.Source)
			}
		case fold.TreeChanged:
			switch t := c.Tree; t.Kind {
			case tree.Updated:
				if !nodes[t.Entry.Backend] {
					nodes[t.Entry.Backend] = true
					b.nodes = append(b.nodes, treeRef{c.Source, t.Entry.Backend})
				}
			case tree.Moved:
				// A node may move again within the batch; where it is now is what counts.
				parent(c.Source, t.Parent)
				parent(c.Source, t.Entry.Parent)
			default:
				parent(c.Source, t.Parent)
			}
		}
	}
	return b
}

// shared returns the encoded events of change i that are the same for every session.
func (b *batch) shared(i int) [][]byte {
	if !b.made[i] {
		b.made[i] = true
		b.events[i] = b.encode(b.changes[i])
	}
	return b.events[i]
}

func (b *batch) encode(c fold.Change) [][]byte {
	switch c.Kind {
	case fold.RequestChanged:
		return requestEvents(b.hub, c.Source, c.Request)
	case fold.ConsoleAdded:
		return consoleEvents(b.hub, c.Source, c.Console)
	case fold.FaultAdded:
		return [][]byte{faultEvent(c.Source, c.Fault)}
	}
	return nil
}

// requestEvents returns the events of one change of a request, and the ends of
// requests that were dropped to make room.
func requestEvents(h *hub, src *fold.Source, c *network.Change) [][]byte {
	p := projection{hub: h, source: src}
	out := p.change(c)
	for _, r := range c.Evicted {
		if r.Ending == network.Running && !src.Net.Continued(r) {
			out = append(out, p.evicted(r, c.T))
		}
	}
	return out
}
