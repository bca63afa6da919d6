package embedded

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
)

func startTest(t *testing.T, o Options) *Instance {
	t.Helper()
	o.HTTPAddr, o.NATSAddr = "127.0.0.1:0", "127.0.0.1:0"
	i, err := Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeTest(t, i) })
	return i
}

func closeTest(t *testing.T, i *Instance) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := i.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestStartAnswersAndLeavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	i := startTest(t, Options{})
	res, err := http.Get(i.HTTP() + "/json/version")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("/json/version: %s", res.Status)
	}
	nc, err := nats.Connect(i.NATS())
	if err != nil {
		t.Fatalf("the advertised NATS address: %v", err)
	}
	nc.Close()
	http.DefaultClient.CloseIdleConnections()
	closeTest(t, i)
	goleak.VerifyNone(t, before)
}

func TestCloseTwiceIsHarmless(t *testing.T) {
	i := startTest(t, Options{})
	closeTest(t, i)
	closeTest(t, i)
}

func TestDataDirectoryIsLocked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	first := startTest(t, Options{Data: dir})
	_, err := Start(context.Background(), Options{Data: dir, HTTPAddr: "127.0.0.1:0", NATSAddr: "127.0.0.1:0"})
	if !errors.Is(err, ErrDataInUse) {
		t.Fatalf("second start: %v, wanted ErrDataInUse", err)
	}
	closeTest(t, first)
	startTest(t, Options{Data: dir})
}

func TestUnreachableServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	if _, err := Start(context.Background(), Options{NATS: "nats://" + addr}); !errors.Is(err, ErrUnreachable) {
		t.Fatalf("got %v, wanted ErrUnreachable", err)
	}
}

// A second natscope works on the streams of the first one, which keeps them in
// memory, without being told so; what a program says is in both.
func TestTwoInOneSpace(t *testing.T) {
	one := startTest(t, Options{})
	two := startTest(t, Options{NATS: one.NATS()})
	p, err := producer.Start(producer.Options{ID: "orders", URL: one.NATS()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = p.Close(ctx)
	})
	for _, i := range []*Instance{one, two} {
		deadline := time.Now().Add(15 * time.Second)
		for seen := false; !seen; time.Sleep(10 * time.Millisecond) {
			i.figures.state.View(func(s *fold.Space) { seen = s.Source("orders") != nil })
			if !seen && time.Now().After(deadline) {
				t.Fatalf("%s does not see the program", i.HTTP())
			}
		}
	}
}

func TestServerElsewhere(t *testing.T) {
	one := startTest(t, Options{Space: "one"})
	two := startTest(t, Options{Space: "two", NATS: one.NATS(), Storage: subjects.Storage{Memory: true}})
	if one.HTTP() == two.HTTP() || two.NATS() != one.NATS() {
		t.Errorf("one at %s with %s, two at %s with %s", one.HTTP(), one.NATS(), two.HTTP(), two.NATS())
	}
}

func TestOnlyLoopback(t *testing.T) {
	for _, o := range []Options{{HTTPAddr: ":9230", NATSAddr: "127.0.0.1:0"}, {HTTPAddr: "0.0.0.0:0", NATSAddr: "127.0.0.1:0"}, {HTTPAddr: "127.0.0.1:0", NATSAddr: "0.0.0.0:0"}} {
		if i, err := Start(context.Background(), o); err == nil {
			closeTest(t, i)
			t.Errorf("%s and %s were accepted", o.HTTPAddr, o.NATSAddr)
		}
	}
}

func TestBadSpace(t *testing.T) {
	if _, err := Start(context.Background(), Options{Space: "My Space"}); !errors.Is(err, subjects.ErrToken) {
		t.Errorf("got %v, wanted ErrToken", err)
	}
}

func TestStartCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if i, err := Start(ctx, Options{HTTPAddr: "127.0.0.1:0", NATSAddr: "127.0.0.1:0"}); err == nil {
		closeTest(t, i)
		t.Error("a canceled start succeeded")
	}
}

// Case I8: where localhost is ::1 first, "localhost" and both addresses of this
// machine reach a gateway that listens there, and what it lists names the address that was asked.
func TestLocalhostOfBothFamilies(t *testing.T) {
	for listen, hosts := range map[string][]string{"127.0.0.1:0": {"127.0.0.1", "localhost"}, "[::1]:0": {"[::1]", "localhost"}, "localhost:0": {"localhost"}} {
		i, err := Start(t.Context(), Options{HTTPAddr: listen, NATSAddr: "127.0.0.1:0"})
		if err != nil {
			t.Errorf("%s: %v", listen, err)
			continue
		}
		_, port, err := net.SplitHostPort(i.Addr())
		if err != nil {
			t.Fatal(err)
		}
		// A resolver that knows both addresses, the new one first, as that of a browser.
		d := websocket.Dialer{NetDialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			host, port, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, err
			}
			if host != "localhost" {
				return new(net.Dialer).DialContext(ctx, "tcp", addr)
			}
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", "[::1]:"+port)
			if err != nil {
				conn, err = new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:"+port)
			}
			return conn, err
		}}
		for _, host := range hosts {
			ws, resp, err := d.DialContext(t.Context(), "ws://"+host+":"+port+"/devtools/page/dev", nil)
			if err != nil {
				t.Errorf("%s by %s: %v (%v)", listen, host, err, resp)
				continue
			}
			_ = ws.Close()
		}
		closeTest(t, i)
	}
}
