package muxtree

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/producer/treecap/internal/treetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a mux on a real server; get is a client for it.
func serve(t *testing.T, m *Mux) (url string, get func(path string) int) {
	t.Helper()
	s := httptest.NewServer(m)
	t.Cleanup(s.Close)
	return s.URL, func(path string) int {
		t.Helper()
		resp, err := s.Client().Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode
	}
}

func hello(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }

func TestRoutes(t *testing.T) {
	r := treetest.New(t, natstest.Start(t))
	m := New(r.Tree.Root(), nil)
	m.HandleFunc("GET /hello/{name}", hello)
	m.HandleFunc("/gone", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) })
	m.Handle("POST example.com/posts", http.NotFoundHandler())
	m.Handle("/dir/", http.StripPrefix("/dir", http.FileServer(http.Dir(t.TempDir()))))
	if got, want := r.Show(), `
app
 route method=GET pattern=/hello/{name} count=0
 route pattern=/gone count=0
 route method=POST pattern=example.com/posts count=0
 route pattern=/dir/ count=0
`; got != want[1:] {
		t.Errorf("before any request\n%s", got)
	}
	_, get := serve(t, m)
	for path, want := range map[string]int{"/hello/a": 200, "/gone": 410, "/dir/none": 404, "/none": 404} {
		if got := get(path); got != want {
			t.Errorf("%s answers %d", path, got)
		}
	}
	get("/hello/b")
	r.Until("the routes count", func(text string) bool {
		return strings.Contains(text, "pattern=/hello/{name} count=2 active=0 status=200 took=") &&
			strings.Contains(text, "pattern=/gone count=1 active=0 status=410 took=") &&
			strings.Contains(text, "pattern=/dir/ count=1 active=0 status=404 took=")
	})
	root := r.Root()
	for i, want := range []string{"mux_test.go:", "mux_test.go:", "/net/http/server.go:"} {
		if loc := root.Children[i].Loc; !strings.Contains(loc, want) {
			t.Errorf("route %d is at %q", i, loc)
		}
	}
}

func TestRequestInFlight(t *testing.T) {
	r := treetest.New(t, natstest.Start(t))
	m := New(r.Tree.Root(), nil)
	entered, leave := make(chan struct{}), make(chan struct{})
	m.HandleFunc("/wait", func(http.ResponseWriter, *http.Request) { entered <- struct{}{}; <-leave })
	_, get := serve(t, m)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { get("/wait") })
		<-entered
	}
	if got := r.Show(); !strings.Contains(got, "count=2 active=2") {
		t.Errorf("in flight\n%s", got)
	}
	close(leave)
	wg.Wait()
	r.Until("none is active", func(text string) bool { return strings.Contains(text, "count=2 active=0 status=200") })
}

func TestPanics(t *testing.T) {
	r := treetest.New(t, natstest.Start(t))
	m := New(r.Tree.Root(), nil)
	m.HandleFunc("/abort", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	url, _ := serve(t, m)
	if resp, err := http.Get(url + "/abort"); err == nil {
		resp.Body.Close()
		t.Error("an aborted handler answers")
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	r.Until("the panic is shown", func(text string) bool { return strings.Contains(text, "count=1 active=0 status=panic") })
	for name, f := range map[string]func(){
		"a malformed pattern": func() { m.HandleFunc("GET  x", hello) },
		"a taken pattern":     func() { m.HandleFunc("/abort", hello) },
		"a nil function":      func() { m.HandleFunc("/nil", nil) },
		"a nil handler":       func() { m.Handle("/nil", nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s does not panic", name)
				}
			}()
			f()
		}()
	}
	if got := r.Show(); strings.Count(got, "route") != 1 {
		t.Errorf("refused routes are shown\n%s", got)
	}
}

func TestStatus(t *testing.T) {
	r := treetest.New(t, natstest.Start(t))
	m := New(r.Tree.Root(), nil)
	m.HandleFunc("/early", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusTeapot)
	})
	m.HandleFunc("/late", func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		w.WriteHeader(http.StatusTeapot) // too late, the status is out
	})
	m.HandleFunc("/controller", func(w http.ResponseWriter, _ *http.Request) {
		c := http.NewResponseController(w)
		if err := c.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Error(err)
		}
		if err := c.Flush(); err != nil {
			t.Error(err)
		}
	})
	_, get := serve(t, m)
	for _, path := range []string{"/early", "/late", "/controller"} {
		get(path)
	}
	r.Until("all are counted", func(text string) bool {
		return strings.Contains(text, "pattern=/early count=1 active=0 status=418") &&
			strings.Contains(text, "pattern=/late count=1 active=0 status=200") &&
			strings.Contains(text, "pattern=/controller count=1 active=0 status=200")
	})
}

func TestWebSocketAndFiles(t *testing.T) {
	r := treetest.New(t, natstest.Start(t))
	m := New(r.Tree.Root(), nil)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f.bin"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	m.Handle("/", http.FileServer(http.Dir(dir)))
	m.HandleFunc("/ws", func(w http.ResponseWriter, req *http.Request) {
		c, err := (&websocket.Upgrader{}).Upgrade(w, req, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_ = c.WriteMessage(websocket.TextMessage, []byte("hi"))
	})
	url, get := serve(t, m)
	if get("/f.bin") != 200 {
		t.Error("the file is not served")
	}
	c, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(url, "http")+"/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, text, err := c.ReadMessage(); err != nil || string(text) != "hi" {
		t.Errorf("%q, %v", text, err)
	}
	r.Until("both are counted", func(text string) bool {
		return strings.Contains(text, "pattern=/ count=1 active=0 status=200") && strings.Contains(text, "pattern=/ws count=1 active=0 status=101")
	})
}

// bare can do what every writer can, and nothing more.
type bare struct{ http.ResponseWriter }

type canFlush struct{}

func (canFlush) Flush() {}

type canHijack struct{}

func (canHijack) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, http.ErrHijacked }

type canRead struct{}

func (canRead) ReadFrom(io.Reader) (int64, error) { return 7, nil }

type canPush struct{}

func (canPush) Push(string, *http.PushOptions) error { return http.ErrNotSupported }

// TestWriterHasWhatItHad goes through all sets of the optional interfaces.
func TestWriterHasWhatItHad(t *testing.T) {
	type (
		f = canFlush
		h = canHijack
		r = canRead
		p = canPush
	)
	base := bare{httptest.NewRecorder()}
	for i, w := range []http.ResponseWriter{
		base,
		struct {
			bare
			f
		}{base, f{}},
		struct {
			bare
			h
		}{base, h{}},
		struct {
			bare
			f
			h
		}{base, f{}, h{}},
		struct {
			bare
			r
		}{base, r{}},
		struct {
			bare
			f
			r
		}{base, f{}, r{}},
		struct {
			bare
			h
			r
		}{base, h{}, r{}},
		struct {
			bare
			f
			h
			r
		}{base, f{}, h{}, r{}},
		struct {
			bare
			p
		}{base, p{}},
		struct {
			bare
			f
			p
		}{base, f{}, p{}},
		struct {
			bare
			h
			p
		}{base, h{}, p{}},
		struct {
			bare
			f
			h
			p
		}{base, f{}, h{}, p{}},
		struct {
			bare
			r
			p
		}{base, r{}, p{}},
		struct {
			bare
			f
			r
			p
		}{base, f{}, r{}, p{}},
		struct {
			bare
			h
			r
			p
		}{base, h{}, r{}, p{}},
		struct {
			bare
			f
			h
			r
			p
		}{base, f{}, h{}, r{}, p{}},
	} {
		rec := &recorder{ResponseWriter: w}
		got := rec.writer()
		if a, b := abilities(w), abilities(got); a != b {
			t.Errorf("set %d: %s became %s", i, a, b)
		}
		if f, ok := got.(io.ReaderFrom); ok {
			if n, err := f.ReadFrom(nil); n != 7 || err != nil || rec.final() != 200 {
				t.Errorf("set %d: ReadFrom gives %d, %v", i, n, err)
			}
		}
	}
}

func abilities(w http.ResponseWriter) string {
	_, f := w.(http.Flusher)
	_, h := w.(http.Hijacker)
	_, r := w.(io.ReaderFrom)
	_, p := w.(http.Pusher)
	return fmt.Sprint("flush ", f, ", hijack ", h, ", read ", r, ", push ", p)
}

// BenchmarkServe compares a route with the bare mux.
func BenchmarkServe(b *testing.B) {
	r := treetest.New(b, natstest.Start(b))
	shown := New(r.Tree.Root(), nil)
	shown.HandleFunc("GET /hello", hello)
	plain := http.NewServeMux()
	plain.HandleFunc("GET /hello", hello)
	for name, h := range map[string]http.Handler{"plain": plain, "shown": shown} {
		b.Run(name, func(b *testing.B) {
			req := httptest.NewRequestWithContext(context.Background(), "GET", "/hello", nil)
			w := &sink{header: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, req)
			}
		})
	}
}

type sink struct{ header http.Header }

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) WriteHeader(int)             {}
