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
	"time"

	"github.com/gorilla/websocket"
)

// The program of these tests as its author wrote it, and as a compiler left it.
const (
	tsSource = `interface Order { id: number; total: number }

function price(order: Order): number {
  const tax = order.total * 0.19;
  return order.total + tax;
}

let n: number = 0;
setInterval(() => {
  const order: Order = { id: ++n, total: n * 100 };
  console.log('order', order, price(order));
}, 150);
`
	tsCompiled = `

function price(order) {
  const tax = order.total * 0.19;
  return order.total + tax;
}

let n = 0;
setInterval(() => {
  const order = { id: ++n, total: n * 100 };
  console.log('order', order, price(order));
}, 150);
//# sourceMappingURL=shop.js.map
`
	// Line for line.
	tsMap = `{"version":3,"file":"shop.js","sourceRoot":"","sources":["shop.ts"],"names":[],"mappings":"AAAA;AACA;AACA;AACA;AACA;AACA;AACA;AACA;AACA;AACA;AACA"}`
)

// nodeProgram runs the program under natscope and returns the entry of its node target.
func nodeProgram(t *testing.T, p *process) (target map[string]string, cmd *exec.Cmd, dir string) {
	t.Helper()
	file := nodeFile(t, "shop.js", tsCompiled)
	dir = filepath.Dir(file)
	for name, text := range map[string]string{"shop.ts": tsSource, "shop.js.map": tsMap} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd = exec.Command(binary, "run", "--nats", p.NATS, "--", "node", file)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() })
	return nodeTarget(t, p, "shop.js"), cmd, dir
}

// nodeTarget returns the entry of a program's node target.
func nodeTarget(t *testing.T, p *process, name string) (target map[string]string) {
	t.Helper()
	poll(t, "the program's node target is listed", func() (bool, string) {
		res, err := http.Get(p.HTTP + "/json/list")
		if err != nil {
			return false, err.Error()
		}
		defer res.Body.Close()
		var list []map[string]string
		if err := json.NewDecoder(res.Body).Decode(&list); err != nil {
			return false, err.Error()
		}
		for _, e := range list {
			if e["type"] == "node" && strings.Contains(e["title"], name) {
				target = e
				return true, ""
			}
		}
		return false, fmt.Sprint(list)
	})
	return target
}

// debugClient is a client of the protocol: answers by id, events in order.
type debugClient struct {
	t       *testing.T
	address string
	ws      *websocket.Conn
	last    int
	events  []map[string]json.RawMessage
	// patience is how long a message is waited for.
	patience time.Duration
}

func debugURL(t *testing.T, address string) *debugClient {
	t.Helper()
	ws, _, err := websocket.DefaultDialer.Dial(address, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	return &debugClient{t: t, address: address, ws: ws, patience: 20 * time.Second}
}

// read reads one message.
func (c *debugClient) read() map[string]json.RawMessage {
	c.t.Helper()
	_ = c.ws.SetReadDeadline(time.Now().Add(c.patience))
	var m map[string]json.RawMessage
	if err := c.ws.ReadJSON(&m); err != nil {
		c.t.Fatal(err)
	}
	return m
}

// do sends a command and returns its whole answer.
func (c *debugClient) do(method, params string) string {
	c.t.Helper()
	c.last++
	if err := c.ws.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `{"id":%d,"method":%q,"params":%s}`, c.last, method, params)); err != nil {
		c.t.Fatal(err)
	}
	for {
		m := c.read()
		if m["method"] != nil {
			c.events = append(c.events, m)
			continue
		}
		if string(m["id"]) == fmt.Sprint(c.last) {
			return string(m["result"]) + string(m["error"])
		}
	}
}

// wait returns the parameters of the next event of a name that has a text, and forgets what came before.
func (c *debugClient) wait(method, has string) string {
	c.t.Helper()
	for {
		for i, e := range c.events {
			if string(e["method"]) == `"`+method+`"` && strings.Contains(string(e["params"]), has) {
				c.events = c.events[i+1:]
				return string(e["params"])
			}
		}
		c.events = []map[string]json.RawMessage{c.read()}
	}
}

// TestNodeTargetTakesADebugger attaches as debuggers for Node do it: what it enables and asks, in its order, a breakpoint in the file, the
// frame's variables, stepping, and the end of the program.
func TestNodeTargetTakesADebugger(t *testing.T) {
	p := start(t)
	target, cmd, dir := nodeProgram(t, p)
	c := debugURL(t, target["webSocketDebuggerUrl"])
	for _, m := range []string{"Runtime.enable", "Debugger.enable"} {
		if got := c.do(m, `{}`); strings.Contains(got, `"code"`) {
			t.Errorf("%s: %s", m, got)
		}
	}
	c.wait("Runtime.executionContextCreated", `"isDefault":true`)
	script := c.wait("Debugger.scriptParsed", "/shop.js")
	if !strings.Contains(script, `"sourceMapURL":"shop.js.map"`) {
		t.Errorf("a client that reads files itself is told %s", script)
	}
	for _, m := range []struct{ method, params string }{
		{"Debugger.setAsyncCallStackDepth", `{"maxDepth":32}`}, {"Debugger.setPauseOnExceptions", `{"state":"none"}`}, {"Debugger.setBlackboxPatterns", `{"patterns":[]}`},
		{"NodeRuntime.notifyWhenWaitingForDisconnect", `{"enabled":false}`}, {"Profiler.enable", `{}`}, {"NodeWorker.enable", `{"waitForDebuggerOnStart":false}`}, {"Runtime.runIfWaitingForDebugger", `{}`},
	} {
		if got := c.do(m.method, m.params); strings.Contains(got, `"code"`) {
			t.Errorf("%s: %s", m.method, got)
		}
	}
	for _, m := range []string{"Debugger.nothing", "No.such"} {
		if got := c.do(m, `{}`); !strings.Contains(got, `-32601`) {
			t.Errorf("%s: %s", m, got)
		}
	}
	if got := c.do("Debugger.setBreakpointByUrl", fmt.Sprintf(`{"urlRegex":%q,"lineNumber":3}`, "file://"+filepath.Join(dir, "shop.js"))); !strings.Contains(got, "breakpointId") || strings.Contains(got, `"locations":[]`) {
		t.Fatal(got)
	}
	paused := c.wait("Debugger.paused", "price")
	var at struct {
		CallFrames []struct{ CallFrameID string }
	}
	if err := json.Unmarshal([]byte(paused), &at); err != nil || len(at.CallFrames) < 2 {
		t.Fatalf("%v: %s", err, paused)
	}
	if got := c.do("Debugger.evaluateOnCallFrame", fmt.Sprintf(`{"callFrameId":%q,"expression":"order.total / 100 === order.id","returnByValue":true}`, at.CallFrames[0].CallFrameID)); !strings.Contains(got, `"value":true`) {
		t.Error(got)
	}
	c.do("Debugger.stepOver", `{}`)
	c.wait("Debugger.paused", "price")
	c.do("Debugger.resume", `{}`)
	c.wait("Debugger.resumed", "")
	// Two clients at once, each with its own objects; then the program ends, and with it both connections.
	d := debugURL(t, target["webSocketDebuggerUrl"])
	if got := d.do("Runtime.evaluate", `{"expression":"1 + 1"}`); !strings.Contains(got, `"value":2`) {
		t.Error(got)
	}
	c.do("Debugger.disable", `{}`)
	_ = cmd.Process.Signal(os.Interrupt)
	for {
		_ = d.ws.SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, _, err := d.ws.ReadMessage(); err != nil {
			if !websocket.IsCloseError(err, websocket.CloseGoingAway) || !strings.Contains(err.Error(), "program ended") {
				t.Errorf("the connection ended with %v", err)
			}
			break
		}
	}
}

// TestDevToolsForNode opens the node target in the DevTools for Node, and debugs
// the program as it was written.
func TestDevToolsForNode(t *testing.T) {
	p := start(t)
	target, _, _ := nodeProgram(t, p)
	d := openDevTools(t, browser(t), target["devtoolsFrontendUrl"])
	d.panel("console")
	d.waitText(".console-message-wrapper", "order", "shop.ts:11")
	d.poll("the link of a message opens the file", func() (bool, string) {
		if eval[bool](d.page, js("ns.all('#tab-sources').some(e => e.getAttribute('aria-selected') === 'true')")) {
			return true, ""
		}
		// Messages move up while others come, so that a click may miss; one that hits takes a moment.
		d.click(".devtools-link", "shop.ts:11")
		d.settle()
		return false, "not opened"
	})
	d.waitText(".cm-content", "interface Order", "const tax")
	d.click(".cm-lineNumbers .cm-gutterElement", "=4")
	d.waitText(".paused-message, .paused-status", "Paused on breakpoint")
	d.waitText(".call-frame-item", "price")
	d.waitText(".scope-chain-sidebar-pane-section, .object-properties-section", "order")
	d.settle()
	d.screenshot("node-paused")
	d.noErrors()
}

// TestTwoProgramsPausedAtOnce opens the target of the space on two programs that
// stop by themselves: each is a thread, and both are paused, with their own frames.
func TestTwoProgramsPausedAtOnce(t *testing.T) {
	p := start(t)
	for _, name := range []string{"left.js", "right.js"} {
		file := nodeFile(t, name, `function stop(where) { const here = where + '!'; debugger; return here } let n = 0; setInterval(() => stop('`+name+`' + ++n), 300)`)
		cmd := exec.Command(binary, "run", "--nats", p.NATS, "--", "node", file)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() })
	}
	for _, name := range []string{"left.js", "right.js"} {
		poll(t, name+" is there", func() (bool, string) {
			out, _, _ := natscope(t, "", "ls", "--nats", p.NATS)
			return strings.Contains(out, name), out
		})
	}
	d := openDevTools(t, browser(t), p.DevTools)
	d.panel("sources")
	d.waitText(".paused-message, .paused-status", "Debugger paused")
	d.waitText(".thread-item", "left.js", "paused")
	d.waitText(".thread-item", "right.js", "paused")
	d.waitText(".call-frame-item", "stop")
	d.settle()
	d.screenshot("node-two-paused")
	d.noErrors()
}

// TestLargeAnswersOfNode asks a program for much through a gateway: tens of
// megabytes come whole, more is refused in words, and the connection lives.
func TestLargeAnswersOfNode(t *testing.T) {
	p := start(t)
	target, _, _ := nodeProgram(t, p)
	c := debugURL(t, target["webSocketDebuggerUrl"])
	c.patience = 2 * time.Minute
	c.do("Runtime.enable", `{}`)
	c.do("Debugger.enable", `{}`)
	for _, size := range []int{5e6, 40e6} {
		if got := c.do("Runtime.evaluate", fmt.Sprintf(`{"expression":"'x'.repeat(%d)","returnByValue":true}`, size)); len(got) < size {
			t.Errorf("of %d bytes came %d: %.300s", size, len(got), got)
		}
	}
	// Several at once are more than a server keeps for one reader.
	answers := make(chan int)
	for range 3 {
		d := debugURL(t, target["webSocketDebuggerUrl"])
		d.patience = c.patience
		go func() {
			n := 0
			defer func() { answers <- n }()
			n = len(d.do("Runtime.evaluate", `{"expression":"'x'.repeat(30e6)","returnByValue":true}`))
		}()
	}
	for range 3 {
		if n := <-answers; n < 30e6 {
			t.Errorf("of 30 MB came %d bytes", n)
		}
	}
	if got := c.do("Runtime.evaluate", `{"expression":"'x'.repeat(100e6)","returnByValue":true}`); !strings.Contains(got, "ask for less") {
		t.Errorf("100 MB: %.300s", got)
	}
	c.do("Runtime.evaluate", `{"expression":"globalThis.long = new Function('return 7; /*' + 'y'.repeat(20e6) + '*/'); 0"}`)
	var script struct{ ScriptID string }
	_ = json.Unmarshal([]byte(c.wait("Debugger.scriptParsed", `"length":200000`)), &script)
	if got := c.do("Debugger.getScriptSource", fmt.Sprintf(`{"scriptId":%q}`, script.ScriptID)); len(got) < 20e6 {
		t.Errorf("a script of 20 MB: %d bytes: %.300s", len(got), got)
	}
	if got := c.do("Runtime.evaluate", `{"expression":"long()"}`); !strings.Contains(got, `"value":7`) {
		t.Error(got)
	}
}
