package httpcap_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/natscope/natscope/producer/httpcap"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// A request that the transport sends again after its connection died is captured once.
func TestRetriedRequest(t *testing.T) {
	for _, memory := range []bool{true, false} {
		t.Run(fmt.Sprintf("in memory %t", memory), func(t *testing.T) { retried(t, memory) })
	}
}

func retried(t *testing.T, memory bool) {
	const body = "sent twice, recorded once"
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var server sync.WaitGroup
	defer server.Wait()
	server.Go(func() {
		// The first connection answers once and dies with the second request, unanswered; the next one answers.
		for _, answers := range []int{1, 1} {
			c, err := l.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			in := bufio.NewReader(c)
			for n := 0; ; n++ {
				req, err := http.ReadRequest(in)
				if err != nil {
					break
				}
				io.Copy(io.Discard, req.Body)
				if n == answers {
					break
				}
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
			c.Close()
		}
	})
	f := httpcap.NewFake()
	tr := bare(t)
	rt := httpcap.NewTransport(f, tr)
	for range 2 {
		again := func() (io.ReadCloser, error) { return io.NopCloser(pieced("sent twice,", " recorded once")()), nil }
		req, err := http.NewRequest("PUT", "http://"+l.Addr().String(), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if !memory {
			req.Body, _ = again()
			req.GetBody = again
		}
		req.Header["Idempotency-Key"] = []string{"k"}
		if got := roundTrip(t, rt, req); string(got) != "ok" {
			t.Fatalf("got %q", got)
		}
	}
	tr.CloseIdleConnections()
	for i, r := range requests(t, f) {
		if got, reason, total := f.Captured(r.ID(), "req").Content(); string(got) != body || reason != subjects.BodyComplete || total != int64(len(body)) {
			t.Errorf("request %d: %q %s %d", i, got, reason, total)
		}
		if r.Response.Value.Reused {
			t.Errorf("request %d: answered over a fresh connection, told as reused", i)
		}
	}
}

// Passwords in URLs stay out of every record.
func TestPasswordsAreRedacted(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ada" || password != "s3cret" {
			t.Errorf("the server got %q %q", user, password)
		}
		if r.URL.Path == "/" {
			w.Header().Set("Location", "http://ada:s3cret@"+r.Host+"/next")
			w.WriteHeader(http.StatusFound)
		}
	})
	f := httpcap.NewFake()
	c := http.Client{Transport: httpcap.NewTransport(f, bare(t))}
	resp, err := c.Get("http://ada:s3cret@" + strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	all := requests(t, f)
	b, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"s3cret", "YWRhOnMzY3JldA"} {
		if bytes.Contains(b, []byte(secret)) {
			t.Errorf("%s is in the records: %s", secret, b)
		}
	}
	if len(all) != 2 || !strings.Contains(all[0].Start.Value.URL, "ada:xxxxx@") {
		t.Errorf("%s", b)
	}
}

// A panic in the capture, at any record, leaves the request as it was.
func TestPanicsAreContained(t *testing.T) {
	s := serve(t, echo)
	for n := range 6 {
		f := httpcap.NewFake()
		f.Panics = n
		req, err := http.NewRequest("POST", s.URL, strings.NewReader("untouched"))
		if err != nil {
			t.Fatal(err)
		}
		if got := roundTrip(t, httpcap.NewTransport(f, bare(t)), req); string(got) != "untouched" {
			t.Errorf("panic at record %d: the application got %q", n, got)
		}
		if n < 5 && f.LostCount() == 0 {
			t.Errorf("panic at record %d: nothing was counted as lost", n)
		}
	}
	f := httpcap.NewFake()
	rt := httpcap.NewTransport(f, bare(t), httpcap.WithFilter(func(*http.Request) bool { panic("a bug in the filter") }))
	roundTrip(t, rt, get(t, s.URL))
	if len(f.Topics()) != 0 || f.LostCount() != 1 {
		t.Errorf("records %v, lost %d", f.Topics(), f.LostCount())
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A transport that panics is the application's own affair, and ends the request.
func TestPanicsOfTheTransportPass(t *testing.T) {
	f := httpcap.NewFake()
	rt := httpcap.NewTransport(f, roundTripper(func(*http.Request) (*http.Response, error) { panic("mine") }))
	func() {
		defer func() {
			if r := recover(); r != "mine" {
				t.Errorf("recovered %v", r)
			}
		}()
		rt.RoundTrip(get(t, "http://127.0.0.1/"))
	}()
	if r := one(t, f); r.Ending != network.Failed {
		t.Errorf("%+v", r)
	}
}

// Odd transports and requests get through.
func TestOddTransports(t *testing.T) {
	f := httpcap.NewFake()
	odd := httpcap.NewTransport(f, roundTripper(func(*http.Request) (*http.Response, error) { return nil, nil }))
	if resp, err := odd.RoundTrip(get(t, "http://127.0.0.1/")); resp != nil || err != nil {
		t.Errorf("%v, %v", resp, err)
	}
	bodyless := httpcap.NewTransport(f, roundTripper(func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: 200}, nil }))
	if resp, err := bodyless.RoundTrip(get(t, "http://127.0.0.1/")); err != nil || resp.Body != nil {
		t.Errorf("%+v, %v", resp, err)
	}
	if rs := requests(t, f); len(rs) != 2 || rs[0].Ending != network.Failed || rs[1].Ending != network.Finished {
		t.Errorf("%+v", rs)
	}
	if _, err := httpcap.NewTransport(f, bare(t)).RoundTrip(&http.Request{}); err == nil {
		t.Error("a request without a URL has no error")
	}
	if httpcap.Transport(nil, nil) != http.DefaultTransport {
		t.Error("without a producer, something wraps the default transport")
	}
}

func TestOptions(t *testing.T) {
	s := serve(t, echo)
	f := httpcap.NewFake()
	rt := httpcap.NewTransport(f, bare(t), httpcap.WithoutBodies(), httpcap.WithoutStack(),
		httpcap.WithFilter(func(r *http.Request) bool { return r.URL.Path != "/health" }))
	roundTrip(t, rt, get(t, s.URL+"/health"))
	req, err := http.NewRequest("POST", s.URL, strings.NewReader("seven b"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	roundTrip(t, rt, req)
	r := one(t, f)
	if r.BodyEnd.Value.Bytes != 7 || r.BodyEnd.Value.Captured != 0 || r.End.Bytes != 7 || !r.End.Truncated || len(r.Start.Value.Stack) != 0 {
		t.Errorf("%+v %+v %+v", r.BodyEnd, r.End, r.Start.Value.Stack)
	}
	if r.Start.Value.Trace != req.Header.Get("Traceparent") {
		t.Errorf("trace %q", r.Start.Value.Trace)
	}
	if f.Captured(r.ID(), "req") != nil || f.Captured(r.ID(), "res") != nil {
		t.Error("bodies were captured")
	}
}

// The stack names the application's functions, innermost first, and nothing of net/http.
func TestStack(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {})
	f := httpcap.NewFake()
	c := http.Client{Transport: httpcap.NewTransport(f, bare(t))}
	buyCoffee := func() {
		resp, err := c.Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	for range 2 {
		buyCoffee()
	}
	deep(100, buyCoffee)
	rs := requests(t, f)
	for _, r := range rs[:2] {
		st := r.Start.Value.Stack
		if len(st) < 2 || !strings.Contains(st[0].Function, "httpcap_test.TestStack.func") || !strings.HasSuffix(st[0].URL, "robust_test.go") || st[0].Line == 0 {
			t.Fatalf("stack %+v", st)
		}
		for _, fr := range st {
			if strings.HasPrefix(fr.Function, "net/http") || strings.Contains(fr.Function, "producer/httpcap.") {
				t.Errorf("machinery in the stack: %+v", fr)
			}
		}
	}
	if n := len(rs[2].Start.Value.Stack); n != 32 {
		t.Errorf("a deep stack has %d frames, want 32", n)
	}
}

//go:noinline
func deep(n int, f func()) {
	if n == 0 {
		f()
		return
	}
	deep(n-1, f)
	runtime.KeepAlive(n)
}

// CloseIdleConnections of a client reaches the transport below.
func TestCloseIdleConnections(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {})
	f := httpcap.NewFake()
	c := http.Client{Transport: httpcap.NewTransport(f, bare(t))}
	for range 2 {
		resp, err := c.Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		c.CloseIdleConnections()
	}
	for _, r := range requests(t, f) {
		if r.Response.Value.Reused {
			t.Error("a connection was reused that should have been closed")
		}
	}
}

// Bodies of any size, read and written in pieces of any size, arrive whole.
func TestPiecesOfAnySize(t *testing.T) {
	s := serve(t, echo)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		data := make([]byte, rng.IntN(300_000))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		f := httpcap.NewFake()
		req, err := http.NewRequest("POST", s.URL, &pieces{data: data, rng: rng})
		if err != nil {
			t.Fatal(err)
		}
		if got := roundTrip(t, httpcap.NewTransport(f, bare(t)), req); !bytes.Equal(got, data) {
			t.Fatalf("the application got %d bytes of %d", len(got), len(data))
		}
		r := one(t, f)
		for _, d := range []subjects.Direction{subjects.RequestBody, subjects.ResponseBody} {
			if len(data) == 0 && d == subjects.ResponseBody {
				continue
			}
			if got, _, _ := f.Captured(r.ID(), d).Content(); !bytes.Equal(got, data) {
				t.Errorf("%s: %d bytes captured of %d", d, len(got), len(data))
			}
		}
	}
}

// pieces returns its data in pieces of random sizes, some with the end and some before it.
type pieces struct {
	data []byte
	rng  *rand.Rand
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.data) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), 1+p.rng.IntN(20_000))], p.data)
	p.data = p.data[n:]
	if len(p.data) == 0 && p.rng.IntN(2) == 0 {
		return n, io.EOF
	}
	return n, nil
}
