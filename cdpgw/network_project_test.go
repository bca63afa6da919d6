package cdpgw

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/source"
)

// netEvents lists the Network events of one request as short lines, in order.
func (c *client) netEvents(id RequestID) []string {
	c.t.Helper()
	all, _, _ := c.snapshot()
	var out []string
	for _, e := range all {
		name, ok := strings.CutPrefix(e.Method, "Network.")
		var p struct {
			RequestID        RequestID `json:"requestId"`
			RedirectResponse *struct{ Status int }
			RedirectExtra    bool `json:"redirectHasExtraInfo"`
			Request          struct{ URL string }
			Response         struct{ Status int }
		}
		if !ok || json.Unmarshal(e.Params, &p) != nil || p.RequestID != id {
			continue
		}
		switch {
		case p.RedirectResponse != nil:
			name += fmt.Sprintf(" %d -> %s %v", p.RedirectResponse.Status, p.Request.URL, p.RedirectExtra)
		case p.Request.URL != "":
			name += " " + p.Request.URL
		case p.Response.Status != 0:
			name += fmt.Sprintf(" %d", p.Response.Status)
		}
		out = append(out, name)
	}
	return out
}

// redirected makes a request that is redirected twice; the first two have cookies.
func redirected(m *memory) {
	for i, id := range []network.RequestID{"a", "b", "c"} {
		at := 1000 + 10*float64(i)
		s := network.Start{ID: id, URL: "http://a.test/" + string(id), Type: "fetch"}
		if i > 0 {
			s.RedirectOf = []network.RequestID{"a", "b"}[i-1]
		}
		if i < 2 {
			s.Headers = []network.Header{{"Cookie", "sid=1; theme=dark"}}
		}
		m.net("orders", gen1, at, network.TopicStart, s)
		r := network.Response{ID: id, Status: 302, Headers: []network.Header{{"Location", "/next"}}, HasBody: true}
		if i == 2 {
			r.Status, r.Headers = 200, nil
		}
		m.net("orders", gen1, at+1, network.TopicResponse, r)
		m.net("orders", gen1, at+2, network.TopicDataReceived, network.DataReceived{ID: id, Bytes: 4})
		m.net("orders", gen1, at+3, network.TopicEnd, network.End{ID: id, Bytes: 4, Captured: 4})
		m.AddBody(responseBodyOf(id), []byte("body of "+id), subjects.BodyComplete)
	}
}

// A chain of redirects is one request of the protocol, told as Chrome tells it,
// live and replayed, and its body is that of the last response.
func TestRedirectsAreOneRequest(t *testing.T) {
	for _, live := range []bool{false, true} {
		m := newMemory(t, subjects.Limits{})
		m.open("orders", gen1, source.Descriptor{Name: "orders"})
		_, server := serve(t, m)
		c := dial(t, server, "dev")
		if live {
			c.call("Network.enable", nil, nil)
		}
		redirected(m)
		if !live {
			c.call("Network.enable", nil, nil)
		}
		c.sync()
		want := []string{
			"requestWillBeSent http://a.test/a", "requestWillBeSentExtraInfo",
			"responseReceivedExtraInfo", "requestWillBeSent 302 -> http://a.test/b true", "requestWillBeSentExtraInfo",
			"responseReceivedExtraInfo", "requestWillBeSent 302 -> http://a.test/c true",
			"responseReceived 200", "dataReceived", "loadingFinished",
		}
		if got := c.netEvents(rid("a")); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("live %v: %q", live, got)
		}
		var body responseBodyResult
		c.call("Network.getResponseBody", map[string]any{"requestId": rid("a")}, &body)
		if body.Body != "body of c" {
			t.Errorf("live %v: %q", live, body.Body)
		}
		c.valid()
	}
}

// A redirect that nobody follows is told after a moment, and at once when its source dies or it makes room.
func TestRedirectThatIsNotFollowed(t *testing.T) {
	m := newMemory(t, subjects.Limits{Requests: 3})
	m.open("orders", gen1, source.Descriptor{Name: "orders"})
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	c.call("Network.enable", nil, nil)
	redirect := func(id network.RequestID) {
		m.net("orders", gen1, 1, network.TopicStart, network.Start{ID: id, URL: "http://a.test/" + string(id)})
		m.net("orders", gen1, 2, network.TopicResponse, network.Response{ID: id, Status: 307, Headers: []network.Header{{"location", "/x"}}})
	}
	redirect("alone")
	m.net("orders", gen1, 3, network.TopicEnd, network.End{ID: "alone"})
	c.sync()
	if got := c.netEvents(rid("alone")); len(got) != 1 {
		t.Errorf("before it is known whether somebody follows: %q", got)
	}
	c.event(0, "Network.loadingFinished", nil)
	if got := c.netEvents(rid("alone")); strings.Join(got, ",") != "requestWillBeSent http://a.test/alone,responseReceived 307,loadingFinished" {
		t.Errorf("%q", got)
	}
	redirect("evicted")
	for i := range 4 {
		m.get("orders", gen1, 10, network.RequestID(fmt.Sprint("n", i)), 200, "")
	}
	redirect("gone")
	m.Presence("orders", false)
	c.sync()
	for _, id := range []RequestID{rid("evicted"), rid("gone")} {
		c.until(0, "the end of "+string(id), func(r received) bool {
			return r.Method == "Network.loadingFailed" && strings.Contains(string(r.Params), string(id))
		})
		if got := c.netEvents(id); len(got) != 3 || got[1] != "responseReceived 307" {
			t.Errorf("%s: %q", id, got)
		}
	}
	c.valid()
}

// What the protocol has no field for stands among the response headers, whether it came with them or later.
func TestTrailersAndWhatIsNotWhole(t *testing.T) {
	for _, live := range []bool{false, true} {
		m := newMemory(t, subjects.Limits{})
		m.open("orders", gen1, source.Descriptor{Name: "orders"})
		_, server := serve(t, m)
		c := dial(t, server, "dev")
		if live {
			c.call("Network.enable", nil, nil)
		}
		one := func(id network.RequestID, end network.End) {
			m.net("orders", gen1, 1, network.TopicStart, network.Start{ID: id, Method: "POST", URL: "http://a.test/" + string(id), HasBody: true})
			m.net("orders", gen1, 2, network.TopicResponse, network.Response{ID: id, Status: 200, StatusText: "OK", Headers: []network.Header{{"A", "b"}}, HasBody: true, Route: "GET /{x}"})
			end.ID = id
			m.net("orders", gen1, 4, network.TopicEnd, end)
		}
		one("whole", network.End{Bytes: 4, Captured: 4})
		one("grpc", network.End{Bytes: 4, Captured: 4, Trailers: []network.Header{{"Grpc-Status", "14"}, {"A", "again"}}})
		one("cut", network.End{Bytes: 9, Captured: 4, Truncated: true})
		one("reset", network.End{Bytes: 9, Captured: 9, Error: "connection reset by peer"})
		one("left", network.End{Bytes: 9, Captured: 9, Canceled: true})
		one("secret", network.End{Bytes: 9, Captured: 3, Redacted: true, Truncated: true})
		if !live {
			c.call("Network.enable", nil, nil)
		}
		c.sync()
		got := map[RequestID]responseInfo{}
		count := map[RequestID]int{}
		all, _, _ := c.snapshot()
		for _, e := range all {
			var p responseReceivedEvent
			if e.Method == "Network.responseReceived" && json.Unmarshal(e.Params, &p) == nil {
				got[p.RequestID] = p.Response
				count[p.RequestID]++
			}
		}
		for id, want := range map[string]map[string]string{
			"whole":  {noteRoute: "GET /{x}", noteResponse: ""},
			"grpc":   {"Grpc-Status": "14", "A": "b\nagain", noteResponse: ""},
			"cut":    {noteResponse: "truncated: the first 4 of 9 bytes were captured"},
			"reset":  {noteResponse: "ended early: connection reset by peer"},
			"left":   {noteResponse: "ended early: the application stopped reading"},
			"secret": {noteResponse: "changed or withheld by the source's redaction rules"},
		} {
			for name, value := range want {
				if h := got[rid(id)].Headers[name]; h != value {
					t.Errorf("live %v, %s: %s is %q, want %q", live, id, name, h, value)
				}
			}
			if n := count[rid(id)]; n != 1 && (!live || id == "whole" || n != 2) {
				t.Errorf("live %v, %s: the response was told %d times", live, id, n)
			}
		}
		c.valid()
	}
}

// Cookies are listed, those that were known at once and those that a jar added later.
func TestCookies(t *testing.T) {
	m := newMemory(t, subjects.Limits{})
	m.open("orders", gen1, source.Descriptor{Name: "orders"})
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	c.call("Network.enable", nil, nil)
	m.net("orders", gen1, 1, network.TopicStart, network.Start{ID: "r", URL: "http://a.test:80/", Headers: []network.Header{{"cookie", `a=1; b="two"; {}=; c`}, {"Cookie", "d=4"}}})
	m.net("orders", gen1, 1, network.TopicStart, network.Start{ID: "late", URL: "http://b.test/"})
	m.net("orders", gen1, 2, network.TopicResponse, network.Response{ID: "late", Status: 200, RequestHeaders: []network.Header{{"Cookie", "sid=9"}}})
	m.net("orders", gen1, 2, network.TopicResponse, network.Response{ID: "r", Status: 200, RequestHeaders: []network.Header{{"Cookie", "a=1"}}})
	c.sync()
	var e requestExtraEvent
	at := c.event(0, "Network.requestWillBeSentExtraInfo", &e)
	var names []string
	for _, x := range e.AssociatedCookies {
		names = append(names, x.Cookie.Name+"="+x.Cookie.Value+"@"+x.Cookie.Domain)
	}
	if e.RequestID != rid("r") || strings.Join(names, " ") != "a=1@a.test b=two@a.test d=4@a.test" {
		t.Errorf("%s: %q", e.RequestID, names)
	}
	at = c.event(at, "Network.requestWillBeSentExtraInfo", &e)
	c.event(at, "Network.responseReceivedExtraInfo", nil)
	var got responseReceivedEvent
	c.event(at, "Network.responseReceived", &got)
	if !got.HasExtraInfo {
		t.Error("DevTools lists no cookies of a response without extra information")
	}
	if e.RequestID != rid("late") || len(e.AssociatedCookies) != 1 || len(c.netEvents(rid("r"))) != 4 {
		t.Errorf("%+v, %q", e, c.netEvents(rid("r")))
	}
	c.valid()
}

func TestSecurityDetails(t *testing.T) {
	m := newMemory(t, subjects.Limits{})
	m.open("orders", gen1, source.Descriptor{Name: "orders"})
	m.net("orders", gen1, 1, network.TopicStart, network.Start{ID: "r", Direction: network.Incoming, URL: "/x", Client: "[2001:db8::1]:443", Headers: []network.Header{{"Host", "api.test"}}})
	m.net("orders", gen1, 2, network.TopicResponse, network.Response{ID: "r", Status: 200, TLS: &network.TLS{Version: "TLS 1.3", Cipher: "AES_128_GCM", Subject: "api.test", ValidFrom: 1, ValidTo: 2}})
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	c.call("Network.enable", nil, nil)
	var sent requestWillBeSentEvent
	at := c.event(0, "Network.requestWillBeSent", &sent)
	var got responseReceivedEvent
	c.event(at, "Network.responseReceived", &got)
	if r := got.Response; r.SecurityState != "secure" || r.SecurityDetails.Protocol != "TLS 1.3" || r.SecurityDetails.SanList == nil || r.RemoteIPAddress != "2001:db8::1" || r.RemotePort != 443 {
		t.Errorf("%+v", got.Response)
	}
	if sent.Request.URL != "http://api.test/x" || sent.Initiator != (initiator{Type: "parser", URL: "incoming from [2001:db8::1]:443"}) {
		t.Errorf("%+v", sent)
	}
	c.valid()
}

// FuzzProjection shows any records that the fold takes, live and replayed: what
// goes out is always valid, and each request that ends does so once.
func FuzzProjection(f *testing.F) {
	f.Add(`start {"id":"a","url":"ws://x/","type":"websocket"}
message {"id":"a","opcode":8,"code":1008,"data":"no"}
end {"id":"a"}`)
	f.Add(`start {"id":"a","url":"/","headers":[["Cookie","a=\u00ff; b"]]}
response {"id":"a","status":302,"headers":[["Location","/b"]]}
end {"id":"a","trailers":[["x","y"]]}
start {"id":"b","url":"/b","redirectOf":"a"}
error {"id":"b","text":"no"}`)
	f.Add(`start {"id":"a","url":"http://[::1","type":"eventsource","direction":"in","client":"x"}
response {"id":"a","status":-1,"timing":{},"tls":{"version":""}}
message {"id":"a","data":"x"}`)
	f.Fuzz(func(t *testing.T, text string) {
		m := newMemory(t, subjects.Limits{Requests: 3})
		m.open("orders", gen1, source.Descriptor{Name: "orders"})
		src := m.Space().Source("orders")
		h := &hub{space: m.Space()}
		d := protocolOf(t)
		ends := map[RequestID]int{}
		starts := map[RequestID]int{}
		see := func(events [][]byte, count bool) {
			for _, b := range events {
				var e received
				if err := json.Unmarshal(b, &e); err != nil {
					t.Fatal(err)
				}
				if bad := d.event(e.Method, e.Params); len(bad) > 0 {
					t.Fatalf("%q: %s", bad, b)
				}
				var p struct{ RequestID RequestID }
				_ = json.Unmarshal(e.Params, &p)
				if !count {
					continue
				}
				switch e.Method {
				case "Network.requestWillBeSent", "Network.webSocketCreated":
					starts[p.RequestID]++
				case "Network.loadingFinished", "Network.loadingFailed", "Network.webSocketClosed":
					if ends[p.RequestID]++; ends[p.RequestID] > starts[p.RequestID] {
						t.Fatalf("%s ends more often than it starts", p.RequestID)
					}
				}
			}
		}
		for line := range strings.Lines(text) {
			topic, data, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			c, err := src.Net.Apply(string(gen1), 1, topic, json.RawMessage(data), network.Keep{Requests: 3})
			if err != nil || c == nil {
				continue
			}
			see(requestEvents(h, src, c), true)
		}
		for _, r := range src.Net.Requests {
			see(projection{hub: h, source: src}.replay(r), false)
		}
		for _, c := range src.Net.Gone(string(gen1), 2, "gone") {
			see(requestEvents(h, src, c), true)
		}
	})
}
