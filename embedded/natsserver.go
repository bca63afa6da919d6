package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// ErrDataInUse says that another process works in the data directory.
var ErrDataInUse = errors.New("embedded: the data directory is in use")

// ErrData says that the data directory cannot be used.
var ErrData = errors.New("embedded: the data directory cannot be used")

// serverReady is how long a server may take to accept connections; a large store is read first.
const serverReady = 30 * time.Second

// natsServer is a nats-server in this process, with its locked directory.
type natsServer struct {
	server *server.Server
	lock   *flock.Flock
	scrap  string // a temporary directory to delete at the end
}

// startNATS starts a nats-server on a loopback listener; an occupied port
// advances. An empty data directory means memory: then the store directory is a
// temporary one that only holds JetStream's metadata.
//
// With a hub, the server is a leaf of a server elsewhere: it has no streams of its
// own, and everything that programs say to it goes on to the hub and its streams.
func startNATS(ctx context.Context, data, addr string, hub Hub, log *slog.Logger) (*natsServer, error) {
	s := &natsServer{}
	var dir string
	var err error
	if hub.URL == "" {
		// The directory comes first: nothing need be said of ports if it cannot be used.
		if dir, err = s.claim(data); err != nil {
			return nil, err
		}
	}
	remotes, err := hub.remotes()
	if err != nil {
		return nil, err
	}
	if addr, err = freePort(ctx, "NATS", addr, log); err != nil {
		s.release()
		return nil, err
	}
	host, port, err := splitListen(addr)
	if err != nil {
		s.release()
		return nil, err
	}
	opts := &server.Options{
		ServerName:             "natscope-" + strconv.Itoa(os.Getpid()),
		Host:                   host,
		Port:                   port,
		NoSigs:                 true,
		JetStream:              hub.URL == "",
		StoreDir:               dir,
		JetStreamMaxMemory:     4 << 30, // an upper bound, of which each space reserves its streams' limits
		JetStreamMaxStore:      8 << 30,
		SyncInterval:           10 * time.Second,
		MaxPayload:             1 << 20,
		MaxPending:             16 << 20,
		WriteDeadline:          5 * time.Second,
		NoFastProducerStall:    true,
		PingInterval:           5 * time.Second,
		MaxPingsOut:            2,
		DisableJetStreamBanner: true,
		LeafNode:               server.LeafNodeOpts{Remotes: remotes, ReconnectInterval: time.Second},
	}
	if hub.URL != "" {
		// Programs here need not know that the streams are elsewhere.
		opts.JsAccDefaultDomain = map[string]string{server.DEFAULT_GLOBAL_ACCOUNT: hub.domain()}
	}
	if s.server, err = server.NewServer(opts); err != nil {
		s.release()
		return nil, fmt.Errorf("embedded: nats-server: %w", err)
	}
	s.server.SetLoggerV2(serverLog{log}, false, false, false)
	go s.server.Start()
	if !s.server.ReadyForConnections(serverReady) {
		s.stop()
		return nil, fmt.Errorf("embedded: nats-server does not accept connections on %s after %s; see its log with --verbose", addr, serverReady)
	}
	return s, nil
}

// claim prepares and locks the directory that JetStream works in. nats-server
// does not lock it: two servers on one directory start and damage each other.
func (s *natsServer) claim(data string) (string, error) {
	if data == "" {
		dir, err := os.MkdirTemp("", "natscope-")
		if err != nil {
			return "", fmt.Errorf("%w: no temporary directory: %w", ErrData, err)
		}
		s.scrap = dir
		return dir, nil
	}
	dir, err := filepath.Abs(data)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrData, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("%w: %w; name a directory that you can write with --data, or use --memory", ErrData, err)
	}
	lock := flock.New(filepath.Join(dir, "lock"))
	ok, err := lock.TryLock()
	if err != nil {
		return "", fmt.Errorf("%w: %w; name a directory that you can write with --data, or use --memory", ErrData, err)
	}
	if !ok {
		return "", fmt.Errorf("%w: another natscope runs on %s; stop it, or name another directory with --data", ErrDataInUse, dir)
	}
	s.lock = lock
	return filepath.Join(dir, "nats"), nil
}

// url is the address of the loopback listener.
func (s *natsServer) url() string { return s.server.ClientURL() }

// connect opens a connection within the process.
func (s *natsServer) connect(opts ...nats.Option) (*nats.Conn, error) {
	return nats.Connect("", append(opts, nats.InProcessServer(s.server))...)
}

// stop ends the server, waits until its files are closed, and unlocks.
func (s *natsServer) stop() {
	s.server.Shutdown()
	s.server.WaitForShutdown()
	s.release()
}

func (s *natsServer) release() {
	if s.lock != nil {
		_ = s.lock.Unlock()
	}
	if s.scrap != "" {
		_ = os.RemoveAll(s.scrap)
	}
}

// splitListen parses host:port; port 0 becomes the server's "any port".
func splitListen(addr string) (string, int, error) {
	host, p, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, fmt.Errorf("embedded: NATS address %q is not host:port: %w", addr, err)
	}
	port, err := strconv.ParseUint(p, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("embedded: NATS address %q has no valid port", addr)
	}
	if port == 0 {
		return host, server.RANDOM_PORT, nil
	}
	return host, int(port), nil
}

// serverLog hands the server's log to slog. Notices are details to us.
type serverLog struct{ log *slog.Logger }

func (l serverLog) Noticef(f string, v ...any) { l.log.Debug("nats: " + line(f, v)) }
func (l serverLog) Warnf(f string, v ...any)   { l.log.Warn("nats: " + line(f, v)) }
func (l serverLog) Errorf(f string, v ...any)  { l.log.Error("nats: " + line(f, v)) }
func (l serverLog) Fatalf(f string, v ...any)  { l.log.Error("nats: " + line(f, v)) }
func (l serverLog) Debugf(f string, v ...any)  {}
func (l serverLog) Tracef(f string, v ...any)  {}

func line(f string, v []any) string { return strings.TrimSpace(fmt.Sprintf(f, v...)) }
