package shop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/goreal"
	"github.com/natscope/natscope/producer/httpcap"
	"github.com/natscope/natscope/producer/slogcap"
	"github.com/natscope/natscope/producer/treecap"
	"github.com/natscope/natscope/producer/treecap/proctree"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/source"
)

// ErrOptions says that an option is not usable. The text around it names the option and what would be right.
var ErrOptions = errors.New("shop: unusable option")

// Options configures a shop. The zero value is a shop on any loopback port that
// shows itself at the default NATS address.
type Options struct {
	// NATS is the URL of the NATS server; empty means the producer's default.
	NATS string
	// Space is the space to appear in; empty means subjects.DefaultSpace.
	Space subjects.Space
	// Instance tells several shops apart; empty means the host's name.
	Instance string
	// Addr is the address of the shop's web server, host:port. An empty host
	// means 127.0.0.1 and port 0 any free one. Empty means "127.0.0.1:0".
	Addr string
	// ClientScript is the whole URL of natscope's script for pages, with its
	// token. Empty leaves the page without it.
	ClientScript string
	// Logger gets the shop's log lines besides the Console. Nil: only the Console.
	Logger *slog.Logger
	// Interval is the pace: the most frequent worker acts once in an interval. Default 1 s.
	Interval time.Duration
}

// Shop is a running shop.
type Shop struct {
	opts     Options
	producer *producer.Producer
	tree     *treecap.Tree
	realm    *goreal.Realm
	view     *view
	log      *slog.Logger
	client   *http.Client
	idle     func() // closes the client's idle connections

	stock   *inventory
	board   *board[Product]
	pricing *pricing
	process *proctree.Process
	packer  *packingRoom
	ledger  *ledger
	// orderBoard tells the kitchen of orders.
	orderBoard *board[Receipt]
	server     *http.Server
	url        string

	life   context.Context // ends with Close
	cancel context.CancelFunc
	jobs   sync.WaitGroup
	// sockets are the WebSockets that the server has handed over.
	sockets sync.WaitGroup
	served  chan error

	closing sync.Once
	closed  error
}

// Start opens a shop. It returns once the shop answers requests; whether NATS
// answers does not matter. ctx bounds the start only: the shop runs until Close.
// The error wraps ErrOptions, or says why the address cannot be used.
func Start(ctx context.Context, o Options) (*Shop, error) {
	addr, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("shop: listen on %s: %w; choose another address, or port 0 for any", addr, err)
	}
	s := &Shop{opts: o, url: "http://" + listener.Addr().String(), served: make(chan error, 1)}

	// The five lines that make a service visible.
	s.producer, err = producer.Start(producer.Options{
		Service: "shop", Instance: o.Instance, Space: o.Space, URL: o.NATS, Logger: o.Logger,
		Describe: func(d *source.Descriptor) { d.Title, d.URL = "Coffee shop", s.url },
	})
	if err != nil {
		listener.Close()
		return nil, fmt.Errorf("shop: %w", err)
	}
	s.tree = treecap.New(s.producer, treecap.Options{RootName: "service"})
	s.realm = goreal.New(s.producer, goreal.Options{Tree: s.tree})
	s.log = slog.New(slogcap.New(s.producer, nextHandler(o.Logger), slogcap.Options{Level: slog.LevelDebug, Live: s.realm}))
	transport := http.DefaultTransport.(*http.Transport).Clone()
	s.client = &http.Client{Transport: httpcap.Transport(s.producer, transport)}

	s.idle = transport.CloseIdleConnections
	s.life, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.view = newView(s.tree, s.url)
	s.board = newBoard[Product]()
	s.stock = newInventory(s.view, s.board.tell)
	s.orderBoard = newBoard[Receipt]()
	s.packer = newPackingRoom(s.view, o.Interval)
	s.pricing = newPricing(s.tree, 2*o.Interval)
	s.ledger = newLedger()
	if err := s.expose(); err != nil {
		s.log.Error("the Console lacks something", "err", err)
	}
	s.process = proctree.New(s.tree, nil, proctree.Options{})
	s.serve(listener)
	s.work()
	s.log.Info("shop is open", "url", s.url, "products", s.stock.len())
	return s, nil
}

// withDefaults fills in the options and returns the address to listen on.
func (o *Options) withDefaults() (string, error) {
	if o.Interval < 0 {
		return "", fmt.Errorf("%w: Interval is %s; use a positive duration, or 0 for the default", ErrOptions, o.Interval)
	}
	if o.Interval == 0 {
		o.Interval = time.Second
	}
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	host, port, err := net.SplitHostPort(o.Addr)
	if err != nil {
		return "", fmt.Errorf("%w: Addr %q is not host:port: %w", ErrOptions, o.Addr, err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

func nextHandler(l *slog.Logger) slog.Handler {
	if l == nil {
		return nil
	}
	return l.Handler()
}

// URL returns the address of the shop's page, without a trailing slash.
func (s *Shop) URL() string { return s.url }

// Source returns the id under which the shop appears.
func (s *Shop) Source() subjects.SourceID { return s.producer.ID() }

// Close ends the workers, the event streams and the server, and says goodbye to
// natscope. It returns when nothing of the shop runs any more, or soon after
// ctx ends, in which case connections are cut. It is idempotent.
func (s *Shop) Close(ctx context.Context) error {
	s.closing.Do(func() { s.closed = s.close(ctx) })
	return s.closed
}

func (s *Shop) close(ctx context.Context) error {
	s.log.Info("shop is closing")
	s.cancel()
	s.jobs.Wait()
	s.idle()
	err := s.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.server.Close())
	}
	err = errors.Join(err, <-s.served)
	s.sockets.Wait()
	s.process.Close()
	s.tree.Close()
	if err = errors.Join(err, s.producer.Close(ctx)); err != nil {
		return fmt.Errorf("shop: close: %w", err)
	}
	return nil
}
