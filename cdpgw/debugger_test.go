package cdpgw

import (
	"strings"
	"testing"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/source"
)

// Every file that a stack names is told once, the kept ones at enable and new
// ones before the event that names them, and so are those of another client.
func TestFilesOfStacks(t *testing.T) {
	m := shop(t)
	say := func(file string) {
		m.Publish("orders", gen1, subjects.PlaneConsole, record(30, console.TopicMessage, console.Message{Type: "log", Stack: []network.Frame{{Function: "f", URL: file, Line: 3}, {Function: "g"}}}))
	}
	say("/a.go")
	say("file:///a.go")
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	c.call("Runtime.enable", nil, nil)
	events := c.call("Debugger.enable", nil, nil)
	if got := strings.Join(methodsOf(events), " "); got != "Debugger.scriptParsed" {
		t.Errorf("at enable: %s", got)
	}
	var script scriptParsedEvent
	c.event(0, "Debugger.scriptParsed", &script)
	if script.URL != "file:///a.go" || script.ScriptID != scriptOf("orders", string(gen1), "file:///a.go") || script.AuxData.FrameID != "source.orders" {
		t.Errorf("%+v", script)
	}
	from := c.count()
	m.net("orders", gen1, 40, network.TopicStart, network.Start{ID: "unseen", URL: "http://a.test/", Stack: []network.Frame{{URL: "file:///not-enabled.go"}}})
	say("file:///b.go")
	at := c.event(from, "Debugger.scriptParsed", &script)
	var line consoleCalledEvent
	c.event(at, "Runtime.consoleAPICalled", &line)
	if line.StackTrace.CallFrames[0].ScriptID != script.ScriptID || line.StackTrace.CallFrames[1].ScriptID != "" {
		t.Errorf("%+v names another script than %+v", line.StackTrace.CallFrames, script)
	}
	var text struct{ ScriptSource string }
	c.call("Debugger.getScriptSource", map[string]ScriptID{"scriptId": script.ScriptID}, &text)
	if !strings.Contains(text.ScriptSource, script.URL) {
		t.Errorf("%q", text.ScriptSource)
	}
	c.fails("Debugger.getScriptSource", map[string]string{"scriptId": "0"}, codeServer)
	c.valid()
	other := dial(t, server, "dev")
	if events := methodsOf(other.call("Debugger.enable", nil, nil)); len(events) != 3 {
		t.Errorf("another client is told of %d files, want 3", len(events))
	}
}

// A breakpoint in a Go program is refused with what to do instead, in the answer
// and, since DevTools shows nothing of that, in the Console: once for each place,
// and not for a file of another program.
func TestBreakpointsAreRefused(t *testing.T) {
	m := newMemory(t, subjects.Limits{})
	m.open("orders", gen1, source.Descriptor{Name: "orders", Runtime: "go1.26.8", PID: 4711, Hostname: "box"})
	m.Publish("orders", gen1, subjects.PlaneConsole, record(30, console.TopicMessage, console.Message{Type: "log", Stack: []network.Frame{{Function: "f", URL: "/a.go", Line: 3}}}))
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	c.call("Log.enable", nil, nil)
	c.call("Debugger.enable", nil, nil)
	file := scriptOf("orders", string(gen1), "file:///a.go")
	for _, x := range []struct {
		method string
		params map[string]any
		want   string
		told   bool
	}{
		{"Debugger.setBreakpointByUrl", map[string]any{"lineNumber": 1, "url": "file:///a.go"}, "dlv attach 4711 on box", true},
		{"Debugger.setBreakpointByUrl", map[string]any{"lineNumber": 1, "url": "file:///a.go"}, "dlv attach 4711 on box", false},
		{"Debugger.setBreakpoint", map[string]any{"location": map[string]any{"scriptId": file, "lineNumber": 7}}, "dlv attach 4711 on box", true},
		{"Debugger.setBreakpointByUrl", map[string]any{"lineNumber": 1, "url": "file:///of-another.js"}, "delve", false},
		{"Debugger.setBreakpointByUrl", map[string]any{"lineNumber": 1, "urlRegex": ".*"}, "delve", false},
		{"Debugger.setBreakpoint", map[string]any{"location": map[string]any{"scriptId": "0", "lineNumber": 7}}, "delve", false},
		{"Debugger.pause", nil, "Nothing was paused: orders", true},
	} {
		answer, events := c.do(x.method, x.params)
		if answer.Error == nil || !strings.Contains(answer.Error.Message, x.want) {
			t.Errorf("%s %v: %s", x.method, x.params, answer.raw)
		}
		if told := len(events) == 1 && events[0].Method == "Log.entryAdded" && strings.Contains(string(events[0].Params), x.want); told != x.told || !told && len(events) > 0 {
			t.Errorf("%s %v: %q", x.method, x.params, methodsOf(events))
		}
	}
	c.valid()
}
