package access

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Case J1: a page whose name resolves to this machine must not reach the debugger.
func TestCheckHost(t *testing.T) {
	p := Policy{Hosts: []string{"tools.example"}}
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.0.0.1:9230": true, "[::1]": true, "[::1]:9230": true, "10.0.0.7:80": true,
		"localhost": true, "LocalHost:9230": true, "localhost.": true, "app.localhost:1": true, "": true,
		"tools.example": true, "TOOLS.example:443": true,
		"evil.test": false, "evil.test:9230": false, "127.0.0.1.evil.test": false, "2130706433": false, "localhost.evil.test": false,
		".localhost": false, ":9230": false, "[::1": false, "evil.test\x00localhost": false, "notlocalhost": false, "0x7f.1": false,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = host
		err := p.CheckHost(r)
		if (err == nil) != want {
			t.Errorf("Host %q: %v, want allowed %v", host, err, want)
		}
		if err != nil && (!errors.Is(err, ErrHost) || !strings.Contains(err.Error(), "--allow-host")) {
			t.Errorf("Host %q: the error does not say what to do: %v", host, err)
		}
	}
}

// Case J2: a web page must not open a connection to a debugger.
func TestCheckOrigin(t *testing.T) {
	p := Policy{Origins: []string{"https://tools.example"}}
	for origin, want := range map[string]bool{
		"devtools://devtools": true, "http://127.0.0.1:9230": true, "https://127.0.0.1:9230": true, "https://tools.example": true,
		"null": false, "": false, "http://other": false, "http://other:80": false, "http://127.0.0.1": false, "http://127.0.0.1:9231": false,
		"devtools://other": false, "http://localhost:9230": false, "file://": false, "chrome-extension://abc": false,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = "127.0.0.1:9230"
		r.Header.Set("Origin", origin)
		err := p.CheckOrigin(r)
		if (err == nil) != want {
			t.Errorf("Origin %q: %v, want allowed %v", origin, err, want)
		}
		if err != nil && !errors.Is(err, ErrOrigin) {
			t.Errorf("Origin %q: %v", origin, err)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if err := p.CheckOrigin(r); err != nil {
		t.Errorf("no Origin: %v", err)
	}
	r.Header["Origin"] = []string{"devtools://devtools", "http://other"}
	if err := p.CheckOrigin(r); err == nil {
		t.Error("two Origin headers are allowed")
	}
}

// A page that was served under a hostile name is not a page of this server.
func TestOwnOriginNeedsAllowedHost(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Host = "evil.test"
	r.Header.Set("Origin", "http://evil.test")
	if err := (Policy{}).CheckOrigin(r); err == nil {
		t.Error("an origin with a hostile host is allowed")
	}
	if err := (Policy{Origins: []string{"null"}}).CheckOrigin(func() *http.Request { r.Header.Set("Origin", "null"); return r }()); err == nil {
		t.Error("null is allowed by configuration")
	}
}

func TestMiddleware(t *testing.T) {
	h := Policy{}.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	for host, want := range map[string]int{"localhost": http.StatusTeapot, "evil.test": http.StatusForbidden} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("Host %s: %d, want %d", host, w.Code, want)
		}
	}
}

func FuzzCheckHost(f *testing.F) {
	f.Add("127.0.0.1:9230")
	f.Add("[::1]:x")
	f.Fuzz(func(t *testing.T, host string) {
		r := &http.Request{Host: host, Header: http.Header{"Origin": {"http://" + host}}}
		if (Policy{}).CheckHost(r) != nil && (Policy{}).CheckOrigin(r) == nil {
			t.Errorf("the origin of the refused host %q is allowed", host)
		}
	})
}
