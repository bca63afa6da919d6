package muxtree

import (
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/natscope/natscope/producer/treecap"
)

// Mux is an http.ServeMux whose routes are shown. Register them with its own
// Handle and HandleFunc; those that are registered with the embedded ServeMux work
// as well and are not shown.
type Mux struct {
	*http.ServeMux
	parent *treecap.Node
}

// New shows the routes that will be registered as children of parent. A nil mux
// means a new one.
func New(parent *treecap.Node, mux *http.ServeMux) *Mux {
	if mux == nil {
		mux = http.NewServeMux()
	}
	return &Mux{mux, parent}
}

// Handle registers a handler for a pattern, as http.ServeMux does, and panics as
// that does when the pattern is malformed or taken. The route's node says where
// the handler is defined, or for one that is no function, where Handle was called.
func (m *Mux) Handle(pattern string, handler http.Handler) {
	if f, ok := handler.(http.HandlerFunc); ok && f != nil {
		m.handle(pattern, handler, treecap.Func(f))
		return
	}
	m.handle(pattern, handler, here())
}

// HandleFunc registers a function for a pattern, as http.ServeMux does, and panics
// as that does when the pattern is malformed or taken, or the function is nil.
func (m *Mux) HandleFunc(pattern string, handler func(http.ResponseWriter, *http.Request)) {
	if handler == nil {
		panic("http: nil handler")
	}
	m.handle(pattern, http.HandlerFunc(handler), treecap.Func(handler))
}

// here is where the caller's caller is.
func here() treecap.Option {
	_, file, line, ok := runtime.Caller(2)
	if !ok {
		return func(*treecap.Node) {}
	}
	return treecap.Loc(file + ":" + strconv.Itoa(line))
}

func (m *Mux) handle(pattern string, handler http.Handler, loc treecap.Option) {
	if handler == nil {
		panic("http: nil handler")
	}
	r := &route{handler: handler}
	// Requests may come before the node is there. They wait for it, shortly.
	r.mu.Lock()
	defer r.mu.Unlock()
	m.ServeMux.Handle(pattern, r)
	options := []treecap.Option{loc}
	if method, rest, ok := strings.Cut(pattern, " "); ok {
		options = append(options, treecap.Attr("method", method))
		pattern = strings.TrimLeft(rest, " \t")
	}
	r.node = m.parent.Add("route", append(options, treecap.Attr("pattern", pattern), treecap.Attr("count", 0))...)
}

// route counts the requests of one pattern.
type route struct {
	handler http.Handler

	mu            sync.Mutex // guards all below
	node          *treecap.Node
	count, active int
}

// ServeHTTP implements http.Handler.
func (r *route) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	start := time.Now()
	r.begin()
	rec := &recorder{ResponseWriter: w}
	finished := false
	defer func() { r.end(rec, finished, time.Since(start)) }()
	r.handler.ServeHTTP(rec.writer(), req)
	finished = true
}

func (r *route) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	r.active++
	r.node.Set("count", r.count)
	r.node.Set("active", r.active)
}

// end shows how a request ended. The panic of one that did not finish goes on its way.
func (r *route) end(rec *recorder, finished bool, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active--
	r.node.Set("active", r.active)
	if finished {
		r.node.Set("status", rec.final())
	} else {
		r.node.Set("status", "panic")
	}
	r.node.Set("took", took.Round(10*time.Microsecond))
}
