package ingest

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

const (
	// writeWait is how long one write may take before the page counts as stuck.
	writeWait = 10 * time.Second
	// pingEvery is the time between two WebSocket pings, which the browser's
	// network stack answers even while the page sleeps.
	pingEvery = 15 * time.Second
	// readWait is how long a silent socket lives.
	readWait = 3 * pingEvery
	// closeWait is how long a page has to answer a close frame.
	closeWait = time.Second
	// maxOutgoing bounds the messages that wait for one page. Acks are not
	// among them, so only a page that reads nothing gets here.
	maxOutgoing = 256
)

// conn is one socket. Its writer goroutine alone writes messages to it; the
// answers to a peer's control frames are gorilla's and safe beside it.
type conn struct {
	ws   *websocket.Conn
	wake chan struct{} // tells the writer that there is something to do
	done chan struct{} // closed when the reader has ended

	mu     sync.Mutex // guards everything below
	out    [][]byte
	ack    uint64 // the newest number to acknowledge, 0 if there is none
	final  *Rejected
	probes []chan struct{} // closed at the next pong
}

func newConn(ws *websocket.Conn) *conn {
	return &conn{ws: ws, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

// send enqueues one message. A page that lets too many pile up is cut off.
func (c *conn) send(v any) {
	data, err := json.Marshal(v)
	if err != nil {
		return
	}
	c.mu.Lock()
	stuck := len(c.out) >= maxOutgoing
	if !stuck && c.final == nil {
		c.out = append(c.out, data)
	}
	c.mu.Unlock()
	if stuck {
		c.abort()
		return
	}
	c.signal()
}

// acknowledge enqueues an acknowledgement; only the newest goes out.
func (c *conn) acknowledge(n uint64) {
	c.mu.Lock()
	c.ack = max(c.ack, n)
	c.mu.Unlock()
	c.signal()
}

// finish sends a rejection after everything that is enqueued, and closes the socket.
func (c *conn) finish(r Rejected) {
	r.Type = MsgRejected
	c.mu.Lock()
	if c.final == nil {
		c.final = &r
	}
	c.mu.Unlock()
	c.signal()
}

// abort closes the socket without a word.
func (c *conn) abort() { _ = c.ws.Close() }

// answers asks the page for a sign of life and reports whether it gave one in time.
func (c *conn) answers(wait time.Duration) bool {
	heard := make(chan struct{})
	c.mu.Lock()
	c.probes = append(c.probes, heard)
	c.mu.Unlock()
	c.send(map[string]string{"type": MsgPing})
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-heard:
		return true
	case <-c.done:
	case <-t.C:
	}
	return false
}

// pong ends every wait for a sign of life.
func (c *conn) pong() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.probes {
		close(p)
	}
	c.probes = nil
}

func (c *conn) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// take returns what the writer has to do now.
func (c *conn) take() (out [][]byte, ack uint64, final *Rejected) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out, ack, final = c.out, c.ack, c.final
	c.out, c.ack = nil, 0
	return out, ack, final
}

// write is the writer goroutine. It ends with the reader, with the first failed
// write, or after the final message.
func (c *conn) write() {
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		select {
		case <-c.done:
			return
		case <-ping.C:
			if c.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeWait)) != nil {
				c.abort()
				return
			}
		case <-c.wake:
			if more := c.drain(); !more {
				return
			}
		}
	}
}

// drain writes everything that waits and reports whether the socket goes on.
func (c *conn) drain() bool {
	out, ack, final := c.take()
	for _, data := range out {
		if !c.text(data) {
			return false
		}
	}
	if ack > 0 {
		data, _ := json.Marshal(Ack{Type: MsgAck, N: ack})
		if !c.text(data) {
			return false
		}
	}
	if final == nil {
		return true
	}
	data, _ := json.Marshal(final)
	if c.text(data) {
		code := websocket.ClosePolicyViolation
		if final.Retry {
			code = websocket.CloseGoingAway
		}
		msg := websocket.FormatCloseMessage(code, closeReason(final.Reason))
		_ = c.ws.WriteControl(websocket.CloseMessage, msg, time.Now().Add(closeWait))
		c.linger()
	}
	return false
}

// linger gives the page some time to answer the close frame, and then closes the socket whatever it does.
func (c *conn) linger() {
	t := time.NewTimer(closeWait)
	defer t.Stop()
	select {
	case <-c.done:
	case <-t.C:
		c.abort()
	}
}

func (c *conn) text(data []byte) bool {
	_ = c.ws.SetWriteDeadline(time.Now().Add(writeWait))
	if c.ws.WriteMessage(websocket.TextMessage, data) != nil {
		c.abort()
		return false
	}
	return true
}

// closeReason cuts a reason to what fits into a close frame.
func closeReason(s string) string {
	const most = 123
	if len(s) <= most {
		return s
	}
	n := most
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}

func writeJSON(w io.Writer, v any) { _ = json.NewEncoder(w).Encode(v) }
