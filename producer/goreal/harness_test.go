package goreal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/natscope/natscope/producer/goreal/internal/remote"
	"github.com/natscope/natscope/subjects/realm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client is an asker that talks to a session without anything between.
type client struct {
	t *testing.T
	s *session

	mu     sync.Mutex
	events []event
}

type event struct {
	name string
	data json.RawMessage
}

func (c *client) Emit(name string, data any) {
	raw, _ := json.Marshal(data)
	c.mu.Lock()
	c.events = append(c.events, event{name, raw})
	c.mu.Unlock()
}

func (c *client) EmitWait(ctx context.Context, name string, data any) error {
	c.Emit(name, data)
	return ctx.Err()
}

// dial opens a session at a realm.
func dial(t *testing.T, r *Realm) *client {
	c := &client{t: t}
	c.s = r.open(c)
	t.Cleanup(func() {
		c.s.Close(nil)
		r.mu.Lock()
		if r.letGo != nil {
			r.letGo.Stop()
		}
		r.mu.Unlock()
		r.release()
	})
	return c
}

// patience is how long tests wait for anything.
const patience = 30 * time.Second

// ask sends a command and waits for its answer.
func (c *client) ask(method string, params any, result any) error {
	c.t.Helper()
	raw, err := json.Marshal(params)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	type answer struct {
		raw json.RawMessage
		err error
	}
	done := make(chan answer, 1)
	c.s.Do(ctx, realm.Method(method), raw, func(result any, err error) {
		data, e := json.Marshal(result)
		done <- answer{data, errors.Join(err, e)}
	})
	select {
	case a := <-done:
		if a.err == nil && result != nil {
			if err := json.Unmarshal(a.raw, result); err != nil {
				c.t.Fatalf("%s: %v in %s", method, err, a.raw)
			}
		}
		return a.err
	case <-ctx.Done():
		c.t.Fatalf("%s %s: no answer", method, raw)
		return nil
	}
}

// must is ask for commands that must succeed.
func (c *client) must(method string, params, result any) {
	c.t.Helper()
	if err := c.ask(method, params, result); err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
}

type m = map[string]any

// eval evaluates as the Console does.
func (c *client) eval(expression string) evaluated {
	c.t.Helper()
	var out evaluated
	c.must("runtime.evaluate", m{"expression": expression, "objectGroup": "console", "replMode": true, "generatePreview": true, "awaitPromise": true}, &out)
	return out
}

// pure evaluates as the Console does with each key.
func (c *client) pure(expression string) evaluated {
	c.t.Helper()
	var out evaluated
	c.must("runtime.evaluate", m{"expression": expression, "objectGroup": "completion", "replMode": true, "throwOnSideEffect": true, "timeout": 500, "generatePreview": true}, &out)
	return out
}

// props expands an object.
func (c *client) props(id string) remote.Properties {
	c.t.Helper()
	var own, accessors remote.Properties
	c.must("runtime.getProperties", m{"objectId": id, "ownProperties": true, "generatePreview": true}, &own)
	c.must("runtime.getProperties", m{"objectId": id, "accessorPropertiesOnly": true}, &accessors)
	own.Result = append(own.Result, accessors.Result...)
	return own
}

// call calls a function on an object.
func (c *client) call(id, fn string, byValue bool, args ...any) evaluated {
	c.t.Helper()
	var list []m
	for _, a := range args {
		list = append(list, m{"value": a})
	}
	var out evaluated
	c.must("runtime.callFunctionOn", m{"objectId": id, "functionDeclaration": fn, "arguments": list, "returnByValue": byValue, "silent": true}, &out)
	return out
}

// text shows a result in one line.
func text(e evaluated) string {
	if e.Exception != nil {
		d := e.Exception.Value
		if d == nil {
			return "!" + e.Exception.Text
		}
		line, _, _ := strings.Cut(d.Description, "\n")
		return "!" + line
	}
	return objectText(e.Result)
}

func objectText(o *remote.Object) string {
	switch {
	case o == nil:
		return "<none>"
	case o.Type == "string":
		var s string
		_ = json.Unmarshal(o.Value, &s)
		return s
	case o.Description != "":
		return o.Description
	case len(o.Value) > 0:
		return string(o.Value)
	}
	return o.Type
}

// find is a property by its name.
func find(p remote.Properties, name string) *remote.Property {
	for i := range p.Result {
		if p.Result[i].Name == name {
			return &p.Result[i]
		}
	}
	return nil
}

func internalText(p remote.Properties, name string) string {
	for _, x := range p.Internal {
		if x.Name == name {
			return objectText(x.Value)
		}
	}
	return "<none>"
}

// listing shows properties in one line each.
func listing(p remote.Properties) string {
	var b strings.Builder
	for _, x := range p.Result {
		dim := ""
		if !x.Enumerable {
			dim = "~"
		}
		if x.Get != nil {
			fmt.Fprintf(&b, "%s%s (...)\n", dim, x.Name)
			continue
		}
		fmt.Fprintf(&b, "%s%s: %s\n", dim, x.Name, objectText(x.Value))
	}
	return b.String()
}
