package ingest

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/realm"
)

var firefox = flag.String("firefox", "", "the Firefox with which TestFirefox runs")

// firefoxPage does by itself what other tests ask of Chromium; the Firefox is not driven.
const firefoxPage = `<!doctype html><title>Fox</title><link rel=icon href=data:,>%s<body><button id=b>x</button>
<script>
addEventListener('natscope:ready', function ready() {
  console.log('from the page', { a: 1 });
  globalThis.named = function named() { console.warn('deeper'); };
  [1].forEach(() => named());
  setTimeout(function late() { throw new TypeError('thrown late'); });
  Promise.reject(new RangeError('rejected'));
  globalThis.cart = natscope.component('Cart', { items: 2 }, undefined, { element: document.querySelector('#b') });
  (async () => {
    await (await fetch('/json?way=fetch', { method: 'POST', body: 'sent' })).json();
    const streamed = await fetch('/json?way=stream');
    for (const reader = streamed.body.getReader(); !(await reader.read()).done;);
    const x = new XMLHttpRequest();
    x.open('GET', '/json?way=xhr');
    await new Promise(done => { x.onload = done; x.send(); });
    await fetch('http://127.0.0.1:9/refused').catch(() => {});
    const ws = new WebSocket(location.origin.replace('http', 'ws') + '/ws');
    await new Promise(done => { ws.onopen = done });
    const echo = new Promise(done => { ws.onmessage = done });
    ws.send('hello');
    await echo;
    const es = new EventSource('/events');
    await new Promise(done => { es.onmessage = done });
    es.close();
    navigator.sendBeacon('/json?way=beacon', 'bye');
    console.log('done', JSON.stringify(natscope.status()));
  })().catch(e => console.error('the page failed', e));
});
</script>`

// TestFirefox shows a page in Firefox. It runs where a Firefox is named:
//
//	go test ./producer/ingest -run TestFirefox -firefox firefox-esr -v
func TestFirefox(t *testing.T) {
	if *firefox == "" {
		t.Skip("no Firefox is named by -firefox")
	}
	r := newRig(t)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, firefoxPage, r.script())
	})
	mux.HandleFunc("/json", func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"a":1}`)
	})
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: one\n\n")
		w.(http.Flusher).Flush()
		<-req.Context().Done()
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
	app := httptest.NewServer(mux)
	t.Cleanup(func() { app.CloseClientConnections(); app.Close() })
	home := t.TempDir()
	cmd := exec.Command(*firefox, "--headless", "--no-remote", "--profile", filepath.Join(home, "profile"), app.URL+"/")
	cmd.Env = append(os.Environ(), "HOME="+home)
	if err := os.Mkdir(filepath.Join(home, "profile"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	id := ""
	s := r.until("the page is done", func(s *fold.Space) bool {
		for _, src := range s.Sources() {
			id = string(src.ID)
			for _, text := range texts(src) {
				if text == "done" {
					return true
				}
			}
		}
		return false
	})
	src := s.Source(subjects.SourceID(id))
	frames := func(what string, stack []network.Frame, function string, line int) {
		t.Helper()
		if len(stack) == 0 || stack[0].Function != function || stack[0].Line != line || stack[0].Column == 0 {
			t.Errorf("%s was called from %+v", what, stack)
		}
		for _, f := range stack {
			if f.URL != app.URL+"/" {
				t.Errorf("%s: a frame in %s", what, f.URL)
			}
		}
	}
	var thrown []string
	for _, e := range src.Console.Entries {
		if x := e.Exception; x != nil {
			thrown = append(thrown, x.Text)
			if strings.Contains(string(x.Value), r.http.URL) {
				t.Errorf("an error's stack has frames of ours: %s", x.Value)
			}
			frames(x.Text, x.Stack, map[string]string{"Uncaught": "late", "Uncaught (in promise)": "ready"}[x.Text], map[string]int{"Uncaught": 7, "Uncaught (in promise)": 8}[x.Text])
		}
	}
	if slices.Sort(thrown); fmt.Sprint(thrown) != "[Uncaught Uncaught (in promise)]" {
		t.Errorf("thrown %q", thrown)
	}
	frames("log", src.Console.Entries[0].Message.Stack, "ready", 4)
	frames("warn", src.Console.Entries[1].Message.Stack, "named", 5)
	for path, want := range map[string]struct {
		kind   string
		ending network.Ending
		line   int
	}{"/json?way=fetch": {"fetch", network.Finished, 11}, "/json?way=stream": {"fetch", network.Finished, 12}, "/json?way=xhr": {"xhr", network.Finished, 16}, "/refused": {"fetch", network.Failed, 17}, "/events": {"eventsource", network.FinishedTruncated, 23}, "/json?way=beacon": {"ping", network.Finished, 26}} {
		q := r.request(id, path)
		if q.Start.Value.Type != want.kind || q.Ending != want.ending {
			t.Errorf("%s: %s, ended as %q", path, q.Start.Value.Type, q.Ending)
		}
		frames(path, q.Start.Value.Stack, "ready/<", want.line)
	}
	r.untilBody(r.request(id, "/json?way=fetch"), subjects.RequestBody, "sent", subjects.BodyComplete)
	for _, path := range []string{"/json?way=fetch", "/json?way=stream", "/json?way=xhr"} {
		r.untilBody(r.request(id, path), subjects.ResponseBody, `{"a":1}`, subjects.BodyComplete)
	}
	if ws := r.requests(id, "/ws", 1, func(q *network.Request) bool { return len(q.Messages) == 2 }); len(ws) != 1 || ws[0].Messages[1].Value.Data != "hello" {
		t.Errorf("%+v", ws)
	}
	if docs := r.requests(id, app.URL+"/", 1, ended); len(docs) != 1 || docs[0].Start.Value.Type != "document" {
		t.Errorf("%d documents", len(docs))
	}
	if d := src.Life.Descriptor; d.Title != "Fox" || !strings.HasPrefix(d.Runtime, "Firefox ") {
		t.Errorf("%+v", d)
	}
	cart := r.component(id, "Cart")
	if _, err := r.command(id, realm.Request{Method: realm.MethodHighlight, Params: []byte(fmt.Sprintf(`{"id":%d}`, cart.ID))}); err != nil {
		t.Error(err)
	}
	l := r.look(id, "s")
	for expression, want := range map[string]any{
		"let a = 1; a + 1": 2.0, "let a = 5; a": 5.0, "await Promise.resolve(7)": 7.0,
		"document.querySelector('natscope-overlay').shadowRoot.children[0].getBoundingClientRect().width === document.querySelector('#b').getBoundingClientRect().width": true,
		"JSON.stringify(natscope.status()).includes('\"faults\":0')": true,
	} {
		if got := l.eval(expression); got["value"] != want {
			t.Errorf("%s gives %v", expression, got)
		}
	}
	if got := l.eval("(function inner() { return new Error('x') })()"); !strings.Contains(fmt.Sprint(got["description"]), "Error: x") || strings.Contains(fmt.Sprint(got["description"]), r.http.URL) {
		t.Errorf("an error reads %v", got["description"])
	}
	if src.FaultCount > 0 {
		t.Errorf("faults %+v", src.Faults)
	}
}
