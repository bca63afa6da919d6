package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/subjects/realm"
)

// pickLease is how long a session's pick lives that it does not repeat.
const pickLease = 30 * time.Second

// pickers are the sessions that pick in one page. It is safe for concurrent use.
type pickers struct {
	mu sync.Mutex // guards all below; it is a leaf
	// until says of each session how long its pick lives.
	until map[realm.Session]time.Time
}

func newPickers() *pickers { return &pickers{until: make(map[realm.Session]time.Time)} }

// pick begins or ends a pick for a session. The page picks as long as any session does.
func (x *session) pick(ctx context.Context, params json.RawMessage) (any, error) {
	p, err := realm.ParseParams[realm.PickParams](params)
	if err != nil {
		return nil, err
	}
	who, ok := producer.SessionOf(ctx)
	if !ok {
		return nil, fmt.Errorf("%w: a pick needs a session that can be told of it", realm.ErrMalformed)
	}
	p.Active = x.pickers.set(who, p.Active, time.Now())
	data, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("ingest: pick: %w", err)
	}
	result, err := x.command(ctx, realm.MethodPick, data)
	if err != nil && p.Active {
		x.pickers.set(who, false, time.Now())
	}
	return result, err
}

// tell passes an event of the page on to the sessions that pick.
func (x *session) tell(e *PageEvent) {
	p, err := realm.ParseParams[realm.Picked](e.Data)
	if err != nil {
		return
	}
	for _, who := range x.pickers.all(e.Event == realm.EventPicked, time.Now()) {
		x.prod.Emit(who, e.Event, p)
	}
}

// maxPickers bounds the sessions that pick in one page at once; the newest win.
const maxPickers = 64

// set notes whether a session picks and reports whether any does.
func (r *pickers) set(who realm.Session, active bool, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expire(now)
	if !active {
		delete(r.until, who)
	} else {
		for other := range r.until {
			if len(r.until) < maxPickers {
				break
			}
			delete(r.until, other)
		}
		r.until[who] = now.Add(pickLease)
	}
	return len(r.until) > 0
}

// all returns the sessions that pick; with over, none does after it.
func (r *pickers) all(over bool, now time.Time) []realm.Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expire(now)
	out := make([]realm.Session, 0, len(r.until))
	for who := range r.until {
		out = append(out, who)
	}
	if over {
		clear(r.until)
	}
	return out
}

func (r *pickers) expire(now time.Time) {
	for who, until := range r.until {
		if until.Before(now) {
			delete(r.until, who)
		}
	}
}
