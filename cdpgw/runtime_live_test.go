package cdpgw

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
)

// The arguments of a console line are live as long as the realm has them, and are what was recorded after that.
func TestLiveConsoleArguments(t *testing.T) {
	m, w, server := liveShop(t)
	w.realms["orders"].calls[12] = []string{"first", "order"}
	m.Publish("orders", gen1, subjects.PlaneConsole, record(1, console.TopicMessage, console.Message{
		Type: "log", Args: []json.RawMessage{json.RawMessage(`"first"`), json.RawMessage(`{"a":1}`)}, Ref: 12,
	}))
	m.Publish("orders", gen1, subjects.PlaneConsole, record(2, console.TopicException, console.Exception{Text: "panic", Value: json.RawMessage(`{"b":2}`), Ref: 13}))
	c := dial(t, server, "dev")
	var called consoleCalledEvent
	var thrown exceptionThrownEvent
	for _, e := range c.call("Runtime.enable", nil, nil) {
		switch e.Method {
		case "Runtime.consoleAPICalled":
			_ = json.Unmarshal(e.Params, &called)
		case "Runtime.exceptionThrown":
			_ = json.Unmarshal(e.Params, &thrown)
		}
	}
	waitUntil(t, "the realm is attended", func() bool { return len(w.heard("orders", "session.open")) == 1 })
	id := called.Args[1].ObjectID
	var props struct {
		Result []struct {
			Name  string
			Value remoteObject
		}
	}
	open := func(id ObjectID) string {
		t.Helper()
		c.call("Runtime.getProperties", map[string]any{"objectId": id, "ownProperties": true}, &props)
		return props.Result[0].Name + "=" + string(props.Result[0].Value.Value)
	}
	for range 2 {
		if got := open(id); got != `of="order"` {
			t.Error(got)
		}
	}
	if n := len(w.heard("orders", "console.resolve")); n != 1 {
		t.Errorf("resolved %d times", n)
	}
	if got := open(thrown.Details.Exception.ObjectID); got != "b=2" {
		t.Errorf("what the realm does not have: %s", got)
	}
	// It can be passed to functions.
	var r evaluated
	c.call("Runtime.callFunctionOn", map[string]any{"objectId": id, "functionDeclaration": "function(){}", "arguments": []any{map[string]any{"objectId": id}}}, &r)
	if string(r.Result.Value) != `"order,order"` {
		t.Errorf("%s", r.Result.Value)
	}
	// The realm let go of the object: it is found again, and then not any more.
	_, s := w.session("orders")
	w.mu.Lock()
	clear(s.objects)
	w.mu.Unlock()
	if got := open(id); got != `of="order"` {
		t.Error(got)
	}
	w.mu.Lock()
	clear(s.objects)
	clear(w.realms["orders"].calls)
	w.mu.Unlock()
	if got := open(id); got != "a=1" {
		t.Errorf("after the realm forgot the line: %s", got)
	}
	if e := c.fails("Runtime.callFunctionOn", map[string]any{"objectId": id, "functionDeclaration": "function(){}"}, codeServer); !strings.Contains(e.Message, "recorded") {
		t.Error(e.Message)
	}
	c.valid()
}

// A node of Elements is its live object, and a live object is its node.
func TestLiveNodes(t *testing.T) {
	_, w, server := liveShop(t)
	c := dial(t, server, "dev/orders")
	x := c.contexts()["orders"]
	id := c.node("Cart")
	var r struct{ Object remoteObject }
	c.call("DOM.resolveNode", map[string]any{"nodeId": id, "objectGroup": "g"}, &r)
	if r.Object.Subtype != "node" || r.Object.Description != "node2" || !strings.HasPrefix(string(r.Object.ObjectID), "o:orders:") {
		t.Fatalf("%+v", r.Object)
	}
	var n struct{ NodeID NodeID }
	c.call("DOM.requestNode", map[string]any{"objectId": r.Object.ObjectID}, &n)
	if n.NodeID != id {
		t.Errorf("%d, want %d", n.NodeID, id)
	}
	logged := c.evaluate(x, "node2").Result
	c.call("DOM.requestNode", map[string]any{"objectId": logged.ObjectID}, &n)
	if n.NodeID != id {
		t.Errorf("%d, want %d", n.NodeID, id)
	}
	c.call("DOM.describeNode", map[string]any{"objectId": logged.ObjectID}, nil)
	for _, e := range []string{"order", "node77"} {
		o := c.evaluate(x, e).Result
		c.fails("DOM.requestNode", map[string]any{"objectId": o.ObjectID}, codeServer)
	}
	c.fails("DOM.requestNode", map[string]any{"objectId": "rubbish"}, codeServer)

	// $0 to $4, also of a session that begins late or anew.
	if got := c.evaluate(x, "$0").Result; got.Type != "undefined" {
		t.Errorf("$0 before any selection: %+v", got)
	}
	app := c.node("App")
	c.call("DOM.setInspectedNode", map[string]any{"nodeId": app}, nil)
	c.call("DOM.setInspectedNode", map[string]any{"nodeId": c.node("Cart")}, nil)
	for e, want := range map[string]string{"$0": "node2", "$1": "node1"} {
		if got := c.evaluate(x, e).Result; got.Description != want {
			t.Errorf("%s: %+v", e, got)
		}
	}
	if got := w.heard("orders", "tree.inspected"); len(got) != 2 {
		t.Errorf("%q", got)
	}
	w.mu.Lock()
	clear(w.realms["orders"].sessions)
	w.mu.Unlock()
	if got := c.evaluate(x, "5"); string(got.Result.Value) != "5" {
		t.Error(got)
	}
	if got := c.evaluate(x, "$0").Result; got.Description != "node2" {
		t.Errorf("in a new session: %+v", got)
	}
	c.valid()
}

// A node without a live object is shown with what was recorded of it.
func TestNodeWithoutLiveObject(t *testing.T) {
	m, _, server := liveShop(t)
	root := cart("2", `"2"`, "{}")
	root.Children[0].ID = 99
	m.snapshot("orders", gen1, 2, root)
	c := dial(t, server, "dev/orders")
	var r struct{ Object remoteObject }
	c.call("DOM.resolveNode", map[string]any{"nodeId": c.node("Cart")}, &r)
	if !strings.HasPrefix(string(r.Object.ObjectID), "node:orders:") {
		t.Errorf("%+v", r.Object)
	}
	var props getPropertiesResult
	c.call("Runtime.getProperties", map[string]any{"objectId": r.Object.ObjectID, "ownProperties": true}, &props)
	if len(props.Result) == 0 {
		t.Error("it has no values")
	}
}

// Scripts of live realms are announced with their text, where records link to them too.
func TestLiveScripts(t *testing.T) {
	_, w, server := liveShop(t)
	c := dial(t, server, "dev/orders")
	x := c.contexts()["orders"]
	var file, input scriptParsedEvent
	for _, e := range c.call("Debugger.enable", nil, nil) {
		if e.Method == "Debugger.scriptParsed" {
			var p scriptParsedEvent
			_ = json.Unmarshal(e.Params, &p)
			if p.URL == "" {
				input = p
			} else {
				file = p
			}
		}
	}
	if file.URL != "file:///srv/shop/main.go" || file.ScriptID != scriptOf("orders", string(gen1), file.URL) || file.ExecutionContextID != x.ID || file.EndLine != 9 {
		t.Errorf("%+v", file)
	}
	if input.ScriptID != "1" {
		t.Errorf("what was evaluated: %+v", input)
	}
	var text struct{ ScriptSource string }
	c.call("Debugger.getScriptSource", map[string]any{"scriptId": file.ScriptID}, &text)
	if !strings.HasPrefix(text.ScriptSource, "package main") {
		t.Error(text)
	}
	var found struct{ Result []textMatch }
	c.call("Debugger.searchInContent", map[string]any{"scriptId": file.ScriptID, "query": "FUNC"}, &found)
	if len(found.Result) != 1 || found.Result[0].LineNumber != 2 {
		t.Errorf("%+v", found)
	}
	c.fails("Debugger.searchInContent", map[string]any{"scriptId": file.ScriptID, "query": "(", "isRegex": true}, codeServer)
	from := c.count()
	w.emit("orders", "sources.scriptParsed", `{"scriptId":"40","url":"/srv/shop/pay.go"}`)
	w.emit("orders", "sources.scriptParsed", `{"scriptId":"40","url":"/srv/shop/pay.go"}`)
	w.emit("orders", "sources.scriptParsed", `rubbish`)
	w.emit("orders", "runtime.inspectRequested", `{"object":{"type":"object","objectId":"5"},"hints":{}}`)
	var parsed scriptParsedEvent
	from = c.event(from, "Debugger.scriptParsed", &parsed)
	if parsed.URL != "file:///srv/shop/pay.go" {
		t.Errorf("%+v", parsed)
	}
	var request struct{ Object remoteObject }
	if c.event(from, "Runtime.inspectRequested", &request); request.Object.ObjectID != ObjectID(fmt.Sprintf("o:orders:%d:5", x.ID)) {
		t.Errorf("%+v", request)
	}
	all, _, _ := c.snapshot()
	for _, m := range all[from:] {
		if m.Method == "Debugger.scriptParsed" {
			t.Errorf("announced again: %s", m.raw)
		}
	}
	c.valid()
}
