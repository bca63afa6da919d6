package cdpgw

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/natscope/natscope/cdpgw/access"
	"github.com/natscope/natscope/store/command"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/source"
)

// contexts enables Runtime and returns the contexts by the names of their sources.
func (c *client) contexts() map[string]executionContext {
	c.t.Helper()
	out := make(map[string]executionContext)
	for _, e := range c.call("Runtime.enable", nil, nil) {
		if e.Method == "Runtime.executionContextCreated" {
			var p contextCreatedEvent
			if err := json.Unmarshal(e.Params, &p); err != nil {
				c.t.Fatal(err)
			}
			out[p.Context.Name] = p.Context
		}
	}
	return out
}

// evaluated is the result of an evaluation.
type evaluated struct {
	Result  remoteObject      `json:"result"`
	Details *exceptionDetails `json:"exceptionDetails"`
}

// evaluate evaluates in a context.
func (c *client) evaluate(x executionContext, expression string, more ...map[string]any) evaluated {
	c.t.Helper()
	p := map[string]any{"expression": expression, "uniqueContextId": x.UniqueID, "objectGroup": "console", "includeCommandLineAPI": true, "generatePreview": true, "replMode": true}
	for _, m := range more {
		for k, v := range m {
			p[k] = v
		}
	}
	var out evaluated
	c.call("Runtime.evaluate", p, &out)
	return out
}

func TestEvaluate(t *testing.T) {
	_, w, server := liveShop(t)
	c := dial(t, server, "dev")
	x := c.contexts()
	orders := x["orders"]
	if got := c.evaluate(orders, "42").Result; string(got.Value) != "42" {
		t.Errorf("%+v", got)
	}
	if got := w.heard("orders", "runtime.evaluate"); len(got) != 1 || strings.Contains(got[0], "ontextId") || !strings.Contains(got[0], `"replMode":true`) {
		t.Errorf("the realm heard %q", got)
	}
	if len(w.heard("page", "runtime.evaluate")) != 0 {
		t.Error("the other realm heard it too")
	}
	o := c.evaluate(orders, "order").Result
	if !strings.HasPrefix(string(o.ObjectID), "o:orders:") || o.Description != "order" {
		t.Errorf("%+v", o)
	}
	if e := c.evaluate(orders, "throw"); e.Details == nil || e.Details.ContextID != orders.ID || !strings.HasPrefix(string(e.Details.Exception.ObjectID), "o:orders:") || e.Details.StackTrace.CallFrames[0].ScriptID == "33" {
		t.Errorf("%+v", e.Details)
	}
	if e := c.evaluate(orders, "x=1", map[string]any{"throwOnSideEffect": true}); e.Details == nil || !strings.HasPrefix(e.Details.Exception.Description, realm.SideEffect) {
		t.Errorf("an eager evaluation with an effect: %+v", e)
	}
	// By number, as other clients name contexts.
	var byNumber evaluated
	c.call("Runtime.evaluate", map[string]any{"expression": "7", "contextId": x["page"].ID}, &byNumber)
	if string(byNumber.Result.Value) != "7" || len(w.heard("page", "runtime.evaluate")) != 1 {
		t.Errorf("%+v", byNumber)
	}
	for name, p := range map[string]map[string]any{
		"Choose one in the list":                   {"expression": "1"},
		"Cannot find context with specified id":    {"expression": "1", "contextId": 9999},
		"Cannot find context with specified id: ":  {"expression": "1", "uniqueContextId": "orders.01.1"},
		"Cannot find context with specified id ":   {"expression": "1", "uniqueContextId": "nobody"},
		"logger shows what it recorded, but":       {"expression": "1", "uniqueContextId": x["logger"].UniqueID},
		"This is the whole space dev, and several": {"expression": "1", "uniqueContextId": "dev"},
	} {
		if e := c.fails("Runtime.evaluate", p, codeServer); !strings.Contains(e.Message+" ", name) {
			t.Errorf("%v: %s", p, e.Message)
		}
	}
	// The target of one source: its root context is the source.
	one := dial(t, server, "dev/orders")
	var out evaluated
	one.call("Runtime.evaluate", map[string]any{"expression": "5"}, &out)
	if string(out.Result.Value) != "5" {
		t.Errorf("%+v", out)
	}
	c.valid()
	one.valid()
}

// DevTools shows nothing for an evaluation that fails, so the reason comes as a Log entry too.
func TestWhyNothingWasEvaluated(t *testing.T) {
	_, w, server := liveShop(t)
	c := dial(t, server, "dev")
	x := c.contexts()
	c.call("Log.enable", nil, nil)
	entered := map[string]any{"expression": "1", "objectGroup": "console"}
	told := func(want string) {
		t.Helper()
		answer, events := c.do("Runtime.evaluate", entered)
		if answer.Error == nil || !strings.Contains(answer.Error.Message, want) {
			t.Errorf("%s", answer.raw)
		}
		if len(events) != 1 || events[0].Method != "Log.entryAdded" || !strings.Contains(string(events[0].Params), want) {
			t.Errorf("%q", methodsOf(events))
		}
	}
	told("Choose one in the list")
	entered["uniqueContextId"] = x["logger"].UniqueID
	told("cannot be asked")
	c.evaluate(x["orders"], "1")
	w.mu.Lock()
	w.realms["orders"].gone = true
	w.mu.Unlock()
	entered["uniqueContextId"] = x["orders"].UniqueID
	told("nobody is there")
	entered["throwOnSideEffect"] = true
	if _, events := c.do("Runtime.evaluate", entered); len(events) != 0 {
		t.Errorf("typing alone complains: %q", methodsOf(events))
	}
	c.valid()
}

// What DevTools asks at every key must not be an error where nothing can evaluate.
func TestTypingAtTheRoot(t *testing.T) {
	_, _, server := liveShop(t)
	c := dial(t, server, "dev")
	x := c.contexts()
	c.call("Runtime.compileScript", map[string]any{"expression": "if (x) {", "sourceURL": "", "persistScript": false, "executionContextId": rootContext}, nil)
	c.call("Runtime.globalLexicalScopeNames", map[string]any{"executionContextId": rootContext}, nil)
	var incomplete evaluated
	c.call("Runtime.compileScript", map[string]any{"expression": "if (x) {", "sourceURL": "", "persistScript": false, "executionContextId": x["orders"].ID}, &incomplete)
	if incomplete.Details == nil || incomplete.Details.Exception.Description != "SyntaxError: Unexpected end of input" {
		t.Errorf("%+v", incomplete)
	}
	var names struct{ Names []string }
	c.call("Runtime.globalLexicalScopeNames", map[string]any{"executionContextId": x["orders"].ID}, &names)
	if !slices.Equal(names.Names, []string{"lexical"}) {
		t.Error(names)
	}
	c.call("Runtime.getHeapUsage", map[string]any{"contextId": x["orders"].ID}, nil)
	c.valid()
}

func TestLiveObjects(t *testing.T) {
	_, w, server := liveShop(t)
	c := dial(t, server, "dev")
	x := c.contexts()
	o := c.evaluate(x["orders"], "order").Result.ObjectID
	var props struct {
		Result []struct {
			Name  string
			Value remoteObject
		}
		InternalProperties []internalProperty
	}
	c.call("Runtime.getProperties", map[string]any{"objectId": o, "ownProperties": true, "generatePreview": true}, &props)
	if len(props.Result) != 2 || string(props.Result[0].Value.Value) != `"order"` || !strings.HasPrefix(string(props.Result[1].Value.ObjectID), "o:orders:") ||
		!strings.HasPrefix(string(props.InternalProperties[0].Value.ObjectID), "o:orders:") {
		t.Fatalf("%+v", props)
	}
	c.call("Runtime.getProperties", map[string]any{"objectId": o, "accessorPropertiesOnly": true}, &props)
	if len(props.Result) != 0 {
		t.Errorf("%+v", props)
	}
	// Store as global: this of the selected context, and an object of it.
	this := c.evaluate(x["orders"], "this").Result.ObjectID
	var called evaluated
	save := map[string]any{"objectId": this, "functionDeclaration": "function(arg){…}", "arguments": []any{map[string]any{"objectId": o}, map[string]any{"value": 3}}, "returnByValue": true}
	c.call("Runtime.callFunctionOn", save, &called)
	if string(called.Result.Value) != `"this,order,3"` {
		t.Errorf("%s", called.Result.Value)
	}
	// An object of another program does not cross over.
	save["objectId"] = c.evaluate(x["page"], "this").Result.ObjectID
	if e := c.fails("Runtime.callFunctionOn", save, codeServer); e.Message != "Argument should belong to the same JavaScript world as target object" {
		t.Error(e.Message)
	}
	for m, param := range map[string]string{"awaitPromise": "promiseObjectId", "queryObjects": "prototypeObjectId", "getExceptionDetails": "errorObjectId"} {
		var r struct{ Objects remoteObject }
		c.call("Runtime."+m, map[string]any{param: o}, &r)
		if m == "queryObjects" && !strings.HasPrefix(string(r.Objects.ObjectID), "o:orders:") {
			t.Errorf("%+v", r)
		}
		c.fails("Runtime."+m, map[string]any{param: "rubbish"}, codeServer)
		c.fails("Runtime."+m, nil, codeInvalidParams)
	}
	c.call("Runtime.releaseObject", map[string]any{"objectId": o}, nil)
	c.call("Runtime.releaseObject", map[string]any{"objectId": "rubbish"}, nil)
	if e := c.fails("Runtime.getProperties", map[string]any{"objectId": o}, codeServer); !strings.Contains(e.Message, "there is no object") {
		t.Error(e.Message)
	}
	c.call("Runtime.releaseObjectGroup", map[string]any{"objectGroup": "console"}, nil)
	if e := c.fails("Runtime.getProperties", map[string]any{"objectId": this}, codeServer); !strings.Contains(e.Message, "there is no object") {
		t.Error(e.Message)
	}
	if len(w.heard("page", "runtime.releaseObjectGroup")) != 1 {
		t.Error("the group lives on at the other realm")
	}
}

// Cases A9 and B1: objects and contexts of a run that is over fail at once, and
// the new run has a context of its own.
func TestObjectsOfADeadRun(t *testing.T) {
	m, w, server := liveShop(t)
	c := dial(t, server, "dev")
	x := c.contexts()
	o := c.evaluate(x["orders"], "order").Result.ObjectID
	from := c.count()
	const gen3 subjects.Generation = "01h0000000000000000000000c"
	w.start("orders", gen3)
	m.open("orders", gen3, source.Descriptor{Name: "orders", Kind: source.KindHost, Capabilities: alive})
	from = c.event(from, "Runtime.executionContextDestroyed", nil)
	var created contextCreatedEvent
	c.event(from, "Runtime.executionContextCreated", &created)
	if e := c.fails("Runtime.getProperties", map[string]any{"objectId": o}, codeServer); !strings.Contains(e.Message, "Could not find object") || !strings.Contains(e.Message, "is over") {
		t.Error(e.Message)
	}
	if e := c.fails("Runtime.evaluate", map[string]any{"expression": "1", "uniqueContextId": x["orders"].UniqueID}, codeServer); !strings.Contains(e.Message, "Cannot find context") {
		t.Error(e.Message)
	}
	if got := c.evaluate(created.Context, "8").Result; string(got.Value) != "8" {
		t.Errorf("%+v", got)
	}
	// The process dies without a word: nobody answers, and the gateway says so at once.
	w.mu.Lock()
	w.realms["orders"].gone = true
	w.mu.Unlock()
	if e := c.fails("Runtime.evaluate", map[string]any{"expression": "1", "uniqueContextId": created.Context.UniqueID}, codeServer); !strings.Contains(e.Message, "nobody is there") {
		t.Error(e.Message)
	}
	m.presence("orders", false)
	if e := c.fails("Runtime.getProperties", map[string]any{"objectId": o}, codeServer); !strings.Contains(e.Message, "Could not find object") {
		t.Error(e.Message)
	}
}

// A realm that forgot its sessions is asked again where nothing is lost by that.
func TestForgottenSession(t *testing.T) {
	_, w, server := liveShop(t)
	c := dial(t, server, "dev")
	x := c.contexts()
	o := c.evaluate(x["orders"], "order").Result.ObjectID
	w.mu.Lock()
	clear(w.realms["orders"].sessions)
	w.mu.Unlock()
	if e := c.fails("Runtime.getProperties", map[string]any{"objectId": o}, codeServer); !strings.Contains(e.Message, "no session") {
		t.Error(e.Message)
	}
	w.mu.Lock()
	clear(w.realms["orders"].sessions)
	w.mu.Unlock()
	if got := c.evaluate(x["orders"], "9").Result; string(got.Value) != "9" {
		t.Errorf("%+v", got)
	}
}

// A slow evaluation holds up nothing else, commands of one connection arrive in
// their order, and terminateExecution overtakes what runs.
func TestSlowEvaluation(t *testing.T) {
	_, w, server := liveShop(t)
	c := dial(t, server, "dev")
	x := c.contexts()
	slow := c.send("Runtime.evaluate", map[string]any{"expression": "loop", "uniqueContextId": x["orders"].UniqueID})
	for i := range 100 {
		c.send("Runtime.evaluate", map[string]any{"expression": fmt.Sprint(i), "uniqueContextId": x["orders"].UniqueID})
	}
	last := c.send("Runtime.evaluate", map[string]any{"expression": "100", "uniqueContextId": x["orders"].UniqueID})
	c.until(0, "the last answer", func(m received) bool { return m.ID == last })
	heard := w.heard("orders", "runtime.evaluate")
	for i, p := range heard[1:] {
		if !strings.Contains(p, fmt.Sprintf(`"expression":"%d"`, i)) {
			t.Fatalf("evaluation %d is %s", i, p)
		}
	}
	c.sync()
	c.call("Runtime.terminateExecution", nil, nil)
	m, _ := c.until(0, "the end of the loop", func(m received) bool { return m.ID == slow })
	if !strings.Contains(string(m.Result), "terminated") {
		t.Errorf("%s", m.raw)
	}
}

// Each command that can change something is in the audit; a live expression only now and then.
func TestAuditOfEvaluations(t *testing.T) {
	_, w, server := liveShop(t)
	c := dial(t, server, "dev")
	x := c.contexts()
	for range 3 {
		c.evaluate(x["orders"], "1")
		c.evaluate(x["orders"], "2", map[string]any{"throwOnSideEffect": true})
		c.evaluate(x["orders"], "3", map[string]any{"objectGroup": "live-expression"})
	}
	if e := c.fails("Runtime.terminateExecution", nil, codeServer); !strings.Contains(e.Message, "several programs") {
		t.Errorf("nothing runs, and the program's own work is not to be ended: %s", e.Message)
	}
	c.send("Runtime.evaluate", map[string]any{"expression": "loop", "uniqueContextId": x["orders"].UniqueID})
	waitUntil(t, "the loop runs", func() bool { return len(w.heard("orders", "runtime.evaluate")) == 10 })
	c.call("Runtime.terminateExecution", nil, nil)
	var got []string
	for _, a := range w.audited {
		got = append(got, string(a.Method)+strings.Join(strings.FieldsFunc(string(a.Params), func(r rune) bool { return r < '1' || r > '3' }), ""))
	}
	want := "runtime.evaluate1 runtime.evaluate3 runtime.evaluate1 runtime.evaluate1 runtime.evaluate runtime.terminateExecution"
	if strings.Join(got, " ") != want {
		t.Errorf("%s\nwant %s", strings.Join(got, " "), want)
	}
}

// Who may only look sees what a realm proves to be harmless, and is told about all else.
func TestViewOnly(t *testing.T) {
	m, w, _ := liveShop(t)
	_, server := serve(t, m, func(o *Options) {
		o.Commander, o.Gateway, o.Grant = w, "gw", access.Grant{Role: access.RoleView}
	})
	c := dial(t, server, "dev")
	x := c.contexts()
	pure := map[string]any{"throwOnSideEffect": true}
	o := c.evaluate(x["orders"], "order", pure).Result.ObjectID
	c.call("Runtime.getProperties", map[string]any{"objectId": o}, nil)
	c.call("Runtime.callFunctionOn", map[string]any{"objectId": o, "functionDeclaration": "pure"}, nil)
	c.call("Runtime.compileScript", map[string]any{"expression": "1", "sourceURL": "", "persistScript": false, "executionContextId": x["orders"].ID}, nil)
	for method, params := range map[string]map[string]any{
		"Runtime.evaluate":           {"expression": "order", "uniqueContextId": x["orders"].UniqueID},
		"Runtime.callFunctionOn":     {"objectId": o, "functionDeclaration": "function(){this.x=1}"},
		"Runtime.terminateExecution": nil,
		"Runtime.compileScript":      {"expression": "1", "sourceURL": "", "persistScript": true, "executionContextId": x["orders"].ID},
		"Runtime.runScript":          {"scriptId": "1", "executionContextId": x["orders"].ID},
	} {
		if e := c.fails(method, params, codeServer); e.Message != errOnlyLook {
			t.Errorf("%s: %s", method, e.Message)
		}
	}
	// No spelling of the flag gets past.
	for _, raw := range []string{
		`{"expression":"y=1","uniqueContextId":"` + x["orders"].UniqueID + `","THROWONSIDEEFFECT":true}`,
		`{"expression":"y=1","uniqueContextId":"` + x["orders"].UniqueID + `","throwOnSideEffect":true,"throwOnSideEffect":false}`,
		`{"expression":"y=1","uniqueContextId":"` + x["orders"].UniqueID + `","throwOnSideEffect":"true"}`,
	} {
		c.fails("Runtime.evaluate", json.RawMessage(raw), codeServer)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.realms["orders"].globals) != 0 || len(w.audited) != 0 {
		t.Errorf("something changed: %v, %v", w.realms["orders"].globals, w.audited)
	}
}

// Case A15: two connections evaluate and hold objects apart from each other, and the end of one frees its own.
func TestTwoConnections(t *testing.T) {
	_, w, server := liveShop(t)
	a, b := dial(t, server, "dev"), dial(t, server, "dev/orders")
	x := a.contexts()["orders"]
	oa := a.evaluate(x, "order").Result.ObjectID
	ob := b.evaluate(x, "order").Result.ObjectID
	a.call("Runtime.releaseObjectGroup", map[string]any{"objectGroup": "console"}, nil)
	a.fails("Runtime.getProperties", map[string]any{"objectId": oa}, codeServer)
	b.call("Runtime.getProperties", map[string]any{"objectId": ob}, nil)
	_ = a.ws.Close()
	waitUntil(t, "its session is closed", func() bool { return len(w.heard("orders", "session.close")) == 1 })
	b.call("Runtime.getProperties", map[string]any{"objectId": ob}, nil)
}

// The arguments of a console line are live as long as the realm has them, and are what was recorded after that.
func TestLiveConsoleArguments(t *testing.T) {
	m, w, server := liveShop(t)
	w.realms["orders"].calls[12] = []string{"first", "order"}
	m.publish("orders", gen1, subjects.PlaneConsole, record(1, console.TopicMessage, console.Message{
		Type: "log", Args: []json.RawMessage{json.RawMessage(`"first"`), json.RawMessage(`{"a":1}`)}, Ref: 12,
	}))
	m.publish("orders", gen1, subjects.PlaneConsole, record(2, console.TopicException, console.Exception{Text: "panic", Value: json.RawMessage(`{"b":2}`), Ref: 13}))
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

// A program that begins anew, or serves a realm late, has its session and its scripts all the same.
func TestLateRealm(t *testing.T) {
	m, w, server := liveShop(t)
	c := dial(t, server, "dev/late")
	c.call("Runtime.enable", nil, nil)
	c.call("Debugger.enable", nil, nil)
	w.start("late", gen1)
	m.open("late", gen1, source.Descriptor{Name: "late", Kind: source.KindHost})
	from := c.event(0, "Runtime.executionContextCreated", nil)
	m.publish("late", gen1, subjects.PlaneLife, record(2, source.TopicUpdate, source.Update{Capabilities: &alive}))
	var first, p scriptParsedEvent
	from = c.event(from, "Debugger.scriptParsed", &first)
	w.start("late", gen2)
	m.open("late", gen2, source.Descriptor{Name: "late", Kind: source.KindHost, Capabilities: alive})
	for p.URL == "" || p.ExecutionContextID == first.ExecutionContextID {
		from = c.event(from, "Debugger.scriptParsed", &p)
	}
	if p.ScriptID == first.ScriptID {
		t.Error("the file of another run has the same id")
	}
	waitUntil(t, "the new run has a session", func() bool { return len(w.heard("late", "session.open")) == 1 })
	var text struct{ ScriptSource string }
	c.call("Debugger.getScriptSource", map[string]any{"scriptId": p.ScriptID}, &text)
	if !strings.HasPrefix(text.ScriptSource, "package main") {
		t.Error(text)
	}
}

// An event that waits is acknowledged when the connection has room, and at once when nobody wants it.
func TestEventsAreAcknowledged(t *testing.T) {
	_, w, server := liveShop(t)
	c := dial(t, server, "dev/orders")
	c.evaluate(c.contexts()["orders"], "1")
	id, _ := w.session("orders")
	for _, session := range []string{id, "nobody"} {
		done := make(chan struct{})
		e := command.Event{Source: "orders", Session: subjects.SessionID(session), Event: realm.Event{Event: "heap.addHeapSnapshotChunk", Data: json.RawMessage(`{}`)}}
		w.listener(e.Acknowledged(func() { close(done) }))
		<-done
	}
	q := newQueue(load{live: 8, bytes: 100, answers: 100})
	for range 3 {
		q.event([]byte("x"))
	}
	waited := make(chan struct{})
	go func() {
		q.wait(context.Background())
		close(waited)
	}()
	q.take()
	q.sent()
	<-waited
}
