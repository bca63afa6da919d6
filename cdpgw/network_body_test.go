package cdpgw

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

func gzipped(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// encoded makes a request whose response has a content encoding.
func encoded(m *memory, id network.RequestID, encoding string, ended bool, parts ...replica.BodyPart) {
	m.net("orders", gen1, 50, network.TopicStart, network.Start{ID: id, URL: "http://a.test/" + string(id), Type: "fetch"})
	m.net("orders", gen1, 51, network.TopicResponse, network.Response{ID: id, Status: 200, MIMEType: "text/event-stream", HasBody: true, Headers: []network.Header{{"content-encoding", encoding}}})
	var n int64
	for _, p := range parts {
		m.AddBody(responseBodyOf(id), p.Data, p.End)
		n += int64(len(p.Data))
	}
	if ended {
		m.net("orders", gen1, 60, network.TopicEnd, network.End{ID: id, Bytes: n, Captured: n})
	}
}

// Bodies are shown decoded; one that is not what its headers say stays as it is.
func TestBodiesAreDecoded(t *testing.T) {
	m := shop(t)
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	text := strings.Repeat("needle in hay\n", 1000)
	z := gzipped(t, text)
	encoded(m, "gzip", "gzip", true, replica.BodyPart{Data: z}, replica.BodyPart{End: subjects.BodyTruncated})
	encoded(m, "plain", "gzip", true, replica.BodyPart{Data: []byte("decoded already"), End: subjects.BodyComplete})
	encoded(m, "odd", "rot13", true, replica.BodyPart{Data: []byte("uryyb"), End: subjects.BodyComplete})
	for id, want := range map[string]string{"gzip": text, "plain": "decoded already", "odd": "uryyb"} {
		var body responseBodyResult
		c.call("Network.getResponseBody", map[string]any{"requestId": rid(id)}, &body)
		if body.Body != want || body.Base64Encoded {
			t.Errorf("%s: %.60q, want %.60q", id, body.Body, want)
		}
	}
	var found struct{ Result []bodyMatch }
	c.call("Network.searchInResponseBody", map[string]any{"requestId": rid("gzip"), "query": "needle"}, &found)
	if len(found.Result) != maxBodyMatches {
		t.Errorf("%d lines are found in the compressed body", len(found.Result))
	}
	c.valid()
}

// Case F13, text that is cut at the limit, and bytes that are: what is shown says so, and no byte is made up.
func TestTruncatedBodies(t *testing.T) {
	m := shop(t)
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	cut := func(id network.RequestID, data string, end string, v network.End) responseBodyResult {
		t.Helper()
		m.net("orders", gen1, 50, network.TopicStart, network.Start{ID: id, URL: "http://a.test/"})
		m.net("orders", gen1, 51, network.TopicResponse, network.Response{ID: id, Status: 200, HasBody: true})
		m.AddBody(responseBodyOf(id), []byte(data), "")
		m.EndBody(responseBodyOf(id), end, v.Bytes)
		v.ID, v.Captured = id, int64(len(data))
		m.net("orders", gen1, 60, network.TopicEnd, v)
		var body responseBodyResult
		c.call("Network.getResponseBody", map[string]any{"requestId": rid(string(id))}, &body)
		return body
	}
	if b := cut("text", "h\u00e9ll\u00f6"[:6], subjects.BodyTruncated, network.End{Bytes: 900, Truncated: true}); b.Base64Encoded || b.Body != "h\u00e9ll\n\n[natscope: truncated: the first 6 of 900 bytes of this body were captured]" {
		t.Errorf("%+v", b)
	}
	if b := cut("bytes", "\x89PNG", subjects.BodyTruncated, network.End{Bytes: 900, Truncated: true}); !b.Base64Encoded || b.Body != base64.StdEncoding.EncodeToString([]byte("\x89PNG")) {
		t.Errorf("%+v", b)
	}
	if b := cut("left", "half", subjects.BodyAborted, network.End{Bytes: 4, Canceled: true}); b != (responseBodyResult{"half", false}) {
		t.Errorf("%+v", b)
	}
	if b := cut("secret", "[redacted]", subjects.BodyTruncated, network.End{Bytes: 900, Redacted: true}); b != (responseBodyResult{"[redacted]", false}) {
		t.Errorf("%+v", b)
	}
}

// Case F15: an upload with a PDF in it comes back byte by byte.
func TestBinaryMultipartPostData(t *testing.T) {
	m := shop(t)
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	r := rand.New(rand.NewPCG(1, 2))
	pdf := []byte("--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.pdf\"\r\nContent-Type: application/pdf\r\n\r\n%PDF-1.7\n")
	for range 5000 {
		pdf = append(pdf, byte(r.IntN(256)))
	}
	pdf = append(pdf, "\r\n--b--\r\n"...)
	m.net("orders", gen1, 50, network.TopicStart, network.Start{ID: "p", Method: "POST", URL: "http://a.test/", HasBody: true, BodyBytes: int64(len(pdf)), Headers: []network.Header{{"Content-Type", "multipart/form-data; boundary=b"}}})
	subject := responseBodyOf("p")
	subject.Direction = subjects.RequestBody
	m.AddBody(subject, pdf, subjects.BodyComplete)
	m.net("orders", gen1, 51, network.TopicRequestBodyEnd, network.BodyEnd{ID: "p", Bytes: int64(len(pdf)), Captured: int64(len(pdf))})
	c.call("Network.enable", nil, nil)
	var sent requestWillBeSentEvent
	c.until(0, "the upload", func(e received) bool {
		return e.Method == "Network.requestWillBeSent" && json.Unmarshal(e.Params, &sent) == nil && sent.RequestID == rid("p")
	})
	var post postDataResult
	c.call("Network.getRequestPostData", map[string]any{"requestId": rid("p")}, &post)
	got, err := base64.StdEncoding.DecodeString(post.PostData)
	if err != nil || !post.Base64Encoded || !bytes.Equal(got, pdf) || !sent.Request.HasPostData {
		t.Errorf("%d of %d bytes came back, base64 %v, %v; has post data: %v", len(got), len(pdf), post.Base64Encoded, err, sent.Request.HasPostData)
	}
	c.valid()
}

// A compressed stream is read as it comes: every event is readable before the next one is sent.
func TestCompressedStream(t *testing.T) {
	m := shop(t)
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	c.call("Network.enable", nil, nil)
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	part := func(text string) []byte {
		b.Reset()
		_, _ = w.Write([]byte(text))
		_ = w.Flush()
		return bytes.Clone(b.Bytes())
	}
	encoded(m, "sse", "gzip", false, replica.BodyPart{Data: part("data: one\n\n")})
	var r streamResult
	c.call("Network.streamResourceContent", map[string]any{"requestId": rid("sse")}, &r)
	got := string(r.BufferedData)
	from := c.count()
	for _, text := range []string{"data: two\n\n", "data: three\n\n"} {
		m.AddBody(responseBodyOf("sse"), part(text), "")
		c.until(from, text, func(e received) bool {
			var d dataReceivedEvent
			if e.Method == "Network.dataReceived" && json.Unmarshal(e.Params, &d) == nil && len(d.Data) > 0 && string(d.Data) == text {
				got += string(d.Data)
				return true
			}
			return false
		})
	}
	if got != "data: one\n\ndata: two\n\ndata: three\n\n" {
		t.Errorf("%q", got)
	}
	m.net("orders", gen1, 60, network.TopicEnd, network.End{ID: "sse", Bytes: 1, Captured: 1})
	m.AddBody(responseBodyOf("sse"), nil, subjects.BodyComplete)
	c.event(from, "Network.loadingFinished", nil)
	// Case of the replay: after its end, the whole body is the answer.
	c.call("Network.streamResourceContent", map[string]any{"requestId": rid("sse")}, &r)
	if string(r.BufferedData) != got {
		t.Errorf("after the end: %q", r.BufferedData)
	}
	c.valid()
}

// Case F22: a large body comes through, other commands are answered meanwhile, and several of them do not end the connection.
func TestLargestBodies(t *testing.T) {
	m := shop(t)
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	big := bytes.Repeat([]byte("0123456789abcde\xff"), 512<<10)
	want := [][]byte{big, big[:1<<20]}
	for i, id := range []network.RequestID{"b1", "b2"} {
		m.get("orders", gen1, 50, id, 200, string(want[i]))
	}
	var ids []int64
	for _, id := range []string{"b1", "b2"} {
		ids = append(ids, c.send("Network.getResponseBody", map[string]any{"requestId": rid(id)}))
	}
	c.sync()
	for i, id := range ids {
		answer, _ := c.until(0, "a large body", func(r received) bool { return r.ID == id })
		var body responseBodyResult
		if err := json.Unmarshal(answer.Result, &body); err != nil {
			t.Fatal(err)
		}
		got, err := base64.StdEncoding.DecodeString(body.Body)
		if err != nil || !bytes.Equal(got, want[i]) {
			t.Errorf("%d of %d bytes came back, %v", len(got), len(want[i]), err)
		}
	}
	c.sync()
}

// A connection reads few bodies at a time, however many it asks for.
func TestBodiesWaitForTheirTurn(t *testing.T) {
	m := shop(t)
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	for i := range 3 * endedBodies {
		id := network.RequestID("slow" + itoa(int64(i)))
		m.net("orders", gen1, 50, network.TopicStart, network.Start{ID: id, URL: "http://a.test/"})
		m.net("orders", gen1, 51, network.TopicResponse, network.Response{ID: id, Status: 200, HasBody: true})
		m.net("orders", gen1, 52, network.TopicEnd, network.End{ID: id, Bytes: 3, Captured: 3})
		m.AddBody(responseBodyOf(id), []byte("abc"), "")
		c.send("Network.getResponseBody", map[string]any{"requestId": rid(string(id))})
	}
	c.sync()
	for i := range 3 * endedBodies {
		m.AddBody(responseBodyOf(network.RequestID("slow"+itoa(int64(i)))), nil, subjects.BodyComplete)
	}
	last := c.last
	for id := last - 3*endedBodies; id < last; id++ {
		answer, _ := c.until(0, "a body", func(r received) bool { return r.ID == id })
		if string(answer.Result) != `{"body":"abc","base64Encoded":false}` {
			t.Errorf("%s", answer.raw)
		}
	}
}

// Cases G1 and G2: a source map that was offered is loaded, in reads of which the
// last one is empty; everything else gives an error, so that DevTools helps itself.
func TestSourceMapsAreLoaded(t *testing.T) {
	m := shop(t)
	g, server := serve(t, m)
	c := dial(t, server, "dev")
	c.sync()
	data := bytes.Repeat([]byte("mappings\u00e9"), 200_000)
	s := g.hub.all()[0]
	s.mu.Lock()
	s.offerResource("natscope-map://dev/orders/app.js.map", func(context.Context) ([]byte, error) { return data, nil })
	s.offerResource("natscope-map://dev/orders/gone.js.map", func(context.Context) ([]byte, error) { return nil, errors.New("the source is gone") })
	s.mu.Unlock()
	load := func(url string) map[string]any {
		return map[string]any{"frameId": "source.orders", "url": url, "options": map[string]bool{"disableCache": true, "includeCredentials": true}}
	}
	var loaded struct{ Resource loadedResource }
	c.call("Network.loadNetworkResource", load("natscope-map://dev/orders/app.js.map"), &loaded)
	var got []byte
	for range 100 {
		var r ioReadResult
		c.call("IO.read", map[string]any{"handle": loaded.Resource.Stream, "size": 300_001}, &r)
		part, err := base64.StdEncoding.DecodeString(r.Data)
		if err != nil || r.EOF && len(part) > 0 || !r.EOF && len(part) == 0 {
			t.Fatalf("%v: %d bytes with eof %v", err, len(part), r.EOF)
		}
		if got = append(got, part...); r.EOF {
			break
		}
	}
	if !bytes.Equal(got, data) {
		t.Errorf("%d of %d bytes", len(got), len(data))
	}
	var again ioReadResult
	c.call("IO.read", map[string]any{"handle": loaded.Resource.Stream, "offset": 2, "size": 3}, &again)
	if part, _ := base64.StdEncoding.DecodeString(again.Data); string(part) != "ppi" {
		t.Errorf("from an offset: %q", part)
	}
	c.call("IO.close", map[string]any{"handle": loaded.Resource.Stream}, nil)
	for _, method := range []string{"IO.read", "IO.close"} {
		c.fails(method, map[string]any{"handle": loaded.Resource.Stream}, codeServer)
	}
	for url, want := range map[string]string{
		"file:///etc/passwd": "loads nothing but", "http://169.254.169.254/": "loads nothing but", "natscope-map://dev/other": "loads nothing but", "natscope-map://dev/orders/gone.js.map": "the source is gone",
	} {
		if e := c.fails("Network.loadNetworkResource", load(url), codeServer); !strings.Contains(e.Message, want) {
			t.Errorf("%s: %s", url, e.Message)
		}
	}
	for range maxStreams {
		c.call("Network.loadNetworkResource", load("natscope-map://dev/orders/app.js.map"), nil)
	}
	if e := c.fails("Network.loadNetworkResource", load("natscope-map://dev/orders/app.js.map"), codeServer); !strings.Contains(e.Message, "IO.close") {
		t.Errorf("%s", e.Message)
	}
	s.mu.Lock()
	s.withdrawResource("natscope-map://dev/orders/app.js.map")
	s.mu.Unlock()
	c.fails("Network.loadNetworkResource", load("natscope-map://dev/orders/app.js.map"), codeServer)
	c.valid()
}

// natscope does not act for a source.
func TestReplayIsRefused(t *testing.T) {
	_, server := serve(t, shop(t))
	if e := dial(t, server, "dev").fails("Network.replayXHR", map[string]any{"requestId": rid("r1")}, codeServer); !strings.Contains(e.Message, "cURL") {
		t.Errorf("%s", e.Message)
	}
}

// A slow client has time for a large message, and no more than needed for small ones.
func TestDeadlineGrowsWithTheMessage(t *testing.T) {
	c := &conn{ctx: t.Context()}
	small, large := time.Until(c.deadline(100)), time.Until(c.deadline(32<<20))
	if small > writeWait || large < writeWait+60*time.Second || large > writeWait+65*time.Second {
		t.Errorf("%v and %v", small, large)
	}
}
