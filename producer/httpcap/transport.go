package httpcap

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"runtime"
	"time"

	"github.com/natscope/natscope/producer"
)

// Transport returns a RoundTripper that does what next does and records every
// request with p. A nil next means http.DefaultTransport; with a nil p nothing
// is recorded and next itself is returned. Bodies are captured up to the
// producer's limits (Limits.RequestBodyBytes, Limits.ResponseBodyBytes) while
// the application sends and reads them; the messages of WebSockets are told one by one. The result is safe for concurrent use
// if next is, and has the method CloseIdleConnections, which calls next's.
func Transport(p *producer.Producer, next http.RoundTripper, opts ...Option) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	if p == nil {
		return next
	}
	if t, ok := next.(*transport); ok && t.sink == (producerSink{p}) && len(opts) == 0 {
		return next // it records already
	}
	return newTransport(producerSink{p}, next, opts...)
}

// transport is the capturing RoundTripper.
type transport struct {
	sink sink
	next http.RoundTripper
	options
}

func newTransport(s sink, next http.RoundTripper, opts ...Option) *transport {
	t := &transport{sink: s, next: next, options: options{bodies: allBodies, stack: true}}
	for _, o := range opts {
		o(&t.options)
	}
	return t
}

// CloseIdleConnections makes http.Client.CloseIdleConnections reach the wrapped transport.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	c, traced := t.begin(req)
	if c == nil {
		return t.next.RoundTrip(req)
	}
	// A panic of the wrapped transport is the application's to see; the request
	// still ends in the records, while the panic goes on.
	returned := false
	defer func() {
		if !returned {
			c.fail("the transport did not return", false)
		}
	}()
	resp, err := t.next.RoundTrip(traced)
	returned = true
	return t.finish(c, req, traced, resp, err)
}

// begin starts the record of a request and returns the request to send in its
// place. The call is nil when the request is not captured.
func (t *transport) begin(req *http.Request) (c *call, traced *http.Request) {
	opened := false
	defer func() {
		if recover() != nil {
			lost(t.sink)
			if opened {
				c.fail(brokenText, false)
			}
			c = nil
		}
	}()
	if req == nil || req.URL == nil {
		return nil, nil
	}
	if !t.wants(req, req.URL.Host) {
		return nil, nil
	}
	o := newOutgoing(t.sink, req, t.bodies)
	c = &o.call
	var stack []*frame
	if t.stack {
		var buf [maxFrames]*frame
		stack = callers(buf[:0])
	}
	c.open(req, stack)
	opened = true
	traced = req.WithContext(httptrace.WithClientTrace(req.Context(), o.trace()))
	if c.upload != nil && !c.upload.whole(req.Body) {
		c.upload.attach(req, traced)
	}
	return c, traced
}

// finish records what the wrapped transport returned and gives it to the
// application, with the body wrapped where one may follow.
func (t *transport) finish(c *call, req, traced *http.Request, resp *http.Response, err error) (*http.Response, error) {
	if resp != nil && resp.Request == traced {
		resp.Request = req
	}
	switch {
	case err != nil:
		c.fail(c.secrets.error(err), c.isCanceled(err))
	case resp == nil:
		c.fail("the transport returned neither a response nor an error", false)
	default:
		if body := c.respond(resp); body != nil {
			resp.Body = body
		}
	}
	return resp, err
}

// respond records the headers of a response and returns the body that the
// application shall read in place of resp.Body, or nil to leave it.
func (c *call) respond(resp *http.Response) io.ReadCloser {
	hasBody := resp.Body != nil && resp.Body != http.NoBody
	rw, upgraded := resp.Body.(io.ReadWriteCloser)
	upgraded = upgraded && resp.StatusCode == http.StatusSwitchingProtocols
	var socket *Socket
	if upgraded && isWebSocket(resp.Header) {
		c.upgrade = true
		socket = newSocket(c)
		socket.opened = true
	}
	redirects.note(resp, c.sink, c.id)
	c.headers(resp, hasBody)
	if !hasBody || c.ended.Load() {
		return nil
	}
	body := &responseBody{rc: resp.Body, call: c, resp: resp, socket: socket}
	c.watch(runtime.AddCleanup(body, (*call).dropped, c))
	if !upgraded {
		return body
	}
	up := &upgradedBody{responseBody: body, w: rw}
	if cw, ok := resp.Body.(closeWriter); ok {
		return &halfClosingBody{upgradedBody: up, cw: cw}
	}
	return up
}

// isCanceled reports whether err means that the application gave up, as opposed
// to a deadline that passed or a failure of the network.
func (c *call) isCanceled(err error) bool {
	if deadline, ok := c.ctx.Deadline(); ok && !time.Now().Before(deadline) {
		// http.Client's Timeout closes the cancel channel at the deadline, maybe a moment before the context ends.
		return false
	}
	switch ctxErr := c.ctx.Err(); ctxErr {
	case nil:
		select {
		case <-c.cancel:
			return true
		default:
			return isCause(err, context.Canceled)
		}
	case context.Canceled:
		return isCause(err, context.Canceled) || isCause(err, context.Cause(c.ctx))
	default:
		return false
	}
}
