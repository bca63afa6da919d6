package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
)

// openWait is how long a realm may take to open a session.
const openWait = 5 * time.Second

// At names one generation of a source.
type At struct {
	Source     subjects.SourceID
	Generation subjects.Generation
}

// Sessions keeps the sessions of one gateway: each is opened when a command first
// needs it, and kept alive until it is closed. Its methods are safe for concurrent use.
type Sessions struct {
	c       Commander
	gateway subjects.GatewayID
	// lost is told of sessions that the realm does not know any more.
	lost func(At, subjects.SessionID)
	// every is how often an asker gives a sign of life.
	every time.Duration
	// last counts the commands.
	last  atomic.Uint64
	ctx   context.Context
	stop  context.CancelFunc
	ended chan struct{}

	mu   sync.Mutex // guards open
	open map[sessionKey]*opened
}

type sessionKey struct {
	at At
	id subjects.SessionID
}

// opened is a session that is open, or about to be.
type opened struct {
	// ready is closed when opening is over; result and err mean something then.
	ready  chan struct{}
	result realm.OpenResult
	err    error
	// seen is when the last command was sent. Sessions.mu guards it.
	seen time.Time
}

// NewSessions returns the sessions of a gateway. lost is called, on a goroutine
// of its own, when a session that was open is found to be gone, with all that
// was held for it; nil means that nobody cares. Close ends it.
func NewSessions(c Commander, gateway subjects.GatewayID, lost func(At, subjects.SessionID)) *Sessions {
	return newSessions(c, gateway, lost, realm.SessionTouch)
}

func newSessions(c Commander, gateway subjects.GatewayID, lost func(At, subjects.SessionID), every time.Duration) *Sessions {
	s := &Sessions{c: c, gateway: gateway, lost: lost, every: every, ended: make(chan struct{}), open: make(map[sessionKey]*opened)}
	s.ctx, s.stop = context.WithCancel(context.Background())
	go s.keep()
	return s
}

// Close closes all sessions without waiting for the sources.
func (s *Sessions) Close() {
	s.stop()
	<-s.ended
	s.mu.Lock()
	all := s.open
	s.open = make(map[sessionKey]*opened)
	s.mu.Unlock()
	for k := range all {
		s.tell(k, realm.MethodCloseSession)
	}
}

func (s *Sessions) who(id subjects.SessionID) *realm.Session {
	return &realm.Session{Gateway: string(s.gateway), ID: string(id)}
}

func (s *Sessions) tell(k sessionKey, m realm.Method) {
	_ = s.c.Tell(k.at.Source, k.at.Generation, realm.Request{Method: m, Session: s.who(k.id)})
}

// Open opens a session unless it is open, and returns what the realm answers in
// it. The error wraps one of package realm's.
func (s *Sessions) Open(ctx context.Context, at At, id subjects.SessionID) (realm.OpenResult, error) {
	o, mine := s.obtain(sessionKey{at, id})
	if mine {
		s.begin(sessionKey{at, id}, o)
	}
	select {
	case <-o.ready:
		return o.result, o.err
	case <-ctx.Done():
		return realm.OpenResult{}, fmt.Errorf("open a session at %s: %w", at.Source, ctx.Err())
	}
}

// obtain returns a session; mine says that the caller has to begin it.
func (s *Sessions) obtain(k sessionKey) (o *opened, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o = s.open[k]; o != nil {
		return o, false
	}
	o = &opened{ready: make(chan struct{}), seen: time.Now()}
	s.open[k] = o
	return o, true
}

// begin opens a session at its realm. It does not depend on who asked first.
func (s *Sessions) begin(k sessionKey, o *opened) {
	ctx, cancel := context.WithTimeout(s.ctx, openWait)
	defer cancel()
	raw, err := s.c.Do(ctx, k.at.Source, k.at.Generation, realm.Request{Method: realm.MethodOpenSession, Session: s.who(k.id)})
	if err == nil {
		err = json.Unmarshal(raw, &o.result)
	}
	o.err = err
	if err != nil {
		s.drop(k, o)
	}
	close(o.ready)
	s.mu.Lock()
	kept := s.open[k] == o
	s.mu.Unlock()
	if err == nil && !kept {
		// It was closed while it was opened.
		s.tell(k, realm.MethodCloseSession)
	}
}

// drop takes a session out, if it is the one that is there, and reports whether it was.
func (s *Sessions) drop(k sessionKey, o *opened) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[k] != o {
		return false
	}
	delete(s.open, k)
	return true
}

// Do carries a command out in a session, which is opened for it if it is not
// open. A command that is given up
// since ctx ended is taken back. The error wraps one of package realm's; after
// realm.ErrNoSession, what was held for the session is gone, and the next
// command opens it anew.
func (s *Sessions) Do(ctx context.Context, at At, id subjects.SessionID, r realm.Request) (json.RawMessage, error) {
	return s.DoInOrder(ctx, at, id, r, nil)
}

// DoInOrder is Do for commands that must arrive in an order: sent, if not nil, is
// called when the command is on its way, so that the next one may be sent.
func (s *Sessions) DoInOrder(ctx context.Context, at At, id subjects.SessionID, r realm.Request, sent func()) (json.RawMessage, error) {
	if _, err := s.Open(ctx, at, id); err != nil {
		return nil, err
	}
	k := sessionKey{at, id}
	s.mu.Lock()
	o := s.open[k]
	if o != nil {
		o.seen = time.Now()
	}
	s.mu.Unlock()
	r.Session, r.ID = s.who(id), realm.RequestID("r"+strconv.FormatUint(s.last.Add(1), 36))
	answer, err := s.c.Start(ctx, at.Source, at.Generation, r)
	if err != nil {
		return nil, err
	}
	if sent != nil {
		sent()
	}
	raw, err := answer()
	switch {
	case err == nil || o == nil:
	case ctx.Err() != nil:
		if params, e := json.Marshal(realm.CancelParams{Request: r.ID}); e == nil {
			_ = s.c.Tell(at.Source, at.Generation, realm.Request{Method: realm.MethodCancel, Params: params, Session: r.Session})
		}
	default:
		s.check(k, o, err)
	}
	return raw, err
}

// Tell sends a command to a session that is open, and to no other. It does not wait.
func (s *Sessions) Tell(at At, id subjects.SessionID, m realm.Method, params json.RawMessage) {
	if s.IsOpen(at, id) {
		_ = s.c.Tell(at.Source, at.Generation, realm.Request{Method: m, Params: params, Session: s.who(id)})
	}
}

// OpenAt lists where a session is open, or about to be.
func (s *Sessions) OpenAt(id subjects.SessionID) []At {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []At
	for k := range s.open {
		if k.id == id {
			out = append(out, k.at)
		}
	}
	return out
}

// check looks whether an error means that a session is gone.
func (s *Sessions) check(k sessionKey, o *opened, err error) {
	if !errors.Is(err, realm.ErrNoSession) && !errors.Is(err, realm.ErrGone) {
		return
	}
	if s.drop(k, o) && s.lost != nil {
		go s.lost(k.at, k.id)
	}
}

// IsOpen reports whether a session is open, or about to be.
func (s *Sessions) IsOpen(at At, id subjects.SessionID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[sessionKey{at, id}] != nil
}

// CloseSource closes the session at one generation of a source. It does not wait.
func (s *Sessions) CloseSource(at At, id subjects.SessionID) {
	s.closeIf(func(k sessionKey) bool { return k.at == at && k.id == id })
}

// CloseSession closes a session at all sources. It does not wait.
func (s *Sessions) CloseSession(id subjects.SessionID) {
	s.closeIf(func(k sessionKey) bool { return k.id == id })
}

func (s *Sessions) closeIf(which func(sessionKey) bool) {
	var gone []sessionKey
	s.mu.Lock()
	for k, o := range s.open {
		if which(k) {
			delete(s.open, k)
			if o.isReady() {
				gone = append(gone, k)
			}
		}
	}
	s.mu.Unlock()
	for _, k := range gone {
		s.tell(k, realm.MethodCloseSession)
	}
}

func (o *opened) isReady() bool {
	select {
	case <-o.ready:
		return true
	default:
		return false
	}
}

// keep keeps the leases of all sessions.
func (s *Sessions) keep() {
	defer close(s.ended)
	tick := time.NewTicker(s.every / 2)
	defer tick.Stop()
	var touching sync.WaitGroup
	defer touching.Wait()
	for {
		select {
		case <-s.ctx.Done():
			return
		case now := <-tick.C:
			for k, o := range s.due(now) {
				touching.Go(func() { s.touch(k, o) })
			}
		}
	}
}

// due returns the sessions that were silent for long.
func (s *Sessions) due(now time.Time) map[sessionKey]*opened {
	out := make(map[sessionKey]*opened)
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, o := range s.open {
		if now.Sub(o.seen) >= s.every/2 && o.isReady() {
			o.seen = now
			out[k] = o
		}
	}
	return out
}

// touch keeps one lease, and finds out whether it is still there.
func (s *Sessions) touch(k sessionKey, o *opened) {
	ctx, cancel := context.WithTimeout(s.ctx, openWait)
	defer cancel()
	_, err := s.c.Do(ctx, k.at.Source, k.at.Generation, realm.Request{Method: realm.MethodTouchSession, Session: s.who(k.id)})
	if err != nil {
		s.check(k, o, err)
	}
}
