package cdpgw

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/source"
	"github.com/natscope/natscope/subjects/tree"
)

// Case A10: nothing comes before it was asked for, and the history comes with the asking.
func TestNothingBeforeEnable(t *testing.T) {
	m := shop(t)
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	m.log("orders", gen1, 50, "unheard")
	m.get("orders", gen1, 60, "r2", 200, "x")
	m.Presence("orders", false)
	m.ops("orders", gen1, 2, tree.Op{Op: tree.OpRemove, ID: 4})
	c.sync()
	if all, _, _ := c.snapshot(); len(all) != 1 {
		t.Fatalf("%d messages, the first: %s", len(all), all[0].raw)
	}
	if events := methodsOf(c.call("Log.enable", nil, nil)); len(events) != 0 {
		t.Errorf("Log.enable: %v", events)
	}
	if events := methodsOf(c.call("Runtime.enable", nil, nil)); !slices.Contains(events, "Runtime.consoleAPICalled") || slices.ContainsFunc(events, func(m string) bool { return !strings.HasPrefix(m, "Runtime.") }) {
		t.Errorf("Runtime.enable: %v", events)
	}
}

// Case E1: what was logged before anyone looked comes in its order, with its times, merged over all sources.
func TestConsoleHistory(t *testing.T) {
	m := newMemory(t, subjects.Limits{})
	m.open("orders", gen1, source.Descriptor{Name: "orders"})
	m.open("late", gen1, source.Descriptor{Name: "late", Origin: origin + 100})
	for i := range 5 {
		m.log("orders", gen1, float64(i*50), fmt.Sprint("orders ", i))
	}
	m.log("late", gen1, 1, "late 101")
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	var got []string
	contexts := 0
	for _, e := range c.call("Runtime.enable", nil, nil) {
		if e.Method == "Runtime.executionContextCreated" {
			contexts++
			if got != nil {
				t.Error("a context is announced after console lines")
			}
			continue
		}
		var p consoleCalledEvent
		if err := json.Unmarshal(e.Params, &p); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s@%.0f %s", p.Args[0].Value, p.Timestamp-origin, p.Context))
	}
	want := `"orders 0"@0 orders#1,"orders 1"@50 orders#1,"orders 2"@100 orders#1,"late 101"@101 late#1,"orders 3"@150 orders#1,"orders 4"@200 orders#1`
	if contexts != 3 || strings.Join(got, ",") != want {
		t.Errorf("%d contexts, lines\n%s\nwant\n%s", contexts, strings.Join(got, ","), want)
	}
	c.valid()
}

// Case E4: the history comes once for each connection. A connection that cleared its console gets it no more.
func TestEnableTwice(t *testing.T) {
	m := shop(t)
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	for _, method := range []string{"Runtime.enable", "Network.enable", "Log.enable"} {
		c.call(method, nil, nil)
		if events := c.call(method, nil, nil); len(events) != 0 {
			t.Errorf("the second %s brings %v", method, methodsOf(events))
		}
	}
	c.call("Runtime.discardConsoleEntries", nil, nil)
	c.call("Runtime.disable", nil, nil)
	m.log("orders", gen1, 99, "after")
	lines := 0
	for _, e := range c.call("Runtime.enable", nil, nil) {
		if e.Method == "Runtime.consoleAPICalled" {
			lines++
		}
	}
	if lines != 1 {
		t.Errorf("%d lines after clearing, want the 1 that came later", lines)
	}
	lines = 0
	for _, e := range dial(t, server, "dev").call("Runtime.enable", nil, nil) {
		if e.Method == "Runtime.consoleAPICalled" {
			lines++
		}
	}
	if lines != 2 {
		t.Errorf("another connection gets %d lines, want 2", lines)
	}
}

// Case E6: every argument arrives; case A6: contexts name frames that exist.
func TestArgumentsAndContexts(t *testing.T) {
	m := shop(t)
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	var res struct{ FrameTree frameTree }
	c.call("Page.getResourceTree", nil, &res)
	frames := map[FrameID]bool{res.FrameTree.Frame.ID: true}
	for _, f := range res.FrameTree.ChildFrames {
		frames[f.Frame.ID] = true
	}
	if res.FrameTree.Frame.ID != "dev" || len(frames) != 4 {
		t.Errorf("frames %v", frames)
	}
	ids := map[ContextID]bool{}
	for _, e := range c.call("Runtime.enable", nil, nil) {
		if e.Method == "Runtime.executionContextCreated" {
			var p contextCreatedEvent
			if err := json.Unmarshal(e.Params, &p); err != nil {
				t.Fatal(err)
			}
			if !frames[p.Context.AuxData.FrameID] {
				t.Errorf("context of the unknown frame %s", p.Context.AuxData.FrameID)
			}
			ids[p.Context.ID] = true
			continue
		}
		var p consoleCalledEvent
		if err := json.Unmarshal(e.Params, &p); err != nil {
			t.Fatal(err)
		}
		if len(p.Args) != 3 || string(p.Args[0].Value) != `"ready"` || string(p.Args[1].Value) != "1" || p.Args[2].Type != "object" || p.Args[2].ObjectID == "" {
			t.Errorf("arguments %+v", p.Args)
		}
		if !ids[p.ContextID] {
			t.Errorf("a line of the unknown context %d", p.ContextID)
		}
	}
	c.valid()
}

// Case B1: a restart destroys the context and announces another, with a number that was never used.
func TestContextsOfRestarts(t *testing.T) {
	m := shop(t)
	_, server := serve(t, m)
	c := dial(t, server, "dev/orders")
	c.call("Runtime.enable", nil, nil)
	var first contextCreatedEvent
	at := c.event(0, "Runtime.executionContextCreated", nil)
	at = c.event(at, "Runtime.executionContextCreated", &first)
	seen := map[ContextID]bool{rootContext: true, first.Context.ID: true}
	unique := map[string]bool{first.Context.UniqueID: true}
	last := first.Context
	for _, step := range []func(){
		func() { m.open("orders", gen2, source.Descriptor{Name: "orders"}) },
		func() { m.Presence("orders", false); m.Presence("orders", true) },
		func() { m.open("orders", gen2+"c", source.Descriptor{Name: "orders", Realm: "same"}) },
		func() { m.open("orders", gen2+"d", source.Descriptor{Name: "orders", Realm: "same"}) },
	} {
		step()
		var destroyed contextDestroyedEvent
		at = c.event(at, "Runtime.executionContextDestroyed", &destroyed)
		var created contextCreatedEvent
		at = c.event(at, "Runtime.executionContextCreated", &created)
		if destroyed.ID != last.ID || destroyed.UniqueID != last.UniqueID {
			t.Errorf("destroyed %+v, want %+v", destroyed, last)
		}
		if seen[created.Context.ID] || unique[created.Context.UniqueID] {
			t.Errorf("context %+v was used before", created.Context)
		}
		last = created.Context
		seen[last.ID], unique[last.UniqueID] = true, true
	}
	c.valid()
}

func TestConsoleKinds(t *testing.T) {
	m := newMemory(t, subjects.Limits{})
	m.open("orders", gen1, source.Descriptor{Name: "orders"})
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	c.call("Runtime.enable", nil, nil)
	say := func(msg console.Message) consoleCalledEvent {
		t.Helper()
		from := c.count()
		m.Publish("orders", gen1, subjects.PlaneConsole, record(5, console.TopicMessage, msg))
		var e consoleCalledEvent
		c.event(from, "Runtime.consoleAPICalled", &e)
		return e
	}
	if e := say(console.Message{Type: "warning", Stack: []network.Frame{{Function: "f", URL: "a.go", Line: 1}}}); e.Type != "warning" || e.Args == nil || e.StackTrace.CallFrames[0].LineNumber != 0 {
		t.Errorf("%+v", e)
	}
	if e := say(console.Message{Type: "brand-new"}); e.Type != "log" {
		t.Errorf("an unknown type becomes %s", e.Type)
	}
	// One source must not clear the lines of the others.
	if e := say(console.Message{Type: "clear"}); e.Type != "info" || !strings.Contains(string(e.Args[0].Value), "orders was cleared") {
		t.Errorf("%+v", e)
	}
	from := c.count()
	m.Publish("orders", gen1, subjects.PlaneConsole, record(6, console.TopicException, console.Exception{Text: "panic", Value: json.RawMessage(`"boom"`), URL: "a.go", Line: 7, Column: 2}))
	var x exceptionThrownEvent
	c.event(from, "Runtime.exceptionThrown", &x)
	if x.Details.Text != "panic" || x.Details.LineNumber != 6 || x.Details.ColumnNumber != 1 || string(x.Details.Exception.Value) != `"boom"` {
		t.Errorf("%+v", x)
	}
	c.valid()
}

// Faults are told in the Log, the old ones at enable and the new ones live.
func TestFaults(t *testing.T) {
	m := shop(t)
	m.Publish("orders", gen1, subjects.PlaneNet, subjects.Record{T: 1, Topic: network.TopicStart, Data: json.RawMessage(`{"id":"NOT A TOKEN"}`)})
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	c.call("Log.enable", nil, nil)
	var e entryAddedEvent
	at := c.event(0, "Log.entryAdded", &e)
	if e.Entry.Source != "other" || e.Entry.Level != "warning" || !strings.HasPrefix(e.Entry.Text, "natscope: orders: ") || e.Entry.Timestamp < origin {
		t.Errorf("%+v", e)
	}
	m.Publish("orders", gen1, subjects.PlaneConsole, subjects.Record{T: 1, Topic: console.TopicMessage, Data: json.RawMessage(`7`)})
	c.event(at, "Log.entryAdded", nil)
	c.call("Log.clear", nil, nil)
	c.call("Log.disable", nil, nil)
	if events := c.call("Log.enable", nil, nil); len(events) != 0 {
		t.Errorf("cleared faults come back: %v", methodsOf(events))
	}
	c.valid()
}

// Events that all sessions share are encoded once.
func TestEncodedOnce(t *testing.T) {
	m := shop(t)
	g, err := New(Options{State: m})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Close(t.Context()) }()
	a, b := offline(g, target{space: "dev"}), offline(g, target{space: "dev", source: "orders"})
	defer a.conn.cancel()
	defer b.conn.cancel()
	for _, s := range []*session{a, b} {
		g.hub.add(s)
		perform(s, "Runtime.enable", nil)
		perform(s, "Network.enable", nil)
		s.conn.queue.take()
	}
	m.log("orders", gen1, 70, "shared")
	m.get("orders", gen1, 80, "shared", 200, "x")
	x, _ := a.conn.queue.take()
	y, _ := b.conn.queue.take()
	if len(x) != 5 || len(y) != 5 {
		t.Fatalf("%d and %d messages", len(x), len(y))
	}
	for i := range x {
		if &x[i].data[0] != &y[i].data[0] {
			t.Errorf("message %d was encoded twice: %s", i, x[i].data)
		}
	}
}
