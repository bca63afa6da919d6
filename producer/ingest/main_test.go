package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
)

func TestMain(m *testing.M) {
	code := m.Run()
	stopChromium()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

const (
	space = subjects.DefaultSpace
	token = "test-token"
)

// rig is an ingest over a real broker, behind a real HTTP server.
type rig struct {
	t    *testing.T
	nats *natstest.Server
	conn *nats.Conn
	*Server
	http *httptest.Server
	// current is what the HTTP server serves: Server, until it is replaced.
	current atomic.Pointer[Server]
}

func newRig(t *testing.T, change ...func(*Options)) *rig {
	t.Helper()
	n := natstest.Start(t)
	n.Streams(space, subjects.Storage{Memory: true})
	r := &rig{t: t, nats: n, conn: n.Connect()}
	r.replace(change...)
	r.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		s := r.current.Load()
		if s == offline {
			panic(http.ErrAbortHandler)
		}
		s.Handler().ServeHTTP(w, req)
	}))
	t.Cleanup(func() {
		r.http.CloseClientConnections()
		r.closeServer()
		r.http.Close()
	})
	return r
}

// offline stands for no server at all: connections end without a word.
var offline = new(Server)

// replace puts a new ingest at the same address, as a restart does.
func (r *rig) replace(change ...func(*Options)) {
	r.t.Helper()
	o := Options{Conn: r.conn, Space: space, Token: token}
	for _, f := range change {
		f(&o)
	}
	s, err := New(o)
	if err != nil {
		r.t.Fatal(err)
	}
	r.Server = s
	r.current.Store(s)
}

func (r *rig) closeServer() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := r.Close(ctx); err != nil {
		r.t.Errorf("close: %v", err)
	}
}

// cut ends every page's socket without a word.
func (r *rig) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		c.abort()
	}
}

// state folds everything that was published so far.
func (r *rig) state() *fold.Space {
	s := fold.New(space, subjects.Limits{})
	for _, m := range r.nats.Read(subjects.RecordStreamName(space)) {
		s.Apply(m.Subject, subjects.StreamSeq(m.Seq), subjects.Header(m.Header), m.Data)
	}
	return s
}

// until polls the state until f finds in it what it waits for.
func (r *rig) until(what string, f func(*fold.Space) bool) *fold.Space {
	r.t.Helper()
	var s *fold.Space
	natstest.Until(r.t, what, func() bool { s = r.state(); return f(s) })
	return s
}

// source waits for a source to be open.
func (r *rig) source(id string) *fold.Source {
	r.t.Helper()
	return r.until("source "+id+" opens", func(s *fold.Space) bool {
		src := s.Source(subjects.SourceID(id))
		return src != nil && src.Life.Opened
	}).Source(subjects.SourceID(id))
}

// peer is a page made by hand.
type peer struct {
	t  *testing.T
	ws *websocket.Conn
	n  uint64
}

// dial opens a socket. Empty protocols mean the right ones.
func (r *rig) dial(origin string, protocols ...string) (*peer, *http.Response, error) {
	if protocols == nil {
		protocols = []string{"natscope.1", "natscope.token." + token}
	}
	h := http.Header{}
	if origin != "" {
		h.Set("Origin", origin)
	}
	d := websocket.Dialer{Subprotocols: protocols, HandshakeTimeout: 5 * time.Second}
	ws, resp, err := d.Dial("ws"+strings.TrimPrefix(r.http.URL, "http")+"/ingest", h)
	if err != nil {
		return nil, resp, err
	}
	r.t.Cleanup(func() { ws.Close() })
	return &peer{t: r.t, ws: ws}, resp, nil
}

var realms atomic.Int64

// page connects and says hello under the wanted id.
func (r *rig) page(id string) (*peer, Welcome) {
	r.t.Helper()
	return r.pageOf(id, fmt.Sprintf("realm-%d", realms.Add(1)))
}

func (r *rig) pageOf(id, realm string) (*peer, Welcome) {
	r.t.Helper()
	p, _, err := r.dial("http://localhost:1234")
	if err != nil {
		r.t.Fatal(err)
	}
	p.send(map[string]any{"type": "hello", "version": 1, "id": id, "realm": realm, "now": 1000, "url": "http://localhost:1234/", "title": "A page"})
	var w Welcome
	p.expect(MsgWelcome, &w)
	return p, w
}

func (p *peer) send(v any) {
	p.t.Helper()
	if err := p.ws.WriteJSON(v); err != nil {
		p.t.Fatal(err)
	}
}

// records sends a numbered batch of console messages.
func (p *peer) log(texts ...string) uint64 {
	p.t.Helper()
	var recs []any
	for i, text := range texts {
		recs = append(recs, map[string]any{"t": 1000 + i, "topic": "message", "data": map[string]any{"type": "log", "args": []any{text}}})
	}
	p.n++
	p.send(map[string]any{"type": "records", "n": p.n, "plane": "console", "records": recs})
	return p.n
}

// next reads the next message and returns its type.
func (p *peer) next() (string, []byte, error) {
	_ = p.ws.SetReadDeadline(time.Now().Add(10 * time.Second))
	_, data, err := p.ws.ReadMessage()
	if err != nil {
		return "", nil, err
	}
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return "", nil, err
	}
	return head.Type, data, nil
}

// expect reads messages until one of the wanted type comes, and decodes it.
// Pings are answered on the way.
func (p *peer) expect(kind string, v any) {
	p.t.Helper()
	for {
		got, data, err := p.next()
		if err != nil {
			p.t.Fatalf("waiting for %s: %v", kind, err)
		}
		if got == MsgPing {
			p.send(map[string]string{"type": MsgPong})
		}
		if got != kind {
			if got == MsgRejected {
				p.t.Fatalf("waiting for %s, got %s", kind, data)
			}
			continue
		}
		if v != nil {
			if err := json.Unmarshal(data, v); err != nil {
				p.t.Fatal(err)
			}
		}
		return
	}
}

// answering answers pings until the returned function is called, and drops everything else that comes.
func (p *peer) answering() (stop func()) {
	done := make(chan struct{})
	_ = p.ws.SetReadDeadline(time.Time{})
	go func() {
		defer close(done)
		for {
			_, data, err := p.ws.ReadMessage()
			if err != nil {
				return
			}
			if strings.Contains(string(data), `"`+MsgPing+`"`) {
				_ = p.ws.WriteJSON(map[string]string{"type": MsgPong}) // The page may be gone.
			}
		}
	}()
	return func() {
		_ = p.ws.SetReadDeadline(time.Now())
		<-done
	}
}

// acked waits until the number is acknowledged.
func (p *peer) acked(n uint64) {
	p.t.Helper()
	for {
		var a Ack
		p.expect(MsgAck, &a)
		if a.N >= n {
			return
		}
	}
}

// rejected waits for a rejection and for the socket to end after it.
func (p *peer) rejected(code string) Rejected {
	p.t.Helper()
	var r Rejected
	p.expect(MsgRejected, &r)
	if r.Code != code || r.Reason == "" {
		p.t.Errorf("rejected with %+v, wanted the code %q and a reason", r, code)
	}
	for {
		if _, _, err := p.next(); err != nil {
			return r
		}
	}
}

func body(t *testing.T, resp *http.Response, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// texts returns the first argument of every console message of a source.
func texts(src *fold.Source) []string {
	var out []string
	if src == nil {
		return nil
	}
	for _, e := range src.Console.Entries {
		if e.Message != nil && len(e.Message.Args) > 0 {
			var s string
			_ = json.Unmarshal(e.Message.Args[0], &s)
			out = append(out, s)
		}
	}
	return out
}
