package cdpgw

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/source"
)

// files are the addresses of the files that the root session told of.
func (c *client) files() (out []string) {
	all, _, _ := c.snapshot()
	for _, m := range all {
		if m.Method == "Debugger.scriptParsed" && m.SessionID == "" {
			var p scriptParsedEvent
			_ = json.Unmarshal(m.Params, &p)
			out = append(out, p.URL)
		}
	}
	return out
}

// TestBreakpointsOfChildrenAreNotRefused: DevTools asks all sessions for a breakpoint,
// and removes it from all when one refuses, so the root refuses only what is in a
// file that it told of itself.
func TestBreakpointsOfChildrenAreNotRefused(t *testing.T) {
	m, _, server := debugShop(t)
	m.Publish("svc", gen2, subjects.PlaneConsole, record(9, console.TopicMessage, console.Message{Type: "log", Stack: []network.Frame{{Function: "f", URL: "/srv/main.go", Line: 3}}}))
	c := dial(t, server, "dev")
	c.contexts()
	c.call("Debugger.enable", nil, nil)
	children := c.attachAll()
	at := map[string]any{"lineNumber": 5, "url": "file:///srv/app.js"}
	for _, child := range []ChildID{"", children["node app"]} {
		var r struct {
			BreakpointID string
			Locations    []any
		}
		var answer received
		c.inChild(child, func() { answer, _ = c.do("Debugger.setBreakpointByUrl", at) })
		if answer.Error != nil || json.Unmarshal(answer.Result, &r) != nil || r.BreakpointID == "" || r.Locations == nil {
			t.Errorf("session %q: %s", child, answer.raw)
		}
	}
	if answer, _ := c.do("Debugger.removeBreakpoint", map[string]any{"breakpointId": "unresolved:5:file:///srv/app.js"}); answer.Error != nil {
		t.Errorf("%s", answer.raw)
	}
	if answer, _ := c.do("Debugger.setBreakpointByUrl", map[string]any{"lineNumber": 5, "url": "file:///srv/main.go"}); answer.Error == nil {
		t.Errorf("a breakpoint in Go is not refused: %s", answer.raw)
	}
	c.valid()
}

// TestFrameOfAProgramIsNoFile: DevTools lists the document of a frame as a file, so
// that the frame of a program must not have the address of the program's file.
func TestFrameOfAProgramIsNoFile(t *testing.T) {
	m, w, server := debugShop(t)
	w.start("node", gen1)
	m.open("node", gen1, source.Descriptor{Name: "app.js", URL: "file:///srv/app.js", Kind: source.KindHost, Capabilities: engine})
	c := dial(t, server, "dev")
	c.call("Page.enable", nil, nil)
	waitUntil(t, "the frame is there", func() bool {
		var r struct{ FrameTree frameTree }
		c.call("Page.getResourceTree", nil, &r)
		for _, f := range r.FrameTree.ChildFrames {
			if f.Frame.URL == "file:///srv/app.js" {
				t.Fatal("the frame has the address of the file")
			}
			if f.Frame.ID == frameOf("node") {
				return f.Frame.Name == "app.js" && f.Frame.URL == sourceURL("dev", "node")
			}
		}
		return false
	})
}

// TestFilesOfChildrenAreToldOnce: DevTools shows a file of each session that tells
// of it, so the root tells of none that a child has.
func TestFilesOfChildrenAreToldOnce(t *testing.T) {
	m, w, server := debugShop(t)
	line := func(id subjects.SourceID, gen subjects.Generation, text, file string) {
		m.Publish(id, gen, subjects.PlaneConsole, record(1, console.TopicMessage, console.Message{
			Type: "log", Args: []json.RawMessage{encode(text)}, Stack: []network.Frame{{Function: "f", URL: file, Line: 3}},
		}))
	}
	w.start("node", gen1)
	m.open("node", gen1, source.Descriptor{Name: "node app", Kind: source.KindHost, Capabilities: engine})
	line("node", gen1, "one", "file:///srv/app.js")
	line("svc", gen2, "two", "/srv/main.go")

	c := dial(t, server, "dev")
	c.contexts()
	c.call("Debugger.enable", nil, nil)
	c.attachAll()
	line("node", gen1, "three", "file:///srv/other.js")
	line("svc", gen2, "four", "/srv/other.go")
	waitUntil(t, "the root tells of the files that no child has", func() bool { return slices.Contains(c.files(), "file:///srv/other.go") })
	if got := c.files(); slices.ContainsFunc(got, func(f string) bool { return f == "file:///srv/app.js" || f == "file:///srv/other.js" }) {
		t.Errorf("the root tells of a child's files: %q", got)
	}

	// A client that wants no children has the files from the root.
	d := dial(t, server, "dev")
	d.contexts()
	d.call("Debugger.enable", nil, nil)
	waitUntil(t, "the root tells of all files", func() bool {
		got := d.files()
		return slices.Contains(got, "file:///srv/app.js") && slices.Contains(got, "file:///srv/other.js") && slices.Contains(got, "file:///srv/main.go")
	})
}

// TestTracingIsRefusedWithWhatToDo: the Performance panel has it from here where else to record.
func TestTracingIsRefusedWithWhatToDo(t *testing.T) {
	_, _, server := debugShop(t)
	c := dial(t, server, "dev")
	if e := c.fails("Tracing.start", map[string]any{"transferMode": "ReportEvents"}, codeServer); !strings.Contains(e.Message, "type node") {
		t.Error(e.Message)
	}
}
