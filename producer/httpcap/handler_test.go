package httpcap_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
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

func exchanges(t *testing.T) []exchange {
	file := filepath.Join(t.TempDir(), "file.txt")
	content := strings.Repeat("a line of a file\n", 20_000)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	get := "GET /things/7?q=1 HTTP/1.1\r\n" + closing
	return []exchange{
		{name: "a page", send: get, ending: network.Finished, status: 200, response: "<p>hello",
			handle: func(v *view, w http.ResponseWriter, r *http.Request) { io.WriteString(w, "<p>hello") },
			check: func(t *testing.T, r *network.Request) {
				s, p := r.Start.Value, r.Response.Value
				if s.URL != "http://shop.test/things/7?q=1" || s.Headers[0] != (network.Header{"Host", "shop.test"}) || s.HasBody || s.Route != "" {
					t.Errorf("start %+v", s)
				}
				if p.Route != "/things/{id}" || p.MIMEType != "text/html" || p.Charset != "utf-8" || p.Protocol != "http/1.1" || p.RemoteIP != "127.0.0.1" || p.RemotePort == 0 {
					t.Errorf("response %+v", p)
				}
				if tm := p.Timing; tm.DNSStart != -1 || tm.TLSEnd != -1 || tm.HeadersEnd < tm.SendEnd || tm.HeadersEnd <= 0 {
					t.Errorf("timing %+v", tm)
				}
				if fmt.Sprint(header(r, "Content-Length"), header(r, "Content-Type")) != "[8] [text/html; charset=utf-8]" {
					t.Errorf("headers %q", p.Headers)
				}
			}},
		{name: "nothing", send: get, ending: network.Finished, status: 200,
			handle: func(*view, http.ResponseWriter, *http.Request) {},
			check: func(t *testing.T, r *network.Request) {
				if r.Response.Value.HasBody || header(r, "Content-Length")[0] != "0" {
					t.Errorf("response %+v", r.Response.Value)
				}
			}},
		{name: "HEAD", send: "HEAD /things/7 HTTP/1.1\r\n" + closing, ending: network.Finished, status: 200,
			handle: func(v *view, w http.ResponseWriter, r *http.Request) {
				n, err := io.WriteString(w, "hello")
				v.add("%d %v", n, err)
			}},
		{name: "204", send: get, ending: network.Finished, status: 204,
			handle: func(v *view, w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(204)
				n, err := w.Write([]byte("refused"))
				v.add("%d %v", n, err)
			}},
		{name: "304", send: get, ending: network.Finished, status: 304,
			handle: func(v *view, w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Etag", `"x"`)
				w.WriteHeader(304)
			}},
		{name: "early hints", send: get, ending: network.Finished, status: 201, response: "ok",
			handle: func(v *view, w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Link", "</a.css>; rel=preload")
				w.WriteHeader(103)
				w.WriteHeader(201)
				w.WriteHeader(500)
				io.WriteString(w, "ok")
			}},
		{name: "duplicate headers and bytes that are not UTF-8", send: get, ending: network.Finished, status: 200,
			handle: func(v *view, w http.ResponseWriter, r *http.Request) {
				w.Header()["Set-Cookie"] = []string{"a=1", "b=\xff"}
				w.Header()["Date"] = nil
				w.Header()["Content-Type"] = nil
			},
			check: func(t *testing.T, r *network.Request) {
				if got := header(r, "Set-Cookie"); !slices.Equal(got, []string{"a=1", "b=ÿ"}) {
					t.Errorf("cookies %q", got)
				}
			}},
		{name: "a long body in pieces", send: get, ending: network.Finished, status: 200, response: strings.Repeat("0123456789", 1000),
			handle: func(v *view, w http.ResponseWriter, r *http.Request) {
				for range 1000 {
					io.WriteString(w, "0123456789")
				}
			},
			check: func(t *testing.T, r *network.Request) {
				if r.End.Bytes != 10_000 || r.Received.Bytes != 10_000 || header(r, "Content-Length") != nil {
					t.Errorf("end %+v, received %+v", r.End, r.Received)
				}
			}},
		{name: "flushed pieces", send: get, ending: network.Finished, status: 200, response: "one two",
			handle: func(v *view, w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, "one ")
				w.(http.Flusher).Flush()
				w.Write([]byte("two"))
				v.add("%v", http.NewResponseController(w).Flush())
			}},
		{name: "announced and late trailers", send: get, ending: network.Finished, status: 200, response: "ok",
			handle: func(v *view, w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Trailer", "X-Sum, x-none")
				io.WriteString(w, "ok")
				w.Header().Set("X-Sum", "42")
				w.Header().Set(http.TrailerPrefix+"X-Late", "7")
			},
			check: func(t *testing.T, r *network.Request) {
				if got := fmt.Sprint(r.End.Trailers); got != "[[X-Sum 42] [X-Late 7]]" {
					t.Errorf("trailers %s", got)
				}
			}},
		{name: "a file by ReadFrom", send: get, ending: network.Finished, status: 200, response: content,
			handle: func(v *view, w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, file) },
			check: func(t *testing.T, r *network.Request) {
				if r.Response.Value.MIMEType != "text/plain" || r.End.Bytes != int64(len(content)) {
					t.Errorf("response %+v, end %+v", r.Response.Value, r.End)
				}
			}},
		{name: "an empty source, then an error", send: get, ending: network.Finished, status: 404, response: "none\n",
			handle: func(v *view, w http.ResponseWriter, r *http.Request) {
				n, err := w.(io.ReaderFrom).ReadFrom(strings.NewReader(""))
				v.add("%d %v", n, err)
				http.Error(w, "none", 404)
			}},
		{name: "a range of a file", send: "GET /things/7 HTTP/1.1\r\nRange: bytes=2-5\r\n" + closing, ending: network.Finished, status: 206, response: "line",
			handle: func(v *view, w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, file) }},
		{name: "an upload", send: "POST /things/7 HTTP/1.1\r\nContent-Length: 9\r\n" + closing + "some data", ending: network.Finished, status: 200, request: "some data",
			handle: func(v *view, w http.ResponseWriter, r *http.Request) { v.seen(r) },
			check: func(t *testing.T, r *network.Request) {
				if b := r.BodyEnd; b == nil || b.Value.Bytes != 9 || b.Value.Truncated || !r.Start.Value.HasBody || r.Start.Value.BodyBytes != 9 {
					t.Errorf("body end %+v, start %+v", b, r.Start.Value)
				}
			}},
		{name: "a chunked upload with trailers", ending: network.Finished, status: 200, request: "some data",
			send:   "POST /things/7 HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n" + closing + "4\r\nsome\r\n5\r\n data\r\n0\r\nX-T: 1\r\n\r\n",
			handle: func(v *view, w http.ResponseWriter, r *http.Request) { v.seen(r); v.headers("trailer", r.Trailer) }},
		{name: "an upload that nobody reads", send: "POST /things/7 HTTP/1.1\r\nContent-Length: 9\r\n" + closing + "some data", ending: network.Finished, status: 200,
			handle: func(v *view, w http.ResponseWriter, r *http.Request) { v.add("not read") },
			check: func(t *testing.T, r *network.Request) {
				if b := r.BodyEnd; b == nil || b.Value.Bytes != 0 {
					t.Errorf("body end %+v", b)
				}
			}},
		{name: "an upload in JSON", send: "POST /things/7 HTTP/1.1\r\nContent-Length: 7\r\n" + closing + `{"a":1}`, ending: network.Finished, status: 200, request: `{"a":1}`,
			handle: func(v *view, w http.ResponseWriter, r *http.Request) {
				var a map[string]int
				v.add("%v %v", json.NewDecoder(r.Body).Decode(&a), a)
			}},
		{name: "100-continue", ending: network.Finished, status: 200, request: "late",
			talk: func(t *testing.T, v *view, c net.Conn) {
				io.WriteString(c, "POST /things/7 HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4\r\n"+closing)
				in := bufio.NewReader(c)
				line, err := in.ReadString('\n')
				v.add("%q %v", line, err)
				io.WriteString(c, "late")
				v.wire(in)
			},
			handle: func(v *view, w http.ResponseWriter, r *http.Request) { v.seen(r) }},
		{name: "100-continue refused", send: "POST /things/7 HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4\r\n" + closing, ending: network.Finished, status: 417, response: "no\n",
			handle: func(v *view, w http.ResponseWriter, r *http.Request) {
				http.Error(w, "no", http.StatusExpectationFailed)
			}},
		{name: "a form within a limit set outside", send: "POST /things/7 HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\n" + closing + "a=b", ending: network.Finished, status: 200, request: "a=b",
			handle: func(v *view, w http.ResponseWriter, r *http.Request) {
				v.add("%v %v", r.ParseForm(), r.PostForm)
			}},
		{name: "a multipart form", ending: network.Finished, status: 200, request: multipartForm,
			send: "POST /things/7 HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=XX\r\nContent-Length: " + fmt.Sprint(len(multipartForm)) + "\r\n" + closing + multipartForm,
			handle: func(v *view, w http.ResponseWriter, r *http.Request) {
				v.add("%v %v %v", r.ParseMultipartForm(1), r.MultipartForm.Value, len(r.MultipartForm.File["f"]))
			}},
		{name: "a hijacked connection", send: get, ending: network.FinishedTruncated, status: 0,
			handle: func(v *view, w http.ResponseWriter, r *http.Request) {
				c, rw, err := w.(http.Hijacker).Hijack()
				v.add("%T %v %d", c, err, rw.Reader.Size())
				rw.WriteString("HTTP/1.1 200 OK\r\n\r\nby hand")
				rw.Flush()
				c.Close()
				_, err = w.Write([]byte("late"))
				v.add("%v", err)
			}},
		{name: "an upgraded connection", ending: network.FinishedTruncated, status: 101,
			send: "GET /things/7 HTTP/1.1\r\nHost: shop.test\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nping",
			handle: func(v *view, w http.ResponseWriter, r *http.Request) {
				c, rw, err := http.NewResponseController(w).Hijack()
				v.add("%T %v", c, err)
				defer c.Close()
				rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\n\r\n")
				buf := make([]byte, 4)
				_, err = io.ReadFull(rw, buf)
				rw.Write(buf)
				v.add("%s %v %v", buf, err, rw.Flush())
			}},
		{name: "a panic", send: get, ending: network.Failed,
			handle: func(v *view, w http.ResponseWriter, r *http.Request) { v.add("about to"); panic("boom") },
			check: func(t *testing.T, r *network.Request) {
				if e := r.Error.Text; !strings.HasPrefix(e, "panic: boom in ") || !strings.Contains(e, "handler_test.go:") {
					t.Errorf("error %q", e)
				}
			}},
		{name: "a panic in the body", send: get, ending: network.FinishedTruncated, status: 200, response: "half",
			handle: func(v *view, w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, "half")
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			},
			check: func(t *testing.T, r *network.Request) {
				if r.End.Error != "the handler aborted the response" {
					t.Errorf("end %+v", r.End)
				}
			}},
		{name: "a body shorter than announced", send: get, ending: network.FinishedTruncated, status: 200, response: "abc",
			handle: func(v *view, w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Length", "5")
				io.WriteString(w, "abc")
			}},
		{name: "a body longer than announced", send: get, ending: network.FinishedTruncated, status: 200, response: "abc",
			handle: func(v *view, w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Length", "3")
				io.WriteString(w, "abc")
				_, err := io.WriteString(w, "def")
				v.add("%v", err)
			}},
		{name: "a client that goes away", ending: network.Canceled,
			talk: func(t *testing.T, v *view, c net.Conn) { io.WriteString(c, get); c.Close() },
			handle: func(v *view, w http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
				v.add("%v", r.Context().Err())
			}},
		{name: "a client that leaves a stream", ending: network.FinishedTruncated, status: 200, response: "data: 1\n\n",
			talk: func(t *testing.T, v *view, c net.Conn) {
				io.WriteString(c, get)
				line, err := bufio.NewReader(c).ReadString('\n')
				v.add("%q %v", line, err)
				c.Close()
			},
			handle: func(v *view, w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(w, "data: 1\n\n")
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			},
			check: func(t *testing.T, r *network.Request) {
				if !r.End.Canceled || r.End.Error == "" {
					t.Errorf("end %+v", r.End)
				}
			}},
		{name: "deadlines and full duplex", send: get, ending: network.Finished, status: 200,
			handle: func(v *view, w http.ResponseWriter, r *http.Request) {
				c := http.NewResponseController(w)
				v.add("%v %v %v", c.SetReadDeadline(time.Now().Add(time.Minute)), c.SetWriteDeadline(time.Now().Add(time.Minute)), c.EnableFullDuplex())
			}},
		{name: "the methods of the writer", send: get, ending: network.Finished, status: 200,
			handle: func(v *view, w http.ResponseWriter, r *http.Request) { v.methods(w) }},
	}
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
