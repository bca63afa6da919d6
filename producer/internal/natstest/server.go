// Package natstest runs real NATS servers inside tests: servers that stop and
// come back on the same port, and a proxy in front of them that loses or freezes
// what a test wants.
//
// It must not know producers. Every server and proxy ends with its test.
package natstest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natscope/natscope/subjects"
)

// Server is a NATS server with JetStream on a loopback port.
type Server struct {
	t     testing.TB
	opts  server.Options
	s     *server.Server
	login []nats.Option
}

// Start runs a server on a free port. change may adjust its options.
func Start(t testing.TB, change ...func(*server.Options)) *Server {
	t.Helper()
	x := &Server{t: t, opts: server.Options{
		Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true,
		JetStream: true, StoreDir: t.TempDir(), JetStreamMaxMemory: 256 << 20, JetStreamMaxStore: 1 << 30,
		NoFastProducerStall: true,
	}}
	for _, f := range change {
		f(&x.opts)
	}
	x.Run()
	t.Cleanup(x.Stop)
	return x
}

// Run starts the server again, on the port and with the data that it had.
func (x *Server) Run() {
	x.t.Helper()
	opts := x.opts
	var err error
	deadline := time.Now().Add(10 * time.Second)
	for {
		if x.s, err = server.NewServer(&opts); err != nil {
			x.t.Fatalf("server: %v", err)
		}
		x.s.Start()
		if x.s.ReadyForConnections(5 * time.Second) {
			break
		}
		x.s.Shutdown()
		x.s.WaitForShutdown()
		if time.Now().After(deadline) {
			x.t.Fatalf("the server did not come up on port %d", opts.Port)
		}
	}
	x.opts.Port = opts.Port
}

// Stop ends the server; Run brings it back.
func (x *Server) Stop() {
	if x.s == nil {
		return
	}
	x.s.Shutdown()
	x.s.WaitForShutdown()
	x.s = nil
}

// Change adjusts the options that the next Run uses.
func (x *Server) Change(f func(*server.Options)) { f(&x.opts) }

// As makes the helper's own connections use the credentials.
func (x *Server) As(user, password string) { x.login = []nats.Option{nats.UserInfo(user, password)} }

// URL is the address of the server, also while it is stopped.
func (x *Server) URL() string { return fmt.Sprintf("nats://127.0.0.1:%d", x.opts.Port) }

// Port is the port of the server.
func (x *Server) Port() int { return x.opts.Port }

// Connect opens a connection that ends with the test.
func (x *Server) Connect(options ...nats.Option) *nats.Conn {
	x.t.Helper()
	all := append([]nats.Option{nats.MaxReconnects(-1), nats.ReconnectWait(20 * time.Millisecond)}, x.login...)
	nc, err := nats.Connect(x.URL(), append(all, options...)...)
	if err != nil {
		x.t.Fatalf("connect: %v", err)
	}
	x.t.Cleanup(nc.Close)
	return nc
}

// Streams makes the record and body streams of a space. change may adjust each.
func (x *Server) Streams(space subjects.Space, storage subjects.Storage, change ...func(*jetstream.StreamConfig)) {
	x.t.Helper()
	nc := x.Connect()
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		x.t.Fatal(err)
	}
	if storage.RecordBytes == 0 {
		storage.RecordBytes = 128 << 20
	}
	if storage.BodyBytes == 0 {
		storage.BodyBytes = 64 << 20
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, c := range []jetstream.StreamConfig{subjects.RecordStream(space, storage), subjects.BodyStream(space, storage)} {
		for _, f := range change {
			f(&c)
		}
		if _, err := js.CreateOrUpdateStream(ctx, c); err != nil {
			x.t.Fatalf("stream %s: %v", c.Name, err)
		}
	}
}

// Message is one message of a stream.
type Message struct {
	Seq     uint64
	Subject string
	Header  subjects.Header
	Data    []byte
}

// Read returns all messages of a stream in order.
func (x *Server) Read(stream string) []Message {
	x.t.Helper()
	nc := x.Connect()
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		x.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	s, err := js.Stream(ctx, stream)
	if err != nil {
		x.t.Fatalf("stream %s: %v", stream, err)
	}
	state := s.CachedInfo().State
	var out []Message
	for seq := max(state.FirstSeq, 1); seq <= state.LastSeq; seq++ {
		m, err := s.GetMsg(ctx, seq)
		if err == jetstream.ErrMsgNotFound {
			continue
		}
		if err != nil {
			x.t.Fatalf("message %d of %s: %v", seq, stream, err)
		}
		out = append(out, Message{m.Sequence, m.Subject, subjects.Header(m.Header), m.Data})
	}
	return out
}

// Until calls f until it returns true, and fails the test after 20 s.
func Until(t testing.TB, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !f() {
		if time.Now().After(deadline) {
			t.Fatalf("gave up waiting until %s", what)
		}
		<-tick.C
	}
}
