package httpcap_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/natscope/natscope/producer/httpcap"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// exchange is one conversation with a server, byte for byte, that is played with
// and without capture.
type exchange struct {
	name   string
	handle func(v *view, w http.ResponseWriter, r *http.Request)
	// send is what the client sends; it then reads until the server closes.
	send string
	// talk replaces send for clients that do more.
	talk func(t *testing.T, v *view, c net.Conn)
	// ending is that of the captured request, End and Error included where they have text.
	ending network.Ending
	// status is that of the recorded response, 0 for none.
	status int
	// request and response are the recorded bodies.
	request, response string
	check             func(t *testing.T, r *network.Request)
}

const closing = "Host: shop.test\r\nConnection: close\r\n\r\n"

var dates = regexp.MustCompile(`Date: [^\r]*\r\n`)

// TestServerSaysTheSame holds servers with and without capture to the same bytes on the wire.
func TestServerSaysTheSame(t *testing.T) {
	for _, x := range exchanges(t) {
		t.Run(x.name, func(t *testing.T) {
			want, got, f := &view{}, &view{}, httpcap.NewFake()
			x.run(t, want, func(h http.Handler) http.Handler { return h })
			x.run(t, got, func(h http.Handler) http.Handler { return httpcap.NewHandler(f, h) })
			if want.sorted() != got.sorted() {
				t.Errorf("without capture:\n%s\n\nwith capture:\n%s", want, got)
			}
			if len(want.lines) == 0 {
				t.Error("the exchange shows nothing")
			}
			r := one(t, f)
			if r.Ending != x.ending {
				t.Errorf("ended %q, want %q (end %+v, error %+v)", r.Ending, x.ending, r.End, r.Error)
			}
			if r.Start.Value.Direction != network.Incoming || !strings.HasPrefix(r.Start.Value.Client, "127.0.0.1:") {
				t.Errorf("start %+v", r.Start.Value)
			}
			status := 0
			if r.Response != nil {
				status = r.Response.Value.Status
			}
			if status != x.status {
				t.Errorf("status %d, want %d", status, x.status)
			}
			for d, want := range map[subjects.Direction]string{subjects.RequestBody: x.request, subjects.ResponseBody: x.response} {
				body := ""
				if b := f.Captured(r.ID(), d); b != nil {
					data, _, _ := b.Content()
					body = string(data)
				}
				if body != want {
					t.Errorf("%s body %.200q, want %.200q", d, body, want)
				}
			}
			if x.check != nil {
				x.check(t, r)
			}
			if n := f.LostCount(); n != 0 {
				t.Errorf("%d records were lost to bugs", n)
			}
		})
	}
}

func (x exchange) run(t *testing.T, v *view, wrap func(http.Handler) http.Handler) {
	done := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/things/{id}", func(w http.ResponseWriter, r *http.Request) {
		defer close(done)
		x.handle(v, w, r)
	})
	srv := httptest.NewUnstartedServer(wrap(mux))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.Start()
	defer srv.Close()
	c, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	if x.talk != nil {
		x.talk(t, v, c)
	} else {
		if _, err := io.WriteString(c, x.send); err != nil {
			t.Fatal(err)
		}
		v.wire(c)
	}
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("the handler does not return")
	}
}

// wire adds everything that comes until the end.
func (v *view) wire(r io.Reader) {
	data, err := io.ReadAll(r)
	v.add("wire %q %v", dates.ReplaceAllString(string(data), ""), err)
}

// header returns the recorded values of a response header.
func header(r *network.Request, name string) (out []string) {
	for _, h := range r.Response.Value.Headers {
		if h[0] == name {
			out = append(out, h[1])
		}
	}
	return out
}

const multipartForm = "--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--XX\r\n" +
	"Content-Disposition: form-data; name=\"f\"; filename=\"f.pdf\"\r\nContent-Type: application/pdf\r\n\r\n%PDF\xff\x00\r\n--XX--\r\n"

// methods adds which optional interfaces a ResponseWriter has.
func (v *view) methods(w http.ResponseWriter) {
	_, flusher := w.(http.Flusher)
	_, flushError := w.(interface{ FlushError() error })
	_, hijacker := w.(http.Hijacker)
	_, pusher := w.(http.Pusher)
	_, readerFrom := w.(io.ReaderFrom)
	_, stringWriter := w.(io.StringWriter)
	//lint:ignore SA1019 Old programs use it, so it must stay.
	_, notifier := w.(http.CloseNotifier)
	v.add("flusher %t %t, hijacker %t, pusher %t, reader from %t, string writer %t, notifier %t", flusher, flushError, hijacker, pusher, readerFrom, stringWriter, notifier)
}

// TestServerHTTP2 serves HTTP/2 with and without capture.
func TestServerHTTP2(t *testing.T) {
	want, got, f := &view{}, &view{}, httpcap.NewFake()
	for _, v := range []*view{want, got} {
		var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			v.seen(r)
			v.methods(w)
			w.Header().Set("Trailer", "X-Sum")
			w.WriteHeader(http.StatusTeapot)
			io.Copy(w, strings.NewReader(strings.Repeat("tea ", 5000)))
			v.add("%v", http.NewResponseController(w).Flush())
			w.Header().Set("X-Sum", "42")
		})
		if v == got {
			h = httpcap.NewHandler(f, h)
		}
		srv := httptest.NewUnstartedServer(h)
		srv.EnableHTTP2 = true
		srv.StartTLS()
		req, err := http.NewRequest("POST", srv.URL+"/x", pieced("in ", "pieces")())
		if err != nil {
			t.Fatal(err)
		}
		resp, err := srv.Client().Do(req)
		if err == nil {
			resp.Request = req
		}
		v.response(req, resp, err)
		srv.Close()
	}
	if want.sorted() != got.sorted() {
		t.Errorf("without capture:\n%s\n\nwith capture:\n%s", want, got)
	}
	r := one(t, f)
	p := r.Response.Value
	if p.Protocol != "h2" || p.Status != 418 || p.TLS == nil || p.TLS.Version != "TLS 1.3" || p.TLS.Cipher == "" || p.TLS.Subject != "" || !strings.HasPrefix(r.Start.Value.URL, "https://127.0.0.1") {
		t.Errorf("response %+v, TLS %+v", p, p.TLS)
	}
	if fmt.Sprint(r.End.Trailers) != "[[X-Sum 42]]" || r.End.Bytes != 20_000 || r.BodyEnd.Value.Bytes != 9 {
		t.Errorf("end %+v, body end %+v", r.End, r.BodyEnd)
	}
}

// TestServerUnderMiddleware wraps the handler inside of things that look at the request.
func TestServerUnderMiddleware(t *testing.T) {
	f := httpcap.NewFake()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		var tooLarge *http.MaxBytesError
		_, err := io.ReadAll(r.Body)
		fmt.Fprint(w, r.PathValue("id"), " ", errors.As(err, &tooLarge))
	})
	inner := httpcap.NewHandler(f, mux)
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 4)
		body := r.Body
		inner.ServeHTTP(w, r)
		if fmt.Sprintf("%T", r.Body) != fmt.Sprintf("%T", body) || r.Pattern != "POST /orders/{id}" || r.PathValue("id") != "7" {
			t.Errorf("the outer handler sees a body of type %T, pattern %q", r.Body, r.Pattern)
		}
	})
	resp, err := srv.Client().Post(srv.URL+"/orders/7", "text/plain", strings.NewReader("too long"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); string(body) != "7 true" {
		t.Errorf("the handler says %q", body)
	}
	if r := one(t, f); r.Response.Value.Route != "POST /orders/{id}" || r.BodyEnd.Value.Bytes != 4 {
		t.Errorf("route %q, body end %+v", r.Response.Value.Route, r.BodyEnd)
	}
}

func TestServerOptions(t *testing.T) {
	f := httpcap.NewFake()
	file := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(file, bytes.Repeat([]byte("x"), 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	h := httpcap.NewHandler(f, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, file) }),
		httpcap.WithoutBodies(), httpcap.WithFilter(func(r *http.Request) bool { return r.URL.Path != "/healthz" }),
		httpcap.WithRoute(func(*http.Request) string { return "GET /:file" }))
	srv := httptest.NewServer(h)
	defer srv.Close()
	for _, path := range []string{"/healthz", "/large"} {
		resp, err := srv.Client().Get(srv.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		if resp.Body.Close(); n != 1<<20 || err != nil {
			t.Errorf("%s: %d bytes, %v", path, n, err)
		}
	}
	r := one(t, f)
	if r.Start.Value.Route != "GET /:file" || r.Response.Value.Route != "" || r.End.Bytes != 1<<20 || r.End.Captured != 0 || !r.End.Truncated {
		t.Errorf("start %+v, end %+v", r.Start.Value, r.End)
	}
	if httpcap.Handler(nil, h) != h {
		t.Error("a handler without a producer is not the handler itself")
	}
}

// TestServerBugs lets every record of the capture panic: the handler must not notice.
func TestServerBugs(t *testing.T) {
	for n := range 5 {
		f := httpcap.NewFake()
		f.Panics = n
		srv := httptest.NewServer(httpcap.NewHandler(f, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(w, r.Body)
		})))
		resp, err := srv.Client().Post(srv.URL, "text/plain", strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if resp.Body.Close(); string(body) != "hello" || err != nil {
			t.Errorf("after %d records: %q, %v", n, body, err)
		}
		srv.Close()
		if lost := f.LostCount(); (lost > 0) != (n < 5) {
			t.Errorf("after %d records: %d lost", n, lost)
		}
	}
}

// TestDefault records what goes through http.DefaultTransport, which stays an *http.Transport.
func TestDefault(t *testing.T) {
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) }))
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	before := http.DefaultTransport
	mine := secure.Client().Transport.(*http.Transport).Clone()
	defer mine.CloseIdleConnections()
	http.DefaultTransport = mine
	defer func() { http.DefaultTransport = before }()

	f := httpcap.NewFake()
	restore := httpcap.SetDefault(f)
	resp, err := http.Post(srv.URL, "text/plain", strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	if resp.Body.Close(); string(body) != "hello" {
		t.Errorf("got %q", body)
	}
	for range 2 {
		if resp, err = http.Get(secure.URL); err != nil {
			t.Fatal(err)
		}
		body, _ = io.ReadAll(resp.Body)
		if resp.Body.Close(); string(body) != "HTTP/2.0" {
			t.Errorf("over TLS: %q", body)
		}
	}
	clone := http.DefaultTransport.(*http.Transport).Clone()
	resp, err = (&http.Client{Transport: clone}).Get(secure.URL)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body.Close(); resp.ProtoMajor != 2 {
		t.Errorf("a clone of the default speaks %s", resp.Proto)
	}
	clone.CloseIdleConnections()
	if _, err := http.Get("odd://host/"); err == nil || !strings.Contains(err.Error(), "unsupported protocol scheme") {
		t.Errorf("an unknown scheme: %v", err)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if restore(); http.DefaultTransport != mine {
		t.Error("the transport of before is not back")
	}
	rs := requests(t, f)
	if len(rs) != 3 {
		t.Fatalf("%d requests, want 3", len(rs))
	}
	if b := rs[0].BodyEnd; b.T != rs[0].Start.T && b.Value.Captured != 5 {
		t.Errorf("body end %+v", b)
	}
	tls := rs[2].Response.Value.TLS
	if rs[2].Response.Value.Protocol != "h2" || !rs[2].Response.Value.Reused || tls == nil || tls.Issuer != "Acme Co" && !strings.Contains(tls.Issuer, "Acme Co") || !slices.Contains(tls.Names, "example.com") || tls.ValidTo <= tls.ValidFrom {
		t.Errorf("response %+v, TLS %+v", rs[2].Response.Value, tls)
	}
	other := httpcap.SetDefault(f)
	http.DefaultTransport = before
	if other(); http.DefaultTransport != before {
		t.Error("restore replaced what somebody else had set")
	}
}

// TestServerTimeout serves through http.TimeoutHandler, which writes from another goroutine.
func TestServerTimeout(t *testing.T) {
	f := httpcap.NewFake()
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	srv := httptest.NewServer(httpcap.NewHandler(f, http.TimeoutHandler(slow, 20*time.Millisecond, "too slow")))
	defer srv.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if r := one(t, f); resp.StatusCode != 503 || r.Response.Value.Status != 503 || r.Ending != network.Finished {
		t.Errorf("status %d, %+v", resp.StatusCode, r.Response)
	}
}
