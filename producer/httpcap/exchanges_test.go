package httpcap_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/natscope/natscope/subjects/network"
)

// exchanges are what a server may be asked and do, each with what must be recorded of it.
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
				if e := r.Error.Text; !strings.HasPrefix(e, "panic: boom in ") || !strings.Contains(e, "exchanges_test.go:") {
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
