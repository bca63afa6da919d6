package bench

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natscope/natscope/embedded"
	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/store"
	"github.com/natscope/natscope/subjects"
)

// patience is how long a benchmark waits for what must come.
const patience = 60 * time.Second

// options are those of a server of the benchmarks, on a free port and a directory of its own.
func options(b testing.TB, name string) *server.Options {
	return &server.Options{
		ServerName: name, Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, MaxPayload: 1 << 20,
		JetStream: true, StoreDir: b.TempDir(), JetStreamMaxMemory: 4 << 30, JetStreamMaxStore: 16 << 30,
		NoFastProducerStall: true, MaxPending: 16 << 20, WriteDeadline: 5 * time.Second,
	}
}

// startServer runs one server until the benchmark ends and returns its address.
func startServer(b testing.TB) string {
	b.Helper()
	return run(b, options(b, "bench"))
}

// run starts a server until the benchmark ends.
func run(b testing.TB, o *server.Options) string {
	b.Helper()
	s, err := server.NewServer(o)
	if err != nil {
		b.Fatal(err)
	}
	go s.Start()
	b.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(patience) {
		b.Fatal("the NATS server is not ready")
	}
	return s.ClientURL()
}

// startCluster runs three servers in this process until the benchmark ends and
// returns the address of one. Replicas then cost what they cost, save the network.
func startCluster(b testing.TB) (addr string) {
	b.Helper()
	ports := freePorts(b, 3)
	var routes string
	for _, p := range ports {
		routes += fmt.Sprintf("nats://127.0.0.1:%d,", p)
	}
	for i, p := range ports {
		o := options(b, fmt.Sprint("bench-", i+1))
		o.Cluster = server.ClusterOpts{Name: "bench", Host: "127.0.0.1", Port: p}
		o.Routes = server.RoutesFromStr(routes[:len(routes)-1])
		addr = run(b, o)
	}
	js := jetStream(b, addr)
	until(b, "the cluster has JetStream", func() bool {
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		_, err := js.AccountInfo(ctx)
		return err == nil
	})
	return addr
}

// freePorts returns ports that nobody listens on.
func freePorts(b testing.TB, n int) (out []int) {
	b.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		defer l.Close()
		out = append(out, l.Addr().(*net.TCPAddr).Port)
	}
	return out
}

// connect opens a connection as natscope's own parts have it, until the benchmark ends.
func connect(b testing.TB, addr string) *nats.Conn {
	b.Helper()
	nc, err := nats.Connect(addr, embedded.ConnOptions("bench", slog.New(slog.DiscardHandler))...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(nc.Close)
	return nc
}

func jetStream(b testing.TB, addr string) jetstream.JetStream {
	b.Helper()
	js, err := jetstream.New(connect(b, addr))
	if err != nil {
		b.Fatal(err)
	}
	return js
}

// streams creates the streams of the default space.
func streams(b testing.TB, js jetstream.JetStream, s subjects.Storage) {
	b.Helper()
	until(b, "the streams are there", func() bool {
		ctx, cancel := context.WithTimeout(b.Context(), 10*time.Second)
		defer cancel()
		return store.EnsureStreams(ctx, js, subjects.DefaultSpace, s) == nil
	})
}

// startStore runs a store until the benchmark ends.
func startStore(b testing.TB, addr string, s subjects.Storage, l subjects.Limits) *store.Store {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	st, err := store.Start(ctx, store.Options{Conn: connect(b, addr), Storage: s, Limits: l})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = st.Close(ctx) // Nothing reads what it would save.
	})
	return st
}

// startProducer runs a source until the benchmark ends, and returns when its opening record is in the stream.
func startProducer(b testing.TB, o producer.Options) *producer.Producer {
	b.Helper()
	p, err := producer.Start(o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { closeProducer(p) })
	flush(b, p)
	return p
}

func closeProducer(p *producer.Producer) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = p.Close(ctx) // A second Close, or a server that is gone: both are fine here.
}

func flush(b testing.TB, p *producer.Producer) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	if err := p.Flush(ctx); err != nil {
		b.Fatalf("%v; %+v", err, p.Stats())
	}
}

// hostOf returns the host and port of a NATS address.
func hostOf(b testing.TB, addr string) string {
	b.Helper()
	u, err := url.Parse(addr)
	if err != nil {
		b.Fatal(err)
	}
	return u.Host
}
