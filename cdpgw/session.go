package cdpgw

import (
	"context"
	"runtime/debug"
	"sync"

	"github.com/gorilla/websocket"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
)

// maxSlow is how many slow commands, streamed responses among them, one connection may have under way.
const maxSlow = 256

// session is one DevTools connection: what it looks at, what it enabled, and
// what it was told. Commands come from the connection's reader, changes from
// whoever applies records; mu and the state's lock keep them apart.
type session struct {
	gateway *Gateway
	// id names the session in commands and events.
	id     subjects.SessionID
	conn   *conn
	target target
	slow   sync.WaitGroup
	slots  chan struct{}
	// bodies and runningBodies bound how many bodies are read at a time.
	bodies, runningBodies chan struct{}

	mu sync.Mutex // guards everything below
	// unencoded are the messages of the command that runs.
	unencoded []unencoded
	// space is the state while a command or a change is handled, and nil else.
	space *fold.Space
	// following says that what is sent is a live event and not part of an answer.
	following bool

	page     pageState
	runtime  runtimeState
	debugger debuggerState
	log      logState
	dom      domState
	network  networkState
	resource resourceState
	overlay  overlayState
	cordis   cordisState
	realms   liveState
	targets  childState
	// whole is the child that a target of the type node is, once it was asked for something.
	whole *child
}

func newSession(g *Gateway, c *conn, t target) *session {
	s := &session{gateway: g, id: subjects.SessionID("s" + itoa(g.sessions.Add(1))), conn: c, target: t, slots: make(chan struct{}, maxSlow), bodies: make(chan struct{}, endedBodies), runningBodies: make(chan struct{}, runningBodies)}
	s.overlay.lanes = newOverlayLanes(s.slow.Go, func(ctx context.Context, at realmOf, m realm.Method, params any) {
		if _, err := s.command(ctx, at, m, params); err != nil {
			g.log.Debug("a source does not show what it was asked to", "source", string(at.source), "method", string(m), "error", err)
		}
	})
	return s
}

// send queues an encoded message. A session that cannot keep up with live events is closed.
func (s *session) send(message []byte) {
	if !s.following {
		s.conn.queue.answer(message)
		return
	}
	if !s.conn.queue.event(message) {
		s.gateway.log.Warn("a DevTools connection lags and is closed", "target", s.target.id())
		s.gateway.counts.lagged.Add(1)
		s.conn.end(websocket.CloseTryAgainLater, reasonLagging)
	}
}

// event queues an event of this session alone. params must not change any more.
func (s *session) event(method string, params any) {
	if s.following {
		s.send(encodeEvent(method, params))
		return
	}
	s.postpone(outgoing{Method: method, Params: params})
}

// unencoded is a message whose place in the queue is settled.
type unencoded struct {
	place *reserved
	out   outgoing
}

// postpone queues a message of the command that runs. It is encoded when the
// locks are free again: a whole tree takes long.
func (s *session) postpone(out outgoing) {
	s.unencoded = append(s.unencoded, unencoded{s.conn.queue.reserve(), out})
}

// takePostponed returns the messages of the command that ends; s.mu is held.
func (s *session) takePostponed() []unencoded {
	out := s.unencoded
	s.unencoded = nil
	return out
}

// encodeAll completes the messages of a command.
func encodeAll(messages []unencoded) {
	for _, u := range messages {
		u.place.fill(encode(u.out))
	}
}

// sources returns the sources that the target includes, in the order of their appearance.
func (s *session) sources() []*fold.Source {
	var out []*fold.Source
	for _, src := range s.space.Sources() {
		if s.target.includes(src) {
			out = append(out, src)
		}
	}
	return out
}

// source returns an included source, or nil.
func (s *session) source(id subjects.SourceID) *fold.Source {
	if src := s.space.Source(id); src != nil && s.target.includes(src) {
		return src
	}
	return nil
}

// changed tells the client what a message changed. It runs under the state's write lock.
func (s *session) changed(b *batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.guard()
	s.space, s.following = b.space, true
	defer func() { s.space, s.following = nil, false }()

	for _, src := range b.sources {
		s.syncFrame(src)
		s.syncChild(src)
		s.syncContext(src)
		s.syncRealm(src)
	}
	if s.target.node {
		s.syncNode()
	}
	s.syncDocument(b)
	s.syncWatched(len(b.sources) > 0)
	s.syncOverlay(b)
	s.syncSources(b)
	for i, c := range b.changes {
		if !s.wants(c.Kind) || !s.target.includes(c.Source) {
			continue
		}
		s.announceFiles(c)
		switch c.Kind {
		case fold.RequestChanged:
			s.requestChanged(b, i, c)
		case fold.ConsoleAdded:
			s.consoleAdded(c.Source, c.Console, func() [][]byte { return b.shared(i) })
		case fold.FaultAdded:
			for _, m := range b.shared(i) {
				s.send(m)
			}
		}
	}
}

// wants reports whether the client enabled the domain of a change.
func (s *session) wants(k fold.Kind) bool {
	switch k {
	case fold.RequestChanged:
		return s.network.enabled
	case fold.ConsoleAdded:
		return s.runtime.enabled
	case fold.FaultAdded:
		return s.log.enabled
	}
	return false
}

// guard turns a fault of this package into the end of one connection.
func (s *session) guard() {
	if p := recover(); p != nil {
		s.gateway.log.Error("a DevTools connection failed", "target", s.target.id(), "panic", p, "stack", string(debug.Stack()))
		s.conn.end(websocket.CloseInternalServerErr, "natscope failed to serve this connection; please report it. Reconnect to go on.")
	}
}
