package cdpgw

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/cdpgw/access"
	"github.com/natscope/natscope/store/command"
	"github.com/natscope/natscope/subjects"
)

// Options configure a Gateway.
type Options struct {
	// State is the folded state to show. Required; it outlives the gateway.
	State State
	// Space is the space that State holds; subjects.DefaultSpace if empty.
	Space subjects.Space
	// Gateway names this process in audit records and session events, and no other
	// of the space; made from the space and chance if empty.
	Gateway subjects.GatewayID
	// Conn brings commands to the sources: edits, highlights, picks. Without it,
	// and without Commander, the gateway only shows. It outlives the gateway.
	Conn *nats.Conn
	// Commander does so in place of Conn.
	Commander Commander
	// Limits bounds deadlines and sizes; zero fields mean the defaults.
	Limits subjects.Limits
	// Access allows hosts and origins besides the safe ones.
	Access access.Policy
	// Tokens are the tokens that Handler asks for; nil means none.
	Tokens *access.Tokens
	// Grant is what Handler lets everybody do where no token is needed; the zero Grant means everything.
	Grant access.Grant
	// External is the address under which clients reach the gateway, such as
	// "https://tools.example/natscope", when that is not what their Host header
	// says. Its host is allowed by itself.
	External string
	// Frontend is the directory of a built frontend of DevTools to serve at
	// /frontend/, which makes the links of the page of sources open by a click in
	// any browser; empty means none.
	Frontend string
	// MaxConnections bounds the DevTools connections; 4096 if zero or less.
	MaxConnections int
	// MaxPerToken bounds the DevTools connections of the holder of one token; 256 if zero or less.
	MaxPerToken int
	// Version is shown in /json/version; "dev" if empty.
	Version string
	// Logger takes what an operator should know; nil means silence.
	Logger *slog.Logger
}

// Gateway serves DevTools connections. It is safe for concurrent use.
type Gateway struct {
	state    State
	space    subjects.Space
	id       subjects.GatewayID
	limits   subjects.Limits
	access   access.Policy
	tokens   *access.Tokens
	grant    access.Grant
	external *url.URL
	// frontend is nil where none is served.
	frontend fs.FS
	version  string
	log      *slog.Logger
	mux      *http.ServeMux
	// commander is nil in a gateway that only shows.
	commander Commander
	// realms are the sessions at live realms; nil without a commander.
	realms *command.Sessions
	// sessions counts the sessions, whose ids are never used twice.
	sessions atomic.Int64
	counts   counters
	// deaf ends the listening to the sources' events.
	deaf func()

	hub *hub
	// copies holds a token for each copy of a document that somebody searches.
	copies chan struct{}
	// bounds are those of the outgoing queue of each connection.
	bounds load
	// ctx ends when the gateway closes.
	ctx    context.Context
	cancel context.CancelFunc

	maxConnections, maxPerToken int

	mu      sync.Mutex // guards all below
	closed  bool
	open    int
	holders map[string]int // open connections by the name of their token
	running sync.WaitGroup
}

// ErrOptions says that Options cannot be used; the text names the field.
var ErrOptions = errors.New("cdpgw: invalid options")

// New returns a gateway over a state. The error wraps ErrOptions.
func New(o Options) (*Gateway, error) {
	g := &Gateway{state: o.State, space: o.Space, id: o.Gateway, limits: o.Limits.WithDefaults(), access: o.Access, tokens: o.Tokens, grant: o.Grant, version: o.Version, log: o.Logger, bounds: defaultBounds, copies: make(chan struct{}, maxCopies)}
	g.maxConnections, g.maxPerToken, g.holders = o.MaxConnections, o.MaxPerToken, make(map[string]int)
	if g.maxConnections <= 0 {
		g.maxConnections = defaultMaxConnections
	}
	if g.maxPerToken <= 0 {
		g.maxPerToken = defaultMaxPerToken
	}
	if g.state == nil {
		return nil, fmt.Errorf("%w: State is nil; pass the replica of the space", ErrOptions)
	}
	if g.space == "" {
		g.space = subjects.DefaultSpace
	}
	if !subjects.IsToken(string(g.space)) {
		return nil, fmt.Errorf("%w: Space %.80q: %w", ErrOptions, g.space, subjects.ErrToken)
	}
	if g.id == "" {
		// Answers and events find their way by it: no two gateways of a space share one.
		g.id = subjects.GatewayID(subjects.Token(string(g.space) + "-" + strings.ToLower(rand.Text()[:10])))
	}
	if g.version == "" {
		g.version = "dev"
	}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	g.log = g.log.With("gateway", string(g.id))
	if err := g.setExternal(o.External); err != nil {
		return nil, err
	}
	if o.Frontend != "" {
		var err error
		if g.frontend, err = openFrontend(o.Frontend); err != nil {
			return nil, err
		}
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.routes()
	g.hub = newHub(g.state)
	g.running.Go(g.revoke)
	if err := g.listen(o); err != nil {
		g.hub.close()
		g.cancel()
		return nil, err
	}
	return g, nil
}

// listen finds the way to the sources.
func (g *Gateway) listen(o Options) error {
	g.commander, g.deaf = o.Commander, func() {}
	if g.commander == nil && o.Conn != nil {
		c, err := command.New(o.Conn, g.space, g.id)
		if err != nil {
			return err
		}
		g.commander, g.deaf = c, c.Close
	}
	if g.commander == nil {
		return nil
	}
	stop, err := g.commander.Listen(g.sourceEvent)
	if err != nil {
		g.deaf()
		return err
	}
	g.realms = command.NewSessions(g.commander, g.id, g.sessionLost)
	hangUp := g.deaf
	g.deaf = func() {
		g.realms.Close()
		stop()
		hangUp()
	}
	return nil
}

func (g *Gateway) setExternal(external string) error {
	if external == "" {
		return nil
	}
	u, err := url.Parse(strings.TrimSuffix(external, "/"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%w: External %.200q is not an address such as https://tools.example/natscope", ErrOptions, external)
	}
	g.external = u
	g.access.Hosts = append(append([]string(nil), g.access.Hosts...), u.Hostname())
	g.access.Origins = append(append([]string(nil), g.access.Origins...), u.Scheme+"://"+u.Host)
	return nil
}

func (g *Gateway) routes() {
	g.mux = http.NewServeMux()
	g.mux.HandleFunc("/json", g.serveJSON)
	g.mux.HandleFunc("/json/", g.serveJSON)
	g.mux.HandleFunc(targetPath, g.serveTarget)
	g.mux.HandleFunc(nodePath, g.serveTarget)
	g.mux.HandleFunc(frontendPath, g.serveFrontend)
	g.mux.HandleFunc("/", g.serveIndex)
}

// Handler returns the HTTP handler of the gateway: /json and below,
// /devtools/page/ and the page of links at /. It checks Host, token and Origin itself.
func (g *Gateway) Handler() http.Handler {
	return access.Door{Policy: g.access, Tokens: g.tokens, Grant: g.grant, Logger: g.log}.Middleware(g.Routes())
}

// Routes returns the handler without its door, for whoever puts more behind the
// same one. A request that came through no access.Door sees and does nothing.
func (g *Gateway) Routes() http.Handler { return g.mux }

// The bounds of connections that apply where nothing else is said.
const (
	defaultMaxConnections = 4096
	defaultMaxPerToken    = 256
)

// enter counts a connection that begins, or returns why it may not. Whoever
// entered has to leave.
func (g *Gateway) enter(holder string) *refusal {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return &refusal{http.StatusServiceUnavailable, reasonStopping}
	case g.open >= g.maxConnections:
		return &refusal{http.StatusServiceUnavailable, fmt.Sprintf("This gateway has %d DevTools connections, which is as many as it takes. Close some, or use another gateway.", g.open)}
	case holder != "" && g.holders[holder] >= g.maxPerToken:
		return &refusal{http.StatusTooManyRequests, fmt.Sprintf("The token %s has %d DevTools connections, which is as many as one may have. Close some.", holder, g.holders[holder])}
	}
	g.open++
	if holder != "" {
		g.holders[holder]++
	}
	g.running.Add(1)
	return nil
}

// leave ends what enter began.
func (g *Gateway) leave(holder string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open--
	if g.holders[holder]--; g.holders[holder] <= 0 {
		delete(g.holders, holder)
	}
	g.running.Done()
}

// Close ends every connection, tells DevTools why, and waits for the
// connections' goroutines until ctx ends. It is idempotent.
func (g *Gateway) Close(ctx context.Context) error {
	g.mu.Lock()
	again := g.closed
	g.closed = true
	g.mu.Unlock()
	if !again {
		g.deaf()
		g.hub.close()
		g.cancel()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.running.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("cdpgw: close: connections still end: %w", ctx.Err())
	}
}
