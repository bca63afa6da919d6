package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/embedded"
	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/goreal"
	"github.com/natscope/natscope/store/command"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
)

// BenchmarkEvaluate is the round trip of an evaluation: from an asker of the
// command plane to the realm of a Go program and back (session), and from a
// DevTools through a gateway (devtools; audited is one that may change something
// and is written to the audit first); beside one request and reply of the client
// library on the same server (bare) and with a WebSocket in front of it
// (bare-ws). All take turns.
func BenchmarkEvaluate(b *testing.B) {
	i, err := embedded.Start(b.Context(), embedded.Options{HTTPAddr: "127.0.0.1:0", NATSAddr: "127.0.0.1:0"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = i.Close(ctx)
	})
	p := startProducer(b, producer.Options{ID: "bench", URL: i.NATS()})
	goreal.New(p, goreal.Options{})

	asker, echo := connect(b, i.NATS()), connect(b, i.NATS())
	if _, err := echo.Subscribe("bench.echo", func(m *nats.Msg) {
		_ = m.Respond([]byte(`{"ok":true,"result":{"result":{"type":"number","value":2}}}`))
	}); err != nil {
		b.Fatal(err)
	}
	_ = echo.Flush()
	request := []byte(`{"method":"runtime.evaluate","params":{"expression":"1+1","throwOnSideEffect":true},"session":{"gateway":"gw","id":"s"}}`)
	bare := func() {
		if _, err := asker.Request("bench.echo", request, patience); err != nil {
			b.Fatal(err)
		}
	}

	c, err := command.New(connect(b, i.NATS()), subjects.DefaultSpace, "bench")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	sessions := command.NewSessions(c, "bench", nil)
	b.Cleanup(sessions.Close)
	at := command.At{Source: p.ID(), Generation: p.Generation()}
	session := func() {
		ctx, cancel := context.WithTimeout(b.Context(), patience)
		defer cancel()
		if _, err := sessions.Do(ctx, at, "s", realm.Request{Method: realm.MethodEvaluate, Params: json.RawMessage(`{"expression":"1+1","throwOnSideEffect":true}`)}); err != nil {
			b.Fatal(err)
		}
	}

	ws, _, err := websocket.DefaultDialer.DialContext(b.Context(), strings.Replace(i.HTTP(), "http:", "ws:", 1)+"/devtools/page/dev/bench", nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { ws.Close() })
	n := 0
	evaluate := func(more string) bool {
		n++
		if err := ws.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `{"id":%d,"method":"Runtime.evaluate","params":{"expression":"1+1"%s}}`, n, more)); err != nil {
			b.Fatal(err)
		}
		for {
			_, data, err := ws.ReadMessage()
			if err != nil {
				b.Fatal(err)
			}
			if strings.HasPrefix(string(data), fmt.Sprintf(`{"id":%d,`, n)) {
				return strings.Contains(string(data), `"value":2`)
			}
		}
	}
	until(b, "the program evaluates", func() bool { return evaluate("") })
	bws := bareWebSocket(b, bare)

	ways := map[string]func(){
		"bare": bare, "session": session, "bare-ws": bws,
		"devtools": func() { evaluate(`,"throwOnSideEffect":true`) }, "audited": func() { evaluate("") },
	}
	took := make(map[string]*sample)
	for name := range ways {
		took[name] = new(sample)
	}
	for b.Loop() {
		for name, f := range ways {
			for range 50 {
				start := time.Now()
				f()
				took[name].add(float64(time.Since(start)) / float64(time.Microsecond))
			}
		}
	}
	for name, s := range took {
		b.ReportMetric(s.median(), name+"-p50-µs")
	}
	b.ReportMetric(took["session"].median()/took["bare"].median(), "session-x-bare")
	b.ReportMetric(took["devtools"].median()/took["bare"].median(), "devtools-x-bare")
	b.ReportMetric(took["devtools"].median()/took["bare-ws"].median(), "devtools-x-bare-ws")
	b.ReportMetric(took["audited"].median()/took["bare-ws"].median(), "audited-x-bare-ws")
	silent(b)
}

// bareWebSocket returns a round trip over a WebSocket to a server that calls f for each message.
func bareWebSocket(b *testing.B, f func()) func() {
	b.Helper()
	up := websocket.Upgrader{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer ws.Close()
		for {
			kind, data, err := ws.ReadMessage()
			if err != nil {
				return
			}
			f()
			if ws.WriteMessage(kind, data) != nil {
				return
			}
		}
	}))
	b.Cleanup(srv.Close)
	ws, _, err := websocket.DefaultDialer.DialContext(b.Context(), strings.Replace(srv.URL, "http:", "ws:", 1), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { ws.Close() })
	return func() {
		if err := ws.WriteMessage(websocket.TextMessage, []byte(`{"id":1,"method":"Runtime.evaluate","params":{"expression":"1+1"}}`)); err != nil {
			b.Fatal(err)
		}
		if _, _, err := ws.ReadMessage(); err != nil {
			b.Fatal(err)
		}
	}
}
