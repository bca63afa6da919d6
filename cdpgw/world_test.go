package cdpgw

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/natscope/natscope/store/command"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/source"
	"github.com/natscope/natscope/subjects/tree"
)

// world is a Commander in front of live realms that know a handful of
// expressions: what they do with them is written down, so that tests can tell
// what a gateway made of what DevTools said.
type world struct {
	t testing.TB

	mu       sync.Mutex
	realms   map[subjects.SourceID]*worldRealm
	audited  []realm.Audit
	listener func(command.Event)
}

// worldRealm is the realm of one generation of a source.
type worldRealm struct {
	generation subjects.Generation
	sessions   map[string]*worldSession
	globals    map[string]string
	// log has each command, with its parameters.
	log []string
	// calls are the live arguments of console calls.
	calls map[uint64][]string
	// loops are evaluations that run until they are terminated.
	loops []chan struct{}
	gone  bool
	// kept are the console messages that an engine tells whoever enables Runtime, as parameters of runtime.consoleAPICalled.
	kept []string
}

// worldSession holds objects, by their ids, as expressions.
type worldSession struct {
	objects map[realm.ObjectID]string
	groups  map[realm.ObjectID]string
	nodes   []tree.NodeID
	last    int
}

// alive are the capabilities of the sources of a world.
var alive = []string{"session", "runtime", "console", "sources", "tree"}

func newWorld(t testing.TB) *world {
	return &world{t: t, realms: make(map[subjects.SourceID]*worldRealm)}
}

// start makes the realm of a generation.
func (w *world) start(id subjects.SourceID, gen subjects.Generation) *worldRealm {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := &worldRealm{generation: gen, sessions: make(map[string]*worldSession), globals: make(map[string]string), calls: make(map[uint64][]string)}
	w.realms[id] = r
	return r
}

func (w *world) Do(ctx context.Context, src subjects.SourceID, gen subjects.Generation, r realm.Request) (json.RawMessage, error) {
	answer, err := w.Start(ctx, src, gen, r)
	if err != nil {
		return nil, err
	}
	return answer()
}

func (w *world) Start(ctx context.Context, src subjects.SourceID, gen subjects.Generation, r realm.Request) (command.Pending, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.realms[src]
	if x == nil || x.generation != gen || x.gone {
		return nil, fmt.Errorf("%w: nobody is there", realm.ErrGone)
	}
	x.log = append(x.log, string(r.Method)+" "+string(r.Params))
	result, err := x.do(r)
	if wait, ok := result.(chan struct{}); ok {
		return func() (json.RawMessage, error) {
			select {
			case <-wait:
				return json.RawMessage(`{"result":{"type":"undefined"},"exceptionDetails":{"exceptionId":2,"text":"Uncaught","lineNumber":0,"columnNumber":0,"exception":{"type":"object","subtype":"error","className":"Error","description":"Execution was terminated"}}}`), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}, nil
	}
	var kept []string
	if r.Method == "runtime.enable" {
		kept = slices.Clone(x.kept)
	}
	return func() (json.RawMessage, error) {
		for _, k := range kept {
			w.listener(command.Event{Source: src, Session: subjects.SessionID(r.Session.ID), Event: realm.Event{Event: "runtime.consoleAPICalled", Data: json.RawMessage(k)}})
		}
		if err != nil {
			return nil, err
		}
		if raw, ok := result.(json.RawMessage); ok {
			return raw, nil
		}
		return json.Marshal(result)
	}, nil
}

func (w *world) Tell(src subjects.SourceID, gen subjects.Generation, r realm.Request) error {
	_, err := w.Start(context.Background(), src, gen, r)
	return err
}

func (w *world) Listen(f func(command.Event)) (func(), error) {
	w.listener = f
	return func() {}, nil
}

func (w *world) Audit(_ context.Context, a realm.Audit) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.audited = append(w.audited, a)
	return nil
}

// heard returns the commands of a method so far, with their parameters.
func (w *world) heard(src subjects.SourceID, m string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, l := range w.realms[src].log {
		if name, params, _ := strings.Cut(l, " "); name == m {
			out = append(out, params)
		}
	}
	return out
}

// session returns the one session that is open.
func (w *world) session(src subjects.SourceID) (id string, s *worldSession) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, s = range w.realms[src].sessions {
		return id, s
	}
	w.t.Fatalf("no session is open at %s", src)
	return "", nil
}

// emit sends an event to the one session at a source.
func (w *world) emit(src subjects.SourceID, event, data string) {
	id, _ := w.session(src)
	w.listener(command.Event{Source: src, Session: subjects.SessionID(id), Event: realm.Event{Event: event, Data: json.RawMessage(data)}})
}

// do carries a command out. The lock is held.
func (x *worldRealm) do(r realm.Request) (any, error) {
	id := r.Session.ID
	s := x.sessions[id]
	switch r.Method {
	case realm.MethodOpenSession:
		if s == nil {
			x.sessions[id] = &worldSession{objects: make(map[realm.ObjectID]string), groups: make(map[realm.ObjectID]string)}
		}
		return realm.OpenResult{LeaseMS: 30000, Capabilities: alive}, nil
	case realm.MethodCloseSession:
		delete(x.sessions, id)
		return nil, nil
	}
	if s == nil {
		return nil, fmt.Errorf("%w: no session; open one", realm.ErrNoSession)
	}
	var p struct {
		Expression          string         `json:"expression"`
		ObjectID            realm.ObjectID `json:"objectId"`
		ObjectGroup         string         `json:"objectGroup"`
		FunctionDeclaration string         `json:"functionDeclaration"`
		Arguments           []struct {
			ObjectID realm.ObjectID  `json:"objectId"`
			Value    json.RawMessage `json:"value"`
		} `json:"arguments"`
		ThrowOnSideEffect  bool        `json:"throwOnSideEffect"`
		AccessorProperties bool        `json:"accessorPropertiesOnly"`
		ContextID          int         `json:"contextId"`
		UniqueContextID    string      `json:"uniqueContextId"`
		Ref                uint64      `json:"ref"`
		Arg                int         `json:"arg"`
		ID                 tree.NodeID `json:"id"`
	}
	if err := json.Unmarshal(r.Params, &p); err != nil {
		return nil, fmt.Errorf("%w: %w", realm.ErrMalformed, err)
	}
	if p.ContextID != 0 || p.UniqueContextID != "" {
		return nil, fmt.Errorf("%w: the context of a gateway", realm.ErrMalformed)
	}
	held := func(id realm.ObjectID) (string, error) {
		if e, ok := s.objects[id]; ok {
			return e, nil
		}
		return "", fmt.Errorf("%w: there is no object %s", realm.ErrNotFound, id)
	}
	switch r.Method {
	case realm.MethodEvaluate:
		if p.ThrowOnSideEffect && strings.Contains(p.Expression, "=") {
			return threwError(realm.SideEffect), nil
		}
		if p.Expression == "loop" {
			c := make(chan struct{})
			x.loops = append(x.loops, c)
			return c, nil
		}
		if p.Expression == "throw" {
			return threwError("Error: on purpose\n    at f (shop.js:3:1)"), nil
		}
		if name, v, ok := strings.Cut(p.Expression, "="); ok {
			x.globals[name] = v
			p.Expression = v
		}
		return map[string]any{"result": s.remote(x, p.Expression, p.ObjectGroup)}, nil
	case "runtime.compileScript":
		if strings.HasSuffix(p.Expression, "{") {
			return json.RawMessage(`{"exceptionDetails":{"exceptionId":1,"text":"Uncaught","lineNumber":0,"columnNumber":0,"exception":{"type":"object","subtype":"error","className":"SyntaxError","description":"SyntaxError: Unexpected end of input","objectId":"8"}}}`), nil
		}
		return struct{}{}, nil
	case "runtime.getProperties":
		e, err := held(p.ObjectID)
		if err != nil || p.AccessorProperties {
			return map[string]any{"result": []any{}}, err
		}
		return map[string]any{
			"result": []any{
				map[string]any{"name": "of", "value": map[string]any{"type": "string", "value": e}, "writable": true, "configurable": true, "enumerable": true, "isOwn": true},
				map[string]any{"name": "child", "value": s.remote(x, e+".child", ""), "writable": true, "configurable": true, "enumerable": true, "isOwn": true},
			},
			"internalProperties": []any{
				map[string]any{"name": "[[Prototype]]", "value": s.remote(x, e+".proto", "")},
				map[string]any{"name": "[[FunctionLocation]]", "value": map[string]any{"type": "object", "subtype": "internal#location", "description": "Object", "value": map[string]any{"scriptId": "31", "lineNumber": 4, "columnNumber": 0}}},
			},
		}, nil
	case realm.MethodCallFunctionOn:
		e, err := held(p.ObjectID)
		if err != nil {
			return nil, err
		}
		if p.ThrowOnSideEffect && !strings.Contains(p.FunctionDeclaration, "pure") {
			return threwError(realm.SideEffect), nil
		}
		text := e
		for _, a := range p.Arguments {
			arg := string(a.Value)
			if a.ObjectID != "" {
				if arg, err = held(a.ObjectID); err != nil {
					return nil, err
				}
			}
			text += "," + arg
		}
		return map[string]any{"result": map[string]any{"type": "string", "value": text}}, nil
	case "runtime.awaitPromise", "runtime.queryObjects", "runtime.getExceptionDetails":
		return json.RawMessage(`{"result":{"type":"number","value":7,"description":"7"},"objects":{"type":"object","className":"Array","description":"Array(1)","objectId":"99"}}`), nil
	case "runtime.releaseObject":
		delete(s.objects, p.ObjectID)
		return struct{}{}, nil
	case "runtime.releaseObjectGroup":
		for id, g := range s.groups {
			if g == p.ObjectGroup {
				delete(s.objects, id)
			}
		}
		return struct{}{}, nil
	case "runtime.globalLexicalScopeNames":
		return map[string]any{"names": []string{"lexical"}}, nil
	case "runtime.terminateExecution":
		for _, c := range x.loops {
			close(c)
		}
		x.loops = nil
		return struct{}{}, nil
	case "runtime.getHeapUsage":
		return json.RawMessage(`{"usedSize":1,"totalSize":2,"embedderHeapUsedSize":0,"backingStorageSize":0}`), nil
	case realm.MethodResolveArgument:
		args := x.calls[p.Ref]
		if p.Arg >= len(args) {
			return nil, fmt.Errorf("%w: not kept any more", realm.ErrNotFound)
		}
		return map[string]any{"object": s.remote(x, args[p.Arg], p.ObjectGroup)}, nil
	case realm.MethodResolveNode:
		if p.ID == 99 {
			return nil, fmt.Errorf("%w: no live object", realm.ErrNotFound)
		}
		o := s.remote(x, "node"+strconv.Itoa(int(p.ID)), p.ObjectGroup)
		return map[string]any{"object": o}, nil
	case realm.MethodNodeOf:
		e, err := held(p.ObjectID)
		n, _ := strconv.Atoi(strings.TrimPrefix(e, "node"))
		return realm.NodeOfResult{ID: tree.NodeID(n)}, err
	case realm.MethodInspected:
		s.nodes = slices.Insert(s.nodes, 0, p.ID)
		return struct{}{}, nil
	case realm.MethodEnableSources:
		return json.RawMessage(`{"scripts":[{"scriptId":"31","url":"/srv/shop/main.go","startLine":0,"startColumn":0,"endLine":9,"endColumn":0,"executionContextId":1,"hash":"h"},{"scriptId":"32","url":"","startLine":0}]}`), nil
	case realm.MethodScriptSource:
		return realm.ScriptSourceResult{ScriptSource: "package main\n\nfunc main() {}"}, nil
	}
	switch r.Method {
	case "runtime.getIsolateId":
		return map[string]string{"id": "isolate"}, nil
	case "debugger.enable":
		return map[string]string{"debuggerId": "7.8"}, nil
	case "debugger.evaluateOnCallFrame":
		return map[string]any{"result": s.remote(x, p.Expression, p.ObjectGroup)}, nil
	case "debugger.setBreakpointByUrl":
		return json.RawMessage(`{"breakpointId":"1:1","locations":[]}`), nil
	case "profiler.stop":
		return json.RawMessage(`{"profile":{"nodes":[],"startTime":1,"endTime":2}}`), nil
	case "heap.getHeapObjectId":
		e, err := held(p.ObjectID)
		return map[string]string{"heapSnapshotObjectId": e}, err
	}
	switch r.Method.Group() {
	case realm.GroupDebugger, realm.GroupProfiler, realm.GroupHeap:
		return struct{}{}, nil
	case realm.GroupRuntime:
		if r.Method == "runtime.enable" || r.Method == "runtime.disable" {
			return struct{}{}, nil
		}
	}
	return nil, fmt.Errorf("%w: %s", realm.ErrUnsupported, r.Method)
}

// remote describes what an expression stands for.
func (s *worldSession) remote(x *worldRealm, e, group string) map[string]any {
	if v, ok := x.globals[e]; ok {
		e = v
	}
	if n, err := strconv.Atoi(e); err == nil {
		return map[string]any{"type": "number", "value": n, "description": e}
	}
	if n, ok := strings.CutPrefix(e, "$"); ok {
		i, _ := strconv.Atoi(n)
		if i >= len(s.nodes) || s.nodes[i] == 0 {
			return map[string]any{"type": "undefined"}
		}
		e = fmt.Sprint("node", s.nodes[i])
	}
	s.last++
	id := realm.ObjectID(strconv.Itoa(s.last))
	s.objects[id], s.groups[id] = e, group
	o := map[string]any{"type": "object", "className": "Object", "description": e, "objectId": id}
	if strings.HasPrefix(e, "node") {
		o["subtype"] = "node"
	}
	return o
}

func threwError(description string) json.RawMessage {
	data, _ := json.Marshal(map[string]any{
		"result": map[string]any{"type": "object", "subtype": "error", "className": "Error", "description": description, "objectId": "1000"},
		"exceptionDetails": map[string]any{"exceptionId": 1, "text": "Uncaught", "lineNumber": 2, "columnNumber": 0, "scriptId": "33", "executionContextId": 1,
			"stackTrace": map[string]any{"callFrames": []any{map[string]any{"functionName": "f", "scriptId": "33", "url": "", "lineNumber": 2, "columnNumber": 0}}},
			"exception":  map[string]any{"type": "object", "subtype": "error", "className": "Error", "description": description, "objectId": "1001"}},
	})
	return data
}

// liveShop is a space whose sources orders, page and logger are connected; the last has no realm.
func liveShop(t testing.TB) (*memory, *world, *httptest.Server) {
	t.Helper()
	m, w := newMemory(t, subjects.Limits{}), newWorld(t)
	for id, gen := range map[subjects.SourceID]subjects.Generation{"orders": gen1, "page": gen2} {
		m.open(id, gen, source.Descriptor{Name: string(id), Kind: source.KindHost, Capabilities: alive})
		m.snapshot(id, gen, 1, cart("2", `"2"`, "{}"))
		w.start(id, gen)
	}
	m.open("logger", gen1, source.Descriptor{Name: "logger", Kind: source.KindHost})
	_, server := serve(t, m, func(o *Options) { o.Commander, o.Gateway = w, "gw" })
	return m, w, server
}

// waitUntil waits until ok is true.
func waitUntil(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
		runtime.Gosched()
	}
}
