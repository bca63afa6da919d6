package cdpgw

import (
	"maps"
	"slices"

	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/tree"
)

// Some nodes read what they show only while somebody looks. A client looks at a
// node once it has opened it, until it drops the document or the connection ends:
// DevTools does not say that a person closed a row.

// maxWatched is how many nodes of a connection are watched at a time; the other
// ones show what they had.
const maxWatched = 100

// watchedNodes are the open nodes that want to know of it.
type watchedNodes struct {
	nodes map[tree.BackendNodeID]hit
	// dirty says that nodes came or went since their programs were told.
	dirty bool
}

// opened notes that the client has opened a node.
func (w *watchedNodes) opened(n node) {
	if n.place != placeTree || !n.entry.Watched() || len(w.nodes) >= maxWatched {
		return
	}
	if w.nodes == nil {
		w.nodes = make(map[tree.BackendNodeID]hit)
	}
	w.nodes[n.entry.Backend], w.dirty = hitOf(n), true
}

// closed notes that the client knows a node no more.
func (w *watchedNodes) closed(id tree.BackendNodeID) {
	if _, ok := w.nodes[id]; ok {
		delete(w.nodes, id)
		w.dirty = true
	}
}

// reset notes that the client knows nothing any more.
func (w *watchedNodes) reset() {
	w.dirty = w.dirty || len(w.nodes) > 0
	w.nodes = nil
}

// syncWatched tells the programs which of their nodes somebody looks at. It is
// called after everything that the session does; moved says that sources came,
// went or began anew.
func (s *session) syncWatched(moved bool) {
	w := &s.dom.watched
	if !w.dirty && (!moved || len(w.nodes) == 0) {
		return
	}
	w.dirty = false
	keys := make([]laneKey, 0, len(w.nodes))
	for _, id := range slices.Sorted(maps.Keys(w.nodes)) {
		n, ok := s.find(id, w.nodes[id].source)
		if !ok || n.place != placeTree || n.source.Tree.Detached {
			continue
		}
		if at, err := s.reachable(n.source, realm.MethodWatch); err == nil {
			keys = append(keys, laneKey{at, n.entry.ID})
		}
	}
	s.overlay.lanes.watch(keys)
}
