package cdpgw

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/natscope/natscope/cdpgw/access"
	"github.com/natscope/natscope/subjects/realm"
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
