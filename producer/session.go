package producer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/subjects/realm"
)

// session is one that is open at the realm. Its goroutine calls the realm, in
// the order in which commands came; nobody else does.
type session struct {
	t     *sessions
	who   realm.Session
	realm Realm
	// ctx ends with the session; its cause is why.
	ctx    context.Context
	cancel context.CancelCauseFunc
	// lastSeen is when its asker gave the last sign, in nanoseconds since the producer's start.
	lastSeen atomic.Int64
	// failed is why the realm did not open it. It belongs to the goroutine.
	failed error

	mu sync.Mutex // guards all below
	// jobs wait for the goroutine.
	jobs  []func()
	ended bool
	// reason is why it ended.
	reason error
	calls  map[*sessionCall]struct{}
	// wake holds at most one wish that the goroutine should look.
	wake chan struct{}
	out  *sessionOut
}

func newSession(t *sessions, who realm.Session, r Realm) *session {
	s := &session{t: t, who: who, realm: r, calls: make(map[*sessionCall]struct{}), wake: make(chan struct{}, 1)}
	s.ctx, s.cancel = context.WithCancelCause(context.WithValue(context.Background(), sessionKey{}, who))
	s.out = &sessionOut{s: s}
	return s
}

// seen renews the lease.
func (s *session) seen() { s.lastSeen.Store(int64(time.Since(s.t.p.start))) }

// post gives the goroutine something to do; false when the session has ended.
func (s *session) post(job func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	s.jobs = append(s.jobs, job)
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return true
}

// endReason returns why the session ended.
func (s *session) endReason() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason
}

// run is the session's goroutine: it opens the session at the realm, brings it
// the commands, and closes it at the end, or when the lease runs out.
func (s *session) run() {
	var at RealmSession
	if e := contained(func() { at, s.failed = s.realm.Open(s.ctx, s.who, s.out) }); e != nil {
		s.failed = fmt.Errorf("%w: the realm did not open the session: %w", realm.ErrFailed, e)
		s.t.p.trouble("session failed", fmt.Errorf("producer: open a session: %w", e))
	}
	if s.failed == nil && at == nil {
		s.failed = fmt.Errorf("%w: the realm opened no session", realm.ErrFailed)
	}
	s.out.at = at
	lease := time.NewTimer(s.t.lease)
	defer lease.Stop()
	for s.ctx.Err() == nil {
		for _, job := range s.pending() {
			job()
		}
		if s.failed != nil {
			s.t.remove(s)
			s.end(s.failed)
			break
		}
		select {
		case <-s.wake:
		case <-s.ctx.Done():
		case <-lease.C:
			left := s.t.lease - (time.Since(s.t.p.start) - time.Duration(s.lastSeen.Load()))
			if left > 0 {
				lease.Reset(left)
				continue
			}
			s.t.remove(s)
			s.end(fmt.Errorf("%w: nobody was heard for %v", realm.ErrNoSession, s.t.lease))
		}
	}
	reason := context.Cause(s.ctx)
	for _, job := range s.pending() {
		job() // They find that the session has ended, and say so.
	}
	if at != nil {
		if e := contained(func() { at.Close(reason) }); e != nil {
			s.t.p.trouble("session failed", fmt.Errorf("producer: close a session: %w", e))
		}
	}
}

// pending returns what waits for the goroutine.
func (s *session) pending() []func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	jobs := s.jobs
	s.jobs = nil
	return jobs
}

// end ends the session. Commands that run are answered with the reason. It never blocks.
func (s *session) end(reason error) {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return
	}
	s.ended, s.reason = true, reason
	calls := make([]*sessionCall, 0, len(s.calls))
	for x := range s.calls {
		calls = append(calls, x)
	}
	s.mu.Unlock()
	s.cancel(reason)
	for _, x := range calls {
		s.finish(x, nil, reason)
	}
}

// take starts a command. It never blocks.
func (s *session) take(m *nats.Msg, r realm.Request) {
	x := &sessionCall{call: call{msg: m}, id: r.ID, method: r.Method, params: r.Params}
	s.mu.Lock()
	if n := len(s.calls); n >= maxSessionCommands && !urgent(r.Method) {
		s.mu.Unlock()
		s.t.p.commands.answer(&x.call, nil, fmt.Errorf("%w: %d commands of this session run already; wait for some or cancel them", realm.ErrBusy, n))
		return
	}
	limit := s.t.p.o.Limits.Command
	if r.DeadlineMS > 0 {
		// The lease sees to it that nothing runs on for somebody who left.
		limit = max(limit, maxSessionDeadline)
	}
	x.ctx, x.cancel = context.WithTimeout(s.ctx, r.Deadline(limit))
	s.calls[x] = struct{}{}
	s.mu.Unlock()
	if !s.post(func() { s.do(x) }) {
		s.finish(x, nil, errNoSession)
	}
}

// urgent reports whether a command must get through however many run.
func urgent(m realm.Method) bool {
	return m == "runtime.terminateExecution" || m == "debugger.resume" || m == "debugger.disable"
}

// do brings a command to the realm.
func (s *session) do(x *sessionCall) {
	if s.failed != nil {
		s.finish(x, nil, s.failed)
		return
	}
	if x.ctx.Err() != nil {
		s.finish(x, nil, s.why(x))
		return
	}
	late := context.AfterFunc(x.ctx, func() { s.finish(x, nil, s.why(x)) })
	e := contained(func() {
		s.out.at.Do(x.ctx, x.method, x.params, func(result any, err error) {
			late()
			s.finish(x, result, err)
		})
	})
	if e != nil {
		s.t.p.trouble("command failed", fmt.Errorf("producer: the realm failed in %s: %w", x.method, e))
		s.finish(x, nil, fmt.Errorf("%w: %w", realm.ErrFailed, e))
	}
}

// why says why the context of a command ended.
func (s *session) why(x *sessionCall) error {
	switch {
	case s.ctx.Err() != nil:
		return context.Cause(s.ctx)
	case errors.Is(x.ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%w: the source did not finish %s in time; it may still do it", realm.ErrTimeout, x.method)
	}
	return fmt.Errorf("%w: %s was taken back", realm.ErrCanceled, x.method)
}

// finish answers a command, behind the events that the realm told before.
func (s *session) finish(x *sessionCall, result any, err error) {
	s.mu.Lock()
	_, running := s.calls[x]
	delete(s.calls, x)
	s.mu.Unlock()
	if !running {
		return
	}
	p := s.t.p
	x.once.Do(func() {
		data := p.commands.encode(result, err)
		if x.msg.Reply == "" {
			return
		}
		if p.commands.isLong(data) {
			p.events.answer(s.out, x.msg.Reply, data)
			p.wake()
		} else if !p.events.behind(s.out, x.msg.Reply, data) {
			p.commands.send(x.msg, data)
		}
	})
	x.cancel()
}

// cancelCommand ends a command that runs.
func (s *session) cancelCommand(id realm.RequestID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for x := range s.calls {
		if x.id == id {
			x.cancel()
		}
	}
}

// sessionOut is the SessionOut of a session.
type sessionOut struct {
	s *session
	// at is the session at the realm; it belongs to the session's goroutine.
	at RealmSession

	// waiting is how many of its events wait for the loop, lost how many were lost
	// since the last one that got through. sessionEvents.mu guards both.
	waiting int
	lost    uint64
}

// Emit implements SessionOut.
func (o *sessionOut) Emit(event string, payload any) {
	_ = o.s.t.p.emit(o.s.who, o, event, payload, nil)
}

// EmitWait implements SessionOut.
func (o *sessionOut) EmitWait(ctx context.Context, event string, payload any) error {
	done := make(chan error, 1)
	if err := o.s.t.p.emit(o.s.who, o, event, payload, done); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-o.s.ctx.Done():
		return context.Cause(o.s.ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

var _ SessionOut = (*sessionOut)(nil)
