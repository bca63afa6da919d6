package cdpgw

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/natscope/natscope/store/command"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/source"
)

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
	m.Presence("orders", false)
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

// A program that begins anew, or serves a realm late, has its session and its scripts all the same.
func TestLateRealm(t *testing.T) {
	m, w, server := liveShop(t)
	c := dial(t, server, "dev/late")
	c.call("Runtime.enable", nil, nil)
	c.call("Debugger.enable", nil, nil)
	w.start("late", gen1)
	m.open("late", gen1, source.Descriptor{Name: "late", Kind: source.KindHost})
	from := c.event(0, "Runtime.executionContextCreated", nil)
	m.Publish("late", gen1, subjects.PlaneLife, record(2, source.TopicUpdate, source.Update{Capabilities: &alive}))
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
