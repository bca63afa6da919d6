package httpcap_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	coder "github.com/coder/websocket"
	"github.com/gorilla/websocket"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/httpcap"
	"github.com/natscope/natscope/producer/httpcap/codercap"
	"github.com/natscope/natscope/producer/httpcap/gorillacap"
	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// talk is one side of a conversation over a WebSocket.
type talk interface {
	send(binary bool, data string) error
	receive() (binary bool, data string, err error)
	ping() error
	// leave says goodbye and closes; wait reads until the other side has.
	leave() error
	wait() error
}

type gorillaTalk struct{ *websocket.Conn }

func (g gorillaTalk) send(binary bool, data string) error {
	kind := websocket.TextMessage
	if binary {
		kind = websocket.BinaryMessage
	}
	return g.WriteMessage(kind, []byte(data))
}

func (g gorillaTalk) receive() (bool, string, error) {
	kind, data, err := g.ReadMessage()
	return kind == websocket.BinaryMessage, string(data), err
}

func (g gorillaTalk) ping() error {
	return g.WriteControl(websocket.PingMessage, []byte("are you there"), time.Now().Add(5*time.Second))
}

func (g gorillaTalk) leave() error {
	err := g.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1001, "going"), time.Now().Add(5*time.Second))
	if err != nil {
		return err
	}
	return g.wait()
}

func (g gorillaTalk) wait() error {
	for {
		if _, _, err := g.ReadMessage(); err != nil {
			g.Close()
			if websocket.IsCloseError(err, 1001) {
				return nil
			}
			return err
		}
	}
}

type coderTalk struct {
	*coder.Conn
	ctx context.Context
}

func (c coderTalk) send(binary bool, data string) error {
	kind := coder.MessageText
	if binary {
		kind = coder.MessageBinary
	}
	return c.Write(c.ctx, kind, []byte(data))
}

func (c coderTalk) receive() (bool, string, error) {
	kind, data, err := c.Read(c.ctx)
	return kind == coder.MessageBinary, string(data), err
}

// ping does not wait for the pong, which this package reads only together with messages.
func (c coderTalk) ping() error {
	ctx, cancel := context.WithTimeout(c.ctx, 50*time.Millisecond)
	defer cancel()
	_ = c.Ping(ctx)
	return nil
}

func (c coderTalk) leave() error { return c.Close(1001, "going") }

func (c coderTalk) wait() error {
	_, _, err := c.Read(c.ctx)
	if coder.CloseStatus(err) == 1001 {
		return nil
	}
	return err
}

// parrot is the server of every conversation: it answers each message and waits for the end.
func parrot(t *testing.T, v *view, c talk, n int) {
	for range n {
		binary, data, err := c.receive()
		v.add("server received binary=%t %d %.30q %v", binary, len(data), data, err)
		if err := c.send(binary, strings.ToUpper(data)); err != nil {
			t.Error(err)
		}
	}
	v.add("server waited: %v", c.wait())
}

var said = []string{"hello", strings.Repeat("a long one, again and again. ", 5000), "12 €"}

// Case F21: TestWebSockets lets every pair of libraries talk, with and without
// compression and TLS, bare and captured on both sides.
func TestWebSockets(t *testing.T) {
	for _, server := range []string{"gorilla", "coder", "plain"} {
		for _, client := range []string{"gorilla", "coder"} {
			for _, both := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s serves %s, compression and TLS %t", server, client, both), func(t *testing.T) {
					webSocket(t, server, client, both, both)
				})
			}
		}
	}
}

func webSocket(t *testing.T, server, client string, compress, secure bool) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	nats := natstest.Start(t)
	storage := subjects.Storage{Memory: true}
	nats.Streams(subjects.DefaultSpace, storage)
	p, err := producer.Start(producer.Options{Service: "talker", Instance: "test", URL: nats.URL()})
	if err != nil {
		t.Fatal(err)
	}
	bare, captured := &view{}, &view{}
	converse(ctx, t, bare, nil, server, client, compress, secure)
	converse(ctx, t, captured, p, server, client, compress, secure)
	if bare.sorted() != captured.sorted() || len(bare.lines) < 8 {
		t.Errorf("without capture:\n%s\n\nwith capture:\n%s", bare, captured)
	}
	// The server's side may end a moment after the client's.
	eventually(t, "both sides ended", func() bool {
		if err := p.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		s := foldStream(t, nats.Read(streamName(subjects.RecordStream(subjects.DefaultSpace, storage))))
		return len(s.Requests) == 2 && s.Requests[0].Ending != network.Running && s.Requests[1].Ending != network.Running
	})
	if err := p.Close(ctx); err != nil {
		t.Fatal(err)
	}
	s := foldStream(t, nats.Read(streamName(subjects.RecordStream(subjects.DefaultSpace, storage))))
	for _, r := range s.Requests {
		out := r.Start.Value.Direction == network.Outgoing
		if r.Ending != network.Finished || r.Start.Value.Type != "websocket" || r.Response == nil || r.Response.Value.Status != 101 || r.Response.Value.HasBody {
			t.Errorf("outgoing %t: ended %q, start %+v, response %+v, end %+v", out, r.Ending, r.Start.Value, r.Response, r.End)
		}
		var got []string
		for _, m := range r.Messages {
			if m.T < r.Response.T {
				t.Error("a message before the response")
			}
			got = append(got, fmt.Sprintf("client=%t %d %d %d %t %.40q", m.Value.Sent == out, m.Value.Opcode, m.Value.Code, m.Value.Bytes, m.Value.Base64, m.Value.Data))
		}
		for _, text := range said {
			size := 0
			if len(text) > 64<<10 {
				size = len(text)
			}
			for client, text := range map[bool]string{true: text, false: strings.ToUpper(text)} {
				if want := fmt.Sprintf("client=%t 1 0 %d false %.40q", client, size, text); !slices.Contains(got, want) {
					t.Errorf("outgoing %t: no message %s in\n%s", out, want, strings.Join(got, "\n"))
				}
			}
		}
		for _, want := range []string{`client=true 2 0 0 true "/wAB"`, `client=true 8 1001 0 false "going"`} {
			if !slices.Contains(got, want) {
				t.Errorf("outgoing %t: no message %s in\n%s", out, want, strings.Join(got, "\n"))
			}
		}
		if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "client=true 9 ") }) {
			t.Errorf("outgoing %t: no ping in\n%s", out, strings.Join(got, "\n"))
		}
	}
}

// converse plays one conversation. With a nil producer nothing is captured.
func converse(ctx context.Context, t *testing.T, v *view, p *producer.Producer, server, client string, compress, secure bool) {
	done := make(chan struct{})
	var opts []httpcap.Option
	if server == "plain" {
		opts = append(opts, httpcap.WithWebSockets())
	}
	srv := httptest.NewUnstartedServer(httpcap.Handler(p, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(done)
		up := &websocket.Upgrader{EnableCompression: compress}
		switch server {
		case "coder":
			mode := coder.CompressionDisabled
			if compress {
				mode = coder.CompressionContextTakeover
			}
			c, err := codercap.Accept(w, r, &coder.AcceptOptions{CompressionMode: mode})
			if err != nil {
				t.Error(err)
				return
			}
			c.SetReadLimit(1 << 20)
			parrot(t, v, coderTalk{c, ctx}, len(said)+1)
		case "gorilla":
			c, err := gorillacap.Upgrade(up, w, r, nil)
			if err != nil {
				t.Error(err)
				return
			}
			v.add("server's connection %v", c.LocalAddr().Network())
			parrot(t, v, gorillaTalk{c}, len(said)+1)
		default:
			c, err := up.Upgrade(w, r, nil)
			if err != nil {
				t.Error(err)
				return
			}
			parrot(t, v, gorillaTalk{c}, len(said)+1)
		}
	}), opts...))
	if secure {
		srv.StartTLS()
	} else {
		srv.Start()
	}
	defer srv.Close()
	var c talk
	switch client {
	case "coder":
		mode := coder.CompressionDisabled
		if compress {
			mode = coder.CompressionContextTakeover
		}
		conn, resp, err := codercap.Dial(ctx, p, srv.URL, &coder.DialOptions{HTTPClient: srv.Client(), CompressionMode: mode})
		if err != nil {
			t.Fatal(err)
		}
		conn.SetReadLimit(1 << 20)
		v.add("client: %d %s", resp.StatusCode, resp.Header.Get("Upgrade"))
		c = coderTalk{conn, ctx}
	default:
		d := &websocket.Dialer{EnableCompression: compress}
		if secure {
			d.TLSClientConfig = srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
			d.TLSClientConfig.NextProtos = nil
		}
		conn, resp, err := gorillacap.Dial(ctx, p, d, "ws"+strings.TrimPrefix(srv.URL, "http"), nil)
		if err != nil {
			t.Fatal(err)
		}
		v.add("client: %d %s", resp.StatusCode, resp.Header.Get("Upgrade"))
		c = gorillaTalk{conn}
	}
	for _, text := range append(slices.Clone(said), "\xff\x00\x01") {
		if err := c.send(text == "\xff\x00\x01", text); err != nil {
			t.Fatal(err)
		}
		binary, data, err := c.receive()
		v.add("client received binary=%t %d %.30q %v", binary, len(data), data, err)
	}
	v.add("client pings: %v, leaves: %v", c.ping(), c.leave())
	<-done
}

// TestReverseProxyOfWebSocket sends a WebSocket through httputil.ReverseProxy
// with our RoundTripper below and our handler above: it works, and is told.
func TestReverseProxyOfWebSocket(t *testing.T) {
	out, in := httpcap.NewFake(), httpcap.NewFake()
	v := &view{}
	backend := serve(t, func(w http.ResponseWriter, r *http.Request) {
		c, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		parrot(t, v, gorillaTalk{c}, 1)
	})
	target, err := url.Parse(backend.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: httpcap.NewTransport(out, bare(t))}
	front := serve(t, httpcap.NewHandler(in, proxy).ServeHTTP)
	conn, _, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(front.URL, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	c := gorillaTalk{conn}
	if err := c.send(false, "hello"); err != nil {
		t.Fatal(err)
	}
	if _, data, err := c.receive(); data != "HELLO" || err != nil {
		t.Errorf("received %q, %v", data, err)
	}
	if err := c.leave(); err != nil {
		t.Error(err)
	}
	if r := one(t, out); r.Response.Value.Status != 101 || len(r.Messages) < 3 || r.Messages[0].Value.Data != "hello" || !r.Messages[0].Value.Sent || r.Messages[1].Value.Data != "HELLO" {
		t.Errorf("below the proxy: %+v", r.Messages)
	}
	if r := one(t, in); r.Response.Value.Status != 101 {
		t.Errorf("above the proxy: %+v", r.Response)
	}
}

// TestSocketsThatDoNotOpen tells why.
func TestSocketsThatDoNotOpen(t *testing.T) {
	f := httpcap.NewFake()
	refuses := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Error(w, "not here", http.StatusForbidden) })
	for _, rawURL := range []string{"ws" + strings.TrimPrefix(refuses.URL, "http"), "ws://127.0.0.1:1/"} {
		ctx, s := httpcap.DialSocket(t.Context(), f, rawURL, nil)
		d := websocket.Dialer{NetDialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return s.Conn(conn), nil
		}}
		_, resp, err := d.DialContext(ctx, rawURL, nil)
		s.Opened(resp, err)
		if err == nil {
			t.Fatal("it opens")
		}
	}
	rs := requests(t, f)
	if rs[0].Response == nil || rs[0].Response.Value.Status != 403 || rs[0].Ending != network.Finished {
		t.Errorf("refused: %q %+v", rs[0].Ending, rs[0].Response)
	}
	if rs[1].Ending != network.Failed || !strings.Contains(rs[1].Error.Text, "refused") {
		t.Errorf("nobody there: %q %+v", rs[1].Ending, rs[1].Error)
	}
}

// TestSocketThatBreaks ends the record of a connection without a goodbye, once.
func TestSocketThatBreaks(t *testing.T) {
	f := httpcap.NewFake()
	srv := serve(t, httpcap.NewHandler(f, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httpcap.Observe(r)
		c, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		if nc, ok := c.NetConn().(interface{ NetConn() net.Conn }); !ok || fmt.Sprintf("%T", nc.NetConn()) != "*net.TCPConn" {
			t.Errorf("the connection is a %T", c.NetConn())
		}
		_, _, err = c.ReadMessage()
		if err == nil {
			t.Error("a message came")
		}
		c.Close()
	})).ServeHTTP)
	c, _, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(srv.URL, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if r := one(t, f); r.Ending != network.FinishedTruncated || r.End.Error != io.EOF.Error() {
		t.Errorf("ended %q %+v", r.Ending, r.End)
	}
}
