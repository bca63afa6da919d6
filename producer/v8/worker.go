package v8

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// maxWorkers is how many worker threads of one process are observed.
const maxWorkers = 256

// announcedWithin is how long an engine may take to tell of its threads after it said that it would.
const announcedWithin = 2 * time.Second

// Engines tell of their threads in two ways: Node by the domain NodeWorker, whose
// messages hold those of a thread as texts; browsers by the domain Target, whose
// messages of a thread carry the name of its session.

// workerInfo is what an engine says of a worker thread.
type workerInfo struct {
	SessionID string `json:"sessionId"`
	Info      struct {
		ID    string `json:"workerId"`
		Title string `json:"title"`
		URL   string `json:"url"`
	} `json:"workerInfo"`
	// Target is what browsers say instead.
	Target struct {
		ID    string `json:"targetId"`
		Type  string `json:"type"`
		Title string `json:"title"`
		URL   string `json:"url"`
	} `json:"targetInfo"`
	Waiting bool `json:"waitingForDebugger"`
}

// key is what a thread is found by over another connection.
func (w *workerInfo) key() string { return or(w.Target.ID, w.Info.Title) }

// nest makes a session with a worker thread, whose messages travel inside of
// those of its process. The caller gives it what the process receives for it.
func nest(parent *peer, session string, event func(string, json.RawMessage)) *peer {
	send := func(data []byte) error {
		parent.start("NodeWorker.sendMessageToWorker", map[string]string{"sessionId": session, "message": ascii(data)}, func(json.RawMessage, error) {})
		return nil
	}
	return newPeer(send, event)
}

// ascii writes JSON without characters beyond ASCII, which Node garbles on their way to a thread.
func ascii(data []byte) string {
	var b strings.Builder
	b.Grow(len(data))
	for _, r := range string(data) {
		switch {
		case r < utf8.RuneSelf:
			b.WriteByte(byte(r))
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
	}
	return b.String()
}

// thread makes a session with a thread over the connection of its program. leave ends it.
func (w *workerInfo) thread(parent *peer, event func(string, json.RawMessage)) (child *peer, leave func()) {
	ignore := func(json.RawMessage, error) {}
	if w.Target.ID == "" {
		child = nest(parent, w.SessionID, event)
		return child, func() { parent.start("NodeWorker.detach", map[string]string{"sessionId": w.SessionID}, ignore) }
	}
	child = newPeer(parent.send, event)
	child.name = w.SessionID
	return child, func() { parent.start("Target.detachFromTarget", map[string]string{"sessionId": w.SessionID}, ignore) }
}

// watchThreads makes a connection tell of the threads of its program, those that are there and later ones.
func watchThreads(p *peer, browser, hold bool, done func(json.RawMessage, error)) {
	if !browser {
		p.start("NodeWorker.enable", map[string]any{"waitForDebuggerOnStart": hold}, done)
		return
	}
	p.start("Target.setAutoAttach", map[string]any{
		"autoAttach": true, "waitForDebuggerOnStart": hold, "flatten": true,
		"filter": []map[string]any{{"type": "worker", "exclude": false}, {"exclude": true}},
	}, done)
}

// workerAttached begins to observe a worker thread. It runs on the connection's reader.
func (x *observer) workerAttached(params json.RawMessage) {
	var w workerInfo
	if json.Unmarshal(params, &w) != nil || w.SessionID == "" {
		return
	}
	title, address := or(w.Info.Title, w.Target.Title), or(w.Info.URL, w.Target.URL)
	if w.Target.ID != "" {
		title = "worker " + shortAddress(or(title, address))
	}
	y := newObserver(x.w, listed{ID: x.target.ID + ":" + w.key(), Type: "worker", Title: title, URL: or(address, x.url())}, x.engine)
	y.parent, y.held, y.key = x, w.Waiting, w.key()
	closed := make(chan struct{})
	y.closed = closed
	child, leave := w.thread(x.peer, y.event)
	y.peer = child
	var once sync.Once
	y.close = func() {
		once.Do(func() {
			leave()
			y.peer.end(errHungUp)
			close(closed)
		})
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended || len(x.workers) >= maxWorkers || x.w.a.ctx.Err() != nil {
		if !x.ended {
			x.w.a.o.Logger.Warn("too many worker threads; this one is not observed", "title", title, "most", maxWorkers)
		}
		if w.Waiting {
			child.start("Runtime.runIfWaitingForDebugger", nil, func(json.RawMessage, error) {})
		}
		return
	}
	x.workers[w.SessionID] = y
	x.w.a.all.Go(y.observe)
}

// shortAddress is the last part of an address, for people.
func shortAddress(s string) string {
	s, _, _ = strings.Cut(s, "?")
	return path.Base(s)
}

// routed gives a message to the session of its thread.
func (x *observer) routed(m message) {
	x.mu.Lock()
	y := x.workers[m.Session]
	x.mu.Unlock()
	if y != nil {
		y.peer.handle(m)
	}
}

// workerMessage gives a message to the session of its worker thread.
func (x *observer) workerMessage(params json.RawMessage) {
	var m struct {
		SessionID string `json:"sessionId"`
		Message   string `json:"message"`
	}
	if json.Unmarshal(params, &m) != nil {
		return
	}
	x.mu.Lock()
	y := x.workers[m.SessionID]
	x.mu.Unlock()
	if y != nil {
		y.peer.receive([]byte(m.Message))
	}
}

// workerDetached ends a worker thread's observer.
func (x *observer) workerDetached(params json.RawMessage) {
	var m struct {
		SessionID string `json:"sessionId"`
	}
	if json.Unmarshal(params, &m) != nil {
		return
	}
	x.mu.Lock()
	y := x.workers[m.SessionID]
	delete(x.workers, m.SessionID)
	x.mu.Unlock()
	if y != nil {
		y.gone.Store(true)
		y.close()
	}
}

// dialWorker opens a connection to the program of a worker thread, for that thread only.
func (x *observer) dialWorker(ctx context.Context, event func(string, json.RawMessage)) (*channel, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	d := &workerDialer{key: x.key, event: event, ready: make(chan struct{}), gone: make(chan struct{})}
	linked := make(chan struct{})
	l, err := dial(ctx, x.parent.target.socket(x.w.endpoint), func(method string, params json.RawMessage) {
		<-linked
		d.take(method, params)
	})
	if err != nil {
		return nil, err
	}
	d.parent = l.peer
	l.route = func(m message) {
		if d.child != nil && m.Session == d.session {
			d.child.handle(m)
		}
	}
	close(linked)
	hangUp := func(err error) (*channel, error) {
		l.close()
		<-l.closed
		return nil, err
	}
	answered := make(chan error, 1)
	watchThreads(l.peer, x.engine.isBrowser(), false, func(_ json.RawMessage, err error) { answered <- err })
	missing := fmt.Errorf("v8: the thread %q is not there any more", x.target.Title)
	select {
	case <-d.ready:
	case <-ctx.Done():
		return hangUp(missing)
	case err := <-answered:
		if err != nil {
			return hangUp(err)
		}
		// Threads are announced before the answer, or, by browsers, soon after it.
		soon := time.NewTimer(announcedWithin)
		defer soon.Stop()
		select {
		case <-d.ready:
		case <-l.closed:
			return hangUp(missing)
		case <-soon.C:
			return hangUp(missing)
		}
	}
	// The thread's session must be answered when either of the two connections ends.
	closed := make(chan struct{})
	x.w.a.all.Go(func() {
		defer close(closed)
		select {
		case <-l.closed:
		case <-d.gone:
			l.close()
			<-l.closed
		}
		d.child.end(errHungUp)
	})
	// A thread that is paused would stay so if the connection just ended, for which Node has a fault.
	return &channel{d.child, func() { d.leave(); l.close() }, closed}, nil
}

// workerDialer finds one worker thread among those of a program. Its fields
// belong to the connection's reader until ready is closed.
type workerDialer struct {
	key     string
	event   func(string, json.RawMessage)
	parent  *peer
	child   *peer
	leave   func()
	session string
	ready   chan struct{}
	gone    chan struct{}
}

// take takes an event of the program.
func (d *workerDialer) take(method string, params json.RawMessage) {
	switch method {
	case "NodeWorker.attachedToWorker", "Target.attachedToTarget":
		var w workerInfo
		if json.Unmarshal(params, &w) != nil {
			return
		}
		child, leave := w.thread(d.parent, d.event)
		if d.child != nil || w.key() != d.key {
			leave()
			return
		}
		d.session, d.child, d.leave = w.SessionID, child, leave
		close(d.ready)
	case "NodeWorker.receivedMessageFromWorker":
		var m struct {
			SessionID string `json:"sessionId"`
			Message   string `json:"message"`
		}
		if json.Unmarshal(params, &m) == nil && d.child != nil && m.SessionID == d.session {
			d.child.receive([]byte(m.Message))
		}
	case "NodeWorker.detachedFromWorker", "Target.detachedFromTarget":
		var m struct {
			SessionID string `json:"sessionId"`
		}
		if json.Unmarshal(params, &m) == nil && d.child != nil && m.SessionID == d.session {
			d.session = ""
			close(d.gone)
		}
	}
}
