package httpcap_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"slices"
	"strings"
	"testing"

	"github.com/natscope/natscope/producer/httpcap"
	"github.com/natscope/natscope/subjects/network"
)

// TestRedirects follows a chain with a body that is sent again, cookies set on the way and a side chain.
func TestRedirects(t *testing.T) {
	f := httpcap.NewFake()
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/a":
			http.SetCookie(w, &http.Cookie{Name: "seen", Value: "a", Path: "/"})
			http.Redirect(w, r, "/b", http.StatusTemporaryRedirect)
		case "/b":
			w.Header().Set("Location", "/c")
			w.WriteHeader(http.StatusSeeOther)
		default:
			io.Copy(io.Discard, r.Body)
			fmt.Fprint(w, r.Method, r.Header.Get("Cookie"))
		}
	})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := http.Client{Transport: httpcap.NewTransport(f, bare(t)), Jar: jar}
	for range 2 {
		resp, err := c.Post(srv.URL+"/a", "text/plain", strings.NewReader("again"))
		if err != nil {
			t.Fatal(err)
		}
		if body, _ := io.ReadAll(resp.Body); string(body) != "GETseen=a" {
			t.Errorf("the last one answers %q", body)
		}
		resp.Body.Close()
	}
	rs := requests(t, f)
	if len(rs) != 6 {
		t.Fatalf("%d requests, want 6", len(rs))
	}
	for i, r := range rs {
		want := network.RequestID("")
		if i%3 > 0 {
			want = rs[i-1].ID()
		}
		if s := r.Start.Value; s.RedirectOf != want || r.Ending != network.Finished {
			t.Errorf("request %d of %s comes from %q, want %q, and ended %q", i, s.URL, s.RedirectOf, want, r.Ending)
		}
	}
	if b := rs[1].BodyEnd; b == nil || b.Value.Captured != 5 {
		t.Errorf("the body that was sent again: %+v", b)
	}
	if hs := rs[1].Start.Value.Headers; !slices.Contains(hs, network.Header{"Cookie", "seen=a"}) {
		t.Errorf("the cookie is not visible: %q", hs)
	}
}

// TestStreamsBothSides tells the events of a stream at its server and at its client, as they come.
func TestStreamsBothSides(t *testing.T) {
	out, in := httpcap.NewFake(), httpcap.NewFake()
	next := make(chan string)
	srv := serve(t, httpcap.NewHandler(in, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for e := range next {
			io.WriteString(w, e)
			w.(http.Flusher).Flush()
		}
	})).ServeHTTP)
	c := http.Client{Transport: httpcap.NewTransport(out, bare(t))}
	go func() { next <- "event: price\r\nid: 1\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\n" }()
	resp, err := c.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	go io.Copy(io.Discard, resp.Body)
	for i := range 3 {
		for side, f := range map[string]*httpcap.Fake{"client": out, "server": in} {
			eventually(t, fmt.Sprintf("the %s tells event %d", side, i), func() bool {
				rs, err := f.Fold()
				if err != nil {
					t.Fatal(err)
				}
				return len(rs) == 1 && len(rs[0].Messages) == i+1
			})
		}
		if i < 2 {
			next <- fmt.Sprintf("retry: 100\ndata: %d\n\n", i)
		}
	}
	close(next)
	for side, f := range map[string]*httpcap.Fake{"client": out, "server": in} {
		r := one(t, f)
		var got []network.Message
		for _, m := range r.Messages {
			if m.T < r.Response.T {
				t.Errorf("%s: an event before the response", side)
			}
			m.Value.ID = ""
			got = append(got, m.Value)
		}
		want := []network.Message{{Event: "price", EventID: "1", Data: "{\"a\":\n1}"}, {Event: "message", EventID: "1", Data: "0", Retry: 100}, {Event: "message", EventID: "1", Data: "1", Retry: 100}}
		if !slices.Equal(got, want) || r.Ending != network.Finished {
			t.Errorf("%s tells %+v and ended %q", side, got, r.Ending)
		}
	}
}

// TestTrailersAreTold reads a response with trailers over both protocols.
func TestTrailersAreTold(t *testing.T) {
	f := httpcap.NewFake()
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		io.WriteString(w, "body")
		w.Header().Set("X-Sum", "42")
	})
	c := http.Client{Transport: httpcap.NewTransport(f, bare(t))}
	resp, err := c.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	if r := one(t, f); fmt.Sprint(r.End.Trailers) != "[[X-Sum 42]]" {
		t.Errorf("end %+v", r.End)
	}
}
