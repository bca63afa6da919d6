package embedded

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/cdpgw"
	"github.com/natscope/natscope/cdpgw/access"
	"github.com/natscope/natscope/producer/ingest"
	"github.com/natscope/natscope/query/httpapi"
	"github.com/natscope/natscope/store"
	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/subjects"
)

// ErrUnreachable says that the NATS server that Options.NATS names does not answer.
var ErrUnreachable = errors.New("embedded: the NATS server does not answer")

// The addresses that are used when Options name none.
const (
	// DefaultHTTP is where the gateway listens; an occupied port advances.
	DefaultHTTP = "127.0.0.1:9230"
	// DefaultNATS is where the embedded nats-server listens; an occupied port advances.
	DefaultNATS = "127.0.0.1:4222"
)

// Options say what Start runs. The zero value keeps everything in memory and listens on the default ports.
type Options struct {
	// Space is the space to serve; empty means subjects.DefaultSpace.
	Space subjects.Space
	// Data is the directory of the embedded nats-server; empty means memory. One process at a time may use it.
	Data string
	// NATS is the URL of a server elsewhere; then none is embedded, and Data and NATSAddr mean nothing.
	NATS string
	// Conn is a connection to a server elsewhere, in place of NATS; it stays open at Close. ConnOptions has the options that it needs.
	Conn *nats.Conn
	// Hub is a server elsewhere that the embedded one joins as a leaf; then streams
	// and state are the hub's, and Data means nothing.
	Hub Hub
	// Parts says what to run; the zero value means everything.
	Parts Parts
	// NATSAddr is the loopback address of the embedded server's listener; empty means DefaultNATS, port 0 any port.
	NATSAddr string
	// HTTPAddr is the address of the gateway; empty means DefaultHTTP, port 0 any
	// port. One that is not a loopback address needs Tokens and one of TLS and BehindProxy.
	HTTPAddr string
	// TLS is what the gateway serves its connections with; nil means plain HTTP.
	TLS *tls.Config
	// BehindProxy says that a proxy which ends TLS stands between the gateway and
	// everybody else. External is the address that people use then.
	BehindProxy bool
	// External is the address under which people reach the gateway, such as
	// "https://tools.example/natscope", when it is not the one it listens on.
	External string
	// Tokens are the access tokens of the gateway; nil means that none is needed.
	Tokens *access.Tokens
	// Role is what everybody may do where no token is needed; empty means access.RoleDebug.
	Role access.Role
	// Frontend is the directory of a built frontend of DevTools, which makes links
	// open by a click in any browser; empty means none.
	Frontend string
	// Admin is the address of a second listener with /healthz, /readyz and /metrics
	// alone, without a door, for whoever watches the process; empty means none. It
	// shows counts and no contents.
	Admin string
	// Hosts are names besides localhost and IP literals that requests may be addressed to.
	Hosts []string
	// Origins are web origins, exactly, that may open DevTools connections, and whose pages may be sources.
	Origins []string
	// Token admits browser pages; empty means a random one.
	Token string
	// Storage sizes the streams; Memory is set by an empty Data, unless NATS is set.
	Storage subjects.Storage
	// Limits bounds everything that can grow.
	Limits subjects.Limits
	// Version is what the gateway says of itself.
	Version string
	// Logger receives what happens; nil means silence.
	Logger *slog.Logger
}

// Parts selects what an instance runs. A process of its own for each part needs a NATS server elsewhere.
type Parts struct {
	// Store folds records and writes the state bucket.
	Store bool
	// Gateway serves DevTools.
	Gateway bool
	// Ingest admits browser pages.
	Ingest bool
}

// everything is what an instance runs when Options name no parts.
var everything = Parts{Store: true, Gateway: true, Ingest: true}

// Instance is a running natscope.
type Instance struct {
	space subjects.Space
	token string
	addr  string
	// reachable is addr as clients can use it.
	reachable string
	// secure says that addr speaks TLS; external is the address that people use, if it is another one.
	secure   bool
	external string
	nats     string
	conn     *nats.Conn
	log      *slog.Logger

	// queries serves questions over HTTP; its streams end before the listener.
	queries *httpapi.Handler
	// figures is what runs here, for the metrics and the health of the process.
	figures metrics
	// admin is the address of the listener for operators, if there is one.
	admin string
	// draining says that Close was called.
	draining atomic.Bool

	mu    sync.Mutex // guards stops
	stops []stop     // what to end, in reverse order
}

// stop ends one part.
type stop struct {
	name string
	end  func(context.Context) error
}

// Start runs natscope until Close. It returns when every part answers. An error
// wraps ErrData, ErrDataInUse or ErrUnreachable where one of them is the cause;
// nothing is left running then.
func Start(ctx context.Context, o Options) (_ *Instance, err error) {
	o, err = o.withDefaults()
	if err != nil {
		return nil, err
	}
	i := &Instance{space: o.Space, token: o.Token, log: o.Logger}
	defer func() {
		if err != nil {
			clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			_ = i.Close(clean)
		}
	}()
	if err := i.connect(ctx, o); err != nil {
		return nil, err
	}
	i.figures = metrics{space: o.Space, conn: i.conn}
	if o.Parts.Store {
		if i.figures.state, err = i.startStore(ctx, o); err != nil {
			return nil, err
		}
	}
	if o.Parts.Gateway || o.Parts.Ingest {
		if err := i.startDoors(ctx, o); err != nil {
			return nil, err
		}
	}
	if o.Admin != "" {
		if err := i.startAdmin(ctx, o); err != nil {
			return nil, err
		}
	}
	return i, nil
}

func (o Options) withDefaults() (Options, error) {
	if o.Space == "" {
		o.Space = subjects.DefaultSpace
	}
	if !subjects.IsToken(string(o.Space)) {
		return o, fmt.Errorf("embedded: space %q: %w; use for example %q", o.Space, subjects.ErrToken, subjects.Token(string(o.Space)))
	}
	if o.HTTPAddr == "" {
		o.HTTPAddr = DefaultHTTP
	}
	if o.NATSAddr == "" {
		o.NATSAddr = DefaultNATS
	}
	if o.NATS == "" && o.Conn == nil && o.Hub.URL == "" {
		o.Storage.Memory = o.Data == ""
	}
	if o.Parts == (Parts{}) {
		o.Parts = everything
	}
	if o.Token == "" {
		o.Token = rand.Text()
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	o.Limits = o.Limits.WithDefaults()
	return o, nil
}

// ConnOptions are the options of a connection that store, gateway and ingest
// work on: it reconnects for ever, and what cannot be sent fails at once instead
// of waiting in a buffer. name appears in the server's list of connections.
func ConnOptions(name string, log *slog.Logger) []nats.Option {
	return []nats.Option{
		nats.Name(name),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(250 * time.Millisecond),
		nats.ReconnectJitter(250*time.Millisecond, time.Second),
		nats.ReconnectBufSize(-1),
		nats.PingInterval(2 * time.Second),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("the connection to NATS is lost, reconnecting", "error", err)
			}
		}),
		nats.ReconnectHandler(func(c *nats.Conn) { log.Info("connected to NATS again", "server", c.ConnectedUrlRedacted()) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { log.Debug("nats connection", "error", err) }),
	}
}

// connect starts or finds the NATS server and opens this process's connection to it.
func (i *Instance) connect(ctx context.Context, o Options) error {
	if o.Conn != nil {
		i.conn, i.nats = o.Conn, o.Conn.ConnectedUrlRedacted()
		return nil
	}
	opts := ConnOptions("natscope up", o.Logger)
	if o.NATS != "" {
		conn, err := nats.Connect(o.NATS, append(opts, nats.Timeout(5*time.Second))...)
		if err != nil {
			return fmt.Errorf("%w: %s: %w; check the address, or leave --nats out to run one here", ErrUnreachable, o.NATS, err)
		}
		i.conn, i.nats = conn, o.NATS
	} else if err := i.embed(ctx, o, opts); err != nil {
		return err
	}
	i.onStop("nats connection", func(context.Context) error { i.conn.Close(); return nil })
	return nil
}

// embed starts a nats-server in this process.
func (i *Instance) embed(ctx context.Context, o Options, opts []nats.Option) error {
	srv, err := startNATS(ctx, o.Data, o.NATSAddr, o.Hub, o.Logger)
	if err != nil {
		return err
	}
	i.onStop("nats-server", func(context.Context) error { srv.stop(); return nil })
	if i.conn, err = srv.connect(opts...); err != nil {
		return fmt.Errorf("embedded: connect to the nats-server in this process: %w", err)
	}
	i.nats = srv.url()
	if o.Hub.URL != "" {
		return i.awaitHub(ctx, o.Hub)
	}
	return nil
}

// startStore starts the store and returns the replica that it folds into.
func (i *Instance) startStore(ctx context.Context, o Options) (*replica.Replica, error) {
	st, err := store.Start(ctx, store.Options{Conn: i.conn, Space: o.Space, Storage: o.Storage, Limits: o.Limits, Logger: o.Logger})
	if err != nil {
		return nil, fmt.Errorf("embedded: store: %w", err)
	}
	i.onStop("store", st.Close)
	return st.Replica(), nil
}

// startDoors opens the listener with the gateway and the ingest behind it. A
// gateway beside a store reads the store's replica, so that nothing is folded twice.
func (i *Instance) startDoors(ctx context.Context, o Options) error {
	if err := o.checkDoors(); err != nil {
		return err
	}
	mux := http.NewServeMux()
	if o.Parts.Gateway {
		if err := i.startGateway(ctx, o, mux); err != nil {
			return err
		}
	}
	i.healthRoutes(mux)
	mux.Handle("GET /metrics", i.figures.granted(i.figures.handler()))
	if o.Parts.Ingest {
		if err := i.startIngest(o, mux); err != nil {
			return err
		}
	}
	l, err := listen(ctx, "the gateway", o.HTTPAddr, o.Logger)
	if err != nil {
		return err
	}
	i.addr = l.Addr().String()
	i.reachable = reachable(i.addr, o.Hosts)
	if o.TLS != nil {
		i.secure = true
		l = tls.NewListener(l, o.TLS)
	}
	i.external = strings.TrimSuffix(o.External, "/")
	i.serve(l, o.door().Middleware(mux))
	return nil
}

// startAdmin opens the listener for operators.
func (i *Instance) startAdmin(ctx context.Context, o Options) error {
	l, err := listen(ctx, "operators", o.Admin, o.Logger)
	if err != nil {
		return err
	}
	i.admin = l.Addr().String()
	mux := http.NewServeMux()
	i.healthRoutes(mux)
	mux.Handle("GET /metrics", i.figures.handler())
	i.serve(l, mux)
	return nil
}

// Admin returns the host and port of the listener for operators; empty if there is none.
func (i *Instance) Admin() string { return i.admin }

// startGateway mounts a gateway. Without a store beside it, it follows the stream itself.
func (i *Instance) startGateway(ctx context.Context, o Options, mux *http.ServeMux) error {
	if i.figures.state == nil {
		r, err := replica.Open(ctx, replica.Options{Conn: i.conn, Space: o.Space, Limits: o.Limits, Logger: o.Logger})
		if err != nil {
			return fmt.Errorf("embedded: replica: %w", err)
		}
		i.onStop("replica", func(context.Context) error { return r.Close() })
		i.figures.state = r
	}
	gw, err := cdpgw.New(cdpgw.Options{
		State: i.figures.state, Conn: i.conn, Space: o.Space, Gateway: subjects.GatewayID(subjects.Token("gw-" + rand.Text()[:10])),
		Limits: o.Limits, Logger: o.Logger, Version: o.Version, Access: access.Policy{Hosts: o.Hosts, Origins: o.Origins},
		External: o.External, Frontend: o.Frontend,
	})
	if err != nil {
		return fmt.Errorf("embedded: gateway: %w", err)
	}
	i.onStop("gateway", gw.Close)
	i.figures.gateway = gw
	mux.Handle("/", gw.Routes())
	return i.startQuery(o, mux)
}

func (i *Instance) startIngest(o Options, mux *http.ServeMux) error {
	in, err := ingest.New(ingest.Options{Conn: i.conn, Space: o.Space, Limits: o.Limits, Token: o.Token, Origins: o.Origins, Logger: o.Logger})
	if err != nil {
		return fmt.Errorf("embedded: ingest: %w", err)
	}
	i.onStop("ingest", in.Close)
	i.figures.ingest = in
	pages := in.Handler()
	for _, path := range []string{"/ingest", "/client.js", "/client/"} {
		mux.Handle(path, pages)
	}
	return nil
}

// serve answers HTTP requests on l until Close.
func (i *Instance) serve(l net.Listener, h http.Handler) {
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(i.log.Handler(), slog.LevelDebug),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			i.log.Error("the gateway's listener ended", "error", err)
		}
	}()
	i.onStop("http", func(ctx context.Context) error {
		if i.queries != nil {
			i.queries.Close()
		}
		err := srv.Shutdown(ctx)
		if err != nil {
			err = srv.Close()
		}
		<-done
		return err
	})
}

func (i *Instance) onStop(name string, end func(context.Context) error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stops = append(i.stops, stop{name, end})
}

// Close ends all parts, the newest first: pages and DevTools are told, the state
// is written, the server's files are closed. It returns the first error, after
// everything was tried, and may be called more than once.
func (i *Instance) Close(ctx context.Context) error {
	i.draining.Store(true)
	i.mu.Lock()
	stops := i.stops
	i.stops = nil
	i.mu.Unlock()
	var first error
	for n := len(stops) - 1; n >= 0; n-- {
		if err := stops[n].end(ctx); err != nil && first == nil {
			first = fmt.Errorf("embedded: stop %s: %w", stops[n].name, err)
		}
	}
	return first
}

// Space returns the space that is served.
func (i *Instance) Space() subjects.Space { return i.space }

// Conn returns this process's connection to NATS. It ends with Close.
func (i *Instance) Conn() *nats.Conn { return i.conn }

// NATS returns the URL at which producers reach the NATS server.
func (i *Instance) NATS() string { return i.nats }

// HTTP returns the address of the gateway, such as "http://127.0.0.1:9230": the
// external one where there is one.
func (i *Instance) HTTP() string {
	switch {
	case i.external != "":
		return i.external
	case i.secure:
		return "https://" + i.reachable
	}
	return "http://" + i.reachable
}

// reachable returns an address under which a listener is reached: one that
// listens on all addresses has none of its own, so it is called by the first of
// the names that were configured, or by this machine's loopback address.
func reachable(addr string, names []string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsUnspecified() {
		return addr
	}
	if len(names) > 0 {
		return net.JoinHostPort(names[0], port)
	}
	return net.JoinHostPort("127.0.0.1", port)
}

// Addr returns the host and port that the gateway listens on.
func (i *Instance) Addr() string { return i.addr }

// DevTools returns the address that opens the whole space in Chrome's own
// DevTools. Where a token is needed, /t/<token> has to be put before /devtools.
func (i *Instance) DevTools() string {
	scheme, at, _ := strings.Cut(i.HTTP(), "://")
	return "devtools://devtools/bundled/devtools_app.html?" + strings.Replace(scheme, "http", "ws", 1) + "=" + at + "/devtools/page/" + string(i.space)
}

// ClientScript returns the address of the script that makes a browser page a source, token included.
func (i *Instance) ClientScript() string {
	return i.HTTP() + "/client.js?token=" + url.QueryEscape(i.token)
}
