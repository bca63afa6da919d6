package goreal

import (
	"container/list"
	"fmt"
	"strconv"
	"sync"

	"github.com/natscope/natscope/producer/goreal/internal/mirror"
	"github.com/natscope/natscope/subjects/realm"
)

// handles holds the objects of one session that were shown to it. A handle is
// never used twice. When there are too many, those go first that were used
// longest ago.
type handles struct {
	limit int

	mu     sync.Mutex // guards all below
	byID   map[uint64]*list.Element
	groups map[string]map[uint64]struct{}
	// used has the handle that was used last in front.
	used *list.List
	last uint64
	// pushed is the newest handle that went for lack of room.
	pushed uint64
	closed bool
}

// handle is one object that a session holds.
type handle struct {
	id    uint64
	group string
	o     mirror.Object
}

func newHandles(limit int) *handles {
	return &handles{limit: limit, byID: make(map[uint64]*list.Element), groups: make(map[string]map[uint64]struct{}), used: list.New()}
}

// bind makes a handle for an object.
func (h *handles) bind(o mirror.Object, group string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return ""
	}
	h.last++
	h.byID[h.last] = h.used.PushFront(&handle{h.last, group, o})
	g := h.groups[group]
	if g == nil {
		g = make(map[uint64]struct{})
		h.groups[group] = g
	}
	g[h.last] = struct{}{}
	for h.used.Len() > h.limit {
		x := h.used.Back().Value.(*handle)
		h.pushed = max(h.pushed, x.id)
		h.drop(x.id)
	}
	return strconv.FormatUint(h.last, 10)
}

// get returns the object of a handle and its group.
func (h *handles) get(id string) (mirror.Object, string, error) {
	n, err := strconv.ParseUint(id, 10, 64)
	h.mu.Lock()
	defer h.mu.Unlock()
	if e := h.byID[n]; e != nil && err == nil {
		h.used.MoveToFront(e)
		x := e.Value.(*handle)
		return x.o, x.group, nil
	}
	if err == nil && n > 0 && n <= h.pushed {
		return nil, "", fmt.Errorf("%w: the object was released, because more than %d objects were held; evaluate the expression again", realm.ErrNotFound, h.limit)
	}
	return nil, "", fmt.Errorf("%w: there is no object %.40q in this session (any more); evaluate the expression again", realm.ErrNotFound, id)
}

// drop takes a handle out. The caller holds mu.
func (h *handles) drop(id uint64) {
	e := h.byID[id]
	if e == nil {
		return
	}
	x := h.used.Remove(e).(*handle)
	delete(h.byID, id)
	delete(h.groups[x.group], id)
	if len(h.groups[x.group]) == 0 {
		delete(h.groups, x.group)
	}
}

// release lets go of one object.
func (h *handles) release(id string) {
	if n, err := strconv.ParseUint(id, 10, 64); err == nil {
		h.mu.Lock()
		h.drop(n)
		h.mu.Unlock()
	}
}

// releaseGroup lets go of all objects of a group.
func (h *handles) releaseGroup(group string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id := range h.groups[group] {
		h.drop(id)
	}
}

// close lets go of everything, for good.
func (h *handles) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.byID, h.groups = make(map[uint64]*list.Element), make(map[string]map[uint64]struct{})
	h.used.Init()
}

func (h *handles) len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.used.Len()
}
