package cdpgw

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/source"
)

func fetch(t *testing.T, h http.Handler, method, path string, change ...func(*http.Request)) (int, string) {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	r.Host = "127.0.0.1:9230"
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	b, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(b)
}

func TestList(t *testing.T) {
	m := shop(t)
	m.Presence("billing", false)
	g, _ := serve(t, m)
	for _, path := range []string{"/json", "/json/list"} {
		_, body := fetch(t, g.Handler(), "GET", path)
		var got []listing
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		want := []listing{
			{"all sources of the space dev", "devtools://devtools/bundled/devtools_app.html?ws=127.0.0.1:9230/devtools/page/dev", "dev", "dev", "page", "natscope://dev/", "ws://127.0.0.1:9230/devtools/page/dev"},
			{"host", "devtools://devtools/bundled/devtools_app.html?ws=127.0.0.1:9230/devtools/page/dev/orders", "dev.orders", "orders", "page", "natscope://orders.dev/", "ws://127.0.0.1:9230/devtools/page/dev/orders"},
			{"host", "devtools://devtools/bundled/devtools_app.html?ws=127.0.0.1:9230/devtools/page/dev/billing", "dev.billing", "Billing Service (disconnected)", "page", "natscope://billing.dev/", "ws://127.0.0.1:9230/devtools/page/dev/billing"},
			{"client", "devtools://devtools/bundled/devtools_app.html?ws=127.0.0.1:9230/devtools/page/dev/page", "dev.page", "shop", "page", "http://shop.test/cart", "ws://127.0.0.1:9230/devtools/page/dev/page"},
		}
		if len(got) != len(want) {
			t.Fatalf("%s: %d targets, want %d: %s", path, len(got), len(want), body)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s: target %d:\n got %+v\nwant %+v", path, i, got[i], want[i])
			}
		}
	}
}

// Case I1: the addresses are those under which the client reached the gateway, or the configured one.
func TestListAddresses(t *testing.T) {
	m := newMemory(t, subjects.Limits{})
	g, _ := serve(t, m)
	for _, tc := range []struct {
		name, want string
		change     func(*http.Request)
	}{
		{"forwarded port", "ws://localhost:19230/devtools/page/dev", func(r *http.Request) { r.Host = "localhost:19230" }},
		{"TLS", "wss://127.0.0.1:9230/devtools/page/dev", func(r *http.Request) { r.TLS = &tls.ConnectionState{} }},
		{"forwarding headers are not trusted", "ws://127.0.0.1:9230/devtools/page/dev", func(r *http.Request) {
			r.Header.Set("X-Forwarded-Host", "evil.test")
			r.Header.Set("X-Forwarded-Proto", "https")
		}},
	} {
		_, body := fetch(t, g.Handler(), "GET", "/json/version", tc.change)
		var v map[string]string
		if err := json.Unmarshal([]byte(body), &v); err != nil {
			t.Fatal(err)
		}
		if v["webSocketDebuggerUrl"] != tc.want || v["Browser"] != "natscope/dev" {
			t.Errorf("%s: %v, want %s", tc.name, v, tc.want)
		}
	}
	g, _ = serve(t, m, func(o *Options) { o.External = "https://tools.example/natscope/" })
	_, body := fetch(t, g.Handler(), "GET", "/json/list", func(r *http.Request) { r.Host = "tools.example" })
	if want := `"webSocketDebuggerUrl": "wss://tools.example/natscope/devtools/page/dev"`; !strings.Contains(body, want) {
		t.Errorf("external address: no %s in %s", want, body)
	}
	if !strings.Contains(body, "?wss=tools.example/natscope/devtools/page/dev") {
		t.Errorf("the frontend's address is not for TLS: %s", body)
	}
}

func TestDiscoveryTexts(t *testing.T) {
	g, _ := serve(t, shop(t))
	for _, tc := range []struct {
		method, path string
		code         int
		text         string
	}{
		{"GET", "/json/", 404, "Unknown command: "},
		{"GET", "/json/bogus", 404, "Unknown command: bogus"},
		{"GET", "/json/new", 405, "Using unsafe HTTP verb GET to invoke /json/new. This action supports only PUT verb."},
		{"PUT", "/json/new", 500, "Could not create new page"},
		{"GET", "/json/activate/dev.orders", 200, "Target activated"},
		{"GET", "/json/activate/other", 404, "No such target id: other"},
		{"GET", "/json/close/dev", 500, "Could not close target id: dev"},
		{"GET", "/devtools/page/other", 404, "No such target id: other"},
		{"GET", "/devtools/page/dev/Not%20a%20token", 404, "No such target id: dev/Not a token"},
		{"GET", "/devtools/page/dev?source=[", 400, `source="[" is not a pattern; use *, ? and [a-z]`},
		{"GET", "/devtools/page/dev?kind=robot", 400, `kind="robot" is unknown; use host or client`},
		{"GET", "/nothing", 404, "Not found. The list of sources is at /, the list of DevTools targets at /json/list."},
	} {
		code, text := fetch(t, g.Handler(), tc.method, tc.path)
		if code != tc.code || text != tc.text {
			t.Errorf("%s %s: %d %q, want %d %q", tc.method, tc.path, code, text, tc.code, tc.text)
		}
	}
}

// Cases J1 and J2 on every route of the gateway.
func TestAccess(t *testing.T) {
	g, _ := serve(t, shop(t))
	for _, path := range []string{"/", "/json", "/json/list", "/json/version", "/json/protocol", "/devtools/page/dev"} {
		code, text := fetch(t, g.Handler(), "GET", path, func(r *http.Request) { r.Host = "evil.test:9230" })
		if code != http.StatusForbidden || !strings.Contains(text, "--allow-host") {
			t.Errorf("%s with a hostile Host: %d %s", path, code, text)
		}
	}
	for _, origin := range []string{"http://other:80", "null"} {
		code, text := fetch(t, g.Handler(), "GET", "/devtools/page/dev", func(r *http.Request) { r.Header.Set("Origin", origin) })
		if code != http.StatusForbidden || !strings.Contains(text, "--allow-origin") {
			t.Errorf("Origin %s: %d %s", origin, code, text)
		}
	}
}

func TestIndex(t *testing.T) {
	m := shop(t)
	m.open("odd", gen1, source.Descriptor{Name: `<script>alert("x")</script>`})
	m.Presence("odd", false)
	g, _ := serve(t, m)
	code, answer := fetch(t, g.Handler(), "GET", "/sources.json")
	for _, want := range []string{"devtools://devtools/bundled/devtools_app.html?ws=127.0.0.1:9230/devtools/page/dev/orders", "Billing Service", `"connected": false`, `"nodes": 4`} {
		if code != 200 || !strings.Contains(answer, want) {
			t.Errorf("no %q in the answer of sources:\n%s", want, answer)
		}
	}
	// Whatever sources say of themselves, the page runs no script but its own.
	r := httptest.NewRecorder()
	q := httptest.NewRequest("GET", "/", nil)
	q.Host = "127.0.0.1:9230"
	g.Handler().ServeHTTP(r, q)
	if policy := r.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "script-src 'self';") || !strings.Contains(policy, "default-src 'none'") {
		t.Errorf("the page's policy is %q", policy)
	}
}

// waitingState is a state that is not followed at present.
type waitingState struct {
	State
	text string
}

func (w waitingState) Status() replica.Status { return replica.Status{Waiting: w.text} }

// A page of sources that was not brought up to date says so: without NATS all of them look connected for ever.
func TestIndexOfAnOldState(t *testing.T) {
	for text, want := range map[string]string{"": "", "a connection to NATS": `"waiting": "a connection to NATS"`} {
		g, err := New(Options{State: waitingState{shop(t), text}, Space: "dev", Gateway: "g"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = g.Close(context.Background()) })
		_, page := fetch(t, g.Handler(), "GET", "/sources.json")
		if strings.Contains(page, `"waiting"`) != (want != "") || !strings.Contains(page, want) {
			t.Errorf("waiting %q: the page hears nothing of it, or too much", text)
		}
	}
}

// The description of the protocol is that of what is there, in a form that clients build their API from.
func TestProtocol(t *testing.T) {
	g, _ := serve(t, shop(t))
	_, body := fetch(t, g.Handler(), "GET", "/json/protocol")
	var p struct {
		Version map[string]string
		Domains []protocolDomain
	}
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		t.Fatal(err)
	}
	commands, events := map[string]bool{}, map[string]bool{}
	for _, d := range p.Domains {
		for _, c := range d.Commands {
			commands[d.Domain+"."+c.Name] = true
		}
		for _, e := range d.Events {
			events[d.Domain+"."+e.Name] = true
		}
	}
	if len(commands) != len(commandNames()) || !commands["DOM.getDocument"] || !commands["Runtime.evaluate"] || commands["Page.navigate"] {
		t.Errorf("%d commands, want the %d methods", len(commands), len(commandNames()))
	}
	if !events["DOM.childNodeInserted"] || !events["Inspector.detached"] {
		t.Errorf("events are missing: %v", events)
	}
}
