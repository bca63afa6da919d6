package httpcap_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"

	"github.com/natscope/natscope/producer/httpcap"
	"github.com/natscope/natscope/subjects/network"
)

// scene is one conversation that is played with and without capture.
type scene struct {
	name string
	// serve answers; it may add to the view what it saw.
	serve func(v *view, w http.ResponseWriter, r *http.Request)
	// h2 serves HTTP/2 over TLS.
	h2 bool
	// play is the application.
	play func(t *testing.T, v *view, rt http.RoundTripper, url string)
	// endings are those of the captured requests, in order.
	endings []network.Ending
	// check looks at the captured requests.
	check func(t *testing.T, f *httpcap.Fake, rs []*network.Request)
}

// TestApplicationSeesTheSame plays every scene with a bare transport and with a
// capturing one: application and server must see the same.
func TestApplicationSeesTheSame(t *testing.T) {
	for _, s := range append(scenes(), failures()...) {
		t.Run(s.name, func(t *testing.T) {
			want, got, f := &view{}, &view{}, httpcap.NewFake()
			s.run(t, want, func(rt http.RoundTripper) http.RoundTripper { return rt })
			s.run(t, got, func(rt http.RoundTripper) http.RoundTripper { return httpcap.NewTransport(f, rt) })
			if want.String() != got.String() {
				t.Errorf("without capture:\n%s\n\nwith capture:\n%s", want, got)
			}
			if len(want.lines) == 0 {
				t.Error("the scene shows nothing")
			}
			rs := requests(t, f)
			if len(rs) != len(s.endings) {
				t.Fatalf("%d requests were captured, want %d", len(rs), len(s.endings))
			}
			for i, r := range rs {
				if r.Ending != s.endings[i] {
					t.Errorf("request %d ended %q, want %q (end %+v, error %+v)", i, r.Ending, s.endings[i], r.End, r.Error)
				}
			}
			if s.check != nil {
				s.check(t, f, rs)
			}
			if n := f.LostCount(); n != 0 {
				t.Errorf("%d records were lost to bugs", n)
			}
		})
	}
}

func (s scene) run(t *testing.T, v *view, wrap func(http.RoundTripper) http.RoundTripper) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(v, w, r) }))
	if s.h2 {
		srv.EnableHTTP2 = true
		srv.StartTLS()
	} else {
		srv.Start()
	}
	defer srv.Close()
	tr := bare(t)
	if s.h2 {
		tr = srv.Client().Transport.(*http.Transport).Clone()
	}
	defer tr.CloseIdleConnections()
	s.play(t, v, wrap(tr), srv.URL)
}

// fetch is an application that makes one request.
func fetch(method, path string, body func() io.Reader, change ...func(*http.Request)) func(*testing.T, *view, http.RoundTripper, string) {
	return func(t *testing.T, v *view, rt http.RoundTripper, url string) {
		var r io.Reader
		if body != nil {
			r = body()
		}
		req, err := http.NewRequest(method, url+path, r)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range change {
			f(req)
		}
		before := req.Header.Clone()
		resp, err := rt.RoundTrip(req)
		v.response(req, resp, err)
		v.add("request headers unchanged: %t", fmt.Sprint(before) == fmt.Sprint(req.Header))
	}
}

func text(s string) func() io.Reader { return func() io.Reader { return strings.NewReader(s) } }

// pieced is a body that is not in memory as far as net/http can see.
func pieced(parts ...string) func() io.Reader {
	return func() io.Reader {
		var rs []io.Reader
		for _, p := range parts {
			rs = append(rs, strings.NewReader(p))
		}
		return io.MultiReader(rs...)
	}
}

func hello(v *view, w http.ResponseWriter, r *http.Request) {
	v.seen(r)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	io.WriteString(w, "hello")
}

func scenes() []scene {
	finished := []network.Ending{network.Finished}
	return []scene{
		{name: "GET", serve: hello, play: fetch("GET", "/a?b=c", nil), endings: finished, check: checkGET},
		{name: "GET over HTTP/2", h2: true, serve: hello, play: fetch("GET", "/a?b=c", nil), endings: finished,
			check: func(t *testing.T, f *httpcap.Fake, rs []*network.Request) {
				if r := rs[0].Response.Value; r.Protocol != "h2" || r.Timing.TLSEnd < r.Timing.TLSStart || r.Timing.TLSStart < 0 {
					t.Errorf("response %+v with timing %+v", r, r.Timing)
				}
			}},
		{name: "POST with a known size", serve: hello, play: fetch("POST", "/", text("the body")), endings: finished, check: checkPost("the body", 8)},
		{name: "POST with an unknown size", serve: hello, play: fetch("POST", "/", pieced("in ", "pieces")),
			endings: finished, check: checkPost("in pieces", -1)},
		{name: "POST in pieces over HTTP/2", h2: true, serve: hello, play: fetch("POST", "/", pieced("in ", "pieces")), endings: finished, check: checkPost("in pieces", -1)},
		{name: "POST of a buffer", serve: hello, play: fetch("POST", "/", func() io.Reader { return bytes.NewBufferString("buffered") }), endings: finished, check: checkPost("buffered", 8)},
		{name: "POST of bytes partly read", serve: hello, play: fetch("POST", "/", func() io.Reader {
			r := bytes.NewReader([]byte("skip the body"))
			r.Seek(5, io.SeekStart)
			return r
		}), endings: finished, check: checkPost("the body", 8)},
		{name: "POST over HTTP/2", h2: true, serve: hello, play: fetch("POST", "/", text("the body")), endings: finished, check: checkPost("the body", 8)},
		{name: "POST with NoBody", serve: hello, play: fetch("POST", "/", func() io.Reader { return http.NoBody }), endings: finished,
			check: func(t *testing.T, f *httpcap.Fake, rs []*network.Request) {
				if rs[0].Start.Value.HasBody || rs[0].BodyEnd != nil {
					t.Errorf("a body was captured: %+v", rs[0])
				}
			}},
		{name: "HEAD", serve: hello, play: fetch("HEAD", "/", nil), endings: finished},
		{name: "204", serve: func(v *view, w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) }, play: fetch("GET", "/", nil), endings: finished},
		{name: "304", serve: func(v *view, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Etag", `"x"`)
			w.WriteHeader(304)
		}, play: fetch("GET", "/", nil), endings: finished},
		{name: "empty 200", serve: func(v *view, w http.ResponseWriter, r *http.Request) {}, play: fetch("GET", "/", nil), endings: finished},
		{name: "500", serve: func(v *view, w http.ResponseWriter, r *http.Request) { http.Error(w, "broken", 500) }, play: fetch("GET", "/", nil), endings: finished},
		{name: "chunks and trailers", serve: trailers, play: fetch("GET", "/", nil), endings: finished},
		{name: "trailers over HTTP/2", h2: true, serve: trailers, play: fetch("GET", "/", nil), endings: finished},
		{name: "gzip is decoded", serve: zipped, play: fetch("GET", "/", nil), endings: finished,
			check: func(t *testing.T, f *httpcap.Fake, rs []*network.Request) {
				data, _, _ := f.Captured(rs[0].ID(), "res").Content()
				if want := strings.Repeat("squeeze me ", 1000); string(data) != want {
					t.Errorf("%d bytes captured, want the %d decoded ones", len(data), len(want))
				}
			}},
		{name: "gzip as asked for", serve: zipped, play: fetch("GET", "/", nil, func(r *http.Request) { r.Header.Set("Accept-Encoding", "gzip") }), endings: finished},
		{name: "Expect 100-continue in pieces", serve: hello, play: fetch("PUT", "/", pieced("pati", "ence"), func(r *http.Request) { r.Header.Set("Expect", "100-continue") }),
			endings: finished, check: checkPost("patience", -1)},
		{name: "Expect 100-continue", serve: hello, play: fetch("PUT", "/", text("patience"), func(r *http.Request) { r.Header.Set("Expect", "100-continue") }),
			endings: finished, check: checkPost("patience", 8)},
		{name: "Expect 100-continue refused", serve: func(v *view, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "close")
			http.Error(w, "no", http.StatusExpectationFailed)
		}, play: fetch("PUT", "/", pieced("pati", "ence"), func(r *http.Request) { r.Header.Set("Expect", "100-continue") }), endings: finished,
			check: func(t *testing.T, f *httpcap.Fake, rs []*network.Request) {
				if e := rs[0].BodyEnd; e == nil || e.Value.Bytes != 0 {
					t.Errorf("the body that was not sent ended as %+v", e)
				}
			}},
		{name: "redirects", serve: redirects, play: redirected, endings: []network.Ending{network.Finished, network.Finished, network.Finished}},
		{name: "one request twice", serve: hello, play: twice, endings: []network.Ending{network.Finished, network.Finished},
			check: func(t *testing.T, f *httpcap.Fake, rs []*network.Request) {
				if rs[0].Response.Value.Reused || !rs[1].Response.Value.Reused {
					t.Error("the second request reused the connection of the first, the records say otherwise")
				}
				if tm := rs[1].Response.Value.Timing; tm.ConnectStart != -1 || tm.SendStart < 0 {
					t.Errorf("timing on a reused connection: %+v", tm)
				}
			}},
		{name: "the application's own trace", serve: hello, play: ownTrace, endings: finished},
		{name: "F7 upgrade to another protocol", serve: upgrade, play: upgraded, endings: []network.Ending{network.FinishedTruncated},
			check: func(t *testing.T, f *httpcap.Fake, rs []*network.Request) {
				if e := rs[0].End; rs[0].Response.Value.Status != 101 || e.Bytes != 9 || e.Captured != 0 || e.Error != "" {
					t.Errorf("ended %+v", e)
				}
			}},
		{name: "a large body read slowly", serve: func(v *view, w http.ResponseWriter, r *http.Request) {
			for range 64 {
				w.Write(bytes.Repeat([]byte("0123456789abcdef"), 1024))
			}
		}, play: slowly, endings: finished},
		{name: "a response before the request is sent", serve: func(v *view, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "close")
			io.WriteString(w, "early")
		}, play: early, endings: finished},
	}
}

func checkGET(t *testing.T, f *httpcap.Fake, rs []*network.Request) {
	r := rs[0]
	s, resp := r.Start.Value, r.Response.Value
	if s.Method != "GET" || !strings.HasSuffix(s.URL, "/a?b=c") || s.Type != "fetch" || s.HasBody || s.Direction != network.Outgoing {
		t.Errorf("start %+v", s)
	}
	if resp.Status != 200 || resp.StatusText != "OK" || resp.Protocol != "http/1.1" || resp.MIMEType != "text/plain" || resp.Charset != "utf-8" || !resp.HasBody {
		t.Errorf("response %+v", resp)
	}
	if resp.RemoteIP != "127.0.0.1" || resp.RemotePort == 0 || resp.Reused {
		t.Errorf("remote %s:%d reused=%t", resp.RemoteIP, resp.RemotePort, resp.Reused)
	}
	if len(resp.RequestHeaders) < 3 || resp.RequestHeaders[0][0] != "Host" {
		t.Errorf("sent headers in the order of the wire: %v", resp.RequestHeaders)
	}
	tm := resp.Timing
	order := []float64{0, tm.ConnectStart, tm.ConnectEnd, tm.SendStart, tm.SendEnd, tm.HeadersStart, tm.HeadersEnd}
	for i := 1; i < len(order); i++ {
		if order[i] < order[i-1] && i != 5 { // the first byte may come before the writer says that it is done
			t.Errorf("phases out of order: %v", order)
		}
	}
	if tm.DNSStart != -1 || tm.TLSStart != -1 {
		t.Errorf("phases that did not occur: %+v", tm)
	}
	data, reason, total := f.Captured(r.ID(), "res").Content()
	if string(data) != "hello" || reason != "complete" || total != 5 || r.End.Bytes != 5 || r.End.Captured != 5 || r.Received.Bytes != 5 {
		t.Errorf("body %q %s %d, end %+v, received %+v", data, reason, total, r.End, r.Received)
	}
}

func checkPost(body string, announced int64) func(*testing.T, *httpcap.Fake, []*network.Request) {
	return func(t *testing.T, f *httpcap.Fake, rs []*network.Request) {
		r := rs[0]
		if !r.Start.Value.HasBody || r.Start.Value.BodyBytes != announced {
			t.Errorf("start %+v, want a body of %d bytes", r.Start.Value, announced)
		}
		data, reason, total := f.Captured(r.ID(), "req").Content()
		if string(data) != body || reason != "complete" || total != int64(len(body)) {
			t.Errorf("captured %q %s %d", data, reason, total)
		}
		if r.BodyEnd == nil || r.BodyEnd.Value.Bytes != int64(len(body)) || r.BodyEnd.Value.Truncated {
			t.Errorf("requestBodyEnd %+v", r.BodyEnd)
		}
	}
}

func trailers(v *view, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Trailer", "X-Sum")
	for range 3 {
		io.WriteString(w, "chunk ")
		w.(http.Flusher).Flush()
	}
	w.Header().Set("X-Sum", "18")
}

func zipped(v *view, w http.ResponseWriter, r *http.Request) {
	v.seen(r)
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	io.WriteString(z, strings.Repeat("squeeze me ", 1000))
	z.Close()
}

func redirects(v *view, w http.ResponseWriter, r *http.Request) {
	v.seen(r)
	switch r.URL.Path {
	case "/1":
		http.Redirect(w, r, "/2", http.StatusTemporaryRedirect)
	case "/2":
		http.Redirect(w, r, "/3", http.StatusFound)
	default:
		io.WriteString(w, "arrived")
	}
}

func redirected(t *testing.T, v *view, rt http.RoundTripper, url string) {
	c := http.Client{Transport: rt}
	resp, err := c.Post(url+"/1", "text/plain", strings.NewReader("take me along"))
	v.err(err)
	v.add("at %s", resp.Request.URL.Path)
	v.response(resp.Request, resp, err)
}

func twice(t *testing.T, v *view, rt http.RoundTripper, url string) {
	req := get(t, url)
	for range 2 {
		resp, err := rt.RoundTrip(req)
		v.response(req, resp, err)
	}
}

func ownTrace(t *testing.T, v *view, rt http.RoundTripper, url string) {
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		GotConn:              func(i httptrace.GotConnInfo) { v.add("got connection, reused %t", i.Reused) },
		WroteHeaders:         func() { v.add("wrote headers") },
		GotFirstResponseByte: func() { v.add("first byte") },
		TLSHandshakeDone:     func(tls.ConnectionState, error) { v.add("handshake") },
	})
	req := get(t, url).WithContext(ctx)
	resp, err := rt.RoundTrip(req)
	v.add("own context kept: %t", resp.Request.Context() == ctx)
	v.response(req, resp, err)
}

// upgrade speaks an echo protocol after a 101.
func upgrade(v *view, w http.ResponseWriter, r *http.Request) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		v.err(err)
		return
	}
	defer conn.Close()
	rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	rw.Flush()
	line, err := rw.ReadString('\n')
	v.add("server read %q %v", line, err)
	rw.WriteString("echo " + line)
	rw.Flush()
}

func upgraded(t *testing.T, v *view, rt http.RoundTripper, url string) {
	req := get(t, url)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	resp, err := rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	v.head(req, resp)
	rw, ok := resp.Body.(io.ReadWriteCloser)
	_, half := resp.Body.(interface{ CloseWrite() error })
	v.add("writable %t, half-closable %t", ok, half)
	if !ok {
		t.Fatal("the body of a 101 is not writable")
	}
	fmt.Fprintf(rw, "abc\n")
	line, err := bufio.NewReader(rw).ReadString('\n')
	v.add("read %q %v", line, err)
	v.err(rw.Close())
}

func slowly(t *testing.T, v *view, rt http.RoundTripper, url string) {
	req := get(t, url)
	resp, err := rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	n, sum, buf := 0, 0, make([]byte, 777)
	for {
		k, err := resp.Body.Read(buf)
		n += k
		for _, b := range buf[:k] {
			sum += int(b)
		}
		if err != nil {
			v.add("%d bytes, sum %d, %v", n, sum, err)
			return
		}
	}
}

// early sends a body that does not end before the response has come.
func early(t *testing.T, v *view, rt http.RoundTripper, url string) {
	pr, pw := io.Pipe()
	req, err := http.NewRequest("POST", url, pr)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := pw.Write([]byte("more to come"))
		for err == nil {
			_, err = pw.Write([]byte("more to come"))
		}
	}()
	resp, err := rt.RoundTrip(req)
	v.response(req, resp, err)
	pw.Close()
	pr.Close()
}
