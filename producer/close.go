package producer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/natscope/natscope/subjects"
)

// ErrUnflushed says that not everything was acknowledged in time. The text around it says how much is missing.
var ErrUnflushed = errors.New("producer: not everything is acknowledged")

// What bounds Close when its context has no deadline: closeWait in any case, and
// closeAway where there is no server to wait for.
const (
	closeWait = 5 * time.Second
	closeAway = 250 * time.Millisecond
)

// errAway says that Close did not wait, because there is no connection.
var errAway = errors.New("there is no connection to NATS; pass a context with a deadline to wait for one")

// bodiesPlane stands for the queue of bodies where planes are listed.
const bodiesPlane subjects.Plane = "body"

// waiter waits until all that was recorded before it is settled.
type waiter struct {
	targets map[subjects.Plane]uint64
	done    chan struct{}
}

// Flush waits until everything that was recorded before the call is in the
// stream, or was dropped and counted. The error wraps ErrUnflushed and the
// context's error, or is ErrClosed.
func (p *Producer) Flush(ctx context.Context) error {
	w := &waiter{targets: make(map[subjects.Plane]uint64), done: make(chan struct{})}
	for plane, q := range p.queues {
		_, w.targets[plane] = q.settled()
	}
	_, w.targets[bodiesPlane] = p.bodies.settled()
	p.mu.Lock()
	p.waiters = append(p.waiters, w)
	p.mu.Unlock()
	p.wake()
	defer p.forget(w)
	select {
	case <-w.done:
		return nil
	case <-p.done:
		select {
		case <-w.done: // The last thing that the loop did.
			return nil
		default:
			return fmt.Errorf("flush: %w", ErrClosed)
		}
	case <-ctx.Done():
		return fmt.Errorf("flush: %w: %w", p.unflushed(), ctx.Err())
	}
}

func (p *Producer) forget(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, x := range p.waiters {
		if x == w {
			p.waiters = append(p.waiters[:i], p.waiters[i+1:]...)
			return
		}
	}
}

// release lets go of the waiters that have what they wait for.
func (l *loop) release() {
	p := l.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiters) == 0 || !l.opened || l.snapshotting || p.tree.wantsSnapshot() || p.update != nil {
		return
	}
	done := make(map[subjects.Plane]uint64)
	for plane, q := range p.queues {
		done[plane], _ = q.settled()
	}
	done[bodiesPlane], _ = p.bodies.settled()
	rest := p.waiters[:0]
	for _, w := range p.waiters {
		if w.reached(done) {
			close(w.done)
			continue
		}
		rest = append(rest, w)
	}
	clear(p.waiters[len(rest):])
	p.waiters = rest
}

func (w *waiter) reached(done map[subjects.Plane]uint64) bool {
	for plane, n := range w.targets {
		if done[plane] < n {
			return false
		}
	}
	return true
}

// Leave is Close with a reason, a sentence for people that readers show; the one
// of the first call counts.
func (p *Producer) Leave(ctx context.Context, reason string) error {
	p.mu.Lock()
	if !p.closing {
		p.goodbye = cutText(reason, 2<<10)
	}
	p.mu.Unlock()
	return p.Close(ctx)
}

// farewell is the reason that Leave gave, if any.
func (p *Producer) farewell() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.goodbye
}

// Close says goodbye: what was recorded goes out, then the closing record, then
// everything ends. What is recorded after the call is ignored. Close returns
// when all is acknowledged, or when the context ends; it then gives up what is
// left. A context without a deadline bounds nothing, so that Close does it: it
// waits for 5 s, and not at all for a server that is known to be away, since no
// program should have to wait for its inspector in order to end. The error wraps ErrUnflushed.
// Further calls wait for the first one's end and return nil.
func (p *Producer) Close(ctx context.Context) error {
	p.mu.Lock()
	first := !p.closing
	p.closing = true
	p.mu.Unlock()
	for _, q := range p.queues {
		q.close()
	}
	p.bodies.close()
	p.wake()
	cause := p.leave(ctx)
	if cause == nil || !first {
		return nil
	}
	err := fmt.Errorf("close: %w: %w", p.unflushed(), cause)
	p.cancel()
	// The loop ends at once unless it is inside a write to a server that stopped
	// reading, which has a deadline of its own and is not worth waiting for.
	grace := time.NewTimer(100 * time.Millisecond)
	defer grace.Stop()
	select {
	case <-p.done:
	case <-grace.C:
	}
	return err
}

// leave waits for the end of the loop, and returns why it does so no longer.
func (p *Producer) leave(ctx context.Context) error {
	var away <-chan time.Time
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, closeWait)
		defer cancel()
		tick := time.NewTicker(closeAway)
		defer tick.Stop()
		away = tick.C
	}
	for {
		select {
		case <-p.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-away:
			if p.unreachable() {
				return errAway
			}
		}
	}
}

// unreachable reports whether there is no connection although one was tried.
func (p *Producer) unreachable() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.conn.Load() && p.lastErr != nil
}

// unflushed says how much waits.
func (p *Producer) unflushed() error {
	records := 0
	for _, q := range p.queues {
		done, all := q.settled()
		records += int(all - done)
	}
	done, all := p.bodies.settled()
	p.mu.Lock()
	cause := p.lastErr
	p.mu.Unlock()
	if cause == nil {
		return fmt.Errorf("%w: %d records and %d body chunks wait", ErrUnflushed, records, all-done)
	}
	return fmt.Errorf("%w: %d records and %d body chunks wait; the last trouble was: %w", ErrUnflushed, records, all-done, cause)
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}

func (q *bodyQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}
