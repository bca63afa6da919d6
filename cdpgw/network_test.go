package cdpgw

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/source"
)

// rid is the id of a request of orders in the first generation.
func rid(id string) RequestID { return RequestID("orders." + string(gen1) + "." + id) }

func responseBodyOf(id network.RequestID) subjects.BodySubject {
	return subjects.BodySubject{Space: "dev", Source: "orders", Generation: gen1, Request: id, Direction: subjects.ResponseBody}
}

// quick makes waits of queries short.
func quick(o *Options) { o.Limits.Query = 100 * time.Millisecond }

// Case A2: one request that succeeds and one that fails, replayed and live, with every field that DevTools reads.
func TestRequests(t *testing.T) {
	for _, live := range []bool{false, true} {
		m := newMemory(t, subjects.Limits{})
		m.open("orders", gen1, source.Descriptor{Name: "orders"})
		_, server := serve(t, m)
		c := dial(t, server, "dev")
		run := func() {
			m.net("orders", gen1, 1000, network.TopicStart, network.Start{ID: "ok", Method: "POST", URL: "https://api.test/x?y=1", Type: "xhr", HasBody: true, BodyBytes: -1,
				Headers: []network.Header{{"Accept", "a"}, {"X-Two", "1"}, {"x-two", "2"}}, Stack: []network.Frame{{Function: "main.call", URL: "file:///main.go", Line: 12, Column: 3}}})
			m.net("orders", gen1, 1050, network.TopicResponse, network.Response{ID: "ok", Status: 201, StatusText: "Created", MIMEType: "application/json", Charset: "utf-8", Protocol: "h2", RemoteIP: "10.0.0.1", RemotePort: 443,
				Timing: &network.Timing{DNSStart: 1, DNSEnd: 2, ConnectStart: 2, ConnectEnd: 5, TLSStart: 5, TLSEnd: 9, SendStart: 10, SendEnd: 11, HeadersStart: 40, HeadersEnd: 50}, HasBody: true})
			m.net("orders", gen1, 1060, network.TopicDataReceived, network.DataReceived{ID: "ok", Bytes: 10, Wire: 7})
			m.net("orders", gen1, 1070, network.TopicEnd, network.End{ID: "ok", Bytes: 10, Wire: 7, Captured: 10})
			m.net("orders", gen1, 2000, network.TopicStart, network.Start{ID: "bad", Method: "GET", URL: "http://down.test/", Type: "fetch"})
			m.net("orders", gen1, 2001, network.TopicError, network.Error{ID: "bad", Text: "connection refused", Canceled: true})
		}
		if live {
			c.call("Network.enable", nil, nil)
			run()
		} else {
			run()
			c.call("Network.enable", nil, nil)
		}
		c.sync()
		var sent requestWillBeSentEvent
		at := c.event(0, "Network.requestWillBeSent", &sent)
		if sent.RequestID != rid("ok") || sent.Type != "XHR" || sent.FrameID != "source.orders" || sent.DocumentURL != "natscope://orders.dev/" || !sent.Request.HasPostData ||
			sent.Timestamp != (origin+1000)/1000 || sent.WallTime != sent.Timestamp || sent.Request.Headers["X-Two"] != "1\n2" ||
			sent.Initiator.Type != "script" || sent.Initiator.Stack.CallFrames[0] != (callFrame{"main.call", scriptOf("orders", string(gen1), "file:///main.go"), "file:///main.go", 11, 2}) {
			t.Errorf("live %v: requestWillBeSent %+v", live, sent)
		}
		var got responseReceivedEvent
		at = c.event(at, "Network.responseReceived", &got)
		r := got.Response
		if got.Type != "XHR" || got.HasExtraInfo || r.Status != 201 || r.Charset != "utf-8" || r.SecurityState != "secure" || r.RemoteIPAddress != "10.0.0.1" ||
			r.Timing.RequestTime != sent.Timestamp || r.Timing.ConnectEnd != 9 || r.Timing.SSLStart != 5 || r.Timing.ReceiveHeadersEnd != 50 || r.RequestHeaders["Accept"] != "a" {
			t.Errorf("live %v: responseReceived %+v %+v", live, got, r.Timing)
		}
		var data dataReceivedEvent
		at = c.event(at, "Network.dataReceived", &data)
		var finished loadingFinishedEvent
		at = c.event(at, "Network.loadingFinished", &finished)
		if data.DataLength != 10 || data.EncodedDataLength != 7 || finished.EncodedDataLength != 7 || finished.Timestamp != (origin+1070)/1000.0 {
			t.Errorf("live %v: %+v %+v", live, data, finished)
		}
		var failed loadingFailedEvent
		c.event(at, "Network.loadingFailed", &failed)
		if failed.RequestID != rid("bad") || failed.Type != "Fetch" || failed.ErrorText != "connection refused" || !failed.Canceled {
			t.Errorf("live %v: %+v", live, failed)
		}
		c.valid()
	}
}

// The Size column counts the head of a response and every byte of its body,
// also where the source does not see the wire and while the body is still coming.
func TestSizeOfSmallAnswersAndStreams(t *testing.T) {
	m := newMemory(t, subjects.Limits{})
	m.open("orders", gen1, source.Descriptor{Name: "orders"})
	m.net("orders", gen1, 1, network.TopicStart, network.Start{ID: "s", URL: "http://a.test/stream"})
	m.net("orders", gen1, 2, network.TopicResponse, network.Response{ID: "s", Status: 200, StatusText: "OK", HasBody: true, Headers: []network.Header{{"A", "b"}}})
	m.net("orders", gen1, 3, network.TopicDataReceived, network.DataReceived{ID: "s", Bytes: 10})
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	c.call("Network.enable", nil, nil)
	const head = int64(len("HTTP/1.1 200 OK\r\nA: b\r\n\r\n"))
	var got responseReceivedEvent
	at := c.event(0, "Network.responseReceived", &got)
	var data dataReceivedEvent
	at = c.event(at, "Network.dataReceived", &data)
	if got.Response.EncodedDataLength != float64(head) || data.EncodedDataLength != 10 {
		t.Errorf("the head counts %v bytes, want %d; the data %d, want 10", got.Response.EncodedDataLength, head, data.EncodedDataLength)
	}
	m.net("orders", gen1, 4, network.TopicEnd, network.End{ID: "s", Bytes: 10})
	var finished loadingFinishedEvent
	c.event(at, "Network.loadingFinished", &finished)
	if finished.EncodedDataLength != float64(head+10) {
		t.Errorf("all counts %v bytes, want %d", finished.EncodedDataLength, head+10)
	}
}

// DevTools takes a start of sending at 0 for none and shows the whole wait as "Stalled".
func TestWaitWithoutTiming(t *testing.T) {
	m := newMemory(t, subjects.Limits{})
	m.open("page", gen1, source.Descriptor{Name: "page"})
	m.net("page", gen1, 1000, network.TopicStart, network.Start{ID: "a", URL: "http://a.test/"})
	m.net("page", gen1, 1500, network.TopicResponse, network.Response{ID: "a", Status: 200})
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	c.call("Network.enable", nil, nil)
	var got responseReceivedEvent
	c.event(0, "Network.responseReceived", &got)
	if x := got.Response.Timing; x.SendStart <= 0 || x.SendStart > 0.01 || x.SendEnd < x.SendStart || x.ReceiveHeadersEnd != 500 {
		t.Errorf("the time until the answer is not a wait for it: %+v", x)
	}
}

// Case F1, the gateway's part: every way to end is told exactly once.
func TestEndings(t *testing.T) {
	m := newMemory(t, subjects.Limits{Requests: 3})
	m.open("orders", gen1, source.Descriptor{Name: "orders"})
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	c.call("Network.enable", nil, nil)
	start := func(id network.RequestID, response bool) {
		m.net("orders", gen1, 1, network.TopicStart, network.Start{ID: id, URL: "http://a.test/" + string(id)})
		if response {
			m.net("orders", gen1, 2, network.TopicResponse, network.Response{ID: id, Status: 200, HasBody: true})
		}
	}
	start("finished", true)
	m.net("orders", gen1, 3, network.TopicEnd, network.End{ID: "finished"})
	start("cut", true)
	m.net("orders", gen1, 3, network.TopicEnd, network.End{ID: "cut", Truncated: true, Error: "context canceled", Canceled: true})
	start("failed", false)
	m.net("orders", gen1, 3, network.TopicError, network.Error{ID: "failed", Text: "no route"})
	start("canceled", false)
	m.net("orders", gen1, 3, network.TopicError, network.Error{ID: "canceled", Text: "context canceled", Canceled: true})
	start("evicted", false)
	start("x1", false)
	start("x2", false)
	start("gone", true)
	m.Presence("orders", false)
	m.net("orders", gen1, 9, network.TopicEnd, network.End{ID: "gone"})
	c.sync()
	ends := map[RequestID]string{}
	all, _, _ := c.snapshot()
	for _, e := range all {
		if e.Method != "Network.loadingFinished" && e.Method != "Network.loadingFailed" {
			continue
		}
		var p loadingFailedEvent
		if err := json.Unmarshal(e.Params, &p); err != nil {
			t.Fatal(err)
		}
		text := strings.TrimPrefix(e.Method, "Network.loading") + " " + p.ErrorText
		if p.Canceled {
			text += " canceled"
		}
		if ends[p.RequestID] != "" {
			t.Errorf("%s ends twice: %s, then %s", p.RequestID, ends[p.RequestID], text)
		}
		ends[p.RequestID] = text
	}
	for id, want := range map[string]string{
		"finished": "Finished ", "cut": "Finished ", "failed": "Failed no route", "canceled": "Failed context canceled canceled",
		"evicted": "Failed natscope stopped following this request: newer ones took its place", "gone": "Failed the source is gone",
		"x1": "Failed the source is gone", "x2": "Failed the source is gone",
	} {
		if ends[rid(id)] != want {
			t.Errorf("%s: %q, want %q", id, ends[rid(id)], want)
		}
	}
	c.valid()
}

// Case F10: a header that is not ASCII is valid UTF-8 and keeps its characters.
func TestHeadersAreText(t *testing.T) {
	m := newMemory(t, subjects.Limits{})
	m.open("orders", gen1, source.Descriptor{Name: "orders"})
	m.net("orders", gen1, 1, network.TopicStart, network.Start{ID: "r", URL: "http://a.test/", Headers: []network.Header{{"X-Latin", "caf\u00e9\u00ff"}}})
	m.Publish("orders", gen1, subjects.PlaneNet, subjects.Record{T: 2, Topic: network.TopicStart, Data: json.RawMessage("{\"id\":\"q\",\"url\":\"http://a.test/\",\"headers\":[[\"X-Bytes\",\"a\xff\"]]}")})
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	c.call("Network.enable", nil, nil)
	var e requestWillBeSentEvent
	at := c.event(0, "Network.requestWillBeSent", &e)
	if e.Request.Headers["X-Latin"] != "caf\u00e9\u00ff" {
		t.Errorf("%q", e.Request.Headers)
	}
	c.event(at, "Network.requestWillBeSent", &e)
	c.valid()
}

// Case F11: the body is asked for at every moment of a request's life.
func TestResponseBodies(t *testing.T) {
	m := shop(t)
	_, server := serve(t, m, quick)
	c := dial(t, server, "dev")
	c.call("Network.enable", nil, nil)
	get := func(id string) *protocolError {
		t.Helper()
		return c.fails("Network.getResponseBody", map[string]any{"requestId": rid(id)}, codeServer)
	}
	var body responseBodyResult
	c.call("Network.getResponseBody", map[string]any{"requestId": rid("r1")}, &body)
	if body != (responseBodyResult{"hello", false}) {
		t.Errorf("%+v", body)
	}
	m.get("orders", gen1, 30, "empty", 204, "")
	c.call("Network.getResponseBody", map[string]any{"requestId": rid("empty")}, &body)
	if body != (responseBodyResult{"", false}) {
		t.Errorf("empty: %+v", body)
	}
	m.get("orders", gen1, 30, "evicted", 200, "x")
	m.FailBody(responseBodyOf("evicted"), replica.ErrBodyEvicted)
	if e := get("evicted"); !strings.Contains(e.Message, "no longer kept") || !strings.Contains(e.Message, "--body-age") || !strings.Contains(e.Message, "--body-bytes") {
		t.Errorf("evicted: %s", e.Message)
	}
	m.net("orders", gen1, 40, network.TopicStart, network.Start{ID: "failed", URL: "http://a.test/"})
	m.net("orders", gen1, 41, network.TopicError, network.Error{ID: "failed", Text: "refused"})
	if e := get("failed"); !strings.Contains(e.Message, "no response came") {
		t.Errorf("failed: %s", e.Message)
	}
	m.net("orders", gen1, 50, network.TopicStart, network.Start{ID: "slow", URL: "http://a.test/"})
	m.net("orders", gen1, 51, network.TopicResponse, network.Response{ID: "slow", Status: 200, HasBody: true})
	m.AddBody(responseBodyOf("slow"), []byte("half "), "")
	if e := get("slow"); !strings.Contains(e.Message, "still being received") {
		t.Errorf("running: %s", e.Message)
	}
	for _, id := range []RequestID{"nonsense", "no.such.request", rid("nope"), "orders.x.y.z"} {
		if e := c.fails("Network.getResponseBody", map[string]any{"requestId": id}, codeServer); !strings.HasPrefix(e.Message, "No resource with given identifier found") {
			t.Errorf("%s: %s", id, e.Message)
		}
	}
}

// A body that is on its way is waited for, and nothing else waits with it.
func TestBodyIsWaitedFor(t *testing.T) {
	m := shop(t)
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	c.call("Network.enable", nil, nil)
	m.net("orders", gen1, 50, network.TopicStart, network.Start{ID: "slow", URL: "http://a.test/"})
	m.net("orders", gen1, 51, network.TopicResponse, network.Response{ID: "slow", Status: 200, HasBody: true})
	m.AddBody(responseBodyOf("slow"), []byte("one "), "")
	id := c.send("Network.getResponseBody", map[string]any{"requestId": rid("slow")})
	c.sync()
	m.AddBody(responseBodyOf("slow"), []byte("two"), subjects.BodyComplete)
	answer, _ := c.until(0, "body", func(r received) bool { return r.ID == id })
	if string(answer.Result) != `{"body":"one two","base64Encoded":false}` {
		t.Errorf("%s", answer.raw)
	}
}

// Case F13: bytes come back as they were, as text only if they are text.
func TestBodyBytes(t *testing.T) {
	m := shop(t)
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	for name, data := range map[network.RequestID]string{
		"text": "h\u00e9llo <&>", "png": "\x89PNG\r\n\x1a\n\x00\x00", "latin": "caf\xe9", "utf16": "\xff\xfeh\x00", "cut": "h\u00e9llo"[:2], "nul": "a\x00b", "big": strings.Repeat("x", 3<<20),
	} {
		m.get("orders", gen1, 30, name, 200, data)
		var body responseBodyResult
		c.call("Network.getResponseBody", map[string]any{"requestId": rid(string(name))}, &body)
		got := body.Body
		if body.Base64Encoded {
			b, err := base64.StdEncoding.DecodeString(body.Body)
			if err != nil {
				t.Fatal(err)
			}
			got = string(b)
		}
		if got != data {
			t.Errorf("%s: %d bytes came back, other than the %d that went in", name, len(got), len(data))
		}
		if text := name == "text" || name == "nul" || name == "big"; body.Base64Encoded == text {
			t.Errorf("%s: base64 %v", name, body.Base64Encoded)
		}
	}
}

func TestPostData(t *testing.T) {
	m := shop(t)
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	m.net("orders", gen1, 50, network.TopicStart, network.Start{ID: "p", Method: "POST", URL: "http://a.test/", HasBody: true, BodyBytes: 4})
	subject := responseBodyOf("p")
	subject.Direction = subjects.RequestBody
	m.AddBody(subject, []byte("a=\xff1"), subjects.BodyComplete)
	m.net("orders", gen1, 51, network.TopicRequestBodyEnd, network.BodyEnd{ID: "p", Bytes: 4, Captured: 4})
	var post postDataResult
	c.call("Network.getRequestPostData", map[string]any{"requestId": rid("p")}, &post)
	if post != (postDataResult{base64.StdEncoding.EncodeToString([]byte("a=\xff1")), true}) {
		t.Errorf("%+v", post)
	}
	if e := c.fails("Network.getRequestPostData", map[string]any{"requestId": rid("r1")}, codeServer); e.Message != "No post data available for the request" {
		t.Errorf("%s", e.Message)
	}
}

func TestSearchInBody(t *testing.T) {
	m := shop(t)
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	m.get("orders", gen1, 30, "s", 200, "Alpha\r\nbeta\nalphabet")
	for _, tc := range []struct {
		params map[string]any
		want   string
	}{
		{map[string]any{"query": "alpha"}, `{"result":[{"lineNumber":0,"lineContent":"Alpha"},{"lineNumber":2,"lineContent":"alphabet"}]}`},
		{map[string]any{"query": "alpha", "caseSensitive": true}, `{"result":[{"lineNumber":2,"lineContent":"alphabet"}]}`},
		{map[string]any{"query": "^b.t", "isRegex": true}, `{"result":[{"lineNumber":1,"lineContent":"beta"}]}`},
		{map[string]any{"query": "b.t"}, `{"result":[]}`},
	} {
		tc.params["requestId"] = rid("s")
		var raw json.RawMessage
		c.call("Network.searchInResponseBody", tc.params, &raw)
		if string(raw) != tc.want {
			t.Errorf("%v: %s", tc.params, raw)
		}
	}
	c.fails("Network.searchInResponseBody", map[string]any{"requestId": rid("s"), "query": "(", "isRegex": true}, codeServer)
}

// Requests that a source served are told apart from those that it made.
func TestIncoming(t *testing.T) {
	for _, tc := range []struct {
		start network.Start
		want  resourceType
	}{
		{network.Start{Direction: network.Incoming, Type: "fetch"}, "Document"}, {network.Start{Type: "fetch"}, "Fetch"}, {network.Start{Type: "xhr"}, "XHR"},
		{network.Start{Type: "document"}, "Document"}, {network.Start{Type: "eventsource"}, "EventSource"}, {network.Start{Type: "brand-new"}, "Other"}, {network.Start{}, "Other"},
	} {
		if got := typeOf(tc.start); got != tc.want {
			t.Errorf("%+v: %s, want %s", tc.start, got, tc.want)
		}
	}
}

// A restart does not move the requests of the life before it, and ids of both lives differ.
func TestRequestsKeepTheirClock(t *testing.T) {
	m := shop(t)
	m.open("orders", gen2, source.Descriptor{Name: "orders", Origin: origin + 3_600_000})
	m.get("orders", gen2, 20, "r1", 200, "later")
	_, server := serve(t, m)
	c := dial(t, server, "dev/orders")
	c.call("Network.enable", nil, nil)
	var first, second requestWillBeSentEvent
	at := c.event(0, "Network.requestWillBeSent", &first)
	c.event(at, "Network.requestWillBeSent", &second)
	if first.WallTime != (origin+20)/1000.0 || second.WallTime != (origin+3_600_020)/1000.0 || first.RequestID == second.RequestID {
		t.Errorf("%v %v, %s %s", first.WallTime, second.WallTime, first.RequestID, second.RequestID)
	}
	var body responseBodyResult
	c.call("Network.getResponseBody", map[string]any{"requestId": first.RequestID}, &body)
	if body.Body != "hello" {
		t.Errorf("%+v", body)
	}
}
