package ingest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/gorilla/websocket"

	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// secret stands for everything that must not leave a page.
const secret = "tr0ub4dor"

// leaky is an application that has the secret in every place where requests have any.
func (r *rig) leaky(script string) *httptest.Server {
	answer := `{"user":"ada","password":"` + secret + `"}`
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<!doctype html><title>Leaky</title><link rel=icon href=data:,>%s<img src='/picture?sig=%s'>", script, secret)
	})
	mux.HandleFunc("GET /picture", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "image/svg+xml")
		fmt.Fprint(w, `<svg xmlns="http://www.w3.org/2000/svg"/>`)
	})
	mux.HandleFunc("/json", func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Mine", secret)
		fmt.Fprint(w, answer)
	})
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Last-Event-ID") != "" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "retry: 10\nid: 1\ndata: %s\n\nid: 2\ndata: harmless\n\n", answer)
	})
	mux.HandleFunc("GET /ws", func(w http.ResponseWriter, req *http.Request) {
		ws, err := (&websocket.Upgrader{}).Upgrade(w, req, nil)
		if err != nil {
			return
		}
		defer ws.Close()
		for {
			kind, data, err := ws.ReadMessage()
			if err != nil {
				return
			}
			_ = ws.WriteMessage(kind, data)
		}
	})
	s := httptest.NewServer(mux)
	r.t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// noSecret looks through everything that a source published, and for the mark in it.
func (r *rig) noSecret() {
	r.t.Helper()
	marks := 0
	for _, stream := range []string{subjects.RecordStreamName(space), subjects.BodyStreamName(space)} {
		for _, m := range r.nats.Read(stream) {
			text := m.Subject + fmt.Sprint(m.Header) + string(m.Data)
			if stream == subjects.RecordStreamName(space) {
				frame, err := subjects.DecodeFrame(subjects.Header(m.Header), m.Data)
				if err != nil {
					r.t.Fatal(err)
				}
				for _, rec := range frame.Records {
					text += string(rec.Data)
				}
			}
			if strings.Contains(text, secret) {
				r.t.Errorf("the secret is in %s: %.2000s", m.Subject, text)
			}
			marks += strings.Count(text, "[redacted]")
		}
	}
	if marks < 10 {
		r.t.Errorf("%d places were redacted", marks)
	}
}

// TestNothingLeaksFromAPage sends a secret by every way that a page has, in
// every place, and looks for it in all that was published.
func TestNothingLeaksFromAPage(t *testing.T) {
	r := newRig(t)
	app := r.leaky(`<script type="module" src="` + r.http.URL + `/client.js?token=` + token + `" data-name="Shop"
		data-redact='{"secrets":true,"headers":["X-Mine"],"patterns":["` + secret[:5] + `\\w+"]}'></script>`)
	ctx := tab(t)
	id := r.open(ctx, app.URL+"/?code="+secret+"#access_token="+secret)
	var seen struct{ Fetch, XHR, WS, ES, Blob string }
	run(t, ctx, `
		const secret = '`+secret+`', out = {};
		console.log('a line of a page with a secret in its address');
		const headers = { Authorization: 'Bearer ' + secret, 'X-Mine': secret, 'Content-Type': 'application/json' };
		out.fetch = (await (await fetch('/json?way=fetch&token=' + secret, { method: 'POST', headers, body: JSON.stringify({ password: secret }) })).json()).password;
		await (await fetch('/json?way=form', { method: 'POST', body: new URLSearchParams({ pwd: secret }) })).text();
		await fetch('http://127.0.0.1:9/refused?token=' + secret).catch(() => {});
		const xhr = (type, url) => new Promise(done => {
			const x = new XMLHttpRequest();
			x.open('POST', url);
			x.responseType = type;
			x.setRequestHeader('X-Mine', secret);
			x.onloadend = () => done(x.response);
			x.send('{"password":"' + secret + '"}');
		});
		out.xhr = (await xhr('json', '/json?way=xhr&api_key=' + secret)).password;
		out.blob = await (await xhr('blob', '/json?way=blob')).text();
		const ws = new WebSocket(location.origin.replace('http', 'ws') + '/ws?key=' + secret);
		const got = [];
		ws.onmessage = e => got.push(e.data);
		await new Promise(done => { ws.onopen = done });
		ws.send(JSON.stringify({ password: secret }));
		ws.send(new TextEncoder().encode('binary ' + secret));
		ws.send('harmless');
		while (got.length < 3) await new Promise(r => setTimeout(r, 5));
		out.ws = got[0];
		ws.close(3000, secret);
		const es = new EventSource('/events?token=' + secret);
		out.es = await new Promise(done => { es.onmessage = e => done(e.data) });
		navigator.sendBeacon('/json?way=beacon&sig=' + secret, new Blob(['{"password":"' + secret + '"}'], { type: 'application/json' }));
		history.pushState(null, '', '/?step=2&token=' + secret);
		setTimeout(() => { throw new TypeError('an error of a page with a secret in its address') });
		return out;
	`, &seen)
	for what, s := range map[string]string{"fetch": seen.Fetch, "xhr": seen.XHR, "blob": seen.Blob, "ws": seen.WS, "es": seen.ES} {
		if !strings.Contains(s, secret) {
			t.Errorf("%s: the page does not see what is its own: %q", what, s)
		}
	}
	for path, body := range map[string]string{"/json?way=fetch&token=[redacted]": `{"user":"ada","password":"[redacted]"}`, "/json?way=form": `{"user":"ada","password":"[redacted]"}`, "/json?way=xhr&api_key=[redacted]": `{"user":"ada","password":"[redacted]"}`, "/json?way=blob": `{"user":"ada","password":"[redacted]"}`} {
		q := r.request(id, path)
		r.untilBody(q, subjects.ResponseBody, body, subjects.BodyComplete)
		if !q.End.Redacted || q.End.Truncated || q.BodyEnd == nil || !q.BodyEnd.Value.Redacted {
			t.Errorf("%s: end %+v, of the request body %+v", path, q.End, q.BodyEnd)
		}
	}
	r.untilBody(r.request(id, "/json?way=beacon&sig=[redacted]"), subjects.RequestBody, `{"password":"[redacted]"}`, subjects.BodyComplete)
	r.request(id, "/refused?token=[redacted]")
	r.requests(id, "/picture?sig=[redacted]", 1, ended)
	ws := r.requests(id, "/ws?key=[redacted]", 1, ended)[0]
	var told []string
	for _, m := range ws.Messages {
		told = append(told, m.Value.Data)
	}
	if got := strings.Join(told, " "); strings.Count(got, `{"password":"[redacted]"}`) != 2 || strings.Count(got, "YmluYXJ5IFtyZWRhY3RlZF0=") != 2 || strings.Count(got, "harmless") != 2 {
		t.Errorf("messages %q", got)
	}
	es := r.requests(id, "/events?token=[redacted]", 1, func(q *network.Request) bool { return len(q.Messages) == 2 })[0]
	if es.Messages[0].Value.Data != `{"user":"ada","password":"[redacted]"}` || es.Messages[1].Value.Data != "harmless" {
		t.Errorf("events %+v", es.Messages)
	}
	src := r.until("the page's address is told", func(s *fold.Space) bool {
		src := s.Source(subjects.SourceID(id))
		return strings.HasSuffix(src.Life.Descriptor.URL, "/?step=2&token=[redacted]") && len(src.Console.Entries) == 2
	}).Source(subjects.SourceID(id))
	if d := src.Life.Descriptor; d.Name != "Shop" || src.FaultCount > 0 {
		t.Errorf("%+v, faults %+v", d, src.Faults)
	}
	r.noSecret()
	var st struct {
		Faults    int
		LastFault string
	}
	if run(t, ctx, `return natscope.status()`, &st); st.Faults != 0 {
		t.Errorf("the client swallowed %+v", st)
	}
}

// TestRulesThatCannotWork keeps a page out that would tell what it must not, and says so.
func TestRulesThatCannotWork(t *testing.T) {
	r := newRig(t)
	app := r.leaky(`<script>globalThis.said = []; console.warn = t => said.push(t)</script><script type="module" src="` + r.http.URL + `/client.js?token=` + token + `&redact=secret"></script>`)
	ctx := tab(t)
	var said []string
	if err := chromedp.Do(ctx, chromedp.Navigate(app.URL+"/")); err != nil {
		t.Fatal(err)
	}
	natstest.Until(t, "the page is told", func() bool { run(t, ctx, `return said`, &said); return len(said) > 0 })
	var state string
	if run(t, ctx, `return typeof natscope`, &state); state != "undefined" || !strings.Contains(said[0], `write "secrets"`) {
		t.Errorf("natscope is %s, the page was told %q", state, said)
	}
}
