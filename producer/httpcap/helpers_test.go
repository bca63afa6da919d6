package httpcap_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/natscope/natscope/producer/httpcap"
	"github.com/natscope/natscope/subjects/network"
)

func TestMain(m *testing.M) {
	// The examples connect to the usual server; they must not appear in a natscope that runs on this machine.
	_ = os.Setenv("NATS_URL", "nats://127.0.0.1:1")
	code := m.Run()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// eventually polls until ok or ten seconds have passed.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
		<-tick.C
	}
}

// requests returns the folded requests once every one has ended.
func requests(t *testing.T, f *httpcap.Fake) []*network.Request {
	t.Helper()
	var out []*network.Request
	eventually(t, "every request ended", func() bool {
		var err error
		if out, err = f.Fold(); err != nil {
			t.Fatal(err)
		}
		return !slices.ContainsFunc(out, func(r *network.Request) bool { return r.Ending == network.Running })
	})
	if open := f.Unended(); len(open) > 0 {
		t.Fatalf("bodies without an end: %v", open)
	}
	return out
}

// one returns the only request.
func one(t *testing.T, f *httpcap.Fake) *network.Request {
	t.Helper()
	all := requests(t, f)
	if len(all) != 1 {
		t.Fatalf("%d requests, want 1", len(all))
	}
	return all[0]
}

// view is what an application, or a server, sees; the tests compare two of them.
type view struct {
	mu    sync.Mutex
	lines []string
}

func (v *view) add(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lines = append(v.lines, fmt.Sprintf(format, args...))
}

func (v *view) String() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return strings.Join(v.lines, "\n")
}

// sorted is for what client and server see side by side.
func (v *view) sorted() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return strings.Join(slices.Sorted(slices.Values(v.lines)), "\n")
}

var ports = regexp.MustCompile(`(127\.0\.0\.1|\[::1\]):\d+`)

// err adds an error: its text without ports, and what programs ask of it.
func (v *view) err(err error) {
	if err == nil {
		v.add("no error")
		return
	}
	var timeout net.Error
	v.add("error %s timeout=%t eof=%t", ports.ReplaceAllString(err.Error(), "HOST"),
		errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF))
}

// response adds a response with its body, read to the end and closed.
func (v *view) response(req *http.Request, resp *http.Response, err error) {
	v.err(err)
	if resp == nil {
		return
	}
	v.head(req, resp)
	body, err := io.ReadAll(resp.Body)
	v.add("body %d %x", len(body), sha256.Sum256(body))
	v.err(err)
	v.headers("trailer", resp.Trailer)
	v.err(resp.Body.Close())
	_, err = resp.Body.Read(make([]byte, 1))
	v.add("read after close: %v", err)
}

func (v *view) head(req *http.Request, resp *http.Response) {
	v.add("%s %s length=%d te=%v uncompressed=%t close=%t nobody=%t same=%t", resp.Proto, resp.Status, resp.ContentLength,
		resp.TransferEncoding, resp.Uncompressed, resp.Close, resp.Body == http.NoBody, resp.Request == req)
	v.headers("header", resp.Header)
}

func (v *view) headers(kind string, h http.Header) {
	var names []string
	for name := range h {
		if name != "Date" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		v.add("%s %s: %s", kind, name, ports.ReplaceAllString(fmt.Sprintf("%q", h[name]), "HOST"))
	}
}

// seen adds a request as the server received it.
func (v *view) seen(r *http.Request) {
	body, err := io.ReadAll(r.Body)
	v.add("server: %s %s %s length=%d te=%v body %d %x %v", r.Proto, r.Method, r.RequestURI, r.ContentLength, r.TransferEncoding, len(body), sha256.Sum256(body), err)
	v.headers("server header", r.Header)
}

// serve starts a server for one test.
func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// bare returns a transport of its own, closed with the test.
func bare(t *testing.T) *http.Transport {
	t.Helper()
	tr := http.DefaultTransport.(*http.Transport).Clone()
	tr.Proxy = nil
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// get makes a request that must be valid.
func get(t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// newBenchServer answers every request with a small JSON body.
func newBenchServer(b *testing.B) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"ok":true}`)
	}))
	b.Cleanup(s.Close)
	return s.URL
}

// withHints calls f for every informational response.
func withHints(ctx context.Context, f func(code int, h http.Header)) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		f(code, http.Header(h))
		return nil
	}})
}
