package producer

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
)

// The bounds of sessions.
const (
	// maxSessions is how many sessions of one source are open at once; more are answered with realm.CodeBusy.
	maxSessions = 64
	// maxSessionCommands is how many commands of one session are under way at once.
	maxSessionCommands = 64
	// maxSessionDeadline bounds a command of a session that names its own deadline:
	// a heap snapshot or a promise may take longer than other commands.
	maxSessionDeadline = 10 * time.Minute
)

// sessions are those that are open at the realm of a source.
type sessions struct {
	p *Producer
	// lease is how long a session lives after the last sign of its asker.
	lease time.Duration

	mu    sync.Mutex // guards all below
	realm Realm
	// capabilities is what the realm answers, with realm.GroupSession.
	capabilities []string
	open         map[realm.Session]*session
	closed       bool
	// running counts the goroutines of sessions.
	running sync.WaitGroup
}

func newSessions(p *Producer) *sessions {
	return &sessions{p: p, lease: realm.SessionLease, open: make(map[realm.Session]*session)}
}

// serve takes another realm.
func (t *sessions) serve(r Realm, capabilities []string) {
	t.mu.Lock()
	t.realm, t.capabilities = r, nil
	if r != nil {
		t.capabilities = append([]string{realm.GroupSession}, capabilities...)
	}
	old := t.takeAll()
	t.mu.Unlock()
	endAll(old, fmt.Errorf("%w: another realm took this one's place; open a session anew", realm.ErrNoSession))
}

// takeAll empties the table. The caller holds t.mu.
func (t *sessions) takeAll() []*session {
	old := make([]*session, 0, len(t.open))
	for _, s := range t.open {
		old = append(old, s)
	}
	clear(t.open)
	return old
}

func endAll(list []*session, reason error) {
	for _, s := range list {
		s.end(reason)
	}
}

// closeAll ends all sessions; last says that there will be no more.
func (t *sessions) closeAll(reason error, last bool) {
	t.mu.Lock()
	t.closed = t.closed || last
	old := t.takeAll()
	t.mu.Unlock()
	endAll(old, reason)
}

// methods lists the capabilities for the descriptor.
func (t *sessions) methods() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.capabilities
}

// Sessions is how many sessions are open at the source's realm.
func (p *Producer) Sessions() int {
	p.sessions.mu.Lock()
	defer p.sessions.mu.Unlock()
	return len(p.sessions.open)
}

// take carries a command out that belongs to sessions, and reports whether it
// does. It never blocks.
func (t *sessions) take(m *nats.Msg, r realm.Request) bool {
	t.mu.Lock()
	mine := t.realm != nil && realm.Supports(t.capabilities, r.Method)
	t.mu.Unlock()
	if !mine {
		return false
	}
	c := t.p.commands
	refuse := func(err error) bool {
		c.answer(&call{msg: m}, nil, err)
		return true
	}
	who := r.Session
	if who == nil || !subjects.IsToken(who.Gateway) || !subjects.IsToken(who.ID) {
		return refuse(fmt.Errorf("%w: %.80s needs a session, with the tokens gateway and id", realm.ErrMalformed, r.Method))
	}
	if r.Method == realm.MethodOpenSession {
		if err := t.begin(m, *who); err != nil {
			return refuse(err)
		}
		return true
	}
	s := t.renew(*who)
	if s == nil {
		if r.Method == realm.MethodCloseSession {
			c.answer(&call{msg: m}, nil, nil)
			return true
		}
		return refuse(errNoSession)
	}
	switch r.Method {
	case realm.MethodTouchSession:
		c.answer(&call{msg: m}, nil, nil)
	case realm.MethodCloseSession:
		t.remove(s)
		s.end(fmt.Errorf("%w: the session was closed", realm.ErrNoSession))
		c.answer(&call{msg: m}, nil, nil)
	case realm.MethodCancel:
		p, err := realm.ParseParams[realm.CancelParams](r.Params)
		if err == nil {
			s.cancelCommand(p.Request)
		}
		c.answer(&call{msg: m}, nil, err)
	default:
		s.take(m, r)
	}
	return true
}

var errNoSession = fmt.Errorf("%w: no session; open one", realm.ErrNoSession)

// begin opens a session, or renews its lease, and answers.
func (t *sessions) begin(m *nats.Msg, who realm.Session) error {
	s, capabilities, err := t.obtain(who)
	if err != nil {
		return err
	}
	result := realm.OpenResult{LeaseMS: t.lease.Milliseconds(), Capabilities: capabilities}
	c := t.p.commands
	opened := s.post(func() {
		switch {
		case s.failed != nil:
			c.answer(&call{msg: m}, nil, s.failed)
		case s.ctx.Err() != nil:
			c.answer(&call{msg: m}, nil, context.Cause(s.ctx))
		default:
			c.answer(&call{msg: m}, result, nil)
		}
	})
	if !opened {
		// The realm may have refused it before there was anybody to tell.
		return s.endReason()
	}
	return nil
}

// obtain returns a session that is open or about to be.
func (t *sessions) obtain(who realm.Session) (*session, []string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.open[who]
	switch {
	case t.closed:
		return nil, nil, fmt.Errorf("%w: the program ends", realm.ErrGone)
	case s == nil && len(t.open) >= maxSessions:
		return nil, nil, fmt.Errorf("%w: %d sessions are open at this source already; close a DevTools", realm.ErrBusy, maxSessions)
	case s == nil:
		s = newSession(t, who, t.realm)
		t.open[who] = s
		t.running.Go(s.run)
	}
	s.seen()
	return s, slices.Clone(t.capabilities), nil
}

// renew returns an open session and renews its lease.
func (t *sessions) renew(who realm.Session) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.open[who]
	if s != nil {
		s.seen()
	}
	return s
}

// saw renews the lease of whoever sent a command that needs no session.
func (t *sessions) saw(who *realm.Session) {
	if who != nil {
		t.renew(*who)
	}
}

// remove takes a session out of the table, if it is the one that is there.
func (t *sessions) remove(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open[s.who] == s {
		delete(t.open, s.who)
	}
}

// wait waits a little for the sessions that were told to end.
func (t *sessions) wait() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.running.Wait()
	}()
	select {
	case <-done:
	case <-time.After(commandGrace):
	}
}

// sessionCall is a command of a session that is under way.
type sessionCall struct {
	call
	id     realm.RequestID
	ctx    context.Context
	method realm.Method
	params json.RawMessage
}
