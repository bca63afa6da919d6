package httpcap_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/natscope/natscope/producer/httpcap"
	"github.com/natscope/natscope/subjects/network"
)

// proxyHandler is a forward proxy: it passes requests on, and tunnels.
func proxyHandler(t *testing.T, v *view) http.Handler {
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.Out.Host = r.In.Host }, Transport: bare(t)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v.add("proxy: %s %s", r.Method, ports.ReplaceAllString(r.RequestURI, "HOST"))
		if r.Method != http.MethodConnect {
			forward.ServeHTTP(w, r)
			return
		}
		target, err := net.Dial("tcp", r.Host)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer target.Close()
		w.WriteHeader(http.StatusOK)
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		done := make(chan struct{})
		go func() {
			defer close(done)
			io.Copy(target, rw)
			target.(*net.TCPConn).CloseWrite()
		}()
		io.Copy(conn, target)
		conn.Close()
		<-done
	})
}

// TestThroughProxies plays a conversation through a proxy and through a tunnel to
// TLS, with client, proxy and server bare, and all of them captured.
func TestThroughProxies(t *testing.T) {
	for _, secure := range []bool{false, true} {
		name := "plain"
		if secure {
			name = "a tunnel"
		}
		t.Run(name, func(t *testing.T) {
			want, got := &view{}, &view{}
			client, proxy, server := httpcap.NewFake(), httpcap.NewFake(), httpcap.NewFake()
			for _, v := range []*view{want, got} {
				h, ph := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { hello(v, w, r) })), proxyHandler(t, v)
				if v == got {
					h, ph = httpcap.NewHandler(server, h), httpcap.NewHandler(proxy, ph)
				}
				srv := httptest.NewUnstartedServer(h)
				if secure {
					srv.StartTLS()
				} else {
					srv.Start()
				}
				through := httptest.NewServer(ph)
				proxyURL, err := url.Parse(through.URL)
				if err != nil {
					t.Fatal(err)
				}
				tr := srv.Client().Transport.(*http.Transport).Clone()
				tr.Proxy = http.ProxyURL(proxyURL)
				var rt http.RoundTripper = tr
				if v == got {
					rt = httpcap.NewTransport(client, tr)
				}
				fetch("POST", "/x", text("the body"))(t, v, rt, srv.URL)
				tr.CloseIdleConnections()
				through.Close()
				srv.Close()
			}
			if want.sorted() != got.sorted() || !strings.Contains(want.String(), "proxy: ") {
				t.Errorf("without capture:\n%s\n\nwith capture:\n%s", want, got)
			}
			if r := one(t, client); r.Ending != network.Finished || r.Response.Value.RemotePort == 0 || (r.Response.Value.TLS != nil) != secure {
				t.Errorf("client: %q, response %+v", r.Ending, r.Response)
			}
			if r := one(t, server); r.Ending != network.Finished || r.BodyEnd.Value.Captured != 8 {
				t.Errorf("server: %q, body end %+v", r.Ending, r.BodyEnd)
			}
			p := one(t, proxy)
			if s := p.Start.Value; secure && (s.Method != "CONNECT" || s.URL == "" || p.Response.Value.Status != 200) || !secure && p.Ending != network.Finished {
				t.Errorf("proxy: %q, start %+v, response %+v", p.Ending, s, p.Response)
			}
		})
	}
}

// TestEarlyHintsReachTheApplication lets informational responses pass on both sides.
func TestEarlyHintsReachTheApplication(t *testing.T) {
	out, in := httpcap.NewFake(), httpcap.NewFake()
	srv := serve(t, httpcap.NewHandler(in, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		io.WriteString(w, "page")
	})).ServeHTTP)
	hints := 0
	req := get(t, srv.URL)
	req = req.WithContext(withHints(req.Context(), func(code int, h http.Header) {
		if code == 103 && h.Get("Link") != "" {
			hints++
		}
	}))
	if got := roundTrip(t, httpcap.NewTransport(out, bare(t)), req); string(got) != "page" || hints != 1 {
		t.Errorf("got %q and %d hints", got, hints)
	}
	for side, f := range map[string]*httpcap.Fake{"client": out, "server": in} {
		if r := one(t, f); r.Response.Value.Status != 200 || r.Ending != network.Finished {
			t.Errorf("%s: %q, response %+v", side, r.Ending, r.Response)
		}
	}
}
