package ingest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/producer/client"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/source"
)

// ErrOptions says that Options cannot be used. The text around it names the field.
var ErrOptions = errors.New("ingest: bad options")

// Options configures a Server.
type Options struct {
	// Conn carries the records of every page. Required. It stays open at Close.
	Conn *nats.Conn
	// Space is where the pages' sources appear; default subjects.DefaultSpace.
	Space subjects.Space
	// Limits bounds bodies, queues and trees of each page.
	Limits subjects.Limits
	// Token is what a page must offer: 1 to 256 letters, digits, "-", "_" and
	// ".". Empty makes a random one, which Token returns.
	Token string
	// Origins lists exact origins, such as "https://shop.example", that are
	// admitted besides those of this machine.
	Origins []string
	// Resume is how long a page may be without connection before its source
	// closes; default 5 s.
	Resume time.Duration
	// MaxPages bounds the connections; default 256.
	MaxPages int
	// Logger is where admissions and rejections are told; nil is silent.
	Logger *slog.Logger
}

// Stats counts what a Server did.
type Stats struct {
	// Pages is how many sessions there are now, Connections how many sockets.
	Pages, Connections int
	// Admitted and Resumed count welcomes, Rejected the refusals and forced ends by code.
	Admitted, Resumed uint64
	Rejected          map[string]uint64
	// Messages counts messages that were taken, Repeated those that were known
	// already, Malformed those that could not be read, Gaps skips in their numbers.
	Messages, Repeated, Malformed, Gaps uint64
}

// Server admits pages. Its methods are safe for concurrent use.
type Server struct {
	o       Options
	log     *slog.Logger
	handler http.Handler
	rate    pageRate
	// stopping ends when Close begins.
	stopping context.Context
	stop     context.CancelFunc

	wg sync.WaitGroup // readers and closers

	mu      sync.Mutex // guards everything below
	closed  bool
	conns   map[*conn]bool
	byRealm map[source.RealmID]*session
	byID    map[subjects.SourceID]*session
	stats   Stats
}

// New returns a server that admits pages until Close. The error wraps ErrOptions.
func New(o Options) (*Server, error) {
	if o.Conn == nil {
		return nil, fmt.Errorf("%w: Conn is nil; pages need a NATS connection to publish through", ErrOptions)
	}
	if o.Token == "" {
		o.Token = strings.ToLower(rand.Text())
	}
	if !validToken(o.Token) {
		return nil, fmt.Errorf("%w: Token must be 1 to 256 letters, digits, dashes, underscores or dots", ErrOptions)
	}
	for _, origin := range o.Origins {
		if !strings.Contains(origin, "://") || strings.HasSuffix(origin, "/") {
			return nil, fmt.Errorf("%w: origin %q is none; write scheme, host and port, as in https://shop.example:8443", ErrOptions, origin)
		}
	}
	if o.Space == "" {
		o.Space = subjects.DefaultSpace
	}
	if !subjects.IsToken(string(o.Space)) {
		return nil, fmt.Errorf("%w: Space %q: %w", ErrOptions, o.Space, subjects.ErrToken)
	}
	o.Limits = o.Limits.WithDefaults()
	if o.Resume == 0 {
		o.Resume = 5 * time.Second
	}
	if o.MaxPages == 0 {
		o.MaxPages = 256
	}
	s := &Server{
		o:       o,
		log:     o.Logger,
		conns:   make(map[*conn]bool),
		byRealm: make(map[source.RealmID]*session),
		byID:    make(map[subjects.SourceID]*session),
		stats:   Stats{Rejected: make(map[string]uint64)},
		rate:    defaultRate,
	}
	s.stopping, s.stop = context.WithCancel(context.Background())
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.handler = s.routes(client.Files())
	return s, nil
}

// Token returns the token that pages must offer.
func (s *Server) Token() string { return s.o.Token }

// Handler serves /ingest, /client.js and /client/. It checks Origin itself; the
// Host check of every route belongs to whoever mounts it.
func (s *Server) Handler() http.Handler { return s.handler }

// Stats returns what the server did so far.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.Pages, st.Connections = len(s.byID), len(s.conns)
	st.Rejected = make(map[string]uint64, len(s.stats.Rejected))
	for k, v := range s.stats.Rejected {
		st.Rejected[k] = v
	}
	return st
}

// Close tells every page that the server stops, closes their sources and waits
// for both until ctx ends. It is idempotent.
func (s *Server) Close(ctx context.Context) error {
	s.stop()
	s.mu.Lock()
	s.closed = true
	var sessions []*session
	for _, x := range s.byID {
		sessions = append(sessions, x)
	}
	var conns []*conn
	for c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	for _, c := range conns {
		c.finish(Rejected{Code: CodeClosing, Reason: "the natscope server stops", Retry: true})
	}
	for _, x := range sessions {
		x.end("the natscope server stopped")
	}
	done := make(chan struct{})
	go func() { s.wg.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		for _, c := range conns {
			c.abort()
		}
		return fmt.Errorf("ingest: close: pages were still being flushed: %w", ctx.Err())
	}
}

// count changes the statistics.
func (s *Server) count(f func(*Stats)) {
	s.mu.Lock()
	f(&s.stats)
	s.mu.Unlock()
}
