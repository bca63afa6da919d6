package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/subjects/realm"
)

// pickLease is how long a session's pick lives that it does not repeat.
const pickLease = 30 * time.Second

// Command asks a page for something. The page answers with the same id.
type Command struct {
	Type string `json:"type"`
	// ID numbers the commands of a session, from 1.
	ID uint64 `json:"id"`
	// Method and Params are those of package realm.
	Method realm.Method    `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// CommandAnswer is a page's answer to a Command.
type CommandAnswer struct {
	ID uint64 `json:"id"`
	realm.Answer
}

// PageEvent is something that happened to a pick.
type PageEvent struct {
	// Event is one of the events of package realm.
	Event string `json:"event"`
	// Data is its payload.
	Data json.RawMessage `json:"data"`
}

func (a *CommandAnswer) check() error {
	if a.ID == 0 {
		return errors.New("id is missing")
	}
	return nil
}

func (e *PageEvent) check() error {
	if e.Event != realm.EventPicked && e.Event != realm.EventHighlighted {
		return fmt.Errorf("event %.40q is none that a page may tell of", e.Event)
	}
	_, err := realm.ParseParams[realm.Picked](e.Data)
	return err
}

// relay passes the commands of one session's page on, and tells those who pick
// what the page tells. It is safe for concurrent use.
type relay struct {
	mu      sync.Mutex // guards all below; it is a leaf
	last    uint64
	waiting map[uint64]chan realm.Answer
	// pickers are the sessions that pick, each until when.
	pickers map[realm.Session]time.Time
}

func newRelay() *relay {
	return &relay{waiting: make(map[uint64]chan realm.Answer), pickers: make(map[realm.Session]time.Time)}
}

// serveCommands makes the source answer what its page can do, and nothing else.
func (x *session) serveCommands(h *Hello) {
	for _, m := range realm.Methods() {
		if !realm.Supports(h.Capabilities, m) {
			x.prod.OnCommand(string(m), nil)
			continue
		}
		run := func(ctx context.Context, params json.RawMessage) (any, error) { return x.command(ctx, m, params) }
		if m == realm.MethodPick {
			run = x.pick
		}
		x.prod.OnCommand(string(m), run)
	}
}

// command asks the page and waits for its answer. It runs on a goroutine of the producer.
func (x *session) command(ctx context.Context, m realm.Method, params json.RawMessage) (any, error) {
	x.mu.Lock()
	c := x.conn
	x.mu.Unlock()
	if c == nil {
		return nil, fmt.Errorf("%w: the page has no connection at the moment", realm.ErrGone)
	}
	id, answer := x.relay.begin()
	defer x.relay.end(id)
	c.send(Command{Type: MsgCommand, ID: id, Method: m, Params: params})
	select {
	case a := <-answer:
		switch {
		case a.OK:
			return a.Result, nil
		case a.Error == nil:
			return nil, fmt.Errorf("%w: the page did not say why", realm.ErrFailed)
		}
		return nil, a.Error
	case <-c.done:
		return nil, fmt.Errorf("%w: the page's connection ended before it answered", realm.ErrGone)
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: the page did not answer in time", ctx.Err())
	}
}

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
	p.Active = x.relay.picks(who, p.Active, time.Now())
	data, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("ingest: pick: %w", err)
	}
	result, err := x.command(ctx, realm.MethodPick, data)
	if err != nil && p.Active {
		x.relay.picks(who, false, time.Now())
	}
	return result, err
}

// tell passes an event of the page on to the sessions that pick.
func (x *session) tell(e *PageEvent) {
	p, err := realm.ParseParams[realm.Picked](e.Data)
	if err != nil {
		return
	}
	for _, who := range x.relay.watching(e.Event == realm.EventPicked, time.Now()) {
		x.prod.Emit(who, e.Event, p)
	}
}

func (r *relay) begin() (uint64, <-chan realm.Answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	c := make(chan realm.Answer, 1)
	r.waiting[r.last] = c
	return r.last, c
}

func (r *relay) end(id uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, id)
}

// answered hands an answer to whoever waits for it. An answer that nobody waits for changes nothing.
func (r *relay) answered(a *CommandAnswer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.waiting[a.ID]; c != nil {
		delete(r.waiting, a.ID)
		c <- a.Answer
	}
}

// maxPickers bounds the sessions that pick in one page at once; the newest win.
const maxPickers = 64

// picks notes whether a session picks and reports whether any does.
func (r *relay) picks(who realm.Session, active bool, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expire(now)
	if !active {
		delete(r.pickers, who)
	} else {
		for other := range r.pickers {
			if len(r.pickers) < maxPickers {
				break
			}
			delete(r.pickers, other)
		}
		r.pickers[who] = now.Add(pickLease)
	}
	return len(r.pickers) > 0
}

// watching returns the sessions that pick; with over, none does after it.
func (r *relay) watching(over bool, now time.Time) []realm.Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expire(now)
	out := make([]realm.Session, 0, len(r.pickers))
	for who := range r.pickers {
		out = append(out, who)
	}
	if over {
		clear(r.pickers)
	}
	return out
}

func (r *relay) expire(now time.Time) {
	for who, until := range r.pickers {
		if until.Before(now) {
			delete(r.pickers, who)
		}
	}
}
