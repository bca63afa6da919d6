package embedded

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/goreal"
)

// devtools is a scripted DevTools at a gateway.
type devtools struct {
	t    *testing.T
	ws   *websocket.Conn
	last int
	// events are those that came while an answer was waited for.
	events []devtoolsMessage
}

type devtoolsMessage struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

func dialDevTools(t *testing.T, i *Instance, target string) *devtools {
	t.Helper()
	ws, _, err := websocket.DefaultDialer.Dial(strings.Replace(i.HTTP(), "http:", "ws:", 1)+"/devtools/page/"+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.Close() })
	return &devtools{t: t, ws: ws}
}

func (d *devtools) next() devtoolsMessage {
	d.t.Helper()
	_ = d.ws.SetReadDeadline(time.Now().Add(20 * time.Second))
	var m devtoolsMessage
	if err := d.ws.ReadJSON(&m); err != nil {
		d.t.Fatal(err)
	}
	return m
}

// ask sends a command and returns its answer.
func (d *devtools) ask(method string, params any) devtoolsMessage {
	d.t.Helper()
	d.last++
	if err := d.ws.WriteJSON(map[string]any{"id": d.last, "method": method, "params": params}); err != nil {
		d.t.Fatal(err)
	}
	for {
		m := d.next()
		if m.ID == d.last {
			return m
		}
		d.events = append(d.events, m)
	}
}

// context returns the unique id of the context with a name, once there is one.
func (d *devtools) context(name string) string {
	d.t.Helper()
	d.ask("Runtime.enable", nil)
	for i := 0; ; i++ {
		for i >= len(d.events) {
			d.events = append(d.events, d.next())
		}
		var p struct {
			Context struct{ Name, UniqueID string }
		}
		if d.events[i].Method == "Runtime.executionContextCreated" && json.Unmarshal(d.events[i].Params, &p) == nil && p.Context.Name == name {
			return p.Context.UniqueID
		}
	}
}

type remoteValue struct {
	Result struct {
		Type, Subtype, Description, ObjectID string
		Value                                json.RawMessage
	}
	ExceptionDetails *struct {
		Exception struct{ Description string }
	}
}

func (d *devtools) evaluate(x, expression string, more ...any) remoteValue {
	d.t.Helper()
	p := map[string]any{"expression": expression, "uniqueContextId": x, "replMode": true, "objectGroup": "console", "includeCommandLineAPI": true, "generatePreview": true}
	for i := 0; i+1 < len(more); i += 2 {
		p[more[i].(string)] = more[i+1]
	}
	m := d.ask("Runtime.evaluate", p)
	var v remoteValue
	if m.Error != nil {
		d.t.Fatalf("%s: %s", expression, m.Error.Message)
	}
	if err := json.Unmarshal(m.Result, &v); err != nil {
		d.t.Fatal(err)
	}
	return v
}

// Case A15: two DevTools through two gateways on one real Go program: both
// evaluate and expand, see each other's globals, and hold objects apart.
func TestTwoGatewaysOneProgram(t *testing.T) {
	first := startTest(t, Options{})
	second := startTest(t, Options{NATS: first.NATS(), Parts: Parts{Gateway: true}})
	p, err := producer.Start(producer.Options{Service: "orders", ID: "orders", URL: first.NATS()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = p.Close(ctx)
	})
	type order struct {
		ID    int
		Items []string
	}
	var mu sync.Mutex
	orders := map[string]*order{"a": {1, []string{"tea", "milk"}}}
	if err := goreal.New(p, goreal.Options{}).Expose("orders", orders, goreal.Locked(&mu)); err != nil {
		t.Fatal(err)
	}
	a, b := dialDevTools(t, first, "dev"), dialDevTools(t, second, "dev")
	xa, xb := a.context("orders"), b.context("orders")
	// What a source can do comes after the source itself.
	for _, d := range []struct {
		d *devtools
		x string
	}{{a, xa}, {b, xb}} {
		becomes(t, "it can be asked", func() bool {
			return d.d.ask("Runtime.evaluate", map[string]any{"expression": "1", "uniqueContextId": d.x}).Error == nil
		})
	}

	if v := a.evaluate(xa, "orders.a.Items.length + 40"); string(v.Result.Value) != "42" {
		t.Errorf("%+v", v)
	}
	a.evaluate(xa, "globalThis.shared = 7")
	if v := b.evaluate(xb, "shared"); string(v.Result.Value) != "7" {
		t.Errorf("%+v", v)
	}
	if v := b.evaluate(xb, "shared = 8", "throwOnSideEffect", true); v.ExceptionDetails == nil || !strings.HasPrefix(v.ExceptionDetails.Exception.Description, "EvalError: Possible side-effect") {
		t.Errorf("an eager evaluation changes something: %+v", v)
	}
	oa, ob := a.evaluate(xa, "orders.a").Result.ObjectID, b.evaluate(xb, "orders.a").Result.ObjectID
	if m := a.ask("Runtime.getProperties", map[string]any{"objectId": oa, "ownProperties": true, "generatePreview": true}); m.Error != nil || !strings.Contains(string(m.Result), `"name":"Items"`) {
		t.Errorf("%s, %v", m.Result, m.Error)
	}
	// Store as global, as DevTools does it.
	this := a.evaluate(xa, "this").Result.ObjectID
	if m := a.ask("Runtime.callFunctionOn", map[string]any{"objectId": this, "returnByValue": true, "arguments": []any{map[string]any{"objectId": oa}},
		"functionDeclaration": `function(value){ const prefix='temp'; let index=1; while((prefix+index) in this) ++index; const name=prefix+index; this[name]=value; return name; }`}); m.Error != nil || !strings.Contains(string(m.Result), `"temp1"`) {
		t.Errorf("%s, %v", m.Result, m.Error)
	}
	if v := b.evaluate(xb, "temp1.ID"); string(v.Result.Value) != "1" {
		t.Errorf("%+v", v)
	}
	a.ask("Runtime.releaseObjectGroup", map[string]any{"objectGroup": "console"})
	if m := a.ask("Runtime.getProperties", map[string]any{"objectId": oa}); m.Error == nil {
		t.Error("a released object opens")
	}
	if m := b.ask("Runtime.getProperties", map[string]any{"objectId": ob, "ownProperties": true}); m.Error != nil {
		t.Errorf("the other DevTools lost its object: %s", m.Error.Message)
	}
	if n := p.Sessions(); n != 2 {
		t.Errorf("%d sessions are open", n)
	}
	// A DevTools that goes frees what it held, and the other one goes on.
	a.ws.Close()
	becomes(t, "its session is closed", func() bool { return p.Sessions() == 1 })
	if m := b.ask("Runtime.getProperties", map[string]any{"objectId": ob, "ownProperties": true}); m.Error != nil {
		t.Error(m.Error.Message)
	}
	// A loop is ended by whoever began it, and holds up nobody for good.
	b.last++
	loop := b.last
	_ = b.ws.WriteJSON(map[string]any{"id": loop, "method": "Runtime.evaluate", "params": map[string]any{"expression": "while(true){}", "uniqueContextId": xb}})
	b.events = nil
	b.ask("Runtime.terminateExecution", nil)
	for !slices.ContainsFunc(b.events, func(m devtoolsMessage) bool { return m.ID == loop }) {
		b.events = append(b.events, b.next())
	}
	if v := b.evaluate(xb, "1+1"); string(v.Result.Value) != "2" {
		t.Errorf("%+v", v)
	}
	// The program ends: what was held is gone, and nothing waits.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := p.Close(ctx); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if m := b.ask("Runtime.getProperties", map[string]any{"objectId": ob}); m.Error == nil || time.Since(start) > 2*time.Second {
		t.Errorf("%+v after %v", m, time.Since(start))
	}
}

func becomes(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for tick := time.NewTicker(5 * time.Millisecond); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal(fmt.Sprint("not within 10 s: ", what))
		}
	}
}
