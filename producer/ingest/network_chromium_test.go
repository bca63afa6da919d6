package ingest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// sockets adds what the tests of live connections need to an application.
func (r *rig) sockets(script string) *httptest.Server {
	mux := http.NewServeMux()
	app := r.app(script)
	mux.Handle("/", app.Config.Handler)
	mux.HandleFunc("GET /ws", func(w http.ResponseWriter, req *http.Request) {
		ws, err := (&websocket.Upgrader{Subprotocols: []string{"chat"}}).Upgrade(w, req, nil)
		if err != nil {
			return
		}
		defer ws.Close()
		for {
			kind, data, err := ws.ReadMessage()
			if err != nil {
				return
			}
			if string(data) == "close" {
				_ = ws.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(4001, "enough"))
				return
			}
			_ = ws.WriteMessage(kind, append([]byte("echo "), data...))
		}
	})
	mux.HandleFunc("GET /stream", func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Last-Event-ID") != "" {
			w.WriteHeader(http.StatusNoContent) // ends it for good
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "retry: 10\n\nid: 1\ndata: plain\n\nevent: tick\nid: 2\ndata: a\ndata: b\n\n")
	})
	mux.HandleFunc("POST /upload", func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		w.Header().Set("X-Answer", "yes")
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"ok":true}`)
	})
	mux.HandleFunc("GET /bytes", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write([]byte{0, 255, 128, 7})
	})
	s := httptest.NewServer(mux)
	r.t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// TestPageXHR records XMLHttpRequests of every kind of end and body.
func TestPageXHR(t *testing.T) {
	r := newRig(t)
	app := r.sockets(r.script())
	ctx := tab(t)
	id := r.open(ctx, app.URL+"/")
	var seen struct {
		Events         string
		JSON           bool
		Buffer         int
		Native, Sync   string
		Reopen, Aborts int
	}
	run(t, ctx, `
		const xhr = (method, url, body, set = () => {}) => new Promise(done => {
			const x = new XMLHttpRequest();
			x.events = [];
			for (const e of ['loadstart', 'load', 'error', 'abort', 'timeout', 'loadend']) x.addEventListener(e, () => x.events.push(e));
			x.onloadend = () => done(x);
			x.open(method, url);
			set(x);
			x.send(body);
		});
		const out = {};
		out.events = (await xhr('post', '/upload', 'sent text', x => x.setRequestHeader('X-Ask', 'me'))).events.join();
		out.json = (await xhr('GET', '/json?typed', null, x => { x.responseType = 'json' })).response.items.length === 3;
		out.buffer = new Uint8Array((await xhr('GET', '/bytes', null, x => { x.responseType = 'arraybuffer' })).response)[1];
		await xhr('GET', '/bytes?blob', null, x => { x.responseType = 'blob' });
		await xhr('GET', 'http://127.0.0.1:9/refused');
		out.aborts = (await xhr('GET', '/hang?abort', null, x => setTimeout(() => x.abort(), 50))).events.filter(e => e === 'abort').length;
		await xhr('GET', '/hang?timeout', null, x => { x.timeout = 50 });
		const sync = new XMLHttpRequest();
		sync.open('GET', '/json?sync', false);
		sync.send();
		out.sync = sync.responseText;
		const twice = new XMLHttpRequest();
		twice.open('GET', '/hang?reopened'); twice.send();
		await new Promise(done => { twice.open('GET', '/json?second'); twice.onload = done; twice.send(); });
		out.reopen = twice.status;
		const p = XMLHttpRequest.prototype;
		out.native = [p.open.name, p.open.length, p.send.name, p.setRequestHeader.length].join();
		return out;
	`, &seen)
	if seen.Events != "loadstart,load,loadend" || !seen.JSON || seen.Buffer != 255 || seen.Sync != `{"items":[1,2,3]}` || seen.Reopen != 200 || seen.Aborts != 1 || seen.Native != "open,2,send,2" {
		t.Errorf("the page saw %+v", seen)
	}
	post := r.request(id, "/upload")
	v := post.Response.Value
	if post.Start.Value.Type != "xhr" || post.Start.Value.Method != "POST" || fmt.Sprint(post.Start.Value.Headers) != "[[X-Ask me]]" || v.Status != 200 || v.MIMEType != "application/json" || len(post.Start.Value.Stack) == 0 {
		t.Errorf("%+v %+v", post.Start.Value, v)
	}
	r.untilBody(post, subjects.RequestBody, "sent text", "complete")
	r.untilBody(post, subjects.ResponseBody, `{"ok":true}`, "complete")
	r.untilBody(r.request(id, "/json?typed"), subjects.ResponseBody, `{"items":[1,2,3]}`, "complete")
	r.untilBody(r.request(id, "/json?sync"), subjects.ResponseBody, `{"items":[1,2,3]}`, "complete")
	for _, path := range []string{"/bytes", "/bytes?blob"} {
		r.untilBody(r.request(id, path), subjects.ResponseBody, "\x00\xff\x80\x07", "complete")
	}
	for path, want := range map[string]struct {
		ending   network.Ending
		canceled bool
	}{"/refused": {network.Failed, false}, "/hang?abort": {network.Canceled, true}, "/hang?timeout": {network.Failed, false}, "/hang?reopened": {network.Canceled, true}, "/json?second": {network.Finished, false}} {
		q := r.request(id, path)
		if q.Ending != want.ending || q.Error != nil && q.Error.Canceled != want.canceled {
			t.Errorf("%s ended as %q, %+v", path, q.Ending, q.Error)
		}
	}
}

// requests waits until a source has so many requests of an address, ended or with messages, and returns them.
func (r *rig) requests(id, path string, n int, ready func(*network.Request) bool) []*network.Request {
	r.t.Helper()
	var out []*network.Request
	r.until(fmt.Sprintf("%d requests of %s", n, path), func(s *fold.Space) bool {
		out = nil
		src := s.Source(subjects.SourceID(id))
		if src == nil {
			return false
		}
		for _, q := range src.Net.Requests {
			if strings.HasSuffix(q.Start.Value.URL, path) && ready(q) {
				out = append(out, q)
			}
		}
		return len(out) >= n
	})
	return out
}

func ended(q *network.Request) bool { return q.Ending != network.Running }

// TestPageSockets records WebSockets, event streams and beacons.
func TestPageSockets(t *testing.T) {
	r := newRig(t)
	app := r.sockets(r.script())
	ctx := tab(t)
	id := r.open(ctx, app.URL+"/")
	var seen struct {
		Protocol, Got, Close, Events, Class string
		Beacon                              bool
	}
	run(t, ctx, `
		const out = {};
		const ws = new WebSocket(location.origin.replace('http', 'ws') + '/ws', ['chat', 'other']);
		const got = [];
		await new Promise(done => { ws.onopen = done });
		ws.send('hello');
		ws.send(new Uint8Array([1, 2, 255]));
		ws.send('after');
		ws.onmessage = e => got.push(typeof e.data);
		while (got.length < 3) await new Promise(r => setTimeout(r, 5));
		ws.send('close');
		const e = await new Promise(done => { ws.onclose = done });
		Object.assign(out, { protocol: ws.protocol, got: got.join(), close: e.code + e.reason, class: [ws instanceof WebSocket, ws.constructor === WebSocket, WebSocket.OPEN, WebSocket.name, class extends WebSocket {}.name === ''].join() });
		const refused = new WebSocket(location.origin.replace('http', 'ws') + '/json?nows');
		await new Promise(done => { refused.onclose = done });
		try { new WebSocket('nonsense://x') } catch (e) { out.class += e.name }
		const es = new EventSource('/stream');
		const events = [];
		es.onmessage = e => events.push(e.data);
		es.addEventListener('tick', e => events.push(e.data));
		await new Promise(done => { es.onerror = () => es.readyState === 2 && done() });
		out.events = events.join('|');
		const open = new EventSource('/events');
		await new Promise(done => { open.addEventListener('tick', done) });
		open.close();
		out.beacon = navigator.sendBeacon('/upload?beacon', 'last words');
		return out;
	`, &seen)
	if seen.Protocol != "chat" || seen.Got != "string,object,string" || seen.Close != "4001enough" || seen.Class != "true,true,1,WebSocket,trueSyntaxError" || seen.Events != "plain|a\nb" || !seen.Beacon {
		t.Errorf("the page saw %+v", seen)
	}
	ws := r.requests(id, "/ws", 1, ended)[0]
	var frames []string
	for _, m := range ws.Messages {
		frames = append(frames, fmt.Sprintf("%v %d %s%d", m.Value.Sent, m.Value.Opcode, m.Value.Data, m.Value.Code))
	}
	want := []string{"true 1 hello0", "true 2 AQL/0", "true 1 after0", "false 1 echo hello0", "false 2 ZWNobyABAv8=0", "false 1 echo after0", "true 1 close0", "false 8 enough4001"}
	if got := strings.Join(frames, "\n"); got != strings.Join(want, "\n") || ws.Response.Value.Status != 101 {
		t.Errorf("frames:\n%s", got)
	}
	if q := r.requests(id, "/json?nows", 1, ended)[0]; q.Error == nil || !strings.Contains(q.Error.Text, "1006") {
		t.Errorf("%+v", q.Error)
	}
	streams := r.requests(id, "/stream", 2, ended)
	if m := streams[0].Messages; len(m) != 2 || m[1].Value.Event != "tick" || m[1].Value.EventID != "2" || m[1].Value.Data != "a\nb" || streams[0].End == nil {
		t.Errorf("%+v %+v", m, streams[0].End)
	}
	if streams[1].Error == nil || headerValue(streams[1].Start.Value.Headers, "Last-Event-ID") != "2" {
		t.Errorf("the stream that came back: %+v %+v", streams[1].Start.Value, streams[1].Error)
	}
	if q := r.requests(id, "/events", 1, ended)[0]; q.End == nil || !q.End.Canceled {
		t.Errorf("a stream that the page closed: %+v", q.End)
	}
	beacon := r.requests(id, "/upload?beacon", 1, ended)[0]
	if beacon.Start.Value.Type != "ping" || beacon.Start.Value.Method != "POST" {
		t.Errorf("%+v", beacon.Start.Value)
	}
	r.untilBody(beacon, subjects.RequestBody, "last words", "complete")
}

func headerValue(list []network.Header, name string) string {
	for _, h := range list {
		if h[0] == name {
			return h[1]
		}
	}
	return ""
}

// TestPageResources records what the browser loads by itself, with times and
// without natscope's own modules, whose address holds the token.
func TestPageResources(t *testing.T) {
	r := newRig(t)
	app := r.sockets(r.script())
	ctx := tab(t)
	id := r.open(ctx, app.URL+"/calls")
	run(t, ctx, `const i = new Image(); i.src = '/missing.png'; await new Promise(done => { i.onerror = done }); await (await fetch('/json')).text()`, nil)
	document := r.requests(id, "/calls", 1, ended)[0]
	if document.Start.Value.Type != "document" || document.Response == nil || document.Response.Value.Timing == nil || document.Response.Value.Timing.HeadersEnd < 0 || document.Response.Value.Protocol == "" {
		t.Errorf("%+v %+v", document.Start.Value, document.Response)
	}
	if q := r.requests(id, "/app.js", 1, ended)[0]; q.Start.Value.Type != "script" || q.End.Bytes == 0 || q.Start.T > document.EndedAt+60000 {
		t.Errorf("%+v %+v", q.Start.Value, q.End)
	}
	if q := r.requests(id, "/missing.png", 1, ended)[0]; q.Response.Value.Status != 404 {
		t.Errorf("%+v", q.Response.Value)
	}
	s := r.until("the fetches", func(s *fold.Space) bool { return len(s.Source(subjects.SourceID(id)).Net.Requests) >= 5 })
	fetches := 0
	for _, q := range s.Source(subjects.SourceID(id)).Net.Requests {
		if strings.Contains(q.Start.Value.URL, token) || strings.Contains(q.Start.Value.URL, "/client/") {
			t.Errorf("one of natscope's own modules is shown: %s", q.Start.Value.URL)
		}
		if strings.HasSuffix(q.Start.Value.URL, "/json") {
			fetches++
		}
	}
	if fetches != 2 { // one of /app.js, one of this test
		t.Errorf("two fetches are %d requests", fetches)
	}
	if src := s.Source(subjects.SourceID(id)); src.FaultCount > 0 {
		t.Errorf("faults %+v", src.Faults)
	}
}

// TestStopRestoresEverything compares the platform before and after.
func TestStopRestoresEverything(t *testing.T) {
	r := newRig(t)
	const look = `JSON.stringify([XMLHttpRequest.prototype, WebSocket.prototype, EventSource.prototype, Object.getPrototypeOf(navigator), Response.prototype, console, { fetch, WebSocket, EventSource }].map(o => Object.entries(Object.getOwnPropertyDescriptors(o)).map(([k, d]) => [k, d.writable, d.enumerable, d.configurable, k === 'memory' || String(d.value ?? d.get), d.value?.length])))`
	app := r.sockets(`<script>globalThis.before = ` + look + `; globalThis.originals = [WebSocket, EventSource, fetch, XMLHttpRequest.prototype.send]</script>` + r.script())
	ctx := tab(t)
	r.open(ctx, app.URL+"/")
	var got struct {
		Changed, Same, Identical bool
		After                    string
	}
	run(t, ctx, `
		const changed = before !== `+look+`;
		natscope.stop();
		const after = `+look+`;
		const identical = [WebSocket, EventSource, fetch, XMLHttpRequest.prototype.send].every((f, i) => f === originals[i]) && WebSocket.prototype.constructor === WebSocket;
		const ws = new WebSocket(location.origin.replace('http', 'ws') + '/ws'); await new Promise(done => { ws.onopen = done }); ws.close();
		return { changed, same: after === before, identical, after: after === before ? '' : after + '\n' + before };
	`, &got)
	if !got.Changed || !got.Same || !got.Identical {
		t.Errorf("%+v", got)
	}
}

// TestNothingIsLoadedBeforeASession looks at a page that nobody looks at: nothing for sessions is loaded.
func TestNothingIsLoadedBeforeASession(t *testing.T) {
	r := newRig(t)
	app := r.app(r.script())
	ctx := tab(t)
	r.open(ctx, app.URL+"/")
	var names string
	natstest.Until(t, "the modules are listed", func() bool {
		run(t, ctx, `return performance.getEntriesByType('resource').map(e => e.name).filter(n => n.includes('/client/')).join()`, &names)
		return strings.Contains(names, "browser/start.js")
	})
	for _, m := range []string{"realm.js", "commands.js", "overlay.js", "live.js", "sources.js"} {
		if strings.Contains(names, "/"+m) {
			t.Errorf("%s is loaded already", m)
		}
	}
}
