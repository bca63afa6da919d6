package embedded

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/subjects"
)

// hubServer is a server with streams and a listener for leaves.
func hubServer(t *testing.T, dir string, port, leaves int) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		ServerName: "hub", Host: "127.0.0.1", Port: port, JetStream: true, JetStreamDomain: "hub", StoreDir: dir, NoLog: true, NoSigs: true,
		LeafNode: server.LeafNodeOpts{Host: "127.0.0.1", Port: leaves},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the hub does not start")
	}
	return s
}

func freeTestPort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// shows waits until a gateway lists a source as it is wanted.
func shows(t *testing.T, i *Instance, id subjects.SourceID, state string) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		status, text := get(t, i.HTTP()+"/sources.json")
		if at := strings.Index(text, `"id": "`+string(id)+`"`); status == http.StatusOK && at >= 0 {
			row, _, _ := strings.Cut(text[at:], "}")
			if strings.Contains(row, state) {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not show %s with %s:\n%s", i.HTTP(), id, state, text)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// A program that speaks to the leaf in its own process appears at a gateway that
// speaks to the hub, and again after the hub was away.
func TestLeafOfAHub(t *testing.T) {
	dir, port, leaves := t.TempDir(), freeTestPort(t), freeTestPort(t)
	hub := hubServer(t, dir, port, leaves)
	stop := func() { hub.Shutdown(); hub.WaitForShutdown() }
	t.Cleanup(func() { stop() })
	center := startTest(t, Options{NATS: hub.ClientURL()})
	leaf := startTest(t, Options{Hub: Hub{URL: "nats-leaf://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(leaves))}, Parts: Parts{Gateway: true}})
	if strings.Contains(leaf.NATS(), strconv.Itoa(port)) {
		t.Fatalf("the leaf's address is the hub's: %s", leaf.NATS())
	}
	p, err := producer.Start(producer.Options{ID: "edge", Service: "edge", URL: leaf.NATS()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = p.Close(ctx)
	}()
	shows(t, center, "edge", `"connected": true`)
	shows(t, leaf, "edge", `"connected": true`)
	stop()
	hub = hubServer(t, dir, port, leaves)
	p.Record(subjects.PlaneConsole, "message", map[string]any{"type": "log", "args": []string{"after the outage"}})
	shows(t, center, "edge", `"messages": 1`)
	shows(t, leaf, "edge", `"messages": 1`)
}

func TestHubThatCannotBeJoined(t *testing.T) {
	for name, h := range map[string]Hub{"no address": {URL: "nowhere"}, "two keys": {URL: "nats-leaf://127.0.0.1:1", Credentials: "a", NKey: "b"}} {
		if i, err := Start(t.Context(), Options{Hub: h, HTTPAddr: "127.0.0.1:0", NATSAddr: "127.0.0.1:0"}); !errors.Is(err, ErrHub) {
			closeIf(t, i)
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if i, err := Start(ctx, Options{Hub: Hub{URL: "nats-leaf://127.0.0.1:" + strconv.Itoa(freeTestPort(t))}, HTTPAddr: "127.0.0.1:0", NATSAddr: "127.0.0.1:0"}); !errors.Is(err, ErrHub) {
		closeIf(t, i)
		t.Errorf("nobody there: %v", err)
	}
}

func closeIf(t *testing.T, i *Instance) {
	if i != nil {
		closeTest(t, i)
	}
}
