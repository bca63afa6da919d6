package store

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/follow"
	"github.com/natscope/natscope/subjects"
)

// The terms of asking who has an id.
const (
	// askTimeout is how long a generation has to answer before it counts as gone.
	askTimeout = time.Second
	// maxAsking is how many generations are spoken to at once.
	maxAsking = 32
	// maxErrands bounds what waits to be asked because of heartbeats.
	maxErrands = 1024
	// offlinePause is the time between two looks whether NATS is back.
	offlinePause = 50 * time.Millisecond
)

// arbiter sees to it that one living program has an id. follow.Holder says what
// is to be done; the arbiter does it. Every store has one, and they need not know
// of each other: whatever one does after another changes nothing.
type arbiter struct {
	o   Options
	log *slog.Logger
	// wake says that there are errands.
	wake chan struct{}

	// mu guards everything below. It may be taken under any other lock, and no other is taken under it.
	mu      sync.Mutex
	holders map[subjects.SourceID]follow.Holder
	errands []errand
}

// errand is one effect for one id.
type errand struct {
	id subjects.SourceID
	follow.Effect
}

func newArbiter(o Options, log *slog.Logger) *arbiter {
	return &arbiter{o: o, log: log, wake: make(chan struct{}, 1), holders: make(map[subjects.SourceID]follow.Holder)}
}

// lifeOf tells what matters of the generation that readers follow. The replica's lock is held.
func lifeOf(src *fold.Source) follow.Life {
	return follow.Life{Generation: src.Generation, Realm: src.Life.Descriptor.Realm, Who: src.Life.Descriptor.Who(), Closed: src.Life.Closed}
}

// take steps the holder of an id. It never blocks.
func (a *arbiter) take(id subjects.SourceID, e follow.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	h, known := a.holders[id]
	if !known && e.Kind != follow.EventKnown && e.Kind != follow.EventOpened {
		return
	}
	if e.Kind == follow.EventBeat && len(a.errands) >= maxErrands {
		return // It is heard again.
	}
	h, effects := h.Step(e)
	a.holders[id] = h
	for _, f := range effects {
		a.errands = append(a.errands, errand{id, f})
	}
	if len(effects) > 0 {
		select {
		case a.wake <- struct{}{}:
		default:
		}
	}
}

// forget drops an id.
func (a *arbiter) forget(id subjects.SourceID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.holders, id)
}

// admits reports whether a generation may be admitted now, and whether it never will be.
func (a *arbiter) admits(id subjects.SourceID, g subjects.Generation) (now, never bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	h, ok := a.holders[id]
	return ok && h.Admits(g), !ok || h.Over(g)
}

// run does the errands, several at once.
func (a *arbiter) run(ctx context.Context) {
	var runners sync.WaitGroup
	defer runners.Wait()
	slots := make(chan struct{}, maxAsking)
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.wake:
		}
		a.mu.Lock()
		errands := a.errands
		a.errands = nil
		a.mu.Unlock()
		for _, x := range errands {
			select {
			case <-ctx.Done():
				return
			case slots <- struct{}{}:
			}
			runners.Go(func() {
				defer func() { <-slots }()
				a.do(ctx, x)
			})
		}
	}
}

// do speaks to one generation.
func (a *arbiter) do(ctx context.Context, x errand) {
	if x.Message == nil {
		lives := a.lives(ctx, x)
		if ctx.Err() == nil {
			a.take(x.id, follow.Event{Kind: follow.EventAnswer, Generation: x.Generation, Lives: lives})
		}
		return
	}
	a.log.Warn("two programs had one id", "source", string(x.id), "generation", string(x.Generation), "told", x.Message.Kind, "reason", x.Message.Reason)
	data, err := json.Marshal(x.Message)
	if err == nil {
		data, err = a.request(ctx, subjects.Control(a.o.Space, x.id, x.Generation), data)
	}
	var answer subjects.ControlAnswer
	if err == nil && (json.Unmarshal(data, &answer) != nil || !answer.OK) {
		a.log.Warn("a source did not do what it was told", "source", string(x.id), "generation", string(x.Generation), "told", x.Message.Kind, "answer", answer.Error)
	}
	if ctx.Err() == nil {
		a.take(x.id, follow.Event{Kind: follow.EventMoved, Generation: x.Generation})
	}
}

// lives asks a generation whether it lives.
func (a *arbiter) lives(ctx context.Context, x errand) bool {
	data, err := a.request(ctx, subjects.Command(a.o.Space, x.id, x.Generation), []byte(`{"method":"ping"}`))
	if err != nil {
		return false
	}
	var answer struct {
		OK bool `json:"ok"`
	}
	return json.Unmarshal(data, &answer) == nil && answer.OK
}

// request asks once, and again as long as it was this store's connection that failed.
func (a *arbiter) request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	for ctx.Err() == nil {
		if !a.o.Conn.IsConnected() {
			wait(ctx, offlinePause)
			continue
		}
		reconnects := a.o.Conn.Stats().Reconnects
		once, cancel := context.WithTimeout(ctx, askTimeout)
		m, err := a.o.Conn.RequestWithContext(once, subject, data)
		cancel()
		switch {
		case err == nil:
			return m.Data, nil
		case errors.Is(err, nats.ErrNoResponders):
			return nil, err
		case a.o.Conn.IsConnected() && a.o.Conn.Stats().Reconnects == reconnects:
			return nil, err
		case a.o.Conn.IsClosed():
			return nil, err
		}
	}
	return nil, ctx.Err()
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
