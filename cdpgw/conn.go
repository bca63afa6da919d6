package cdpgw

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/natscope/natscope/cdpgw/access"
)

// The bounds of one connection.
const (
	// readLimit is the largest message that a client may send, in bytes.
	readLimit = 64 << 20
	// writeWait is how long a client may take to accept one burst.
	writeWait = 10 * time.Second
	// slowest is how many bytes a client must accept a second beyond that.
	slowest = 512 << 10
	// pingEvery is the time between two pings, pongWait how long a silent client is kept.
	pingEvery = 20 * time.Second
	pongWait  = 65 * time.Second
	// closeWait is how long the last messages of a connection may take.
	closeWait = 2 * time.Second
)

// The reasons for which the gateway closes a connection, as DevTools shows them.
const (
	reasonStopping = "The natscope gateway is stopping. Reconnect when it is back."
	reasonRevoked  = "Access to this natscope gateway was withdrawn. Ask whoever runs it for a new token."
	reasonLagging  = "DevTools fell too far behind the sources and was disconnected. Reconnect to see the current state."
)

// conn is one WebSocket connection.
type conn struct {
	ws    *websocket.Conn
	burst *burstConn
	queue *queue
	// remote is the client's address, for the audit.
	remote string
	// frontend says that the client is a DevTools, which runs in a browser.
	frontend bool
	// holds reports whether what let the connection in is still given.
	holds func() bool
	// ctx ends with the connection.
	ctx    context.Context
	cancel context.CancelFunc
	// lastChance is the deadline of the last messages; it belongs to the writer.
	lastChance time.Time
	// reason is why the gateway closes the connection; nil if the client does.
	reason atomic.Pointer[closeReason]
	once   sync.Once
}

type closeReason struct {
	code int
	text string
}

var upgrader = websocket.Upgrader{
	HandshakeTimeout: closeWait,
	ReadBufferSize:   4 << 10,
	WriteBufferPool:  &sync.Pool{},
	WriteBufferSize:  4 << 10,
	// The origin is checked before the upgrade, with a text that says what to do.
	CheckOrigin: func(*http.Request) bool { return true },
}

// serveTarget admits a DevTools connection and serves it until it ends.
func (g *Gateway) serveTarget(w http.ResponseWriter, r *http.Request) {
	rest, node := strings.CutPrefix(r.URL.Path, nodePath)
	t, no := parseTarget(g.space, strings.TrimPrefix(rest, targetPath), r.URL.Query())
	if t.node = node; node && no == nil && t.source == "" {
		no = &refusal{http.StatusNotFound, "No such target id: " + rest}
	}
	if no != nil {
		plain(w, no.status, no.text)
		return
	}
	if err := g.access.CheckOrigin(r); err != nil {
		plain(w, http.StatusForbidden, err.Error())
		return
	}
	t.grant = access.GrantOf(r)
	if !t.admitted() {
		plain(w, http.StatusForbidden, "Your token does not allow to see "+t.title()+".")
		return
	}
	if !websocket.IsWebSocketUpgrade(r) {
		plain(w, http.StatusUpgradeRequired, "This is the WebSocket of a DevTools target. The links that open DevTools on it are at /.")
		return
	}
	if no := g.enter(t.grant.Name); no != nil {
		plain(w, no.status, no.text)
		return
	}
	defer g.leave(t.grant.Name)
	bw := &burstResponse{ResponseWriter: w}
	ws, err := upgrader.Upgrade(bw, r, nil)
	if err != nil {
		g.log.Debug("not a DevTools connection", "remote", r.RemoteAddr, "error", err)
		return
	}
	c := &conn{ws: ws, burst: bw.conn, queue: newQueue(g.bounds), remote: r.RemoteAddr, frontend: r.Header.Get("Origin") != "", holds: access.Holds(r)}
	c.ctx, c.cancel = context.WithCancel(g.ctx)
	g.serve(c, t)
}

// serve runs a connection: this goroutine reads, another one writes.
func (g *Gateway) serve(c *conn, t target) {
	s := newSession(g, c, t)
	g.hub.add(s)
	written := make(chan struct{})
	go func() {
		defer close(written)
		c.write()
	}()
	c.read(s.handle)

	g.hub.remove(s)
	if g.ctx.Err() != nil {
		c.end(websocket.CloseGoingAway, reasonStopping)
	}
	c.cancel()
	s.overlay.lanes.end()
	s.endSources()
	// A write that a stalled client blocks must not outlive the connection by much.
	_ = c.burst.Conn.SetWriteDeadline(time.Now().Add(closeWait))
	s.slow.Wait()
	if g.realms != nil {
		g.realms.CloseSession(s.id)
	}
	c.queue.close()
	<-written
	_ = c.ws.Close()
}

// read hands every message to handle until the connection ends.
func (c *conn) read(handle func([]byte)) {
	stop := context.AfterFunc(c.ctx, func() {
		// The gateway closes: the reader wakes up, the writer says goodbye.
		_ = c.ws.SetReadDeadline(time.Now())
	})
	defer stop()
	c.ws.SetReadLimit(readLimit)
	alive := func(string) error {
		_ = c.ws.SetReadDeadline(time.Now().Add(pongWait))
		// The deadline that ends the connection may have been the one before.
		return c.ctx.Err()
	}
	c.ws.SetPongHandler(alive)
	for {
		if alive("") != nil {
			return
		}
		_, message, err := c.ws.ReadMessage()
		if err != nil {
			return
		}
		handle(message)
		for c.queue.full() {
			select {
			case <-c.queue.room:
			case <-c.ctx.Done():
				return
			}
		}
	}
}

// write sends what is queued, one socket write for what is there at once, until
// the queue closes or the client does not take it.
func (c *conn) write() {
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		select {
		case <-c.queue.ready:
		case <-ping.C:
			if err := c.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeWait)); err != nil {
				c.fail()
			}
			continue
		}
		messages, closed := c.queue.take()
		if err := c.send(messages); err != nil {
			c.fail()
		}
		c.queue.sent()
		if closed {
			c.sayGoodbye()
			return
		}
	}
}

// send writes one burst.
func (c *conn) send(messages []message) error {
	if len(messages) == 0 {
		return nil
	}
	c.burst.hold()
	var err error
	for _, m := range messages {
		data := m.bytes()
		_ = c.ws.SetWriteDeadline(c.deadline(len(data)))
		if err = c.ws.WriteMessage(websocket.TextMessage, data); err != nil {
			break
		}
	}
	return errors.Join(err, c.burst.release())
}

// deadline returns until when the next message, of size bytes, must be taken. Once the
// connection ends, all that is left shares one deadline.
func (c *conn) deadline(size int) time.Time {
	now := time.Now()
	if c.ctx.Err() == nil {
		// A body of many megabytes is one message, which a distant client may take some time to accept.
		return now.Add(writeWait + time.Duration(size/slowest)*time.Second)
	}
	if c.lastChance.IsZero() {
		c.lastChance = now.Add(closeWait)
	}
	return c.lastChance
}

// fail ends a connection whose client does not take what is sent.
func (c *conn) fail() {
	c.queue.close()
	c.cancel()
	// Nothing can be said to this client any more.
	_ = c.burst.Conn.SetDeadline(time.Now())
}

// end closes the connection with a reason that DevTools shows. It never blocks.
func (c *conn) end(status int, text string) {
	c.once.Do(func() {
		c.reason.Store(&closeReason{status, text})
		c.queue.answer(encodeEvent("Inspector.detached", detachedEvent{Reason: text}))
		c.cancel()
	})
}

// sayGoodbye sends the close frame. Its reason is cut to what a control frame holds.
func (c *conn) sayGoodbye() {
	status, text := websocket.CloseNormalClosure, ""
	if r := c.reason.Load(); r != nil {
		status, text = r.code, r.text
	}
	text = cut(text, 120)
	_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(status, text), time.Now().Add(closeWait))
}

// cut returns the longest prefix of s of at most n bytes that ends with a whole character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}
