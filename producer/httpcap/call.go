package httpcap

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

const (
	// dataEvery is the least time between two dataReceived records of one request, in milliseconds.
	dataEvery = 100
	// dataBytes is how many received bytes are told at once, however soon after the last ones.
	dataBytes = 64 << 10
)

// requests numbers the requests of the process, so that ids are unique in a
// generation no matter how many transports share its producer.
var requests atomic.Uint64

func nextID() network.RequestID {
	var b [20]byte
	return network.RequestID(strconv.AppendUint(append(b[:0], "http-"...), requests.Add(1), 36))
}

// call is one captured request. Its records go out in the order in which its
// methods take the mutex: the sink only enqueues, so it is called with the
// mutex held.
type call struct {
	sink    sink
	id      network.RequestID
	began   float64
	ctx     context.Context
	cancel  <-chan struct{}
	secrets secrets
	bodies  func(mediaType string) bool // which bodies are captured; nil for none
	upload  *upload                     // nil for a request without a body

	// ended is set once, under mu, and read without it where that saves a lock.
	ended atomic.Bool

	mu      sync.Mutex // guards everything below, and upload's fields
	timing  timing
	body    bodySink // nil until headers came, and for responses without a body
	limit   int64    // how much of the response body is captured
	size    int64    // announced size of the response body, -1 if unknown
	total   int64    // bytes that the application has read
	pending int64    // read, but not yet told
	told    float64  // time of the last dataReceived record, or of the headers
	timer   *time.Timer
	armed   bool
	events  *eventParser // nil for everything but event streams
	upgrade bool         // a Socket tells of the connection
	cleanup runtime.Cleanup
	watched bool
}

// init prepares a zero call. It is no constructor, so that what a client or a
// server adds to a call is one piece of memory with it.
func (c *call) init(s sink, req *http.Request, bodies func(mediaType string) bool) {
	c.sink, c.id, c.began, c.size = s, nextID(), s.Now(), -1
	c.ctx, c.cancel = req.Context(), cancelChannel(req)
	c.secrets, c.bodies = newSecrets(req.URL, s.Redactor()), bodies
	c.timing.reset()
	if req.Body != nil && req.Body != http.NoBody {
		c.upload = newUpload(c, req)
	}
}

// capture starts the capture of one body with the given Content-Type and Content-Encoding.
func (c *call) capture(d subjects.Direction, contentType, encoding string) bodySink {
	mediaType, _ := mediaType(contentType)
	if c.bodies == nil || !c.bodies(mediaType) {
		return uncaptured{}
	}
	b := c.sink.Body(c.id, d)
	if !c.secrets.rules.Concerns(mediaType) {
		return b
	}
	return &checkedBody{bodySink: b, rules: c.secrets.rules, contentType: contentType, encoded: isEncoded(encoding)}
}

// isEncoded reports whether a body with the given Content-Encoding is encoded.
func isEncoded(v string) bool {
	return v != "" && !strings.EqualFold(v, "identity")
}

// brokenText ends a request whose capture met a bug of this package.
const brokenText = "natscope failed to capture this request; the request itself went on"

// contain is deferred by every method that the application's or net/http's
// goroutines call, with mu held: a bug in here costs the record, not the request.
func (c *call) contain() {
	if recover() == nil {
		return
	}
	first := !c.ended.Swap(true)
	defer func() { _ = recover() }()
	c.sink.Lost(subjects.PlaneNet, 1)
	if first {
		e := newEncoder()
		e.failure(&network.Error{ID: c.id, Text: brokenText})
		c.record(network.TopicError, c.sink.Now(), e)
	}
}

// open records the start. No other goroutine knows the call yet.
func (c *call) open(req *http.Request, stack []*frame) {
	s := network.Start{
		ID:         c.id,
		Direction:  network.Outgoing,
		Method:     req.Method,
		URL:        c.secrets.url(req.URL),
		Type:       requestType(req),
		Trace:      text(req.Header.Get("Traceparent")),
		RedirectOf: redirects.of(req, c.sink),
	}
	if s.Method == "" {
		s.Method = http.MethodGet
	}
	if c.upload != nil {
		s.HasBody, s.BodyBytes = true, c.upload.size
	}
	e := newEncoder()
	s.Headers = e.list(req.Header, c.secrets)
	e.start(&s, stack)
	c.record(network.TopicStart, c.began, e)
}

// headers records the response. A response without a body ends here.
func (c *call) headers(resp *http.Response, hasBody bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.contain()
	if c.ended.Load() {
		return
	}
	if c.upload != nil {
		c.upload.returned()
	}
	now := c.sink.Now()
	r := network.Response{
		ID:         c.id,
		Status:     resp.StatusCode,
		StatusText: statusText(resp),
		Protocol:   protocolName(resp.Proto, resp.ProtoMajor),
		HasBody:    hasBody && !c.upgrade,
		RemoteIP:   c.timing.remoteIP,
		RemotePort: c.timing.remotePort,
		TLS:        tlsDetails(resp.TLS),
		Reused:     c.timing.reused,
	}
	r.MIMEType, r.Charset = mediaType(resp.Header.Get("Content-Type"))
	if c.timing.sent != nil {
		r.RequestHeaders = c.timing.sent
	}
	e := newEncoder()
	c.timing.phases(&e.phases, c.began, now)
	r.Timing = &e.phases
	r.Headers = e.list(resp.Header, c.secrets)
	e.response(&r)
	c.record(network.TopicResponse, now, e)
	c.told = now
	if !hasBody {
		c.end(network.End{}, subjects.BodyComplete)
		return
	}
	c.size = resp.ContentLength
	if c.upgrade {
		c.size = -1
	}
	if c.upgrade && resp.StatusCode == http.StatusSwitchingProtocols {
		return // its messages are told
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		// What follows is another protocol in both directions: its size is told, its bytes are not.
		c.body, c.size = uncaptured{}, -1
		return
	}
	if r.MIMEType == "text/event-stream" && !isEncoded(resp.Header.Get("Content-Encoding")) {
		c.events = &eventParser{emit: c.message}
	}
	c.body, c.limit = c.capture(subjects.ResponseBody, resp.Header.Get("Content-Type"), resp.Header.Get("Content-Encoding")), c.sink.Limits().ResponseBodyBytes
}

// watch keeps the cleanup that ends the request if the application drops the body.
func (c *call) watch(cleanup runtime.Cleanup) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cleanup, c.watched = cleanup, true
}

// guard runs f with mu held, unless the request has ended.
func (c *call) guard(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.contain()
	if !c.ended.Load() {
		f()
	}
}

// message records one server-sent event, as the rules want it. The caller holds mu.
func (c *call) message(m network.Message) {
	if c.secrets.rules.InBodies() {
		data, changed := c.secrets.rules.Message([]byte(m.Data), m.Bytes > 0)
		if changed {
			m.Data = text(string(data))
		}
	}
	c.tellMessage(m)
}

// tellMessage records one message. Its id is filled in here. The caller holds mu.
func (c *call) tellMessage(m network.Message) {
	m.ID = c.id
	e := newEncoder()
	e.message(&m)
	c.record(network.TopicMessage, c.sink.Now(), e)
}

// read observes one Read of the response body: n bytes in p, and its error. At
// the end of the body trailer is what came behind it.
func (c *call) read(p []byte, n int, err error, trailer http.Header) {
	if c.ended.Load() || n == 0 && err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.contain()
	if c.ended.Load() {
		return
	}
	if n > 0 {
		if c.total < c.limit {
			c.body.Write(p[:n])
		}
		c.received(int64(n))
		if c.events != nil {
			c.events.write(p[:n])
		}
	}
	if err != nil {
		c.stop(err, trailer)
	}
}

// received counts bytes and tells of them now or, by a timer, within dataEvery.
func (c *call) received(n int64) {
	c.total += n
	c.pending += n
	now := c.sink.Now()
	if c.pending >= dataBytes || now-c.told >= dataEvery || c.total == c.size {
		c.tell(now)
		return
	}
	if c.armed {
		return
	}
	c.armed = true
	wait := time.Duration((dataEvery - (now - c.told)) * float64(time.Millisecond))
	if c.timer == nil {
		c.timer = time.AfterFunc(wait, c.late)
	} else {
		c.timer.Reset(wait)
	}
}

// late is the timer's function: it tells of bytes that came soon after others.
func (c *call) late() {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.contain()
	c.armed = false
	if !c.ended.Load() && c.pending > 0 {
		c.tell(c.sink.Now())
	}
}

// tell records the pending bytes.
func (c *call) tell(now float64) {
	e := newEncoder()
	e.dataReceived(&network.DataReceived{ID: c.id, Bytes: c.pending})
	c.record(network.TopicDataReceived, now, e)
	c.pending, c.told = 0, now
}

// stop ends a request whose body returned an error, io.EOF included.
func (c *call) stop(err error, trailer http.Header) {
	if err == io.EOF {
		c.end(network.End{Trailers: headerList(nil, trailer, c.secrets)}, subjects.BodyComplete)
		return
	}
	c.end(network.End{Error: c.secrets.error(err), Canceled: c.isCanceled(err)}, subjects.BodyAborted)
}

// closed observes that the application closed the response body.
func (c *call) closed() {
	if c.ended.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.contain()
	switch {
	case c.ended.Load():
	case c.size >= 0 && c.total >= c.size:
		c.end(network.End{}, subjects.BodyComplete)
	default:
		c.end(network.End{Canceled: true}, subjects.BodyAborted)
	}
}

// dropped ends a request whose body the garbage collector found, neither read to its end nor closed.
func (c *call) dropped() {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.contain()
	if !c.ended.Load() {
		c.end(network.End{Error: "the application dropped the response body without closing it", Canceled: true}, subjects.BodyAborted)
	}
}

// end records the one ending of a request that got headers. The caller holds mu.
func (c *call) end(v network.End, reason string) {
	if c.pending > 0 {
		c.tell(c.sink.Now())
	}
	if c.upload != nil {
		c.upload.end(subjects.BodyAborted)
	}
	if c.body != nil {
		v.Captured, v.Truncated, v.Redacted = endBody(c.body, reason, c.total)
	}
	v.ID, v.Bytes = c.id, c.total
	e := newEncoder()
	e.end(&v)
	c.record(network.TopicEnd, c.sink.Now(), e)
	c.over()
}

// fail records the one ending of a request that got no headers.
func (c *call) fail(text string, canceled bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.contain()
	if !c.ended.Load() {
		c.failNow(text, canceled)
	}
}

// failNow is fail for a caller that holds mu.
func (c *call) failNow(text string, canceled bool) {
	if c.body != nil {
		c.body.End(subjects.BodyAborted, c.total)
	}
	if c.upload != nil {
		c.upload.end(subjects.BodyAborted)
	}
	e := newEncoder()
	e.failure(&network.Error{ID: c.id, Text: text, Canceled: canceled})
	c.record(network.TopicError, c.sink.Now(), e)
	c.over()
}

// over releases what an ended request needs no more.
func (c *call) over() {
	c.ended.Store(true)
	if c.timer != nil {
		c.timer.Stop()
	}
	if c.watched {
		c.cleanup.Stop()
	}
}

// record gives one payload to the sink and returns the encoder to its pool.
func (c *call) record(topic string, t float64, e *encoder) {
	c.sink.RecordAt(subjects.PlaneNet, topic, t, e.b)
	e.free()
}

// isCause is errors.Is without its panics on odd error types.
func isCause(err, target error) (is bool) {
	defer func() { _ = recover() }()
	return errors.Is(err, target)
}

// errorText is err.Error without its panics.
func errorText(err error) (s string) {
	defer func() {
		if recover() != nil {
			s = "an error whose Error method panics"
		}
	}()
	return text(err.Error())
}

// cancelChannel returns the request's own cancel channel. It is deprecated, but
// http.Client's Timeout still uses it with transports that it does not know.
func cancelChannel(req *http.Request) <-chan struct{} {
	//lint:ignore SA1019 It is read only, for the transports of others that still set it.
	return req.Cancel
}
