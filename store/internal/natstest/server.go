// Package natstest gives tests a real NATS server and a source that is written
// by hand, one frame at a time.
//
// It starts the server's own goroutines, which end with the test.
package natstest

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Server is a NATS server in this process that can be stopped and started again on its port and directory.
type Server struct {
	t   testing.TB
	dir string
	opt server.Options
	srv *server.Server
}

// Start runs a server with JetStream until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, dir: t.TempDir(), opt: server.Options{
		Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true, MaxPayload: 1 << 20,
		JetStream: true, JetStreamMaxMemory: 2 << 30, JetStreamMaxStore: 4 << 30, NoFastProducerStall: true,
	}}
	s.opt.StoreDir = s.dir
	s.Up()
	t.Cleanup(s.Down)
	return s
}

// StartWithout runs a server without JetStream until the test ends.
func StartWithout(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, opt: server.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true}}
	s.Up()
	t.Cleanup(s.Down)
	return s
}

// Up starts the server if it is down.
func (s *Server) Up() {
	s.t.Helper()
	if s.srv != nil {
		return
	}
	opt := s.opt
	srv, err := server.NewServer(&opt)
	if err != nil {
		s.t.Fatalf("new NATS server: %v", err)
	}
	srv.Start()
	if !srv.ReadyForConnections(10 * time.Second) {
		s.t.Fatal("the NATS server is not ready after 10 s")
	}
	s.srv = srv
	s.opt.Port = opt.Port
}

// Down stops the server and waits until it is gone. Files stay for the next Up.
func (s *Server) Down() {
	if s.srv == nil {
		return
	}
	s.srv.Shutdown()
	s.srv.WaitForShutdown()
	s.srv = nil
}

// URL returns the address of the server.
func (s *Server) URL() string { return s.srv.ClientURL() }

// Connect returns a connection that reconnects for ever and closes with the test.
func (s *Server) Connect() *nats.Conn {
	s.t.Helper()
	nc, err := nats.Connect(s.URL(), nats.MaxReconnects(-1), nats.ReconnectBufSize(-1),
		nats.ReconnectWait(50*time.Millisecond), nats.ReconnectJitter(10*time.Millisecond, 10*time.Millisecond))
	if err != nil {
		s.t.Fatalf("connect: %v", err)
	}
	s.t.Cleanup(nc.Close)
	return nc
}

// JetStream returns a JetStream context on a connection of its own.
func (s *Server) JetStream() jetstream.JetStream {
	s.t.Helper()
	js, err := jetstream.New(s.Connect())
	if err != nil {
		s.t.Fatalf("jetstream: %v", err)
	}
	return js
}

// Until polls until ok holds, and fails the test when it does not in time.
func Until(t testing.TB, within time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(within)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", within, what)
		}
		<-tick.C
	}
}
