package ingest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/source"
	"github.com/natscope/natscope/subjects/tree"
)

// errDetached says that a connection is no longer the one of its session.
var errDetached = errors.New("ingest: another connection of this page took over")

// session is one page load: one producer, and at most one connection at a time.
type session struct {
	server *Server
	id     subjects.SourceID
	realm  source.RealmID
	asked  string
	// hello is what the page last said of itself. The producer reads it in a goroutine of its own.
	hello atomic.Pointer[Hello]
	// started is closed when prod is set, or has failed to start.
	started chan struct{}
	prod    *producer.Producer
	relay   *relay
	pickers *pickers
	live    *pageRealm

	mu    sync.Mutex // guards everything below
	conn  *conn      // nil while the page has none
	ended bool
	timer *time.Timer // ends the session when no connection comes back
	last  uint64      // the number of the last message taken
	// shift turns the page's clock into the producer's, in milliseconds.
	shift float64
	// resnapshot says that tree records are useless until a snapshot comes.
	resnapshot bool
	bodies     Bodies
	// asking is how many questions of the page are under way.
	asking  int
	records bucket
	bytes   bucket
}

func newSession(s *Server, id subjects.SourceID, h *Hello) *session {
	now := time.Now()
	x := &session{
		server:     s,
		id:         id,
		realm:      h.Realm,
		asked:      h.ID,
		started:    make(chan struct{}),
		relay:      newRelay(),
		pickers:    newPickers(),
		resnapshot: true,
		records:    newBucket(s.rate.records, s.rate.burstRecords, now),
		bytes:      newBucket(s.rate.bytes, s.rate.burstBytes, now),
	}
	x.hello.Store(h)
	x.live = newPageRealm(x)
	return x
}

// start starts the producer. It does not wait for NATS.
func (x *session) start() error {
	defer close(x.started)
	o := x.server.o
	p, err := producer.Start(producer.Options{
		ID:       x.id,
		Name:     shownName(x.hello.Load(), x.id),
		Kind:     kindOf(x.hello.Load()),
		Space:    o.Space,
		Conn:     o.Conn,
		Limits:   o.Limits,
		Logger:   o.Logger,
		Describe: x.describe,
		Alive:    x.alive,
	})
	if err != nil {
		return fmt.Errorf("ingest: start the producer of %s: %w", x.id, err)
	}
	p.OnSnapshot(x.askSnapshot)
	x.prod = p
	x.serveCommands(x.hello.Load())
	if len(x.live.Capabilities()) > 0 {
		p.Serve(x.live)
	}
	return nil
}

// describe fills in the descriptor from what the page said last.
func (x *session) describe(d *source.Descriptor) {
	h := x.hello.Load()
	d.Realm = h.Realm
	// What the page can do is what the session serves of it.
	d.Runtime, d.Library = h.Runtime, h.Library
	d.URL, d.Title, d.Visible = h.URL, h.Title, h.Visible
	// The producer fills these in for the process that it runs in, which is not the page's.
	d.Hostname, d.PID, d.Service, d.Instance = h.Hostname, h.PID, "", ""
}

func kindOf(h *Hello) source.Kind {
	if h.Kind == string(source.KindHost) {
		return source.KindHost
	}
	return source.KindClient
}

func shownName(h *Hello, id subjects.SourceID) string {
	for _, s := range []string{h.Name, h.Title, h.URL} {
		if s != "" {
			return s
		}
	}
	return string(id)
}

// attach makes c the connection of the session and enqueues its welcome. It
// reports false when the session has ended.
func (x *session) attach(c *conn, h *Hello, fresh bool) (Welcome, bool) {
	x.mu.Lock()
	if x.ended || x.prod == nil {
		x.mu.Unlock()
		return Welcome{}, false
	}
	old := x.conn
	x.conn = c
	if x.timer != nil {
		x.timer.Stop()
	}
	x.shift = x.prod.Now() - h.Now
	w := x.welcome(!fresh)
	c.send(w)
	x.mu.Unlock()
	if old != nil {
		old.finish(Rejected{Code: CodeReplaced, Reason: errDetached.Error()})
	}
	x.server.count(func(st *Stats) {
		if fresh {
			st.Admitted++
		} else {
			st.Resumed++
		}
	})
	if !fresh {
		x.serveCommands(h)
		x.refresh(h)
	}
	return w, true
}

// welcome is called with mu held.
func (x *session) welcome(resumed bool) Welcome {
	l := x.server.o.Limits
	w := Welcome{
		Type: MsgWelcome, Version: ProtocolVersion,
		Source: x.prod.ID(), Generation: x.prod.Generation(), Space: x.server.o.Space,
		Resumed: resumed, Last: x.last, Resnapshot: x.resnapshot,
		Limits: PageLimits{
			RequestBodyBytes: l.RequestBodyBytes, ResponseBodyBytes: l.ResponseBodyBytes, BodyChunkBytes: l.BodyChunkBytes,
			Nodes: l.ComponentNodes, Depth: l.TreeDepth, Handles: l.Handles, CordisNodes: l.CordisNodes,
			MessageBytes: maxMessageBytes, RecordsPerSecond: int(x.server.rate.records),
			ReconnectMin: l.ReconnectMin.Milliseconds(), ReconnectMax: l.ReconnectMax.Milliseconds(),
		},
	}
	if x.asked != "" && x.asked != string(w.Source) {
		w.Asked = x.asked
	}
	return w
}

// refresh tells what changed about the page while it had no connection.
func (x *session) refresh(h *Hello) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.ended {
		x.update(source.Update{URL: &h.URL, Title: &h.Title, Visible: h.Visible})
	}
}

// update is called with mu held. An update that changes nothing is not published.
func (x *session) update(u source.Update) {
	h := *x.hello.Load()
	before := h
	if u.URL != nil {
		h.URL = *u.URL
	}
	if u.Title != nil {
		h.Title = *u.Title
	}
	if u.Visible != nil {
		h.Visible = u.Visible
	}
	same := h.URL == before.URL && h.Title == before.Title &&
		(h.Visible == before.Visible || h.Visible != nil && before.Visible != nil && *h.Visible == *before.Visible)
	if same {
		return
	}
	x.hello.Store(&h)
	x.prod.Update(u)
}

// askSnapshot is the producer's OnSnapshot: only the page has the tree. What
// the page sent of it before the snapshot comes is of no use any more.
func (x *session) askSnapshot() []subjects.Record {
	x.mu.Lock()
	x.resnapshot = true
	c := x.conn
	x.mu.Unlock()
	if c != nil {
		c.send(map[string]string{"type": MsgResnapshot})
	}
	return nil
}

// answers reports whether the page behind the session gives a sign of life.
func (x *session) answers(wait time.Duration) bool {
	x.mu.Lock()
	c, ended := x.conn, x.ended
	x.mu.Unlock()
	return !ended && c != nil && c.answers(wait)
}

// alive is the producer's Alive: whether the page is there is for the page to say.
func (x *session) alive(ctx context.Context) bool {
	wait := aliveWait
	if d, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(d))
	}
	return x.answers(wait)
}

// serve takes the messages of a connection until it ends.
func (x *session) serve(c *conn) {
	defer x.detach(c)
	_ = c.ws.SetReadDeadline(time.Now().Add(readWait))
	for {
		kind, data, err := c.ws.ReadMessage()
		if err != nil {
			return
		}
		_ = c.ws.SetReadDeadline(time.Now().Add(readWait))
		if kind != websocket.TextMessage || len(data) > maxMessageBytes {
			x.server.reject(c, Rejected{Code: CodeMessage, Reason: fmt.Sprintf("a message has %d bytes or is not text; messages are JSON texts of at most %d bytes", len(data), maxMessageBytes), Retry: true})
			return
		}
		m, err := ParseMessage(data)
		if err != nil {
			x.malformed(c, m, err)
			continue
		}
		if r, ok := x.take(c, m, len(data)); !ok {
			if r.Code != "" {
				x.server.reject(c, r)
			}
			return
		}
	}
}

// malformed answers a message that could not be read; the connection goes on.
func (x *session) malformed(c *conn, m Message, err error) {
	x.server.count(func(st *Stats) { st.Malformed++ })
	c.send(Problem{Type: MsgProblem, N: m.N, Reason: err.Error()})
	if m.N == 0 {
		return
	}
	// It would be as malformed if it came again.
	x.mu.Lock()
	if x.conn == c && m.N > x.last {
		x.last = m.N
		c.acknowledge(m.N)
	}
	x.mu.Unlock()
}

// take handles one message. It reports false when the connection is over, with
// a rejection if the page has to be told why.
func (x *session) take(c *conn, m Message, size int) (Rejected, bool) {
	switch m.Type {
	case MsgPong:
		c.pong()
		return Rejected{}, true
	case MsgPing:
		c.send(map[string]string{"type": MsgPong})
		return Rejected{}, true
	case MsgBye:
		reason := m.Bye.Reason
		if reason == "" {
			reason = "the page said goodbye"
		}
		x.end(reason)
		return Rejected{}, false
	}
	if m.Ask != nil {
		x.question(c, m.Ask)
		return Rejected{}, true
	}
	if !m.Numbered() && m.Answer == nil && m.Part == nil && m.Event == nil {
		return Rejected{}, true
	}
	// What an answer sets off is nothing that may wait for the lock.
	after := func() {}
	defer func() { after() }()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.conn != c || x.ended {
		return Rejected{}, false
	}
	if !x.affordable(m, size) {
		return Rejected{Code: CodeRate, Reason: fmt.Sprintf("the page sends more than %.0f records or %.0f bytes a second", x.server.rate.records, x.server.rate.bytes), Retry: true}, false
	}
	switch {
	case m.Answer != nil:
		after = func() { x.relay.answered(m.Answer.ID, m.Answer.Answer) }
		return Rejected{}, true
	case m.Part != nil:
		after = func() { x.relay.part(m.Part) }
		return Rejected{}, true
	case m.Event != nil && m.Event.Session != "":
		x.live.tell(m.Event)
		return Rejected{}, true
	case m.Event != nil:
		x.tell(m.Event)
		return Rejected{}, true
	}
	if m.N > x.last {
		gap := m.N != x.last+1
		x.last = m.N
		x.apply(m)
		x.server.count(func(st *Stats) {
			st.Messages++
			if gap {
				st.Gaps++
			}
		})
	} else {
		x.server.count(func(st *Stats) { st.Repeated++ })
	}
	c.acknowledge(x.last)
	return Rejected{}, true
}

func (x *session) affordable(m Message, size int) bool {
	now := time.Now()
	n := 1
	if m.Records != nil {
		n = len(m.Records.Records)
	}
	return x.records.take(float64(n), now) && x.bytes.take(float64(size), now)
}

// apply gives a numbered message to the producer. It is called with mu held;
// the producer only enqueues.
func (x *session) apply(m Message) {
	switch {
	case m.Records != nil:
		x.applyRecords(m.Records)
	case m.Body != nil:
		x.bodies.Take(x.prod, m.Body, m.Data)
	case m.Update != nil:
		x.update(*m.Update)
	}
}

func (x *session) applyRecords(r *Records) {
	if r.Dropped > 0 {
		x.prod.Lost(r.Plane, r.Dropped)
	}
	for _, rec := range r.Records {
		if r.Plane == subjects.PlaneTree && x.resnapshot {
			if rec.Topic != tree.TopicSnapshot && rec.Topic != tree.TopicBegin {
				continue
			}
			x.resnapshot = false
		}
		x.prod.RecordAt(r.Plane, rec.Topic, rec.T+x.shift, rec.Data)
	}
}

// detach takes the connection away and gives the page some time to come back.
func (x *session) detach(c *conn) {
	defer x.relay.gone(c)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.conn != c {
		return
	}
	x.conn = nil
	// A page without connection ends its pick; whoever still wants one repeats it.
	x.pickers.all(true, time.Now())
	if !x.ended {
		x.timer = time.AfterFunc(x.server.o.Resume, func() { x.expire() })
	}
}

// expire ends the session if no connection has come back. A timer that fires
// while one does is a no-op.
func (x *session) expire() {
	x.mu.Lock()
	gone := x.conn == nil && !x.ended
	x.mu.Unlock()
	if gone {
		x.end("the page's connection ended and did not come back")
	}
}

// end ends the session for good. It is idempotent.
func (x *session) end(reason string) {
	x.mu.Lock()
	if x.ended {
		x.mu.Unlock()
		return
	}
	x.ended = true
	c := x.conn
	if x.timer != nil {
		x.timer.Stop()
	}
	x.mu.Unlock()
	if c != nil {
		c.finish(Rejected{Code: CodeEnded, Reason: reason, Retry: true})
	}
	x.server.release(x, reason)
}
