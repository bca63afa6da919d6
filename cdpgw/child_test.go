package cdpgw

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/natscope/natscope/cdpgw/access"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/source"
)

// What the realms of an engine and of a Go program answer.
var (
	engine  = []string{"session", "runtime", "debugger", "profiler", "heap"}
	program = []string{"session", "runtime", "console", "sources", "profiler", "heap"}
)

// debugShop is a space with an engine, node, and a Go program, svc.
func debugShop(t testing.TB, options ...func(*Options)) (*memory, *world, *httptest.Server) {
	t.Helper()
	m, w := newMemory(t, subjects.Limits{}), newWorld(t)
	m.open("node", gen1, source.Descriptor{Name: "node app", Kind: source.KindHost, Capabilities: engine})
	m.open("svc", gen2, source.Descriptor{Name: "svc", Kind: source.KindHost, Capabilities: program})
	w.start("node", gen1)
	w.start("svc", gen2)
	m.log("node", gen1, 1, "from node")
	m.log("svc", gen2, 2, "from svc")
	_, server := serve(t, m, append([]func(*Options){func(o *Options) { o.Commander, o.Gateway = w, "gw" }}, options...)...)
	return m, w, server
}

// attachAll asks for children and returns their sessions by their names.
func (c *client) attachAll() map[string]ChildID {
	c.t.Helper()
	out := make(map[string]ChildID)
	for _, e := range c.call("Target.setAutoAttach", map[string]any{"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true}, nil) {
		var p attachedToTargetEvent
		if e.Method == "Target.attachedToTarget" && json.Unmarshal(e.Params, &p) == nil {
			out[p.TargetInfo.Title] = p.SessionID
			if p.TargetInfo.Type != "node_worker" || p.WaitingForDebugger {
				c.t.Errorf("%s", e.Params)
			}
		}
	}
	return out
}

func TestChildren(t *testing.T) {
	m, w, server := debugShop(t)
	c := dial(t, server, "dev")
	x := c.contexts()
	kids := c.attachAll()
	if len(kids) != 2 {
		t.Fatalf("%v", kids)
	}
	if again := c.attachAll(); len(again) != 0 {
		t.Errorf("attached again: %v", again)
	}
	// The opening burst of a child.
	for name, id := range kids {
		c.inChild(id, func() {
			for _, method := range []string{"Profiler.enable", "Runtime.enable", "Debugger.enable", "Debugger.setPauseOnExceptions", "Debugger.setAsyncCallStackDepth", "Runtime.getIsolateId", "Debugger.setBlackboxPatterns", "Runtime.runIfWaitingForDebugger"} {
				answer, _ := c.do(method, map[string]any{})
				if answer.Error != nil || answer.SessionID != id {
					t.Errorf("%s of %s: %s", method, name, answer.raw)
				}
			}
			for _, method := range []string{"Network.enable", "Target.setAutoAttach", "DOM.enable", "Natscope.x", "Profiler", "Debugger."} {
				c.fails(method, nil, codeNotFound)
			}
		})
	}
	if got := w.heard("svc", "debugger.enable"); len(got) != 0 {
		t.Error("a program without a debugger was asked to debug")
	}
	if got := w.heard("node", "debugger.enable"); len(got) != 1 {
		t.Error("the engine was not")
	}
	c.inChild(kids["svc"], func() {
		if e := c.fails("Debugger.pause", nil, codeServer); e.Message != noPause {
			t.Error(e.Message)
		}
		c.call("Profiler.stop", nil, nil)
	})
	// An object of the child is one of the root, and the other way round; not of another child.
	o := c.evaluate(x["node app"], "order").Result.ObjectID
	c.inChild(kids["node app"], func() {
		var r evaluated
		c.call("Runtime.getProperties", map[string]any{"objectId": o}, nil)
		c.call("HeapProfiler.getHeapObjectId", map[string]any{"objectId": o}, nil)
		c.call("Debugger.evaluateOnCallFrame", map[string]any{"callFrameId": "1.2.3", "expression": "local"}, &r)
		o = r.Result.ObjectID
		c.fails("HeapProfiler.getHeapObjectId", map[string]any{"objectId": "rubbish"}, codeServer)
		c.call("Debugger.setVariableValue", map[string]any{"scopeNumber": 0, "variableName": "x", "newValue": map[string]any{"objectId": o}, "callFrameId": "1"}, nil)
	})
	if got := w.heard("node", "debugger.setVariableValue"); !strings.Contains(strings.Join(got, ""), `"newValue":{"objectId":"`) || strings.Contains(got[0], "o:") {
		t.Errorf("%q", got)
	}
	c.call("Runtime.getProperties", map[string]any{"objectId": o}, nil)
	c.inChild(kids["svc"], func() {
		c.fails("HeapProfiler.getHeapObjectId", map[string]any{"objectId": o}, codeServer)
	})
	c.in = "nobody"
	c.fails("Runtime.enable", nil, codeSession)
	c.in = ""

	// The engine goes: its child before its context.
	from := c.count()
	m.Presence("node", false)
	var gone detachedFromTargetEvent
	from = c.event(from, "Target.detachedFromTarget", &gone)
	c.event(from, "Runtime.executionContextDestroyed", nil)
	if gone.SessionID != kids["node app"] {
		t.Errorf("%+v", gone)
	}
	from = c.count()
	m.Presence("node", true)
	var back attachedToTargetEvent
	c.event(from, "Target.attachedToTarget", &back)
	if back.SessionID == kids["node app"] {
		t.Error("a session has the id of an older one")
	}
	c.call("Target.setAutoAttach", map[string]any{"autoAttach": false, "waitForDebuggerOnStart": false, "flatten": true}, nil)
	c.in = kids["svc"]
	c.fails("Runtime.enable", nil, codeSession)
	c.in = ""
	c.valid()
}

// The console output of an engine is its child's, and the root's for clients without children. It comes once.
func TestConsoleOfAnEngine(t *testing.T) {
	m, w, server := debugShop(t)
	lines := func(c *client) (out []string) {
		all, _, _ := c.snapshot()
		for _, m := range all {
			if m.Method == "Runtime.consoleAPICalled" {
				var p consoleCalledEvent
				_ = json.Unmarshal(m.Params, &p)
				out = append(out, string(m.SessionID)+string(p.Args[0].Value))
			}
		}
		slices.Sort(out)
		return out
	}
	c := dial(t, server, "dev")
	c.contexts()
	kid := c.attachAll()["node app"]
	c.inChild(kid, func() { c.call("Runtime.enable", nil, nil) })
	w.emit("node", "runtime.consoleAPICalled", `{"type":"log","args":[{"type":"string","value":"from node"},{"type":"object","objectId":"3"}],"executionContextId":1,"timestamp":1}`)
	w.emit("node", "runtime.executionContextCreated", `{"context":{"id":1,"origin":"","name":"","uniqueId":"1"}}`)
	m.log("node", gen1, 3, "more of node")
	m.log("svc", gen2, 4, "more of svc")
	plain := dial(t, server, "dev")
	plain.contexts()
	m.log("node", gen1, 5, "last of node")
	want := []string{`"from node"`, `"from svc"`, `"last of node"`, `"more of node"`, `"more of svc"`}
	waitUntil(t, "a client without children hears all", func() bool { return slices.Equal(lines(plain), want) })
	if got, want := lines(c), []string{`"from svc"`, `"more of svc"`, string(kid) + `"from node"`}; !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	all, _, _ := c.snapshot()
	for _, m := range all {
		if m.SessionID == kid && m.Method == "Runtime.executionContextCreated" {
			t.Errorf("a context in the child: %s", m.raw)
		}
		if m.SessionID == kid && m.Method == "Runtime.consoleAPICalled" && !strings.Contains(string(m.Params), `"objectId":"o:node:`) {
			t.Errorf("%s", m.raw)
		}
	}
	c.valid()
	plain.valid()
}

// A paused program has a context for its child, which goes a while after the pause.
func TestPauseContext(t *testing.T) {
	_, w, server := debugShop(t)
	c := dial(t, server, "dev")
	c.contexts()
	kid := c.attachAll()["node app"]
	c.inChild(kid, func() {
		c.call("Runtime.enable", nil, nil)
		c.call("Debugger.enable", nil, nil)
	})
	from := c.count()
	step := func(event string) { w.emit("node", "debugger."+event, pausedParams[event]) }
	step("paused")
	var created pauseContextCreatedEvent
	at := c.event(from, "Runtime.executionContextCreated", &created)
	var paused struct {
		CallFrames []struct {
			This       remoteObject
			ScopeChain []struct{ Object remoteObject }
		}
	}
	if end := c.event(from, "Debugger.paused", &paused); end < at {
		t.Error("paused before there is a context for it")
	}
	if created.Context.ID != pauseContext || created.Context.Name != "node app (paused)" || !strings.HasPrefix(string(paused.CallFrames[0].ScopeChain[0].Object.ObjectID), "o:node:") {
		t.Errorf("%+v %+v", created, paused)
	}
	c.inChild(kid, func() {
		var r evaluated
		c.call("Runtime.evaluate", map[string]any{"expression": "11", "uniqueContextId": created.Context.UniqueID}, &r)
		if string(r.Result.Value) != "11" {
			t.Errorf("%+v", r)
		}
		c.call("Runtime.globalLexicalScopeNames", map[string]any{"executionContextId": pauseContext}, nil)
	})
	// A step: the context stays.
	from = c.count()
	step("resumed")
	step("paused")
	step("resumed")
	var gone contextDestroyedEvent
	pos := c.event(from, "Runtime.executionContextDestroyed", &gone)
	// First the root's contexts go and come, then the child's goes.
	for gone.ID != pauseContext {
		var again contextCreatedEvent
		next := c.event(pos, "Runtime.executionContextCreated", &again)
		if next != pos+1 || again.Context.ID != gone.ID || again.Context.Name == "svc" {
			t.Errorf("%+v after %+v", again, gone)
		}
		pos = c.event(next, "Runtime.executionContextDestroyed", &gone)
	}
	n := 0
	all, _, _ := c.snapshot()
	for _, m := range all[from:] {
		if m.SessionID == kid && strings.HasPrefix(m.Method, "Runtime.executionContext") {
			n++
		}
	}
	if n != 1 {
		t.Errorf("the context came or went %d times during a step", n)
	}
	// Debugger.disable lets the program run on without a word.
	step("paused")
	from = c.count()
	c.inChild(kid, func() { c.call("Debugger.disable", nil, nil) })
	c.event(from, "Runtime.executionContextDestroyed", nil)
	c.valid()
}

var pausedParams = map[string]string{
	"paused": `{"callFrames":[{"callFrameId":"1","functionName":"f","location":{"scriptId":"3","lineNumber":1},"url":"","scopeChain":[{"type":"local","object":{"type":"object","objectId":"5"}}],"this":{"type":"object","objectId":"6"}}],"reason":"other"}`,
}

// Who may only look has no debugger and no profiler; the console is the root's.
func TestNoChildrenToLookAt(t *testing.T) {
	_, _, server := debugShop(t, func(o *Options) { o.Grant = access.Grant{Role: access.RoleView} })
	c := dial(t, server, "dev")
	c.contexts()
	if kids := c.attachAll(); len(kids) != 0 {
		t.Errorf("%v", kids)
	}
	from := 0
	for range 2 {
		from = c.event(from, "Runtime.consoleAPICalled", nil)
	}
	n := dialNode(t, server, "dev/node")
	n.fails("Debugger.enable", nil, codeServer)
	for _, method := range []string{"HeapProfiler.takeHeapSnapshot", "HeapProfiler.enable", "Profiler.enable", "Profiler.start"} {
		n.fails(method, nil, codeServer)
	}
}

// A loop holds a program up, even one that changes nothing: who may only look
// gets half a second of it, and no function that an engine would run without a bound.
func TestLookersHoldNothingUp(t *testing.T) {
	_, w, server := debugShop(t, func(o *Options) { o.Grant = access.Grant{Role: access.RoleView} })
	root, node := dial(t, server, "dev"), dialNode(t, server, "dev/node")
	x := root.contexts()
	o := root.evaluate(x["node app"], "order", map[string]any{"throwOnSideEffect": true}).Result.ObjectID
	for _, timeout := range []any{nil, 0, -1, 500, 100, 86400000, "1", 1e300} {
		p := map[string]any{"expression": "loop()", "throwOnSideEffect": true}
		if timeout != nil {
			p["timeout"] = timeout
		}
		node.call("Runtime.evaluate", p, nil)
		p["uniqueContextId"] = x["node app"].UniqueID
		root.call("Runtime.evaluate", p, nil)
	}
	loops := 0
	for _, params := range w.heard("node", "runtime.evaluate") {
		var p struct{ Timeout float64 }
		if err := json.Unmarshal([]byte(params), &p); err != nil || p.Timeout <= 0 || p.Timeout > 500 {
			t.Errorf("without a bound: %s", params)
		}
		if strings.Contains(params, "loop") {
			loops++
		}
	}
	if loops != 16 {
		t.Errorf("%d evaluations came", loops)
	}
	for _, c := range []*client{root, node} {
		c.fails("Runtime.callFunctionOn", map[string]any{"objectId": o, "functionDeclaration": "function pure(){for(;;);}", "throwOnSideEffect": true}, codeServer)
	}
	if got := w.heard("node", "runtime.callFunctionOn"); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

// With the role view, no method of the protocol makes a live program do what it
// must not, in the root and in a target of the type node.
func TestRoleViewTriesEverythingOfLivePrograms(t *testing.T) {
	_, w, server := debugShop(t, func(o *Options) { o.Grant = access.Grant{Role: access.RoleView} })
	root := dial(t, server, "dev")
	x := root.contexts()
	o := root.evaluate(x["node app"], "order", map[string]any{"throwOnSideEffect": true}).Result.ObjectID
	for _, c := range []*client{root, dialNode(t, server, "dev/node"), dialNode(t, server, "dev/svc")} {
		names := slices.Concat(slices.Collect(maps.Keys(methods)), slices.Collect(maps.Keys(protocolOf(t).commands)), []string{"NodeWorker.enable", "NodeRuntime.notifyWhenWaitingForDisconnect", "NodeTracing.start", "Debugger.future", "Runtime.future", "runtime.evaluate", "tree.edit"})
		for _, name := range names {
			for _, p := range []map[string]any{
				{"expression": "y=1", "objectId": o, "functionDeclaration": "function(){}", "scriptId": "31", "url": "x", "lineNumber": 1, "executionContextId": x["node app"].ID, "enabled": true, "state": "all", "callFrameId": "1", "name": "n", "interval": 1},
				{"expression": "y=1", "uniqueContextId": x["svc"].UniqueID, "objectId": o, "functionDeclaration": "function(){}", "value": 1, "newValue": map[string]any{"value": 1}, "persistScript": true, "throwOnSideEffect": false},
				{"expression": "order", "throwOnSideEffect": true, "objectId": o, "functionDeclaration": "pure"},
			} {
				if name == "Page.close" || name == "Browser.close" {
					continue
				}
				c.do(name, p)
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, r := range w.realms {
		for _, line := range r.log {
			name, params, _ := strings.Cut(line, " ")
			m := realm.Method(name)
			if g := m.Group(); m.ChangesWith(json.RawMessage(params)) || g == realm.GroupDebugger || g == realm.GroupProfiler || g == realm.GroupHeap {
				t.Errorf("%s was made to do %s", id, line)
			}
		}
		if len(r.log) < 3 || len(r.globals) > 0 {
			t.Errorf("%s heard %d commands, and has %v", id, len(r.log), r.globals)
		}
	}
	if len(w.audited) > 0 {
		t.Errorf("the audit has %v", w.audited)
	}
}

// Above 50 sources, children come when somebody turns to a source.
func TestManyChildren(t *testing.T) {
	m, w, server := debugShop(t)
	for i := range 60 {
		id := subjects.SourceID(fmt.Sprint("n", i))
		w.start(id, gen1)
		m.open(id, gen1, source.Descriptor{Name: string(id), Kind: source.KindHost, Capabilities: engine})
	}
	c := dial(t, server, "dev")
	x := c.contexts()
	if kids := c.attachAll(); len(kids) != maxChildren || kids["n59"] != "" {
		t.Errorf("%d children", len(kids))
	}
	from := c.count()
	c.evaluate(x["n59"], "1")
	var e attachedToTargetEvent
	c.event(from, "Target.attachedToTarget", &e)
	if e.TargetInfo.Title != "n59" {
		t.Errorf("%+v", e)
	}
}

func dialNode(t testing.TB, server *httptest.Server, path string) *client {
	t.Helper()
	return dialPath(t, server, nodePath+path)
}

// A target of the type node is the program itself.
func TestNodeTarget(t *testing.T) {
	m, w, server := debugShop(t)
	var list []listing
	resp, err := http.Get(server.URL + "/json/list")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	var nodes []string
	for _, l := range list {
		if l.Type == "node" {
			nodes = append(nodes, l.WebSocketDebuggerURL[strings.Index(l.WebSocketDebuggerURL, "/devtools"):])
			if !strings.Contains(l.DevtoolsFrontendURL, "js_app.html?ws=") {
				t.Error(l.DevtoolsFrontendURL)
			}
		}
	}
	if want := []string{"/devtools/node/dev/node", "/devtools/node/dev/svc"}; !slices.Equal(nodes, want) {
		t.Errorf("%q, want %q", nodes, want)
	}
	for _, bad := range []string{"/devtools/node/dev", "/devtools/node/other/svc"} {
		if _, resp, err := websocket.DefaultDialer.Dial(strings.Replace(server.URL, "http:", "ws:", 1)+bad, nil); err == nil || resp.StatusCode != 404 {
			t.Errorf("%s: %v", bad, err)
		}
	}

	c := dialNode(t, server, "dev/node")
	x := c.contexts()
	if len(x) != 1 || x["node app"].ID == 0 {
		t.Errorf("%v", x)
	}
	if got := c.evaluate(x["node app"], "3").Result; string(got.Value) != "3" {
		t.Errorf("%+v", got)
	}
	from := c.count()
	c.call("Debugger.enable", nil, nil)
	c.call("Debugger.setBreakpointByUrl", map[string]any{"lineNumber": 1, "url": "a.js"}, nil)
	c.call("Profiler.enable", nil, nil)
	c.call("Profiler.stop", nil, nil)
	w.emit("node", "debugger.scriptParsed", `{"scriptId":"3","url":"file:///a.js","startLine":0,"startColumn":0,"endLine":1,"endColumn":0,"executionContextId":1,"hash":"","buildId":""}`)
	w.emit("node", "debugger.paused", pausedParams["paused"])
	w.emit("node", "heap.addHeapSnapshotChunk", `{"chunk":"x"}`)
	w.emit("node", "unheard.of", `{"chunk":"x"}`)
	var script scriptParsedEvent
	c.event(from, "Debugger.scriptParsed", &script)
	if script.ExecutionContextID != x["node app"].ID || script.ScriptID != "3" {
		t.Errorf("%+v", script)
	}
	c.event(from, "Debugger.paused", nil)
	c.event(from, "HeapProfiler.addHeapSnapshotChunk", nil)
	c.fails("Natscope.x", nil, codeNotFound)
	c.valid()

	svc := dialNode(t, server, "dev/svc")
	if x := svc.contexts(); len(x) != 1 || string(svc.evaluate(x["svc"], "4").Result.Value) != "4" {
		t.Errorf("%v", x)
	}
	svc.event(0, "Runtime.consoleAPICalled", nil)
	svc.call("Debugger.enable", nil, nil)
	svc.event(0, "Debugger.scriptParsed", nil)
	svc.call("Profiler.stop", nil, nil)
	svc.fails("Debugger.pause", nil, codeServer)
	svc.valid()

	// A new run of the program is not the one that is debugged.
	w.start("node", gen2)
	m.open("node", gen2, source.Descriptor{Name: "node app", Kind: source.KindHost, Capabilities: engine})
	waitUntil(t, "the debugger's connection ends", func() bool {
		_, _, ended := c.snapshot()
		return ended != nil && strings.Contains(ended.Error(), "restarted")
	})
	svc.sync()
}
