package treecap

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/subjects/realm"
)

// maxLooking is how many sessions are told apart that look at one component.
const maxLooking = 1000

// watchedValue is the value by which a component says that it is read while somebody looks.
const watchedValue = "watched"

// Watched makes the component one that reads what it shows only while somebody
// looks: f is called with true when the first person opens the component in
// Elements, and with false when the last one has gone, at most realm.WatchLease
// after a gateway that died. It runs in a goroutine of the tree, one call at a
// time; its panics are contained. When the component is closed, or the tree is, f
// is told false. The component has a value "watched", which says how f was called
// last; a Computed of that name says it otherwise.
func Watched(f func(on bool)) ComponentOption {
	return componentOption(func(c *Component) {
		if f != nil {
			c.watching = &watching{f: f, leases: make(map[realm.Session]time.Time)}
		}
	})
}

// looked tells the value "watched".
func (c *Component) looked() any {
	t := c.node.t
	t.mu.Lock()
	defer t.mu.Unlock()
	return c.watching.on
}

// watching is who looks at a component. All but the functions is guarded by Tree.mu.
type watching struct {
	f func(on bool)
	// told shows how f was called.
	told func()
	// leases says how long each session looks if it says nothing more.
	leases map[realm.Session]time.Time
	// expiry fires when the first lease ends; nil without leases.
	expiry *time.Timer
	// on is what f was told, or is being told while telling is set.
	on, telling bool
}

// serveWatch makes the source answer the command that says who looks.
func (t *Tree) serveWatch() { t.p.OnCommand(string(realm.MethodWatch), t.onWatch) }

// onWatch carries the command out.
func (t *Tree) onWatch(ctx context.Context, params json.RawMessage) (any, error) {
	p, err := realm.ParseParams[realm.WatchParams](params)
	if err != nil {
		return nil, err
	}
	who, _ := producer.SessionOf(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.components[p.ID]
	if c == nil || c.watching == nil || t.closed {
		return nil, fmt.Errorf("%w: node %d is none that can be watched; read the tree again", realm.ErrNotFound, p.ID)
	}
	w := c.watching
	switch {
	case !p.Active:
		delete(w.leases, who)
	case len(w.leases) >= maxLooking && w.leases[who].IsZero():
		return nil, fmt.Errorf("%w: %d sessions look at node %d already", realm.ErrBusy, maxLooking, p.ID)
	default:
		w.leases[who] = time.Now().Add(realm.WatchLease)
	}
	t.lookers(w)
	return nil, nil
}

// lookers brings a component in line with its leases. The caller holds t.mu.
func (t *Tree) lookers(w *watching) {
	now := time.Now()
	maps.DeleteFunc(w.leases, func(_ realm.Session, until time.Time) bool { return !until.After(now) })
	if w.expiry != nil {
		w.expiry.Stop()
		w.expiry = nil
	}
	if len(w.leases) > 0 {
		var first time.Time
		for _, until := range w.leases {
			if first.IsZero() || until.Before(first) {
				first = until
			}
		}
		w.expiry = time.AfterFunc(first.Sub(now), func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.lookers(w)
		})
	}
	if !w.telling && w.on != (len(w.leases) > 0) {
		w.telling = true
		go t.tellLooking(w)
	}
}

// tellLooking tells f until it knows how things are.
func (t *Tree) tellLooking(w *watching) {
	for {
		t.mu.Lock()
		on := len(w.leases) > 0
		if on == w.on {
			w.telling = false
			t.mu.Unlock()
			return
		}
		w.on = on
		t.mu.Unlock()
		_ = contained(func() any { w.f(on); return nil })
		if w.told != nil {
			w.told()
		}
	}
}

// unwatch ends all watches of a component. The caller holds t.mu.
func (t *Tree) unwatch(w *watching) {
	clear(w.leases)
	t.lookers(w)
}
