package trials

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natscope/natscope/embedded"
	"github.com/natscope/natscope/store"
	"github.com/natscope/natscope/subjects"
)

// natsServer is a NATS server in this process that can be stopped and started again on its port and directory.
type natsServer struct {
	t   testing.TB
	opt server.Options
	srv *server.Server
}

// startServer runs a server with JetStream until the test ends. change may adjust its options.
func startServer(t testing.TB, change ...func(*server.Options)) *natsServer {
	t.Helper()
	s := newServer(t, -1, change...)
	s.up()
	return s
}

// newServer is startServer for a server that is not there yet; up starts it on the given port.
func newServer(t testing.TB, port int, change ...func(*server.Options)) *natsServer {
	t.Helper()
	s := &natsServer{t: t, opt: server.Options{
		Host: "127.0.0.1", Port: port, NoSigs: true, NoLog: true, MaxPayload: 1 << 20,
		JetStream: true, StoreDir: t.TempDir(), JetStreamMaxMemory: 4 << 30, JetStreamMaxStore: 8 << 30,
		NoFastProducerStall: true, MaxPending: 16 << 20, WriteDeadline: 5 * time.Second,
	}}
	for _, f := range change {
		f(&s.opt)
	}
	t.Cleanup(s.down)
	return s
}

func (s *natsServer) up() {
	s.t.Helper()
	opt := s.opt
	srv, err := server.NewServer(&opt)
	if err != nil {
		s.t.Fatalf("new NATS server: %v", err)
	}
	srv.Start()
	if !srv.ReadyForConnections(10 * time.Second) {
		s.t.Fatal("the NATS server is not ready after 10 s")
	}
	s.srv, s.opt.Port = srv, opt.Port
}

func (s *natsServer) down() {
	if s.srv == nil {
		return
	}
	s.srv.Shutdown()
	s.srv.WaitForShutdown()
	s.srv = nil
}

// url is the address of the server, also while it is down.
func (s *natsServer) url() string { return fmt.Sprintf("nats://127.0.0.1:%d", s.opt.Port) }

// freePorts returns ports that nobody listens on.
func freePorts(t testing.TB, n int) (out []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		out = append(out, l.Addr().(*net.TCPAddr).Port)
	}
	return out
}

// connect opens a connection that is made as those of natscope's parts are, until the test ends.
func connect(t testing.TB, url string) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(url, append(embedded.ConnOptions("trial", quiet), nats.RetryOnFailedConnect(true))...)
	if err != nil {
		t.Fatalf("connect to %s: %v", url, err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// jetStream opens a JetStream context on a connection of its own.
func jetStream(t testing.TB, url string) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(connect(t, url))
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// startStore runs a store in this process until the test ends.
func startStore(t testing.TB, url string, storage subjects.Storage, limits subjects.Limits) *store.Store {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := store.Start(ctx, store.Options{Conn: connect(t, url), Storage: storage, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = s.Close(ctx) // The server may be gone by now.
	})
	return s
}

// startGateway runs a gateway in this process until the test ends, and returns its address.
func startGateway(t testing.TB, url string, limits subjects.Limits) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	i, err := embedded.Start(ctx, embedded.Options{Conn: connect(t, url), Parts: embedded.Parts{Gateway: true}, HTTPAddr: "127.0.0.1:0", Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := i.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return i.HTTP()
}
