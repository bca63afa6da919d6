package v8

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/store/command"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
)

// office brings the commands of all askers of a test to sources, as a gateway does.
type office struct {
	w        *world
	c        *command.NATS
	sessions *command.Sessions

	mu     sync.Mutex
	askers map[subjects.SessionID]*asker
	hold   bool // events that wait are not acknowledged
}

func newOffice(w *world) *office {
	w.t.Helper()
	c, err := command.New(w.conn, subjects.DefaultSpace, "g1")
	if err != nil {
		w.t.Fatal(err)
	}
	o := &office{w: w, c: c, sessions: command.NewSessions(c, "g1", nil), askers: make(map[subjects.SessionID]*asker)}
	stop, err := c.Listen(o.take)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { o.sessions.Close(); stop(); c.Close() })
	return o
}

func (o *office) take(e command.Event) {
	o.mu.Lock()
	a := o.askers[e.Session]
	hold := o.hold
	o.mu.Unlock()
	if a != nil {
		a.mu.Lock()
		a.events = append(a.events, e.Event)
		a.lost += e.Lost
		a.mu.Unlock()
	}
	if !hold {
		e.Acknowledge()
	}
}

// asker is one session at one source.
type asker struct {
	o  *office
	t  testing.TB
	at command.At
	id subjects.SessionID

	mu     sync.Mutex
	events []realm.Event
	lost   uint64
}

// ask begins a session with the source of a name, which has a debugger.
func (o *office) ask(name string) *asker {
	o.w.t.Helper()
	return o.askOnly(name, "debugger.enable")
}

// askOnly is ask for a source that has one method.
func (o *office) askOnly(name string, m realm.Method) *asker {
	o.w.t.Helper()
	var at command.At
	o.w.until(name+" opens with a realm", func() bool {
		s := o.w.named(name)
		if s == nil || !realm.Supports(s.life.Descriptor.Capabilities, m) {
			return false
		}
		at = command.At{Source: s.id, Generation: s.generation}
		return true
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	a := &asker{o: o, t: o.w.t, at: at, id: subjects.SessionID(fmt.Sprintf("s%d", len(o.askers)+1))}
	o.askers[a.id] = a
	return a
}

// try sends a command.
func (a *asker) try(method, params string) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	r := realm.Request{Method: realm.Method(method)}
	if params != "" {
		r.Params = json.RawMessage(params)
	}
	return a.o.sessions.Do(ctx, a.at, a.id, r)
}

// do sends a command that must succeed.
func (a *asker) do(method, params string) string {
	a.t.Helper()
	out, err := a.try(method, params)
	if err != nil {
		a.t.Fatalf("%s %.300s: %v", method, params, err)
	}
	return string(out)
}

// eval evaluates and returns the result's description or value.
func (a *asker) eval(expression, more string) string {
	a.t.Helper()
	text, _ := json.Marshal(expression)
	return described(a.t, a.do("runtime.evaluate", fmt.Sprintf(`{"expression":%s%s}`, text, more)))
}

// described is the text of a result.
func described(t testing.TB, result string) string {
	t.Helper()
	var r struct {
		Result           remoteObject
		ExceptionDetails *struct{ Exception remoteObject }
	}
	if err := json.Unmarshal([]byte(result), &r); err != nil {
		t.Fatalf("%v: %.300s", err, result)
	}
	if r.ExceptionDetails != nil {
		return or(r.ExceptionDetails.Exception.Description, r.ExceptionDetails.Exception.text())
	}
	return or(r.Result.Description, r.Result.text())
}

// wait returns the first event of a name that says yes, and forgets it and all before it.
func (a *asker) wait(name string, yes func(data string) bool) string {
	a.t.Helper()
	var out string
	natstest.Until(a.t, "there is the event "+name, func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		for i, e := range a.events {
			if e.Event == name && (yes == nil || yes(string(e.Data))) {
				a.events, out = a.events[i+1:], string(e.Data)
				return true
			}
		}
		return false
	})
	return out
}

// count is how many events of a name came.
func (a *asker) count(name string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, e := range a.events {
		if e.Event == name {
			n++
		}
	}
	return n
}

// pausedAt is what tests look at in an event debugger.paused.
type pausedAt struct {
	Reason     string
	CallFrames []struct {
		CallFrameID  string
		FunctionName string
		URL          string
		Location     struct{ LineNumber int }
		ScopeChain   []struct {
			Type   string
			Object remoteObject
		}
	}
	HitBreakpoints  []string
	AsyncStackTrace *stackTrace
}

// paused waits for the next pause.
func (a *asker) paused() pausedAt {
	a.t.Helper()
	var p pausedAt
	if err := json.Unmarshal([]byte(a.wait("debugger.paused", nil)), &p); err != nil {
		a.t.Fatal(err)
	}
	return p
}

// at is where a pause is: function and line, from 1.
func (p pausedAt) at() string {
	f := p.CallFrames[0]
	return fmt.Sprintf("%s:%d", f.FunctionName, f.Location.LineNumber+1)
}

func line(text, part string) int { return strings.Count(text[:strings.Index(text, part)], "\n") }
