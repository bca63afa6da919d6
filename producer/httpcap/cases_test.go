package httpcap_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/natscope/natscope/producer/httpcap"
	"github.com/natscope/natscope/subjects/network"
)

// F2 and F23: each event of a stream reaches the application, and is told on both
// sides, before the server has the next one.
func TestF2EventsAreToldAsTheyCome(t *testing.T) {
	in, out := httpcap.NewFake(), httpcap.NewFake()
	next := make(chan string)
	srv := serve(t, httpcap.NewHandler(in, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		for event := range next {
			io.WriteString(w, event)
			w.(http.Flusher).Flush()
		}
	})).ServeHTTP)
	resp, err := (&http.Client{Transport: httpcap.NewTransport(out, bare(t))}).Do(get(t, srv.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body := bufio.NewReader(resp.Body)
	for i, event := range []string{"\xef\xbb\xbfdata: a\r\ndata: b\r\n\r\n", "id: 7\nevent: price\ndata: c\n\n", "retry: 50\rdata: d\r\r"} {
		next <- event
		// The application has the event now; nothing else moves until it was told.
		if got, err := io.ReadAll(io.LimitReader(body, int64(len(event)))); err != nil || string(got) != event {
			t.Fatalf("event %d: %q, %v", i, got, err)
		}
		for side, f := range map[string]*httpcap.Fake{"in": in, "out": out} {
			eventually(t, fmt.Sprintf("event %d is told, %s", i, side), func() bool {
				rs, err := f.Fold()
				return err == nil && len(rs) == 1 && len(rs[0].Messages) == i+1 && rs[0].Ending == network.Running
			})
		}
	}
	close(next)
	if _, err := io.Copy(io.Discard, body); err != nil {
		t.Fatal(err)
	}
	for side, f := range map[string]*httpcap.Fake{"in": in, "out": out} {
		var got []string
		for _, m := range one(t, f).Messages {
			got = append(got, m.Value.Event+"|"+m.Value.EventID+"|"+m.Value.Data)
		}
		if want := []string{"message||a\nb", "price|7|c", "message|7|d"}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", side, got, want)
		}
	}
}

// abilities lists what a ResponseWriter can do besides its three methods.
func abilities(w http.ResponseWriter) (out []string) {
	for name, ok := range map[string]bool{
		"flush":        is[http.Flusher](w),
		"flush error":  is[interface{ FlushError() error }](w),
		"hijack":       is[http.Hijacker](w),
		"push":         is[http.Pusher](w),
		"read from":    is[io.ReaderFrom](w),
		"strings":      is[io.StringWriter](w),
		"close notify": is[interface{ CloseNotify() <-chan bool }](w),
		"deadlines": is[interface {
			SetReadDeadline(time.Time) error
			SetWriteDeadline(time.Time) error
		}](w),
		"full duplex": is[interface{ EnableFullDuplex() error }](w),
	} {
		if ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func is[T any](w http.ResponseWriter) bool {
	_, ok := w.(T)
	return ok
}

// F6: what handlers get can do what the writer below it can, no less and no more,
// be that a server's own or one of a middleware; and it can be unwrapped.
func TestF6WritersCanDoWhatTheServersCan(t *testing.T) {
	type (
		plain    struct{ http.ResponseWriter }
		flushing struct {
			http.ResponseWriter
			http.Flusher
		}
		hijacking struct {
			http.ResponseWriter
			http.Hijacker
		}
		reading struct {
			http.ResponseWriter
			io.ReaderFrom
			io.StringWriter
		}
	)
	wraps := map[string]func(http.ResponseWriter) http.ResponseWriter{
		"the server's own": func(w http.ResponseWriter) http.ResponseWriter { return w },
		"plain":            func(w http.ResponseWriter) http.ResponseWriter { return plain{w} },
		"flushing":         func(w http.ResponseWriter) http.ResponseWriter { return flushing{w, w.(http.Flusher)} },
		"hijacking": func(w http.ResponseWriter) http.ResponseWriter {
			h, _ := w.(http.Hijacker)
			return hijacking{w, h}
		},
		"reading": func(w http.ResponseWriter) http.ResponseWriter {
			r, _ := w.(io.ReaderFrom)
			return reading{w, r, w.(io.StringWriter)}
		},
	}
	for _, h2 := range []bool{false, true} {
		for name, wrap := range wraps {
			t.Run(fmt.Sprintf("%s, HTTP/2 %t", name, h2), func(t *testing.T) {
				var below, given http.ResponseWriter
				var unwrapped bool
				h := httpcap.NewHandler(httpcap.NewFake(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					given = w
					u, ok := w.(interface{ Unwrap() http.ResponseWriter })
					unwrapped = ok && u.Unwrap() == below
					io.WriteString(w, "said")
				}))
				srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					below = wrap(w)
					h.ServeHTTP(below, r)
				}))
				srv.EnableHTTP2 = h2
				srv.StartTLS()
				defer srv.Close()
				resp, err := srv.Client().Get(srv.URL)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if got, err := io.ReadAll(resp.Body); err != nil || string(got) != "said" || (resp.ProtoMajor == 2) != h2 {
					t.Errorf("%s %q %v", resp.Proto, got, err)
				}
				if got, want := abilities(given), abilities(below); !slices.Equal(got, want) || !unwrapped {
					t.Errorf("handlers get %q, unwrapped %t; the server has %q", got, unwrapped, want)
				}
			})
		}
	}
}

// Ten thousand lines of one header, every byte above ASCII and a megabyte of one
// value neither change what the application sees nor lose a byte on their way here.
func TestHostileHeadersAreWhole(t *testing.T) {
	var high strings.Builder
	for c := 0x80; c <= 0xff; c++ {
		high.WriteByte(byte(c))
	}
	huge := strings.Repeat("h", 1<<20)
	in, out := httpcap.NewFake(), httpcap.NewFake()
	srv := serve(t, httpcap.NewHandler(in, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for i := range 10_000 {
			w.Header().Add("X-Many", fmt.Sprint(i))
		}
		w.Header().Set("X-High", high.String())
		w.Header().Set("X-Huge", huge)
	})).ServeHTTP)
	tr := bare(t)
	tr.MaxResponseHeaderBytes = 8 << 20
	resp, err := (&http.Client{Transport: httpcap.NewTransport(out, tr)}).Do(get(t, srv.URL))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if len(resp.Header["X-Many"]) != 10_000 || resp.Header.Get("X-High") != high.String() || resp.Header.Get("X-Huge") != huge {
		t.Error("the application does not see what was sent")
	}
	for side, f := range map[string]*httpcap.Fake{"in": in, "out": out} {
		many := 0
		for _, h := range one(t, f).Response.Value.Headers {
			switch h[0] {
			case "X-Many":
				if h[1] != fmt.Sprint(many) {
					t.Fatalf("%s: line %d is %q", side, many, h[1])
				}
				many++
			case "X-High":
				for i, c := range []rune(h[1]) {
					if c != rune(0x80+i) {
						t.Fatalf("%s: byte %#x became %q", side, 0x80+i, c)
					}
				}
			case "X-Huge":
				if h[1] != huge {
					t.Errorf("%s: %d bytes of %d", side, len(h[1]), len(huge))
				}
			}
		}
		if many != 10_000 {
			t.Errorf("%s: %d lines", side, many)
		}
	}
}
