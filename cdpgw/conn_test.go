package cdpgw

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/source"
	"github.com/natscope/natscope/subjects/tree"
)

// Case I4: a DevTools that stops reading is closed, the others go on, and the state never waits.
func TestStalledClient(t *testing.T) {
	m := newMemory(t, subjects.Limits{ConsoleEntries: 10})
	m.open("orders", gen1, source.Descriptor{Name: "orders"})
	g, server := serve(t, m)
	g.bounds = load{live: maxLiveMessages, bytes: 256 << 10, answers: 1 << 20}
	stalled := stall(t, server)
	c := dial(t, server, "dev")
	c.call("Runtime.enable", nil, nil)
	line := strings.Repeat("x", 64<<10)
	var waited time.Duration
	// The sockets take some of it before the queue fills.
	for i := 0; len(g.hub.all()) != 1; i++ {
		from := c.count()
		began := time.Now()
		m.log("orders", gen1, float64(i), line)
		waited = max(waited, time.Since(began))
		c.event(from, "Runtime.consoleAPICalled", nil)
		if i > 1000 {
			t.Fatal("the stalled connection is still served after 64 MiB")
		}
	}
	if waited > patience/2 {
		t.Errorf("the state waited %v for a client", waited)
	}
	from := c.count()
	m.log("orders", gen1, 1e6, "still here")
	c.until(from, "a line after the flood", func(r received) bool { return strings.Contains(string(r.Params), "still here") })
	_ = stalled.Close()
}

// stall connects a client that enables the console and never reads.
func stall(t *testing.T, server *httptest.Server) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	handshake(t, conn)
	// A masked text frame with the key zero.
	text := `{"id":1,"method":"Runtime.enable"}`
	frame := append([]byte{0x81, 0x80 | byte(len(text)), 0, 0, 0, 0}, text...)
	if _, err := conn.Write(frame); err != nil {
		t.Fatal(err)
	}
	return conn
}

func handshake(t *testing.T, conn net.Conn) *bufio.Reader {
	t.Helper()
	if _, err := fmt.Fprintf(conn, "GET %sdev HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", targetPath); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line == "\r\n" {
			return r
		}
	}
}

// waitFor pauses between two looks at something that is polled.
func waitFor(d time.Duration) { <-time.After(d) }

// A viewer that lags within its bound is told why when it passes it.
func TestLaggingReason(t *testing.T) {
	m := newMemory(t, subjects.Limits{ConsoleEntries: 10})
	m.open("orders", gen1, source.Descriptor{Name: "orders"})
	g, err := New(Options{State: m})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Close(t.Context()) }()
	g.bounds.live = 100
	s := offline(g, target{space: "dev"})
	g.hub.add(s)
	perform(s, "Runtime.enable", nil)
	for i := range 200 {
		m.log("orders", gen1, float64(i), "x")
	}
	out, _ := s.conn.queue.take()
	if last := string(out[len(out)-1].bytes()); s.conn.ctx.Err() == nil || !strings.Contains(last, "Inspector.detached") || !strings.Contains(last, reasonLagging) {
		t.Errorf("the last of %d messages is %s", len(out), last)
	}
	if len(out) > 100+10 {
		t.Errorf("%d messages wait, the bound is 100", len(out))
	}
}

// When the gateway stops, DevTools is told so, as an event and in the close frame.
func TestClose(t *testing.T) {
	g, server := serve(t, shop(t))
	c := dial(t, server, "dev")
	c.sync()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := g.Close(ctx); err != nil {
		t.Fatal(err)
	}
	var e detachedEvent
	c.event(0, "Inspector.detached", &e)
	if e.Reason != reasonStopping {
		t.Errorf("%q", e.Reason)
	}
	for {
		_, arrive, ended := c.snapshot()
		if ended != nil {
			if !websocket.IsCloseError(ended, websocket.CloseGoingAway) || !strings.Contains(ended.Error(), "stopping") {
				t.Errorf("%v", ended)
			}
			break
		}
		<-arrive
	}
	if _, resp, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(server.URL, "http")+targetPath+"dev", nil); err == nil || resp.StatusCode != 503 {
		t.Errorf("a closed gateway takes connections: %v", err)
	}
}

// Clients that break off, talk nonsense or never finish harm nobody else.
func TestOddClients(t *testing.T) {
	_, server := serve(t, shop(t))
	good := dial(t, server, "dev")
	for name, talk := range map[string]string{
		"half a handshake":       "GET " + targetPath + "dev HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: webso",
		"not HTTP":               "\x16\x03\x01\x02\x00",
		"a huge header":          "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + strings.Repeat("x", 2<<20) + "\r\n\r\n",
		"an upgrade without key": "GET " + targetPath + "dev HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\r\n",
		"a plain GET":            "GET " + targetPath + "dev HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
		"two hosts":              "GET /json HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.test\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, talk)
		if name == "two hosts" {
			line, _ := bufio.NewReader(conn).ReadString('\n')
			if !strings.Contains(line, "400") {
				t.Errorf("%s: %s", name, line)
			}
		}
		_ = conn.Close()
	}
	for name, frame := range map[string][]byte{
		"an unmasked frame":                   {0x81, 0x02, '{', '}'},
		"a reserved opcode":                   {0x83, 0x80, 0, 0, 0, 0},
		"a frame that is larger than allowed": {0x81, 0xff, 0, 0, 0, 0, 0xff, 0, 0, 0, 0, 0, 0, 0},
		"a lonely continuation":               {0x80, 0x80, 0, 0, 0, 0},
		"a broken text":                       {0x81, 0x82, 0, 0, 0, 0, 0xff, 0xfe},
	} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		r := handshake(t, conn)
		_, _ = conn.Write(frame)
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		if _, err := r.ReadByte(); err != nil {
			t.Errorf("%s: neither an answer nor a close frame: %v", name, err)
		}
		_ = conn.Close()
	}
	good.sync()
}

// Fifty clients see everything, each its own document.
func TestManySessions(t *testing.T) {
	m := shop(t)
	_, server := serve(t, m)
	var clients []*client
	for range 50 {
		c := dial(t, server, "dev")
		c.call("Runtime.enable", nil, nil)
		c.call("Network.enable", nil, nil)
		c.call("DOM.getDocument", map[string]int{"depth": -1}, nil)
		clients = append(clients, c)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 50 {
			m.log("orders", gen1, float64(i), "line")
			m.ops("orders", gen1, uint64(i+2), tree.Op{Op: tree.OpAdd, Parent: 3, Node: &tree.Node{ID: tree.NodeID(100 + i), Name: "Live"}})
		}
	})
	wg.Go(func() {
		for i := range 50 {
			m.get("billing", gen1, float64(i), network.RequestID(fmt.Sprint("many-", i)), 200, "x")
		}
	})
	wg.Wait()
	for _, c := range clients {
		c.sync()
		all, _, _ := c.snapshot()
		n := map[string]int{}
		for _, e := range all {
			n[e.Method]++
		}
		if n["Runtime.consoleAPICalled"] != 51 || n["DOM.childNodeInserted"] != 50 || n["Network.loadingFinished"] != 51 {
			t.Fatalf("%v", n)
		}
	}
}

// Case B8: connections that are dropped without a word leave nothing behind.
func TestDroppedConnections(t *testing.T) {
	g, server := serve(t, shop(t))
	for range 200 {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		handshake(t, conn)
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	}
	began := time.Now()
	dial(t, server, "dev").call("Network.enable", nil, nil)
	if d := time.Since(began); d > time.Second {
		t.Errorf("enable took %v", d)
	}
	deadline := time.Now().Add(patience)
	for len(g.hub.all()) > 1 {
		if time.Now().After(deadline) {
			t.Fatalf("%d sessions are left", len(g.hub.all()))
		}
		waitFor(5 * time.Millisecond)
	}
}

// A burst goes out in few writes, whatever happens between them.
func TestBurst(t *testing.T) {
	a, b := net.Pipe()
	counted := &countingConn{Conn: a}
	c := &burstConn{Conn: counted}
	got := make(chan string)
	go func() {
		all, _ := io.ReadAll(b)
		got <- string(all)
	}()
	var want strings.Builder
	c.hold()
	for i := range 1000 {
		s := fmt.Sprintf("message %d ", i)
		want.WriteString(s)
		if _, err := io.WriteString(c, s); err != nil {
			t.Fatal(err)
		}
	}
	big := strings.Repeat("b", 3*burstBytes)
	want.WriteString(big + "end")
	_, _ = io.WriteString(c, big)
	_, _ = io.WriteString(c, "end")
	if err := c.release(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, "!")
	_ = a.Close()
	if s := <-got; s != want.String()+"!" {
		t.Errorf("%d bytes arrived, want %d", len(s), want.Len()+1)
	}
	if counted.writes > 5 {
		t.Errorf("%d writes", counted.writes)
	}
}

type countingConn struct {
	net.Conn
	writes int
}

func (c *countingConn) Write(p []byte) (int, error) {
	c.writes++
	return c.Conn.Write(p)
}

func TestCut(t *testing.T) {
	for in, want := range map[string]string{"abc": "abc", "abcdef": "abcd", "abc\u00e9f": "abc", "": ""} {
		if got := cut(in, 4); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
