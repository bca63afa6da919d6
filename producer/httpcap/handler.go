package httpcap

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"runtime"
	"strings"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// Handler returns a handler that does what next does and records every request
// that it serves with p: who asked for what, the route that matched, headers,
// bodies up to the producer's limits (Limits.RequestBodyBytes,
// Limits.ResponseBodyBytes), and how it ended. A nil next means
// http.DefaultServeMux; with a nil p nothing is recorded and next itself is
// returned.
//
// The ResponseWriter that next gets can do exactly what the server's own can:
// flush, hijack, push, send files, everything that http.ResponseController asks
// for. A panic is recorded and goes on. The one thing that no wrapper can pass on
// is a sign that http.MaxBytesReader gives to the server's own type, upon which
// the server closes the connection instead of reading the rest of the body.
//
// Wrap the outermost handler of a server, once. The route comes from
// http.ServeMux, wherever it is behind the handler, or from WithRoute. The end
// of a response is the return of next: what the server does afterwards is not seen.
func Handler(p *producer.Producer, next http.Handler, opts ...Option) http.Handler {
	if next == nil {
		next = http.DefaultServeMux
	}
	if p == nil {
		return next
	}
	return newHandler(producerSink{p}, next, opts...)
}

// handler is the capturing http.Handler.
type handler struct {
	sink sink
	next http.Handler
	options
}

func newHandler(s sink, next http.Handler, opts ...Option) *handler {
	h := &handler{sink: s, next: next, options: options{bodies: allBodies}}
	for _, o := range opts {
		o(&h.options)
	}
	return h
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := h.begin(w, r)
	if s == nil {
		h.next.ServeHTTP(w, r)
		return
	}
	returned := false
	defer func() {
		if returned {
			s.finish()
			return
		}
		// A panic, or runtime.Goexit, which recover does not stop. The frames of the
		// panic stay on the stack, so that whoever prints it still sees them.
		v := recover()
		s.broke(v)
		if v != nil {
			panic(v)
		}
	}()
	h.next.ServeHTTP(s.writer(), r)
	returned = true
}

// begin starts the record of a request, or returns nil when it is not captured.
// From here on the request's body is read through a tee.
func (h *handler) begin(w http.ResponseWriter, r *http.Request) (s *served) {
	opened := false
	defer func() {
		if recover() != nil {
			lost(h.sink)
			if opened {
				s.fail(brokenText, false)
			}
			s = nil
		}
	}()
	if r == nil || r.URL == nil || !h.wants(r, r.Host) {
		return nil
	}
	s = &served{w: w, req: r, route: h.route}
	s.init(h.sink, r, h.bodies)
	s.accept()
	opened = true
	if s.upload != nil {
		s.upload.serve(r)
	}
	// What is logged with the request's context belongs to it. The request stays
	// the one that the server and handlers before this one know.
	ctx := producer.InRequest(r.Context(), s.id, text(r.Header.Get("Traceparent")))
	if upgrades(r.Header) {
		// Whoever takes the connection over finds the record in the context.
		ctx = context.WithValue(ctx, servedKey{}, s)
		s.observe = h.sockets && isWebSocket(r.Header)
	}
	*r = *r.WithContext(ctx)
	return s
}

// servedKey is the key of a *served in the context of a request that wants another protocol.
type servedKey struct{}

// upgrades reports whether a request asks for another protocol on its connection.
func upgrades(h http.Header) bool { return len(h["Upgrade"]) > 0 }

// accept records the start of an incoming request.
func (s *served) accept() {
	r := s.req
	target := incomingURL(r)
	v := network.Start{
		ID:        s.id,
		Direction: network.Incoming,
		Method:    r.Method,
		URL:       s.secrets.url(&target),
		Type:      incomingType(r),
		Trace:     text(r.Header.Get("Traceparent")),
		Route:     s.routeNow(),
		Client:    text(r.RemoteAddr),
	}
	if s.upload != nil {
		v.HasBody, v.BodyBytes = true, s.upload.size
	}
	s.startRoute = v.Route
	e := newEncoder()
	// The server takes these lines out of the headers.
	if r.Host != "" {
		e.lines = append(e.lines[:0], network.Header{"Host", text(r.Host)})
	} else {
		e.lines = e.lines[:0]
	}
	if len(r.TransferEncoding) > 0 {
		e.lines = append(e.lines, network.Header{"Transfer-Encoding", text(strings.Join(r.TransferEncoding, ", "))})
	}
	e.lines = headerList(e.lines, r.Header, s.secrets)
	v.Headers = e.lines
	e.start(&v, nil)
	s.record(network.TopicStart, s.began, e)
}

// routeNow returns the route as far as it is known.
func (s *served) routeNow() string {
	if s.route != nil {
		return text(s.route(s.req))
	}
	return text(s.req.Pattern)
}

// incomingURL returns the whole URL of an incoming request.
func incomingURL(r *http.Request) url.URL {
	u := *r.URL
	if u.Host == "" {
		u.Host = r.Host
	}
	if u.Scheme == "" && u.Host != "" {
		if u.Scheme = "http"; r.TLS != nil {
			u.Scheme = "https"
		}
	}
	return u
}

// incomingType says what kind of request a browser says it is; other clients fetch.
func incomingType(r *http.Request) string {
	switch {
	case strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
		return "websocket"
	case r.Header.Get("Sec-Fetch-Dest") == "document", r.Header.Get("Sec-Fetch-Dest") == "iframe":
		return "document"
	case strings.HasPrefix(r.Header.Get("Accept"), "text/event-stream"):
		return "eventsource"
	}
	return "fetch"
}

// maxBytesReader is the type that http.Request.ParseForm treats as a limit that the application set.
var maxBytesReader = reflect.TypeOf(http.MaxBytesReader(nil, nil, 0))

// serve makes the handlers of r read its body through a tee.
func (u *upload) serve(r *http.Request) {
	u.current = &uploadReader{rc: r.Body, upload: u}
	if reflect.TypeOf(r.Body) == maxBytesReader {
		r.Body = http.MaxBytesReader(nil, u.current, 1<<62)
		return
	}
	r.Body = u.current
}

// panicText says what a handler panicked with, and where. It runs in the
// deferred function of ServeHTTP.
func panicText(v any) (s string) {
	if v == http.ErrAbortHandler {
		return "the handler aborted the response"
	}
	if v == nil {
		return "the handler ended its goroutine"
	}
	defer func() {
		if recover() != nil {
			s = "panic with a value that cannot be printed"
		}
	}()
	s = text(fmt.Sprintf("panic: %.2000v", v))
	var pcs [maxDepth]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for panicked := false; ; {
		f, more := frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			panicked = true
		case panicked && !strings.HasPrefix(f.Function, "runtime."):
			return fmt.Sprintf("%s in %s (%s:%d)", s, f.Function, f.File, f.Line)
		}
		if !more {
			return s
		}
	}
}

// lost counts a record that a bug in here has cost.
func lost(s sink) {
	defer func() { _ = recover() }()
	s.Lost(subjects.PlaneNet, 1)
}
