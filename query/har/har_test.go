package har

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"go.uber.org/goleak"

	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const origin = 1_700_000_000_000

// story folds records, each a topic and a payload, into requests of one source.
type story struct {
	t     testing.TB
	state network.State
	now   float64
}

func (s *story) tell(topic string, v any) {
	s.t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		s.t.Fatal(err)
	}
	s.now += 10
	c, err := s.state.Apply("g1", s.now, topic, b, network.Keep{})
	if err != nil {
		s.t.Fatal(err)
	}
	if topic == network.TopicStart && c != nil {
		c.Request.Origin = origin
	}
}

func (s *story) requests() []Request {
	var out []Request
	for _, r := range s.state.Requests {
		out = append(out, Request{Space: "dev", Source: "orders", Name: "Orders <1>", Request: *r})
	}
	return out
}

// parts serves bodies by request and direction.
type parts map[string][]replica.BodyPart

func (p parts) read(ctx context.Context, s subjects.BodySubject, f func(replica.BodyPart) error) error {
	list, ok := p[string(s.Request)+"/"+string(s.Direction)]
	if !ok {
		return replica.ErrBodyEvicted
	}
	for _, x := range list {
		if err := f(x); err != nil {
			return err
		}
		if x.End != "" {
			return nil
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

func whole(data string) []replica.BodyPart {
	return []replica.BodyPart{{Data: []byte(data)}, {Offset: int64(len(data)), End: subjects.BodyComplete, Total: int64(len(data))}}
}

func zipped(data string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(data))
	_ = w.Close()
	return b.String()
}

// everything is one request of each kind, with its bodies.
func everything(t testing.TB) ([]Request, parts) {
	s := &story{t: t}
	p := parts{}
	start := func(v network.Start) { s.tell(network.TopicStart, v) }
	// A form that is posted, redirected, and answered with compressed JSON.
	start(network.Start{ID: "form", Method: "POST", URL: "http://a.test/login?a=1&b=%20x&c#top", Type: "fetch", HasBody: true, BodyBytes: 9,
		Headers: []network.Header{{"Content-Type", "application/x-www-form-urlencoded"}, {"Cookie", "sid=1; {}=; theme=dark"}, {"X", "1"}, {"X", "2"}},
		Stack:   []network.Frame{{Function: "main.login", URL: "/src/a b.go", Line: 7}}, Trace: "00-aa-bb-01"})
	s.tell(network.TopicRequestBodyEnd, network.BodyEnd{ID: "form", Bytes: 9, Captured: 9})
	p["form/req"] = whole("u=a+b&p=%")
	s.tell(network.TopicResponse, network.Response{ID: "form", Status: 302, Protocol: "http/1.1", Headers: []network.Header{{"Location", "/home"}, {"Set-Cookie", "sid=2; Path=/; HttpOnly; Secure; SameSite=Lax; Expires=Wed, 21 Oct 2026 07:28:00 GMT"}, {"Set-Cookie", "{}"}}})
	s.tell(network.TopicEnd, network.End{ID: "form"})
	start(network.Start{ID: "home", URL: "http://a.test/home", Type: "fetch", RedirectOf: "form"})
	s.tell(network.TopicResponse, network.Response{ID: "home", Status: 200, StatusText: "OK", Protocol: "h2", RemoteIP: "10.0.0.1", RemotePort: 443, MIMEType: "application/json", HasBody: true,
		Headers: []network.Header{{"Content-Type", "application/json; charset=utf-8"}, {"Content-Encoding", "gzip"}},
		Timing:  &network.Timing{DNSStart: 1, DNSEnd: 2, ConnectStart: 2, ConnectEnd: 4, TLSStart: 4, TLSEnd: 7, SendStart: 7, SendEnd: 7.5, HeadersStart: 9, HeadersEnd: 10}})
	z := zipped(strings.Repeat(`{"price":5}`, 100))
	p["home/res"] = whole(z)
	s.tell(network.TopicDataReceived, network.DataReceived{ID: "home", Bytes: int64(len(z))})
	s.tell(network.TopicEnd, network.End{ID: "home", Bytes: int64(len(z)), Captured: int64(len(z)), Trailers: []network.Header{{"Grpc-Status", "0"}}})
	// Bytes in both directions, cut at the limits.
	start(network.Start{ID: "bytes", Method: "PUT", URL: "http://a.test/png", HasBody: true, Headers: []network.Header{{"content-type", "multipart/form-data; boundary=b"}}})
	s.tell(network.TopicRequestBodyEnd, network.BodyEnd{ID: "bytes", Bytes: 100, Captured: 5, Truncated: true})
	p["bytes/req"] = []replica.BodyPart{{Data: []byte("a\xff\x00bc")}, {Offset: 5, End: subjects.BodyTruncated, Total: 100}}
	s.tell(network.TopicResponse, network.Response{ID: "bytes", Status: 200, HasBody: true, MIMEType: "image/png"})
	p["bytes/res"] = []replica.BodyPart{{Data: []byte("\x89PNG")}, {Offset: 4, End: subjects.BodyTruncated, Total: 50}}
	s.tell(network.TopicEnd, network.End{ID: "bytes", Bytes: 50, Captured: 4, Truncated: true, Canceled: true})
	// Without an answer, with a body that is gone, served, and still running.
	start(network.Start{ID: "refused", URL: "http://down.test/"})
	s.tell(network.TopicError, network.Error{ID: "refused", Text: "connection refused"})
	start(network.Start{ID: "evicted", Direction: network.Incoming, URL: "/orders/7", Client: "10.0.0.7:5", Route: "GET /orders/{id}"})
	s.tell(network.TopicResponse, network.Response{ID: "evicted", Status: 200, HasBody: true})
	s.tell(network.TopicEnd, network.End{ID: "evicted", Bytes: 3, Captured: 3})
	start(network.Start{ID: "sse", URL: "http://a.test/events", Type: "eventsource"})
	s.tell(network.TopicResponse, network.Response{ID: "sse", Status: 200, HasBody: true, MIMEType: "text/event-stream"})
	s.tell(network.TopicMessage, network.Message{ID: "sse", Event: "tick", EventID: "7", Data: "a\nb"})
	s.tell(network.TopicMessage, network.Message{ID: "sse", Data: "c"})
	p["sse/res"] = []replica.BodyPart{{Data: []byte("event: tick\n")}}
	start(network.Start{ID: "ws", URL: "ws://a.test/", Type: "websocket"})
	s.tell(network.TopicResponse, network.Response{ID: "ws", Status: 101, HasBody: true})
	s.tell(network.TopicMessage, network.Message{ID: "ws", Sent: true, Opcode: 1, Data: "hi"})
	s.tell(network.TopicMessage, network.Message{ID: "ws", Opcode: 2, Data: "AAE=", Base64: true})
	s.tell(network.TopicMessage, network.Message{ID: "ws", Opcode: 8, Code: 1001, Data: "bye"})
	s.tell(network.TopicMessage, network.Message{ID: "ws", Opcode: 8, Code: 1011, Data: "oops"})
	s.tell(network.TopicEnd, network.End{ID: "ws"})
	return s.requests(), p
}

// archive is what a reader of the file finds.
type archive struct {
	Log struct {
		Version string
		Pages   []page
		Entries []entry
	}
}

func write(t testing.TB, list []Request, o Options) (archive, []byte) {
	t.Helper()
	var b bytes.Buffer
	if err := Write(t.Context(), &b, list, o); err != nil {
		t.Fatal(err)
	}
	var a archive
	if err := json.Unmarshal(b.Bytes(), &a); err != nil {
		t.Fatalf("%v in %.300s", err, b.Bytes())
	}
	return a, b.Bytes()
}

// schema is the specification of HTTP Archive 1.2 with the additions that are
// ours or DevTools', and nothing besides.
func schema(t testing.TB) *openapi3.Schema {
	t.Helper()
	b, err := os.ReadFile("testdata/har-1.2.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	s := new(openapi3.Schema)
	if err := s.UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}
	return s
}

func check(t testing.TB, s *openapi3.Schema, data []byte) error {
	t.Helper()
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return s.VisitJSON(v)
}

func TestArchive(t *testing.T) {
	list, p := everything(t)
	a, raw := write(t, list, Options{Version: "1.0", Body: p.read})
	s := schema(t)
	if err := check(t, s, raw); err != nil {
		t.Errorf("not of the specification: %v", err)
	}
	for from, to := range map[string]string{`"httpVersion"`: `"http"`, `"1.2"`: `"1.1"`, `"wait":0`: `"wait":-1`, `"startedDateTime":"2023`: `"startedDateTime":"23`} {
		if check(t, s, bytes.Replace(raw, []byte(from), []byte(to), 1)) == nil {
			t.Errorf("the specification takes %s for %s, so it checks nothing", to, from)
		}
	}
	if len(a.Log.Entries) != 7 || len(a.Log.Pages) != 1 || a.Log.Pages[0].Title != "Orders <1>" {
		t.Fatalf("%d entries, pages %+v", len(a.Log.Entries), a.Log.Pages)
	}
	by := map[string]entry{}
	for _, e := range a.Log.Entries {
		by[e.RequestID] = e
	}
	form := by["form"]
	if q := form.Request; q.PostData.Text != "u=a+b&p=%" || len(q.PostData.Params) != 2 || q.PostData.Params[0].Value != "a b" || q.PostData.Params[1].Value != "%" ||
		len(q.QueryString) != 3 || q.QueryString[1].Value != " x" || q.QueryString[2].Name != "c" || len(q.Cookies) != 2 || q.Cookies[1].Name != "theme" || len(q.Headers) != 4 {
		t.Errorf("the form: %+v %+v", q, q.PostData)
	}
	if r := form.Response; r.RedirectURL != "/home" || len(r.Cookies) != 1 || !r.Cookies[0].HTTPOnly || r.Cookies[0].Expires != "2026-10-21T07:28:00Z" || r.Cookies[0].SameSite != "Lax" {
		t.Errorf("the redirect: %+v", r)
	}
	if form.StartedDateTime != "2023-11-14T22:13:20.010Z" || form.Initiator.Stack.CallFrames[0].URL != "file:///src/a%20b.go" || form.Initiator.Stack.CallFrames[0].LineNumber != 6 || form.Trace == "" {
		t.Errorf("the form: %+v %+v", form, form.Initiator)
	}
	home := by["home"]
	if c := home.Response.Content; *c.Text != strings.Repeat(`{"price":5}`, 100) || c.Encoding != "" || c.Size != 1100 || *c.Compression != 1100-home.Response.BodySize || c.MimeType != "application/json; charset=utf-8" {
		t.Errorf("the compressed body: %+v", c)
	}
	if home.RedirectOf != "form" || home.Response.HTTPVersion != "HTTP/2.0" || home.ServerIPAddress != "10.0.0.1" || home.Connection != "443" || len(home.Response.Trailers) != 1 {
		t.Errorf("after the redirect: %+v", home)
	}
	if home.Timings != (timings{Blocked: 1, DNS: 1, Connect: 5, SSL: 3, Send: 0.5, Wait: 2.5, Receive: 20}) || home.Time != 30 {
		t.Errorf("timings %+v, time %v", home.Timings, home.Time)
	}
	png := by["bytes"]
	if d := png.Request.PostData; d.Encoding != "base64" || d.Text != base64.StdEncoding.EncodeToString([]byte("a\xff\x00bc")) || !strings.HasPrefix(d.Comment, "truncated") || png.Request.BodySize != 100 {
		t.Errorf("the upload: %+v", d)
	}
	if c := png.Response.Content; c.Encoding != "base64" || !strings.Contains(c.Comment, "4 of 50 bytes") || c.Size != 50 || png.Response.Error == "" {
		t.Errorf("the picture: %+v", png.Response)
	}
	if r := by["refused"].Response; r.Status != 0 || r.Error != "connection refused" || by["refused"].Timings.Blocked != 10 {
		t.Errorf("the failure: %+v", by["refused"])
	}
	if e := by["evicted"]; e.Response.Content.Text != nil || !strings.Contains(e.Response.Content.Comment, "no longer kept") || e.Direction != "in" || e.Route != "GET /orders/{id}" || e.ResourceType != "document" {
		t.Errorf("the served request: %+v", e)
	}
	// Case F25: what is written while it runs says so.
	sse := by["sse"]
	if !sse.Incomplete || !strings.HasPrefix(sse.Comment, "incomplete") || !strings.HasPrefix(sse.Response.Content.Comment, "incomplete") || *sse.Response.Content.Text != "event: tick\n" {
		t.Errorf("the running request: %+v", sse)
	}
	if m := sse.EventSourceMessages; len(m) != 2 || m[0].EventName != "tick" || m[0].Data != "a\nb" || m[1].EventName != "message" || m[0].Time <= origin/1000 || by["form"].Incomplete {
		t.Errorf("the events: %+v", m)
	}
	if m := by["ws"].WebSocketMessages; len(m) != 5 || m[4].Type != "error" || m[4].Data != "closed with code 1011 oops" || m[0].Type != "send" || m[0].Data != "hi" || m[1].Data != "AAE=" || m[2].Data != "A+lieWU=" || m[2].Opcode != 8 {
		t.Errorf("the frames: %+v", m)
	}
}

func TestNothingToWrite(t *testing.T) {
	if err := Write(t.Context(), new(bytes.Buffer), nil, Options{}); !errors.Is(err, ErrNoRequests) {
		t.Error(err)
	}
}

// failing is a file that fills up.
type failing struct{ room int }

func (f *failing) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, errors.New("no space left")
	}
	return len(p), nil
}

func TestWriteFails(t *testing.T) {
	list, p := everything(t)
	for range 200 {
		list = append(list, list[1])
	}
	if err := Write(t.Context(), &failing{room: 100_000}, list, Options{Body: p.read}); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := Write(ctx, new(bytes.Buffer), list, Options{Body: func(ctx context.Context, _ subjects.BodySubject, _ func(replica.BodyPart) error) error {
		<-ctx.Done()
		return ctx.Err()
	}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// FuzzWrite writes whatever the fold takes: the archive is always of the specification.
func FuzzWrite(f *testing.F) {
	f.Add(`start {"id":"a","url":"http://a/?%zz=%","headers":[["Cookie",";=;a=\u0001"],["Content-Type","x"]],"hasBody":true}
response {"id":"a","status":-5,"hasBody":true,"protocol":"","timing":{"dnsStart":9,"dnsEnd":1,"sendStart":-1},"headers":[["Set-Cookie","a=b; Expires=Mon, 01 Jan 0001 00:00:00 GMT"]]}
end {"id":"a","bytes":-1}`, "\xff\x00")
	f.Add(`start {"id":"w","url":"x","type":"websocket"}
message {"id":"w","opcode":-4,"code":-1,"data":"%","base64":true}`, "text")
	s := schema(f)
	f.Fuzz(func(t *testing.T, text, data string) {
		x := &story{t: t}
		for line := range strings.Lines(text) {
			topic, payload, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			if c, err := x.state.Apply("g1", 1, topic, json.RawMessage(payload), network.Keep{}); err == nil && c != nil {
				c.Request.Origin = origin
			}
		}
		if len(x.state.Requests) == 0 {
			return
		}
		_, raw := write(t, x.requests(), Options{Body: func(_ context.Context, _ subjects.BodySubject, f func(replica.BodyPart) error) error {
			for _, part := range whole(data) {
				if err := f(part); err != nil {
					return err
				}
			}
			return nil
		}})
		if err := check(t, s, raw); err != nil {
			t.Fatalf("%v in %s", err, raw)
		}
	})
}

// An archive full of bombs stays one that DevTools can open: bodies that find no
// room are left out and say so, and text that JSON would blow up is base64.
func TestDecompressionBombsDoNotSwellTheArchive(t *testing.T) {
	s, bodies := &story{t: t}, parts{}
	bomb := zipped(strings.Repeat("\x00", 300_000))
	for _, id := range []string{"a", "b", "c", "d"} {
		s.tell(network.TopicStart, network.Start{ID: network.RequestID(id), URL: "http://a.test/" + id})
		s.tell(network.TopicResponse, network.Response{ID: network.RequestID(id), Status: 200, HasBody: true, Headers: []network.Header{{"Content-Encoding", "gzip"}}})
		s.tell(network.TopicEnd, network.End{ID: network.RequestID(id), Bytes: int64(len(bomb)), Captured: int64(len(bomb))})
		bodies[id+"/"+string(subjects.ResponseBody)] = whole(bomb)
	}
	var out bytes.Buffer
	if err := Write(t.Context(), &out, s.requests(), Options{Body: bodies.read, BodyBytes: 1_200_000}); err != nil {
		t.Fatal(err)
	}
	var got struct{ Log struct{ Entries []entry } }
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || len(got.Log.Entries) != 4 {
		t.Fatal(err, len(got.Log.Entries))
	}
	if out.Len() > 1_210_000 {
		t.Errorf("%d bytes of archive", out.Len())
	}
	for i, e := range got.Log.Entries {
		c := e.Response.Content
		if i == 3 {
			if c.Text != nil || !strings.Contains(c.Comment, "left out") {
				t.Errorf("the last one: %q", c.Comment)
			}
			continue
		}
		if c.Encoding != "base64" || c.Text == nil {
			t.Fatalf("entry %d: %q %q", i, c.Encoding, c.Comment)
		}
		if data, err := base64.StdEncoding.DecodeString(*c.Text); err != nil || string(data) != strings.Repeat("\x00", len(data)) || len(data) != 300_000 || c.Size != 300_000 {
			t.Errorf("entry %d: %d bytes, size %d, %v", i, len(data), c.Size, err)
		}
	}
}
