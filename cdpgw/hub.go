package cdpgw

import (
	"slices"
	"sync"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
)

// ContextID numbers an execution context. The hub gives them out, so that they
// are the same on all connections of this gateway and no number is used twice.
type ContextID int64

// rootContext is the context of a target's main frame, which belongs to no source.
const rootContext ContextID = 1

// execution is the execution context of a source's live generation.
type execution struct {
	id         ContextID
	generation subjects.Generation
}

// hub is the one watcher of the state: it hands every change to all sessions,
// with the events that are equal for all of them encoded once.
type hub struct {
	cancel func()

	mu       sync.Mutex // guards sessions
	sessions []*session // replaced, never changed in place

	// These change under the state's write lock only, so a View may read them.
	contexts map[subjects.SourceID]*execution
	last     ContextID
	space    *fold.Space
}

func newHub(state State) *hub {
	h := &hub{contexts: make(map[subjects.SourceID]*execution), last: rootContext}
	h.cancel = state.Watch(func(s *fold.Space) {
		h.space = s
		for _, src := range s.Sources() {
			h.refresh(s, src, false)
		}
	}, h)
	return h
}

// close ends the watch. No session is told of anything after it.
func (h *hub) close() { h.cancel() }

func (h *hub) add(s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sessions = append(slices.Clip(h.sessions), s)
}

func (h *hub) remove(s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sessions = slices.DeleteFunc(slices.Clone(h.sessions), func(x *session) bool { return x == s })
}

func (h *hub) all() []*session {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sessions
}

// Changed implements replica.Watcher. It runs under the state's write lock and only queues.
func (h *hub) Changed(space *fold.Space, changes []fold.Change) {
	replaced := h.space != space
	h.space = space
	for _, c := range changes {
		switch c.Kind {
		case fold.SourceAdded, fold.SourceOpened, fold.SourceClosed, fold.SourceRemoved, fold.PresenceChanged:
			h.refresh(space, c.Source, c.Kind == fold.SourceOpened)
		}
	}
	sessions := h.all()
	if len(sessions) == 0 {
		return
	}
	b := newBatch(h, space, changes, replaced)
	for _, s := range sessions {
		s.changed(b)
	}
}

// refresh gives a source the context that its state asks for: one while it
// lives, a new one with every opening.
func (h *hub) refresh(space *fold.Space, src *fold.Source, opened bool) {
	wanted := src.Connected && src.Life.Opened && !src.Life.Closed && space.Source(src.ID) == src
	if x := h.contexts[src.ID]; x != nil && (!wanted || opened || x.generation != src.Generation) {
		delete(h.contexts, src.ID)
	}
	if wanted && h.contexts[src.ID] == nil {
		h.last++
		h.contexts[src.ID] = &execution{id: h.last, generation: src.Generation}
	}
}

// contextOf returns the context of a generation of a source, or 0 if that generation is gone.
func (h *hub) contextOf(id subjects.SourceID, generation string) ContextID {
	if x := h.contexts[id]; x != nil && string(x.generation) == generation {
		return x.id
	}
	return 0
}
