package ingest

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// request waits until the request to a path has ended, and returns it.
func (r *rig) request(id, path string) *network.Request {
	r.t.Helper()
	var found *network.Request
	r.until("the request to "+path+" ends", func(s *fold.Space) bool {
		for _, q := range s.Source(subjects.SourceID(id)).Net.Requests {
			if strings.HasSuffix(q.Start.Value.URL, path) && q.Ending != network.Running {
				found = q
				return true
			}
		}
		return false
	})
	return found
}

// bodyOf returns the captured body of a request and why it ended.
func (r *rig) bodyOf(q *network.Request, dir subjects.Direction) (data, end string) {
	for _, m := range r.nats.Read(subjects.BodyStreamName(space)) {
		s, err := subjects.ParseBody(m.Subject)
		if err != nil || string(s.Generation) != q.Generation || s.Request != q.ID() || s.Direction != dir {
			continue
		}
		if c, err := subjects.ParseBodyChunk(subjects.Header(m.Header)); err == nil {
			data += string(m.Data)
			end = c.End
		}
	}
	return data, end
}

func TestPageFetches(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Limits.ResponseBodyBytes = 1 << 20 })
	app := r.app(r.script())
	ctx := tab(t)
	id := r.open(ctx, app.URL+"/")
	var result struct{ JSON, Echo, Stream, Aborted, Refused, Same string }
	run(t, ctx, `
		const out = {};
		out.json = JSON.stringify(await (await fetch('/json')).json());
		const echo = await fetch('/echo', {method: 'post', headers: {'X-One': '1'}, body: 'payload ü'});
		out.echo = echo.status + await echo.text();
		const events = await fetch('/events');
		let text = '';
		for await (const chunk of events.body.pipeThrough(new TextDecoderStream())) text += chunk;
		out.stream = String(text.length);
		const stop = new AbortController();
		const hang = fetch('/hang', {signal: stop.signal});
		stop.abort();
		out.aborted = await hang.catch(e => e.name);
		out.refused = await fetch('http://127.0.0.1:9/refused').catch(e => e.name);
		const endless = await fetch('/endless');
		const reader = endless.body.getReader();
		out.same = String(endless.body === endless.body && endless instanceof Response && endless.bodyUsed === false && endless.body.locked);
		let n = 0;
		while (n < 3 << 20) n += (await reader.read()).value.length;
		await reader.cancel();
		await fetch('/json?unread');
		return out;
	`, &result)
	if result.JSON != `{"items":[1,2,3]}` || result.Echo != "201echo" || result.Stream == "0" || result.Aborted != "AbortError" || result.Refused != "TypeError" || result.Same != "true" {
		t.Errorf("the page saw %+v", result)
	}

	q := r.request(id, "/json")
	if q.Ending != network.Finished || q.Response.Value.Status != 200 || q.Response.Value.MIMEType != "application/json" || q.Response.Value.Charset != "utf-8" || q.End.Bytes != 17 || q.Start.Value.Type != "fetch" {
		t.Errorf("/json: %+v %+v", q, q.End)
	}
	r.untilBody(q, subjects.ResponseBody, `{"items":[1,2,3]}`, subjects.BodyComplete)

	q = r.request(id, "/echo")
	if q.Start.Value.Method != "POST" || !q.Start.Value.HasBody || q.Response.Value.Status != 201 || q.BodyEnd == nil || q.BodyEnd.Value.Bytes != 10 {
		t.Errorf("/echo: %+v", q)
	}
	if !slices.ContainsFunc(q.Start.Value.Headers, func(h network.Header) bool { return strings.EqualFold(h[0], "x-one") && h[1] == "1" }) {
		t.Errorf("/echo: headers %v", q.Start.Value.Headers)
	}
	r.untilBody(q, subjects.RequestBody, "payload ü", subjects.BodyComplete)

	q = r.request(id, "/events")
	if len(q.Messages) != 3 || q.Messages[2].Value.Data != "line 2\nmore" || q.Messages[2].Value.Event != "tick" || q.Messages[2].Value.EventID != "2" {
		t.Errorf("/events: messages %+v", q.Messages)
	}
	if q = r.request(id, "/hang"); q.Ending != network.Canceled {
		t.Errorf("/hang ended as %q", q.Ending)
	}
	if q = r.request(id, "/refused"); q.Ending != network.Failed || q.Error.Text == "" {
		t.Errorf("/refused ended as %q", q.Ending)
	}
	q = r.request(id, "/endless")
	if q.Ending != network.FinishedTruncated || !q.End.Canceled || q.End.Captured != 1<<20 || q.End.Bytes < 3<<20 {
		t.Errorf("/endless: %+v", q.End)
	}
	if q = r.request(id, "/json?unread"); q.Ending != network.FinishedTruncated || q.End.Bytes != 0 {
		t.Errorf("unread: %q %+v", q.Ending, q.End)
	}
	var st struct {
		Faults    int
		LastFault string
	}
	if run(t, ctx, `return natscope.status()`, &st); st.Faults != 0 {
		t.Errorf("the client swallowed %+v", st)
	}
}

func (r *rig) untilBody(q *network.Request, dir subjects.Direction, data, end string) {
	r.t.Helper()
	natstest.Until(r.t, fmt.Sprintf("the %s body of %s", dir, q.Start.Value.URL), func() bool {
		d, e := r.bodyOf(q, dir)
		return d == data && e == end
	})
}

// TestCallSites is about the links that people click in Console and Network: they lead to the page's code.
func TestCallSites(t *testing.T) {
	r := newRig(t)
	app := r.app(strings.Replace(r.script(), token, token+"&resources=off", 1))
	ctx := tab(t)
	id := r.open(ctx, app.URL+"/calls") // with two script lines, which are one client
	q := r.request(id, "/json")
	src := r.state().Source(subjects.SourceID(id))
	if len(src.Console.Entries) != 1 || src.Net.Started != 1 {
		t.Fatalf("%d console entries and %d requests", len(src.Console.Entries), src.Net.Started)
	}
	for what, c := range map[string]struct {
		stack []network.Frame
		line  int
	}{"log": {src.Console.Entries[0].Message.Stack, 2}, "fetch": {q.Start.Value.Stack, 3}} {
		want := network.Frame{Function: "ready", URL: app.URL + "/app.js", Line: c.line}
		if len(c.stack) == 0 {
			t.Errorf("%s: no stack", what)
			continue
		}
		got := c.stack[0]
		if got.Column == 0 {
			t.Errorf("%s: no column", what)
		}
		if got.Column = 0; got != want {
			t.Errorf("%s: called from %+v, wanted %+v", what, got, want)
		}
	}
}

// TestForeignPage opens a page whose origin is not admitted, and then admits it.
func TestForeignPage(t *testing.T) {
	var app *httptest.Server
	foreign := func() string { return strings.Replace(app.URL, "127.0.0.1", "app.localhost", 1) }
	r := newRig(t)
	app = r.app(r.script())
	ctx := tab(t)
	if err := chromedp.Do(ctx, chromedp.Navigate(foreign()+"/")); err != nil {
		t.Fatal(err)
	}
	natstest.Until(t, "the script is refused", func() bool { return r.Stats().Rejected["origin"] > 0 })
	var state string
	if run(t, ctx, `return typeof natscope`, &state); state != "undefined" {
		t.Errorf("a foreign page runs natscope")
	}
	r.closeServer()
	r.replace(func(o *Options) { o.Origins = []string{foreign()} })
	r.open(ctx, foreign()+"/")
}
