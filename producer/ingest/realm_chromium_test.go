package ingest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
)

// properties returns the named properties of an object as JSON.
func (l *looker) properties(object any) map[string]map[string]any {
	l.t.Helper()
	var out struct {
		Result             []map[string]any `json:"result"`
		InternalProperties []map[string]any `json:"internalProperties"`
	}
	text := l.must("runtime.getProperties", fmt.Sprintf(`{"objectId":%q,"ownProperties":true}`, object))
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		l.t.Fatal(err)
	}
	by := make(map[string]map[string]any)
	for _, p := range append(out.Result, out.InternalProperties...) {
		by[p["name"].(string)] = p
	}
	return by
}

// TestConsoleOfAPage uses a real page's realm as the Console of DevTools does.
func TestConsoleOfAPage(t *testing.T) {
	r := newRig(t)
	app := r.app(r.script())
	ctx := tab(t)
	id := r.open(ctx, app.URL+"/")
	run(t, ctx, `document.body.innerHTML = '<div id=box class="a b">x</div>'; globalThis.errors = []; addEventListener('error', e => errors.push(String(e.message))); const s = document.createElement('script'); s.textContent = 'let ofThePage = 1'; document.head.append(s); globalThis.scripts = document.scripts.length`, nil)
	l := r.look(id, "s")

	if got := l.eval("let name = 'mine'; name"); got["value"] != "mine" {
		t.Errorf("%v", got)
	}
	for expression, want := range map[string]any{
		"1 + 1": 2.0, "name": "mine", "window.name": "", "const {x, ...rest} = {x: 1, y: 2}; rest.y": 2.0,
		"await new Promise(r => setTimeout(r, 20, 5))": 5.0, "ofThePage": 1.0, "$('#box').id + $$('div').length": "box1", "$x('//div')[0].className": "a b",
	} {
		if got := l.eval(expression); got["value"] != want {
			t.Errorf("%s: %v", expression, got)
		}
	}
	if got := l.eval("document.querySelector('#box')"); got["subtype"] != "node" || got["description"] != "div#box.a.b" || got["className"] != "HTMLDivElement" {
		t.Errorf("%v", got)
	}
	if got := l.eval("let ofThePage = 2"); !strings.Contains(fmt.Sprint(got["description"]), "already been declared") {
		t.Errorf("a name of the page: %v", got)
	}
	if got := l.eval("new Map([[{k: 1}, document]])"); got["description"] != "Map(1)" || l.properties(got["objectId"])["[[Entries]]"] == nil {
		t.Errorf("%v", got)
	}
	if got := l.eval("null.x"); !strings.HasPrefix(fmt.Sprint(got["description"]), "TypeError: Cannot read properties of null") || !strings.HasSuffix(fmt.Sprint(got["description"]), "at <anonymous>:1:6") {
		t.Errorf("%v", got)
	}
	// DOM objects have accessors on their prototypes; none of them is called.
	if p := l.properties(l.eval("document.createElement('a')")["objectId"]); p["[[Prototype]]"] == nil {
		t.Errorf("%v", p)
	}
	if text := l.must("runtime.compileScript", `{"expression":"function f() {"}`); !strings.Contains(text, `"description":"SyntaxError: Unexpected end of input`) {
		t.Error(text)
	}
	if text := l.must("runtime.globalLexicalScopeNames", `{}`); !strings.Contains(text, `"name"`) || !strings.Contains(text, `"rest"`) {
		t.Error(text)
	}
	if text := l.must("runtime.getHeapUsage", `{}`); !strings.Contains(text, "usedSize") {
		t.Error(text)
	}
	var left struct {
		Errors  []string
		Scripts int
		Dollar  string
	}
	run(t, ctx, `return { errors, scripts: document.scripts.length - scripts, dollar: typeof $0 + typeof $_ + typeof keys }`, &left)
	if len(left.Errors) != 0 || left.Scripts != 0 || left.Dollar != "undefinedundefinedundefined" {
		t.Errorf("the page noticed: %+v", left)
	}

	t.Run("long answers", func(t *testing.T) {
		q := `{"expression":"'ä\"'.repeat(500000)","returnByValue":true}`
		var out struct {
			Result struct{ Value string }
		}
		if err := json.Unmarshal([]byte(l.must("runtime.evaluate", q)), &out); err != nil || len(out.Result.Value) != 1500000 {
			t.Errorf("%d bytes, %v", len(out.Result.Value), err)
		}
	})
	t.Run("live arguments of the console", func(t *testing.T) {
		run(t, ctx, `globalThis.live = { n: 1 }; console.log('with', live, document.body); live.n = 2`, nil)
		var ref uint64
		r.until("the message with a reference", func(s *fold.Space) bool {
			for _, m := range r.nats.Read(subjects.RecordStreamName(space)) {
				for line := range strings.Lines(string(m.Data)) {
					var rec struct {
						Data struct {
							Ref  uint64 `json:"ref"`
							Args []any  `json:"args"`
						} `json:"data"`
					}
					if json.Unmarshal([]byte(line), &rec) == nil && len(rec.Data.Args) == 3 && rec.Data.Args[0] == "with" {
						ref = rec.Data.Ref
					}
				}
			}
			return ref > 0
		})
		var out struct {
			Object map[string]any `json:"object"`
		}
		_ = json.Unmarshal([]byte(l.must("console.resolve", fmt.Sprintf(`{"ref":%d,"arg":1,"objectGroup":"console"}`, ref))), &out)
		if n := l.properties(out.Object["objectId"])["n"]; fmt.Sprint(n["value"]) != "map[description:2 type:number value:2]" {
			t.Errorf("%v", n)
		}
	})
	t.Run("sessions survive a reconnect, and end with the page", func(t *testing.T) {
		held := l.eval("({ kept: 1 })")["objectId"]
		before := r.Stats().Resumed
		r.cut()
		natstest.Until(t, "the page comes back", func() bool { return r.Stats().Resumed > before })
		natstest.Until(t, "the object again", func() bool {
			text, err := l.ask("runtime.getProperties", fmt.Sprintf(`{"objectId":%q,"ownProperties":true}`, held))
			return err == nil && strings.Contains(text, `"kept"`)
		})
		other := r.look(id, "s2")
		if _, err := other.ask("runtime.getProperties", fmt.Sprintf(`{"objectId":%q}`, held)); err == nil {
			t.Error("a session has the objects of another one")
		}
		l.Close(nil)
		natstest.Until(t, "the page forgets what the session held", func() bool {
			_, err := l.ask("runtime.getProperties", fmt.Sprintf(`{"objectId":%q}`, held))
			return err != nil && strings.Contains(err.Error(), "holds no such object")
		})
	})
}

// TestScriptsOfAPage reads a page's scripts, of its own origin only.
func TestScriptsOfAPage(t *testing.T) {
	r := newRig(t)
	mux := http.NewServeMux()
	hits := make(chan string, 100)
	serve := func(path, kind, text string) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, req *http.Request) {
			hits <- path
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Cache-Control", "max-age=600")
			fmt.Fprint(w, text)
		})
	}
	serve("/{$}", "text/html", "<!doctype html><script src=/a.js></script>\n<script type=module src=/m.js></script><script>inline()</script>"+r.script())
	serve("/a.js", "text/javascript", "function inline() {}\nfunction a() { return 'a' }\n//# sourceMappingURL=a.js.map")
	serve("/m.js", "text/javascript", "import './dep.js'")
	serve("/dep.js", "text/javascript", "globalThis.dep = 1")
	serve("/late.js", "text/javascript", "globalThis.late = 1")
	serve("/a.js.map", "application/json", `{"version":3}`)
	serve("/secret.json", "application/json", `{}`)
	app := httptest.NewServer(mux)
	t.Cleanup(app.Close)
	ctx := tab(t)
	id := r.open(ctx, app.URL+"/")
	for len(hits) > 0 {
		<-hits
	}
	l := r.look(id, "s")
	l.must("sources.enable", "{}")
	script := func(path string) (out map[string]any) {
		t.Helper()
		natstest.Until(t, path+" is listed", func() bool {
			for _, line := range strings.Split(l.events.String(), "\n") {
				if text, ok := strings.CutPrefix(line, "sources.scriptParsed "); ok && strings.Contains(text, `"url":"`+app.URL+path+`"`) {
					return json.Unmarshal([]byte(text), &out) == nil
				}
			}
			return false
		})
		return out
	}
	source := func(s map[string]any) string {
		return l.must("sources.getScriptSource", fmt.Sprintf(`{"scriptId":%q}`, s["scriptId"]))
	}
	a := script("/a.js")
	if a["sourceMapURL"] != "a.js.map" || a["endLine"] != 2.0 || a["executionContextId"] != 1.0 || !strings.Contains(source(a), "return 'a'") {
		t.Errorf("%v", a)
	}
	if m := script("/dep.js"); m["isModule"] != true {
		t.Errorf("%v", m)
	}
	if text := source(script("/")); !strings.Contains(text, "inline()") {
		t.Errorf("the page itself: %s", text)
	}
	run(t, ctx, `const s = document.createElement('script'); s.src = '/late.js'; document.head.append(s)`, nil)
	script("/late.js")
	if text := l.must("sources.loadResource", fmt.Sprintf(`{"url":"%s/a.js.map"}`, app.URL)); !strings.Contains(text, `{\"version\":3}`) {
		t.Error(text)
	}
	for _, url := range []string{app.URL + "/secret.json", "http://127.0.0.1:1/x"} {
		if _, err := l.ask("sources.loadResource", fmt.Sprintf(`{"url":%q}`, url)); err == nil || !strings.Contains(err.Error(), "source maps") {
			t.Errorf("%s: %v", url, err)
		}
	}
	if _, err := l.ask("debugger.setBreakpointByUrl", `{}`); err == nil || !strings.Contains(err.Error(), "natscope attach") {
		t.Error(err)
	}
	close(hits)
	for path := range hits {
		if path != "/late.js" && path != "/a.js.map" {
			t.Errorf("%s was requested again", path)
		}
	}
}

// TestPageThatForbidsEval says so, and everything else works.
func TestPageThatForbidsEval(t *testing.T) {
	r := newRig(t)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Security-Policy", "script-src 'self' "+r.http.URL+"; connect-src 'self' "+strings.Replace(r.http.URL, "http", "ws", 1)+"; style-src 'none'")
		fmt.Fprint(w, "<!doctype html><title>Strict</title>"+r.script())
	})
	app := httptest.NewServer(mux)
	t.Cleanup(app.Close)
	ctx := tab(t)
	id := r.open(ctx, app.URL+"/")
	run(t, ctx, `globalThis.c = natscope.component('Box', { a: { b: 1 } }, undefined, { element: document.documentElement })`, nil)
	l := r.look(id, "s")
	if got := l.eval("1"); got["subtype"] != "error" || !strings.HasPrefix(fmt.Sprint(got["description"]), "EvalError: the Content-Security-Policy of this page forbids eval") {
		t.Errorf("%v", got)
	}
	if text := l.must("runtime.compileScript", `{"expression":"1"}`); text != "{}" {
		t.Error(text)
	}
	var out struct {
		Object map[string]any `json:"object"`
	}
	_ = json.Unmarshal([]byte(l.must("tree.resolve", `{"id":2}`)), &out)
	if out.Object["description"] != "Box" || l.properties(out.Object["objectId"])["a"] == nil {
		t.Errorf("%v", out.Object)
	}
	if _, err := r.command(id, realm.Request{Method: realm.MethodHighlight, Params: json.RawMessage(`{"id":2}`)}); err != nil {
		t.Error(err)
	}
	var styled string
	if run(t, ctx, `
		const host = document.querySelector('natscope-overlay'), [box] = host.shadowRoot.children;
		return [getComputedStyle(host).position, getComputedStyle(box).position, box.getBoundingClientRect().width === document.documentElement.getBoundingClientRect().width].join()`, &styled); styled != "fixed,fixed,true" {
		t.Errorf("the overlay of a page that forbids styles is %s", styled)
	}
}

// TestSessionOverTheBroker opens a session as a gateway does, evaluates and reads a long answer.
func TestSessionOverTheBroker(t *testing.T) {
	r := newRig(t)
	app := r.app(r.script())
	ctx := tab(t)
	id := r.open(ctx, app.URL+"/")
	who := &realm.Session{Gateway: "gw", ID: "s1"}
	natstest.Until(t, "sessions can be opened", func() bool {
		text, err := r.command(id, realm.Request{Method: realm.MethodOpenSession, Session: who})
		return err == nil && strings.Contains(text, `"runtime"`)
	})
	text, err := r.command(id, realm.Request{Method: realm.MethodEvaluate, Session: who, Params: json.RawMessage(`{"expression":"document.title + 1"}`)})
	if err != nil || text != `{"result":{"type":"string","value":"Home1"}}` {
		t.Errorf("%s, %v", text, err)
	}
	if _, err := r.command(id, realm.Request{Method: "debugger.pause", Session: who}); !errors.Is(err, realm.ErrUnsupported) {
		t.Errorf("debugger: %v", err)
	}
	if _, err := r.command(id, realm.Request{Method: realm.MethodCloseSession, Session: who}); err != nil {
		t.Error(err)
	}
	if _, err := r.command(id, realm.Request{Method: realm.MethodEvaluate, Session: who, Params: json.RawMessage(`{"expression":"1"}`)}); !errors.Is(err, realm.ErrNoSession) {
		t.Errorf("after the close: %v", err)
	}
}
