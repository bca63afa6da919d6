package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// vscodeFetch asks for a discovery document as VS Code does, with "localhost" for the host.
func vscodeFetch(t *testing.T, p *process, path string, v any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.HTTP+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "localhost"
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(v); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", path, res.Status, err)
	}
}

// ok sends a command that must succeed and decodes its result.
func (c *debugClient) ok(method, params string, v any) {
	c.t.Helper()
	got := c.do(method, params)
	if strings.Contains(got, `"code":-`) {
		c.t.Fatalf("%s: %s", method, got)
	}
	if v != nil {
		if err := json.Unmarshal([]byte(got), v); err != nil {
			c.t.Fatalf("%s: %v: %s", method, err, got)
		}
	}
}

// TestVSCodeAttaches does what the debugger of VS Code does with the address
// that a launch configuration gives it as websocketAddress: it looks who is
// there, tells the program's children of itself, enables everything, stops where
// source maps are to be read, sets breakpoints by pattern, shows variables, and
// takes the worker threads and profiles along.
func TestVSCodeAttaches(t *testing.T) {
	p := start(t)
	worker := `const {parentPort} = require('node:worker_threads'); let beats = 0; setInterval(function beat() { beats++; }, 50)`
	file := nodeFile(t, "served.js", `const {Worker} = require('node:worker_threads');
class Cart { items = [1, 2]; get total() { return this.items.length } }
function handle(n) {
  const cart = new Cart();
  cart.items.push(n);
  return cart;
}
let n = 0;
setInterval(() => handle(++n), 100);
new Worker(`+"`"+worker+"`"+`, {eval: true, name: 'beats'});
`)
	cmd := exec.Command(binary, "run", "--nats", p.NATS, "--", "node", file)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() })
	address := ""
	poll(t, "the program is listed", func() (bool, string) {
		var list []map[string]string
		vscodeFetch(t, p, "/json/list", &list)
		for _, e := range list {
			if e["type"] == "node" && e["title"] == "served.js" {
				address = e["webSocketDebuggerUrl"]
			}
		}
		return address != "", fmt.Sprint(list)
	})
	var version map[string]string
	vscodeFetch(t, p, "/json/version", &version)
	if version["Protocol-Version"] == "" || !strings.HasPrefix(version["webSocketDebuggerUrl"], "ws://localhost/") || !strings.HasPrefix(address, "ws://localhost/devtools/node/") {
		t.Errorf("%v %s", version, address)
	}
	c := debugURL(t, "ws"+strings.TrimPrefix(p.HTTP, "http")+strings.TrimPrefix(address, "ws://localhost"))

	c.ok("Debugger.enable", `{}`, nil)
	c.ok("Runtime.enable", `{}`, nil)
	var r struct {
		Result struct {
			Value    map[string]any
			ObjectID string
		}
	}
	c.ok("Runtime.evaluate", `{"contextId":1,"returnByValue":true,"expression":"typeof process === 'undefined' ? 'process not defined' : ({processId: process.pid, nodeVersion: process.version, architecture: process.arch})"}`, &r)
	if r.Result.Value["nodeVersion"] == nil {
		t.Errorf("what it tells of itself is %v", r)
	}
	c.ok("Runtime.evaluate", `{"contextId":1,"returnByValue":true,"expression":"Object.assign(process.env, {\"NATSCOPE_TEST\":\"1\"})"}`, nil)
	if got := c.do("Network.enable", `{}`); strings.Contains(got, `"code":-`) && !strings.Contains(got, "-32601") {
		t.Error(got)
	}
	var enabled struct{ DebuggerID string }
	c.ok("Debugger.enable", `{}`, &enabled)
	if enabled.DebuggerID == "" {
		t.Error("the debugger has no id")
	}
	for _, m := range []struct{ method, params string }{
		{"NodeWorker.enable", `{"waitForDebuggerOnStart":true}`}, {"NodeRuntime.notifyWhenWaitingForDisconnect", `{"enabled":true}`},
		{"Debugger.setAsyncCallStackDepth", `{"maxDepth":32}`}, {"Debugger.setPauseOnExceptions", `{"state":"uncaught"}`},
		{"Debugger.setBlackboxPatterns", `{"patterns":["^node:internal/"]}`}, {"Debugger.setInstrumentationBreakpoint", `{"instrumentation":"beforeScriptWithSourceMapExecution"}`},
		{"Profiler.enable", `{}`}, {"Runtime.runIfWaitingForDebugger", `{}`},
	} {
		c.ok(m.method, m.params, nil)
	}

	// A breakpoint by a pattern, as VS Code makes it of a path, on a column of its own choice.
	pattern := `[fF][iI][lL][eE]:///` + strings.ReplaceAll(strings.TrimPrefix(file, "/"), ".", `\.`)
	var set struct {
		BreakpointID string
		Locations    []struct {
			ScriptID                 string
			LineNumber, ColumnNumber int
		}
	}
	c.ok("Debugger.setBreakpointByUrl", fmt.Sprintf(`{"urlRegex":%q,"lineNumber":4,"columnNumber":0,"condition":"n %% 2 === 0\n//# sourceURL=x.cdp"}`, pattern), &set)
	if len(set.Locations) != 1 || set.Locations[0].LineNumber != 4 {
		t.Fatalf("%+v", set)
	}
	at := set.Locations[0].ScriptID
	var places struct{ Locations []any }
	c.ok("Debugger.getPossibleBreakpoints", fmt.Sprintf(`{"restrictToFunction":false,"start":{"scriptId":%q,"lineNumber":3,"columnNumber":0},"end":{"scriptId":%q,"lineNumber":5,"columnNumber":0}}`, at, at), &places)
	if len(places.Locations) < 2 {
		t.Errorf("%+v", places)
	}
	var paused struct {
		HitBreakpoints []string
		CallFrames     []struct {
			CallFrameID, FunctionName string
			Location                  struct{ ScriptID string }
			ScopeChain                []struct {
				Type   string
				Object struct{ ObjectID string }
			}
		}
	}
	if err := json.Unmarshal([]byte(c.wait("Debugger.paused", "handle")), &paused); err != nil || len(paused.HitBreakpoints) != 1 || paused.HitBreakpoints[0] != set.BreakpointID || paused.CallFrames[0].Location.ScriptID != at {
		t.Fatalf("%v %+v", err, paused)
	}
	var scope struct {
		Result []struct {
			Name  string
			Value struct{ ObjectID, Description string }
		}
	}
	c.ok("Runtime.getProperties", fmt.Sprintf(`{"objectId":%q,"ownProperties":true,"generatePreview":true}`, paused.CallFrames[0].ScopeChain[0].Object.ObjectID), &scope)
	cart := ""
	for _, v := range scope.Result {
		if v.Name == "cart" && v.Value.Description == "Cart" {
			cart = v.Value.ObjectID
		}
	}
	if cart == "" {
		t.Fatalf("%+v", scope)
	}
	c.ok("Runtime.getProperties", fmt.Sprintf(`{"objectId":%q,"accessorPropertiesOnly":true,"ownProperties":false}`, cart), nil)
	var total struct{ Result struct{ Value float64 } }
	c.ok("Runtime.callFunctionOn", fmt.Sprintf(`{"objectId":%q,"functionDeclaration":"function(propName) { return this[propName]; }","arguments":[{"value":"total"}],"returnByValue":true}`, cart), &total)
	if total.Result.Value != 2 {
		t.Errorf("the getter gives %v", total)
	}
	c.ok("Debugger.evaluateOnCallFrame", fmt.Sprintf(`{"callFrameId":%q,"expression":"cart.items","objectGroup":"watch","includeCommandLineAPI":true,"silent":true,"throwOnSideEffect":true,"timeout":500}`, paused.CallFrames[0].CallFrameID), nil)
	c.ok("Debugger.stepInto", `{"breakOnAsyncCall":true}`, nil)
	c.wait("Debugger.paused", "handle")
	c.ok("Debugger.removeBreakpoint", fmt.Sprintf(`{"breakpointId":%q}`, set.BreakpointID), nil)
	c.ok("Debugger.resume", `{}`, nil)
	c.wait("Debugger.resumed", "")

	// The worker thread has a session inside of this one, and is debugged through it.
	var thread struct{ SessionID string }
	d := debugURL(t, c.address)
	d.ok("NodeWorker.enable", `{"waitForDebuggerOnStart":false}`, nil)
	if err := json.Unmarshal([]byte(d.wait("NodeWorker.attachedToWorker", "beats")), &thread); err != nil || thread.SessionID == "" {
		t.Fatalf("%v %+v", err, thread)
	}
	tell := func(message string) {
		d.ok("NodeWorker.sendMessageToWorker", fmt.Sprintf(`{"sessionId":%q,"message":%q}`, thread.SessionID, message), nil)
	}
	tell(`{"id":1,"method":"Debugger.enable"}`)
	tell(`{"id":2,"method":"Debugger.pause"}`)
	d.wait("NodeWorker.receivedMessageFromWorker", `Debugger.paused`)
	tell(`{"id":3,"method":"Debugger.resume"}`)
	d.wait("NodeWorker.receivedMessageFromWorker", `Debugger.resumed`)

	// Profiles, as its flame chart takes them.
	c.ok("Profiler.start", `{}`, nil)
	c.ok("Runtime.evaluate", `{"expression":"for (const end = Date.now() + 50; Date.now() < end;);"}`, nil)
	if got := c.do("Profiler.stop", `{}`); !strings.Contains(got, `"timeDeltas"`) {
		t.Errorf("%.300s", got)
	}
	c.ok("HeapProfiler.enable", `{}`, nil)
	c.ok("HeapProfiler.startSampling", `{"samplingInterval":32768}`, nil)
	c.ok("HeapProfiler.stopSampling", `{}`, nil)
	if got := c.do("Debugger.getScriptSource", fmt.Sprintf(`{"scriptId":%q}`, at)); !strings.Contains(got, "class Cart") {
		t.Errorf("%.300s of %s", got, filepath.Base(file))
	}
	c.ok("Debugger.disable", `{}`, nil)
}
