package v8

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/subjects/realm"
)

// debugged is a program to debug: `work` runs what a test writes, every 20 ms something happens.
const debugged = steered + `
function add(a, b) {
  const sum = a + b;
  return sum;
}
function work(n) {
  let total = 0;
  total = add(total, n);
  return total;
}
globalThis.ticks = 0; globalThis.history = [];
setInterval(() => { ticks++; if (globalThis.run) history.push(work(ticks)); }, 20);
async function inner() {
  await null;
  const here = 1;
  return here;
}
async function outer() { return await inner(); }
globalThis.outer = outer; globalThis.work = work;
`

// debuggee is a program with a session that has the debugger enabled.
func debuggee(t *testing.T) (*world, *program, *office, *asker) {
	w := newWorld(t)
	p := node(t, 0, "debugged.js", debugged)
	w.attach(Options{Endpoints: []string{p.endpoint}})
	o := newOffice(w)
	a := o.ask("debugged.js")
	a.do("runtime.enable", "")
	a.do("debugger.enable", "")
	a.do("debugger.setBlackboxPatterns", `{"patterns":["^node:"]}`)
	return w, p, o, a
}

// breakAt sets a breakpoint in the program and returns its id.
func (a *asker) breakAt(p *program, part, condition string) string {
	a.t.Helper()
	c, _ := json.Marshal(condition)
	var r struct {
		BreakpointID string
		Locations    []any
	}
	out := a.do("debugger.setBreakpointByUrl", fmt.Sprintf(`{"url":"file://%s","lineNumber":%d,"condition":%s}`, filepath.Join(p.dir, "debugged.js"), line(debugged, part), c))
	if err := json.Unmarshal([]byte(out), &r); err != nil || len(r.Locations) != 1 {
		a.t.Fatalf("the breakpoint at %q is %s", part, out)
	}
	return r.BreakpointID
}

// moving waits until the program runs.
func (a *asker) moving() {
	a.t.Helper()
	before := a.eval("ticks", "")
	natstest.Until(a.t, "the program runs", func() bool { return a.eval("ticks", "") != before })
}

func TestEvaluateInASession(t *testing.T) {
	w, _, o, a := debuggee(t)
	if got := a.eval("globalThis.mark = {a: 1}; [1, mark, typeof process]", `,"generatePreview":true`); got != "Array(3)" {
		t.Error(got)
	}
	if a.count("debugger.scriptParsed") < 20 || a.count("runtime.executionContextCreated") != 1 {
		t.Errorf("%d scripts, %d contexts", a.count("debugger.scriptParsed"), a.count("runtime.executionContextCreated"))
	}
	if a.count("runtime.consoleAPICalled") != 1 {
		t.Error("the console that was there before is not replayed")
	}
	if got := a.eval("throw new TypeError('no')", ""); !strings.HasPrefix(got, "TypeError: no") {
		t.Error(got)
	}
	if got := a.eval("await Promise.resolve(5)", `,"replMode":true,"awaitPromise":true`); got != "5" {
		t.Error(got)
	}
	if got := a.eval("mark.b = 1", `,"throwOnSideEffect":true`); !strings.HasPrefix(got, realm.SideEffect) {
		t.Error(got)
	}
	// What people type is evaluated as they type also with asynchronous stacks.
	a.do("debugger.setAsyncCallStackDepth", `{"maxDepth":32}`)
	if got := a.eval("mark.a", `,"throwOnSideEffect":true,"replMode":true,"timeout":500,"disableBreaks":true`); got != "1" {
		t.Error(got)
	}
	var r struct{ Result remoteObject }
	_ = json.Unmarshal([]byte(a.do("runtime.evaluate", `{"expression":"mark"}`)), &r)
	if got := a.do("runtime.getProperties", fmt.Sprintf(`{"objectId":%q,"ownProperties":true}`, r.Result.ObjectID)); !strings.Contains(got, `"name":"a"`) {
		t.Error(got)
	}
	// An object belongs to its session.
	b := o.ask("debugged.js")
	if out, err := b.try("runtime.getProperties", fmt.Sprintf(`{"objectId":%q}`, r.Result.ObjectID)); err == nil {
		t.Errorf("another session read the object: %s", out)
	}
	if got := b.eval("mark.a", ""); got != "1" {
		t.Error(got)
	}
	if _, err := a.try("runtime.nothing", ""); !errors.Is(err, realm.ErrUnsupported) || !strings.Contains(err.Error(), "Runtime.nothing") {
		t.Error(err)
	}
	if _, err := a.try("runtime.evaluate", `{"expression":5}`); !errors.Is(err, realm.ErrMalformed) && !errors.Is(err, realm.ErrFailed) {
		t.Error(err)
	}
	if _, err := a.try("network.enable", ""); !errors.Is(err, realm.ErrUnsupported) {
		t.Error(err)
	}
	if got := a.eval("'x'.repeat(3_000_000)", ""); len(got) != 3_000_000 {
		t.Errorf("%d characters", len(got))
	}
	if got := w.text("debugged.js"); strings.Contains(got, "mark") {
		t.Error(got)
	}
}

// TestEndlessLoopEnds evaluates what never ends, and sees the process live on.
func TestEndlessLoopEnds(t *testing.T) {
	_, p, _, a := debuggee(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	out, err := a.o.sessions.Do(ctx, a.at, a.id, realm.Request{Method: "runtime.evaluate", Params: json.RawMessage(`{"expression":"while (true) ;"}`), DeadlineMS: 300})
	if err == nil && !strings.Contains(string(out), "terminated") || err != nil && !errors.Is(err, realm.ErrTimeout) && !strings.Contains(err.Error(), "terminated") {
		t.Errorf("%s, %v", out, err)
	}
	a.moving()
	if _, err := a.try("runtime.terminateExecution", ""); !errors.Is(err, realm.ErrRefused) {
		t.Error(err)
	}
	p.tell("process.exit(4)")
	if code := p.exits(); code != 4 {
		t.Errorf("exit code %d: %s", code, p.errors())
	}
}

func TestBreakpointsAndSteps(t *testing.T) {
	w, p, _, a := debuggee(t)
	id := a.breakAt(p, "const sum", "")
	a.eval("run = true", "")
	at := a.paused()
	if at.at() != "add:"+fmt.Sprint(line(debugged, "const sum")+1) || len(at.HitBreakpoints) != 1 || at.HitBreakpoints[0] != id || at.CallFrames[1].FunctionName != "work" {
		t.Fatalf("%+v", at)
	}
	a.do("debugger.removeBreakpoint", fmt.Sprintf(`{"breakpointId":%q}`, id))
	// What a console asks for is answered while the program stands still.
	if got := a.eval("typeof work", `,"replMode":true,"awaitPromise":true,"generatePreview":true`); got != "function" {
		t.Error(got)
	}
	frame := at.CallFrames[0].CallFrameID
	onFrame := func(e string) string {
		t.Helper()
		return described(t, a.do("debugger.evaluateOnCallFrame", fmt.Sprintf(`{"callFrameId":%q,"expression":%q}`, frame, e)))
	}
	if got := onFrame("a + ':' + (b > 0)"); got != "0:true" {
		t.Error(got)
	}
	a.do("debugger.setVariableValue", fmt.Sprintf(`{"scopeNumber":0,"variableName":"b","newValue":{"value":1000},"callFrameId":%q}`, frame))
	if scope := at.CallFrames[0].ScopeChain[0]; scope.Type != "local" || !strings.Contains(a.do("runtime.getProperties", fmt.Sprintf(`{"objectId":%q,"ownProperties":true}`, scope.Object.ObjectID)), `"name":"b"`) || onFrame("b") != "1000" {
		t.Errorf("the scope is %+v", scope)
	}
	for _, c := range []struct{ step, part, function string }{
		{"debugger.stepOver", "return sum", "add"}, {"debugger.stepOut", "total = add", "work"},
	} {
		a.do(c.step, "")
		if at = a.paused(); !strings.HasPrefix(at.at(), c.function+":") {
			t.Fatalf("after %s: %s", c.step, at.at())
		}
	}
	a.do("debugger.resume", "")
	a.wait("debugger.resumed", nil)
	natstest.Until(t, "the changed variable had an effect", func() bool { return a.eval("history.includes(1000)", "") == "true" })

	// Into a function, conditionally.
	id = a.breakAt(p, "total = add", "n % 7 === 0")
	at = a.paused()
	frame = at.CallFrames[0].CallFrameID
	if got := onFrame("n % 7"); got != "0" {
		t.Error(got)
	}
	a.do("debugger.stepInto", "")
	if at = a.paused(); !strings.HasPrefix(at.at(), "add:") {
		t.Errorf("stepped into %s", at.at())
	}
	a.do("debugger.removeBreakpoint", fmt.Sprintf(`{"breakpointId":%q}`, id))

	// A logpoint logs, for everybody, and does not stop.
	a.breakAt(p, "return total", "console.log('logpoint', n), false")
	a.do("debugger.resume", "")
	w.until("the logpoint logs", func() bool { return strings.Contains(w.named("debugged.js").log(), `log "logpoint"`) })
	a.wait("runtime.consoleAPICalled", func(d string) bool { return strings.Contains(d, "logpoint") })
	a.moving()
}

func TestBreakpointBeforeItsFileIsLoaded(t *testing.T) {
	_, p, _, a := debuggee(t)
	file := filepath.Join(p.dir, "later.js")
	if err := os.WriteFile(file, []byte("exports.f = () => {\n  return 42;\n};\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := a.do("debugger.setBreakpointByUrl", fmt.Sprintf(`{"url":"file://%s","lineNumber":1}`, file)); !strings.Contains(got, `"locations":[]`) {
		t.Error(got)
	}
	p.tell(fmt.Sprintf("require(%q).f()", file))
	if at := a.paused(); at.at() != "exports.f:2" {
		t.Errorf("paused at %s", at.at())
	}
	a.do("debugger.resume", "")
}

func TestAsyncStacks(t *testing.T) {
	_, p, _, a := debuggee(t)
	a.do("debugger.setAsyncCallStackDepth", `{"maxDepth":32}`)
	a.breakAt(p, "const here", "")
	a.eval("outer(); 1", "")
	at := a.paused()
	if at.AsyncStackTrace == nil || !strings.Contains(fmt.Sprint(at.AsyncStackTrace.CallFrames), "outer") {
		t.Errorf("%+v", at.AsyncStackTrace)
	}
	a.do("debugger.resume", "")
}

func TestPauseOnExceptions(t *testing.T) {
	_, _, _, a := debuggee(t)
	a.do("debugger.setPauseOnExceptions", `{"state":"all"}`)
	a.eval("setTimeout(() => { try { null.x } catch {} }); 1", "")
	if at := a.paused(); at.Reason != "exception" {
		t.Errorf("%+v", at)
	}
	a.do("debugger.resume", "")
	a.do("debugger.setPauseOnExceptions", `{"state":"none"}`)
	a.eval("setTimeout(() => { try { null.x } catch {} }); 1", "")
	a.moving()
}

func TestLiveEdit(t *testing.T) {
	_, p, _, a := debuggee(t)
	script := a.wait("debugger.scriptParsed", func(d string) bool { return strings.Contains(d, "/debugged.js") })
	var s struct{ ScriptID string }
	_ = json.Unmarshal([]byte(script), &s)
	var source struct{ ScriptSource string }
	_ = json.Unmarshal([]byte(a.do("debugger.getScriptSource", fmt.Sprintf(`{"scriptId":%q}`, s.ScriptID))), &source)
	if !strings.Contains(source.ScriptSource, "const sum = a + b") {
		t.Fatalf("%.200s", source.ScriptSource)
	}
	edited, _ := json.Marshal(strings.Replace(source.ScriptSource, "const sum = a + b", "const sum = a + b + 5000", 1))
	if got := a.do("debugger.setScriptSource", fmt.Sprintf(`{"scriptId":%q,"scriptSource":%s}`, s.ScriptID, edited)); !strings.Contains(got, `"status":"Ok"`) {
		t.Fatal(got)
	}
	if got := a.eval("work(1)", ""); got != "5001" {
		t.Error(got)
	}
	_ = p
}

// TestClosingASessionResumes sees that a program never stays paused for nobody, and that one session's pause ends with it although another looks on.
func TestClosingASessionResumes(t *testing.T) {
	_, p, o, a := debuggee(t)
	b := o.ask("debugged.js")
	if got := b.eval("1", ""); got != "1" {
		t.Fatal(got)
	}
	a.breakAt(p, "const sum", "")
	a.eval("run = true", "")
	a.paused()
	if got := b.eval("ticks", ""); got == "" {
		t.Error("another session cannot evaluate meanwhile")
	}
	o.sessions.CloseSession(a.id)
	b.moving()
	if _, err := a.try("runtime.evaluate", `{"expression":"1"}`); err != nil {
		t.Errorf("the asker cannot come back: %v", err)
	}
}

// TestAttacherClosesResumes pauses a program and ends natscope.
func TestDetachingResumes(t *testing.T) {
	w := newWorld(t)
	p := node(t, 0, "debugged.js", debugged)
	at := w.attach(Options{Endpoints: []string{p.endpoint}})
	a := newOffice(w).ask("debugged.js")
	a.do("debugger.enable", "")
	a.breakAt(p, "const sum", "")
	a.eval("run = true", "")
	a.paused()
	if err := at.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.tell("process.exit(5)")
	if code := p.exits(); code != 5 {
		t.Errorf("exit code %d", code)
	}
}

// TestProgramEndsUnderPause ends a paused program, by itself and by force.
func TestProgramEndsUnderPause(t *testing.T) {
	w, p, _, a := debuggee(t)
	a.breakAt(p, "const sum", "")
	a.eval("run = true", "")
	a.paused()
	_, _ = a.try("runtime.evaluate", `{"expression":"process.exit(6)"}`)
	if code := p.exits(); code != 6 {
		t.Errorf("exit code %d", code)
	}
	w.until("the source is gone", func() bool { return w.named("debugged.js").life.Closed })
	if _, err := a.try("runtime.evaluate", `{"expression":"1"}`); !errors.Is(err, realm.ErrGone) {
		t.Error(err)
	}
}

func TestHeapSnapshotAndProfile(t *testing.T) {
	_, _, _, a := debuggee(t)
	a.do("heap.enable", "")
	a.do("heap.takeHeapSnapshot", `{"reportProgress":true}`)
	var all strings.Builder
	a.mu.Lock()
	for _, e := range a.events {
		if e.Event == "heap.addHeapSnapshotChunk" {
			var c struct{ Chunk string }
			_ = json.Unmarshal(e.Data, &c)
			all.WriteString(c.Chunk)
		}
	}
	a.mu.Unlock()
	var snapshot struct {
		Snapshot struct {
			NodeCount int `json:"node_count"`
		}
		Nodes []int
	}
	if err := json.Unmarshal([]byte(all.String()), &snapshot); err != nil || snapshot.Snapshot.NodeCount < 1000 || len(snapshot.Nodes)%snapshot.Snapshot.NodeCount != 0 {
		t.Errorf("a snapshot of %d bytes has %d nodes: %v", all.Len(), snapshot.Snapshot.NodeCount, err)
	}
	if a.lost != 0 {
		t.Errorf("%d events were lost", a.lost)
	}
	a.do("profiler.enable", "")
	a.do("profiler.start", "")
	a.eval("globalThis.burn = function burn() { for (const end = Date.now() + 300; Date.now() < end;); }; burn()", "")
	if got := a.do("profiler.stop", ""); !strings.Contains(got, `"functionName":"burn"`) {
		t.Errorf("%.300s", got)
	}
	a.do("profiler.startPreciseCoverage", `{"callCount":true}`)
	a.eval("work(1)", "")
	if got := a.do("profiler.takePreciseCoverage", ""); !strings.Contains(got, "debugged.js") {
		t.Errorf("%.300s", got)
	}
}

func TestSessionWithAWorkerThread(t *testing.T) {
	w, p, o, _ := debuggee(t)
	p.tell(`const {Worker} = require('node:worker_threads'); globalThis.ws = [1, 2].map((n) => new Worker('globalThis.n = 0; setInterval(() => { n++ }, 20)', {eval: true, name: 'n' + n}))`)
	a, b := o.ask("debugged.js [worker 1] n1"), o.ask("debugged.js [worker 2] n2")
	a.do("runtime.enable", "")
	a.do("debugger.enable", "")
	if got := a.eval("require('node:worker_threads').threadId", `,"includeCommandLineAPI":true`) + b.eval("require('node:worker_threads').threadId", `,"includeCommandLineAPI":true`); got != "12" {
		t.Error(got)
	}
	a.do("debugger.pause", "")
	a.paused()
	if got := a.eval("globalThis.kept = n", ""); got == "" {
		t.Error("nothing")
	}
	before := b.eval("n", "")
	natstest.Until(t, "the other thread runs", func() bool { return b.eval("n", "") != before })
	if a.eval("n", "") != a.eval("kept", "") {
		t.Error("the paused thread runs")
	}
	o.sessions.CloseSession(a.id)
	c := o.ask("debugged.js [worker 1] n1")
	before = c.eval("kept", "")
	natstest.Until(t, "the thread runs on", func() bool { return c.eval("n", "") != before })
	p.tell("ws[0].terminate()")
	w.until("the thread's source goes", func() bool { return w.named("debugged.js [worker 1] n1").life.Closed })
	if _, err := c.try("runtime.evaluate", `{"expression":"1"}`); !errors.Is(err, realm.ErrGone) {
		t.Error(err)
	}
}

func TestSourceMapsAreLoadedAndNothingElse(t *testing.T) {
	_, p, _, a := debuggee(t)
	write := func(name, text string) string {
		file := filepath.Join(p.dir, name)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	script := write("mapped.js", "globalThis.mapped = 1;\n//# sourceMappingURL=mapped.js.map\n")
	write("mapped.js.map", `{"version":3,"sources":["mapped.ts"],"mappings":"AAAA"}`)
	secret := write("secret.txt", "secret")
	address := "file://" + script + ".map"
	if _, err := a.try("sources.loadResource", fmt.Sprintf(`{"url":%q}`, address)); !errors.Is(err, realm.ErrRefused) {
		t.Errorf("a map of no script: %v", err)
	}
	a.eval(fmt.Sprintf("require(%q); mapped", script), "")
	if got := a.do("sources.loadResource", fmt.Sprintf(`{"url":%q}`, address)); !strings.Contains(got, "mapped.ts") {
		t.Error(got)
	}
	for _, u := range []string{"file://" + secret, "file:///etc/passwd", "http://127.0.0.1:1/x"} {
		if _, err := a.try("sources.loadResource", fmt.Sprintf(`{"url":%q}`, u)); !errors.Is(err, realm.ErrRefused) {
			t.Errorf("%s: %v", u, err)
		}
	}
}

// TestManyLargeMessages looks at a program that logs large objects, and sees that it does not keep all of them.
func TestObjectsOfOldMessagesAreReleased(t *testing.T) {
	_, _, _, a := debuggee(t)
	a.eval("globalThis.freed = 0; globalThis.registry = new FinalizationRegistry(() => freed++); require('node:v8').setFlagsFromString('--expose-gc'); globalThis.collect = require('node:vm').runInNewContext('gc'); console.log = console.debug; 1", "")
	a.eval("globalThis.burst = (n) => { for (let i = 0; i < n; i++) { const o = {i, big: new Array(1000).fill(i)}; registry.register(o); console.debug(o) } }; burst(3000)", "")
	natstest.Until(t, "old objects are let go of", func() bool {
		a.eval("collect()", "")
		n := a.eval("freed", "")
		return len(n) >= 4 && n > "1000"
	})
}
