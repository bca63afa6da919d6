package httpcap

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// Socket tells of a WebSocket connection whose bytes it sees pass. Its methods do
// nothing on a nil Socket. Fields are guarded by the call's mutex.
type Socket struct {
	call *call
	// in and out are what comes from the peer and what goes to it.
	in, out frameParser
	// opened says that the response was recorded; before, messages wait in held.
	opened bool
	held   []network.Message
	// closed says that a close frame has passed.
	closed bool
}

// maxHeld is how many messages wait for the response to be recorded.
const maxHeld = 64

func newSocket(c *call) *Socket {
	s := &Socket{call: c}
	s.in.emit = func(m wsMessage) { s.message(false, m) }
	s.out.emit = func(m wsMessage) { s.message(true, m) }
	return s
}

// Observe makes the WebSocket of an incoming request visible message by message,
// if a Handler of this package records the request. Call it before the connection
// is taken over: the library that does so then gets a net.Conn which is not the
// server's own type, but tells it by its method NetConn. Packages gorillacap and
// codercap do this; so does the option WithWebSockets for all requests.
func Observe(r *http.Request) {
	s, _ := r.Context().Value(servedKey{}).(*served)
	if s == nil || !isWebSocket(r.Header) {
		return
	}
	s.guard(func() { s.observe = !s.hijacked })
}

// isWebSocket reports whether the headers ask for, or agree to, a WebSocket.
func isWebSocket(h http.Header) bool { return strings.EqualFold(h.Get("Upgrade"), "websocket") }

// observed puts the connection that a handler took under observation. What the
// server has read of it already stays in the buffer.
func (s *served) observed(conn net.Conn, rw *bufio.ReadWriter) (net.Conn, *bufio.ReadWriter) {
	early, err := rw.Reader.Peek(rw.Reader.Buffered())
	if err != nil {
		return conn, rw
	}
	c := newSocketConn(s.socket, conn)
	r := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(bytes.Clone(early)), c), rw.Reader.Size())
	if len(early) > 0 {
		if _, err := r.Peek(len(early)); err != nil {
			return conn, rw
		}
		s.socket.pass(&s.socket.in, early)
	}
	return c, bufio.NewReadWriter(r, bufio.NewWriterSize(c, rw.Writer.Size()))
}

// Dial begins the record of a WebSocket that the program opens without an
// http.RoundTripper; for those with one, Transport is enough. url and h are those
// of the request. The caller dials with the returned context, wraps the
// connection with Conn and tells the outcome with Opened. The Socket is nil when
// the request is not captured.
func Dial(ctx context.Context, p *producer.Producer, url string, h http.Header, opts ...Option) (context.Context, *Socket) {
	if p == nil {
		return ctx, nil
	}
	return dial(ctx, producerSink{p}, url, h, opts...)
}

func dial(ctx context.Context, sink sink, url string, h http.Header, opts ...Option) (_ context.Context, s *Socket) {
	defer func() {
		if recover() != nil {
			lost(sink)
			s = nil
		}
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return ctx, nil
	}
	req.Header = h.Clone()
	if req.Header == nil {
		req.Header = make(http.Header)
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "websocket")
	t := newTransport(sink, nil, opts...)
	if !t.wants(req, req.URL.Host) {
		return ctx, nil
	}
	o := newOutgoing(sink, req, nil)
	c := &o.call
	c.upgrade = true
	var stack []*frame
	if t.stack {
		var buf [maxFrames]*frame
		stack = callers(buf[:0])
	}
	c.open(req, stack)
	return httptrace.WithClientTrace(ctx, o.trace()), newSocket(c)
}

// Conn returns conn under observation. Its method NetConn returns conn.
func (s *Socket) Conn(conn net.Conn) net.Conn {
	if s == nil {
		return conn
	}
	s.call.guard(func() {
		if s.call.timing.remoteIP == "" {
			s.call.timing.remoteIP, s.call.timing.remotePort = peer(conn.RemoteAddr())
		}
	})
	return newSocketConn(s, conn)
}

// Opened tells the outcome of a dial: the response to the request, if one came,
// or the error.
func (s *Socket) Opened(resp *http.Response, err error) {
	switch {
	case s == nil:
	case resp == nil:
		if err == nil {
			err = errors.New("no response")
		}
		s.call.fail(s.call.secrets.error(err), s.call.isCanceled(err))
	case err != nil:
		// The server answered something else, of which the caller sees the beginning.
		s.call.headers(resp, false)
	default:
		s.call.headers(resp, true)
		s.ready()
	}
}

// ready tells the messages that waited for the response.
func (s *Socket) ready() {
	s.call.guard(func() {
		s.opened = true
		for _, m := range s.held {
			s.call.tellMessage(m)
		}
		s.held = nil
	})
}

// pass observes bytes of one direction.
func (s *Socket) pass(p *frameParser, b []byte) {
	if len(b) == 0 || s.call.ended.Load() {
		return
	}
	s.call.guard(func() {
		p.write(b)
		if p == &s.in && s.opened {
			s.call.received(int64(len(b)))
		}
	})
}

// read observes what came from the peer. An error ends the record, but for a deadline of the application's.
func (s *Socket) read(b []byte, err error) {
	s.pass(&s.in, b)
	var timeout net.Error
	if err != nil && (!errors.As(err, &timeout) || !timeout.Timeout()) {
		s.end(err)
	}
}

// message tells one message. The caller holds the mutex.
func (s *Socket) message(sent bool, w wsMessage) {
	m := network.Message{Sent: sent, Opcode: w.op}
	data := w.data
	if w.op == opClose {
		s.closed = true
		if len(data) >= 2 {
			m.Code, data = int(binary.BigEndian.Uint16(data)), data[2:]
		}
	}
	cut := w.op < opClose && w.size > int64(len(data))
	if cut {
		m.Bytes = w.size
	}
	if data, _ = s.call.secrets.rules.Message(data, cut && !w.unread); cut && w.op == opText {
		data = wholeRunes(data)
	}
	switch {
	case w.op == opText, w.op == opClose, w.op > opClose && utf8.Valid(data):
		m.Data = wellFormed(data)
	default:
		m.Data, m.Base64 = base64.StdEncoding.EncodeToString(data), true
	}
	if !s.opened {
		if len(s.held) < maxHeld {
			s.held = append(s.held, m)
		}
		return
	}
	s.call.tellMessage(m)
}

// end ends the record: with an error unless the two sides have said goodbye. A
// connection that ends before the response is for Opened to tell.
func (s *Socket) end(err error) {
	s.call.guard(func() {
		if !s.opened {
			return
		}
		v, reason := network.End{}, subjects.BodyComplete
		switch {
		case s.closed:
		case err == nil:
			v.Error, v.Canceled, reason = "closed without a close frame", true, subjects.BodyAborted
		default:
			v.Error, reason = s.call.secrets.error(err), subjects.BodyAborted
		}
		s.call.end(v, reason)
	})
}

// socketConn is a connection under observation.
type socketConn struct {
	net.Conn
	s *Socket
}

func newSocketConn(s *Socket, conn net.Conn) *socketConn {
	c := &socketConn{conn, s}
	s.call.watch(runtime.AddCleanup(c, (*call).dropped, s.call))
	return c
}

// NetConn returns the connection that is observed.
func (c *socketConn) NetConn() net.Conn { return c.Conn }

// Read implements net.Conn.
func (c *socketConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.s.read(p[:max(n, 0)], err)
	runtime.KeepAlive(c)
	return n, err
}

// Write implements net.Conn.
func (c *socketConn) Write(p []byte) (int, error) {
	// Before it goes, so that no answer to it is told first. A write that fails ends the connection.
	c.s.pass(&c.s.out, p)
	n, err := c.Conn.Write(p)
	runtime.KeepAlive(c)
	return n, err
}

// Close implements net.Conn.
func (c *socketConn) Close() error {
	err := c.Conn.Close()
	c.s.end(nil)
	runtime.KeepAlive(c)
	return err
}
