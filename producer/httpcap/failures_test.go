package httpcap_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/natscope/natscope/producer/httpcap"
	"github.com/natscope/natscope/subjects/network"
)

// failures are scenes in which something goes wrong.
func failures() []scene {
	hang := func(v *view, w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	// arrived says that the server has the request, so that a test can cancel exactly then.
	arrived := make(chan struct{}, 1)
	hangSeen := func(v *view, w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	}
	half := func(v *view, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "half")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	stall := func(v *view, w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "first")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	return []scene{
		{name: "F1 refused port", serve: hello, play: refused, endings: []network.Ending{network.Failed},
			check: func(t *testing.T, f *httpcap.Fake, rs []*network.Request) {
				if !strings.Contains(rs[0].Error.Text, "connection refused") || rs[0].Error.Canceled {
					t.Errorf("error %+v", rs[0].Error)
				}
				if rs[0].BodyEnd == nil {
					t.Error("the request body did not end")
				}
			}},
		{name: "F1 canceled before the dial", serve: hello, play: canceled(nil), endings: []network.Ending{network.Canceled}},
		{name: "F1 canceled while waiting for headers", serve: hangSeen, play: canceled(arrived), endings: []network.Ending{network.Canceled}},
		{name: "F1 canceled over HTTP/2", h2: true, serve: hangSeen, play: canceled(arrived), endings: []network.Ending{network.Canceled}},
		{name: "deadline while waiting for headers", serve: hang, play: func(t *testing.T, v *view, rt http.RoundTripper, url string) {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := rt.RoundTrip(get(t, url).WithContext(ctx))
			v.err(err)
		}, endings: []network.Ending{network.Failed}},
		{name: "canceled with a cause", serve: hangSeen, play: func(t *testing.T, v *view, rt http.RoundTripper, url string) {
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() {
				<-arrived
				cancel(errors.New("the user left"))
			}()
			_, err := rt.RoundTrip(get(t, url).WithContext(ctx))
			v.err(err)
		}, endings: []network.Ending{network.Canceled},
			check: func(t *testing.T, f *httpcap.Fake, rs []*network.Request) {
				if rs[0].Error.Text != "the user left" {
					t.Errorf("error %+v", rs[0].Error)
				}
			}},
		{name: "F1 canceled mid-body", serve: stall, play: midBody, endings: []network.Ending{network.FinishedTruncated},
			check: func(t *testing.T, f *httpcap.Fake, rs []*network.Request) {
				if e := rs[0].End; !e.Canceled || e.Bytes != 5 {
					t.Errorf("end %+v", e)
				}
			}},
		{name: "reset mid-body", serve: half, play: fetch("GET", "/", nil), endings: []network.Ending{network.FinishedTruncated},
			check: func(t *testing.T, f *httpcap.Fake, rs []*network.Request) {
				if e := rs[0].End; e.Error == "" || e.Canceled || e.Bytes != 4 {
					t.Errorf("end %+v", e)
				}
			}},
		{name: "reset mid-body over HTTP/2", h2: true, serve: half, play: fetch("GET", "/", nil), endings: []network.Ending{network.FinishedTruncated}},
		{name: "reset before headers", serve: func(v *view, w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) },
			play: fetch("POST", "/", text("lost")), endings: []network.Ending{network.Failed}},
		{name: "closed early", serve: stall, play: func(t *testing.T, v *view, rt http.RoundTripper, url string) {
			resp, err := rt.RoundTrip(get(t, url))
			if err != nil {
				t.Fatal(err)
			}
			buf := make([]byte, 3)
			n, err := io.ReadFull(resp.Body, buf)
			v.add("%s %d %v", buf, n, err)
			v.err(resp.Body.Close())
			v.err(resp.Body.Close())
		}, endings: []network.Ending{network.FinishedTruncated},
			check: func(t *testing.T, f *httpcap.Fake, rs []*network.Request) {
				if e := rs[0].End; !e.Canceled || e.Error != "" || e.Bytes != 3 {
					t.Errorf("end %+v", e)
				}
			}},
		{name: "a body that fails to read", serve: func(v *view, w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
		}, play: fetch("POST", "/", func() io.Reader {
			return io.MultiReader(strings.NewReader("some"), failingReader{})
		}), endings: []network.Ending{network.Failed},
			check: func(t *testing.T, f *httpcap.Fake, rs []*network.Request) {
				if e := rs[0].BodyEnd; e == nil || e.Value.Bytes != 4 {
					t.Errorf("requestBodyEnd %+v", e)
				}
			}},
		{name: "http.Client with a timeout", serve: hang, play: func(t *testing.T, v *view, rt http.RoundTripper, url string) {
			c := http.Client{Transport: rt, Timeout: 100 * time.Millisecond}
			_, err := c.Get(url)
			var ne net.Error
			v.add("timeout %t, deadline %t", errors.As(err, &ne) && ne.Timeout(), errors.Is(err, context.DeadlineExceeded))
		}, endings: []network.Ending{network.Failed}},
		{name: "an unknown scheme", serve: hello, play: func(t *testing.T, v *view, rt http.RoundTripper, url string) {
			_, err := rt.RoundTrip(get(t, "gopher://127.0.0.1/"))
			v.err(err)
		}, endings: []network.Ending{network.Failed}},
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("the disk is gone") }

func refused(t *testing.T, v *view, rt http.RoundTripper, _ string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	fetch("POST", "/", text("to nobody"))(t, v, rt, "http://"+l.Addr().String())
}

// canceled cancels when arrived says so, or at once if it is nil.
func canceled(arrived <-chan struct{}) func(*testing.T, *view, http.RoundTripper, string) {
	return func(t *testing.T, v *view, rt http.RoundTripper, url string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if arrived == nil {
			cancel()
		} else {
			go func() {
				<-arrived
				cancel()
			}()
		}
		_, err := rt.RoundTrip(get(t, url).WithContext(ctx))
		v.err(err)
		v.add("canceled %t", errors.Is(err, context.Canceled))
	}
}

func midBody(t *testing.T, v *view, rt http.RoundTripper, url string) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	resp, err := rt.RoundTrip(get(t, url).WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	buf := make([]byte, 5)
	_, err = io.ReadFull(resp.Body, buf)
	v.add("%s %v", buf, err)
	cancel()
	_, err = io.ReadAll(resp.Body)
	v.err(err)
}
