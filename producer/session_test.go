package producer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
)

// world is a realm that notes what it is told.
type world struct {
	mu       sync.Mutex
	sessions map[realm.Session]*worldSession
	closed   []string
	refuse   error
}

type worldSession struct {
	w     *world
	who   realm.Session
	out   producer.SessionOut
	order []string
	// held are the replies of commands that are not answered yet.
	held map[string]func(any, error)
}

func (w *world) Capabilities() []string { return []string{"runtime", "heap", "tree.resolve"} }

func (w *world) Open(_ context.Context, who realm.Session, out producer.SessionOut) (producer.RealmSession, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refuse != nil {
		return nil, w.refuse
	}
	s := &worldSession{w: w, who: who, out: out, held: make(map[string]func(any, error))}
	if w.sessions == nil {
		w.sessions = make(map[realm.Session]*worldSession)
	}
	w.sessions[who] = s
	return s, nil
}

func (s *worldSession) Do(ctx context.Context, m realm.Method, params json.RawMessage, reply func(any, error)) {
	var p struct {
		N     int  `json:"n"`
		Hold  bool `json:"hold"`
		Panic bool `json:"panic"`
	}
	_ = json.Unmarshal(params, &p)
	s.w.mu.Lock()
	s.order = append(s.order, fmt.Sprint(p.N))
	if p.Hold {
		s.held[fmt.Sprint(p.N)] = reply
	}
	s.w.mu.Unlock()
	switch {
	case p.Panic:
		panic("at the disco")
	case p.Hold:
	case m == "heap.takeHeapSnapshot":
		go func() {
			for i := range p.N {
				if err := s.out.EmitWait(ctx, "heap.addHeapSnapshotChunk", map[string]int{"chunk": i}); err != nil {
					reply(nil, err)
					return
				}
			}
			reply(nil, nil)
		}()
	case m == "runtime.evaluate":
		for i := range p.N {
			s.out.Emit("runtime.told", map[string]int{"i": i})
		}
		reply(map[string]int{"n": p.N}, nil)
		reply(nil, errors.New("twice"))
	default:
		reply(nil, realm.ErrUnsupported)
	}
}

func (s *worldSession) Close(reason error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	delete(s.w.sessions, s.who)
	s.w.closed = append(s.w.closed, s.who.ID+": "+reason.Error())
}

func (w *world) all() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.closed, "\n")
}

// inSession writes a request of a session.
func inSession(id, method, rest string) string {
	return `{"method":"` + method + `","session":{"gateway":"gw","id":"` + id + `"}` + rest + `}`
}

func TestSessions(t *testing.T) {
	p, nc, s := serving(t, producer.Options{ID: "svc"})
	w := new(world)
	if got := command(t, nc, p, inSession("a", "session.open", "")); !strings.Contains(got, `"code":"unsupported"`) {
		t.Errorf("without a realm: %s", got)
	}
	p.Serve(w)
	natstest.Until(t, "it lists what it can", func() bool {
		return strings.Join(folded(t, s).Source("svc").Life.Descriptor.Capabilities, " ") == "heap runtime session tree.resolve"
	})
	ask := func(request, want string) {
		t.Helper()
		if got := command(t, nc, p, request); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
	ask(inSession("a", "runtime.evaluate", ""), `"code":"no-session","message":"no session; open one"`)
	ask(inSession("a", "session.touch", ""), `"code":"no-session"`)
	ask(inSession("a", "session.close", ""), `"ok":true`)
	ask(`{"method":"runtime.evaluate"}`, `"code":"malformed"`)
	ask(inSession("A.B", "session.open", ""), `"code":"malformed"`)
	ask(inSession("a", "session.open", ""), `{"ok":true,"result":{"leaseMs":30000,"capabilities":["session","runtime","heap","tree.resolve"]}}`)
	ask(inSession("a", "session.open", ""), `"ok":true`)
	ask(inSession("a", "runtime.evaluate", `,"params":{"n":0}`), `{"ok":true,"result":{"n":0}}`)
	ask(inSession("a", "debugger.enable", ""), `"code":"unsupported"`)
	ask(inSession("a", "tree.resolve", ""), `"code":"unsupported"`)
	ask(inSession("a", "session.touch", ""), `"ok":true`)
	ask(inSession("a", "runtime.x", `,"params":{"panic":true}`), `"code":"failed","message":"panic: at the disco"`)
	ask(inSession("b", "runtime.evaluate", ""), `"code":"no-session"`)
	ask(inSession("a", "runtime.x", `,"params":{"hold":true},"deadlineMs":20`), `"code":"timeout"`)
	ask(inSession("a", "session.cancel", ""), `"code":"malformed"`)
	ask(inSession("b", "session.open", ""), `"ok":true`)
	if p.Sessions() != 2 {
		t.Errorf("%d sessions are open", p.Sessions())
	}
	ask(inSession("a", "session.close", ""), `"ok":true`)
	ask(inSession("a", "runtime.evaluate", ""), `"code":"no-session"`)
	natstest.Until(t, "the realm hears that a session was closed", func() bool { return strings.Contains(w.all(), "a: realm: no session: the session was closed") })
	p.Serve(nil)
	natstest.Until(t, "the realm hears that it went", func() bool { return strings.Contains(w.all(), "b: realm: no session: another realm") })
	ask(inSession("b", "session.open", ""), `"code":"unsupported"`)
	w.refuse = fmt.Errorf("%w: not today", realm.ErrRefused)
	p.Serve(w)
	ask(inSession("c", "session.open", ""), `"code":"refused","message":"not today"`)
	natstest.Until(t, "what was refused is gone", func() bool { return p.Sessions() == 0 })
}

// TestRefusedBeforeAnybodyAsked: a realm that refuses at once is heard, however
// the refusal and the answer come to stand in time.
func TestRefusedBeforeAnybodyAsked(t *testing.T) {
	p, nc, _ := serving(t, producer.Options{ID: "svc"})
	p.Serve(&world{refuse: fmt.Errorf("%w: not today", realm.ErrRefused)})
	for i := range 300 {
		if got := command(t, nc, p, inSession(fmt.Sprint("s", i), "session.open", "")); !strings.Contains(got, `"message":"not today"`) {
			t.Fatalf("attempt %d: %s", i, got)
		}
	}
}

// Commands of a session reach the realm in the order of their arrival, and are answered when they are ready.
func TestSessionOrder(t *testing.T) {
	p, nc, _ := serving(t, producer.Options{ID: "svc"})
	w := new(world)
	p.Serve(w)
	command(t, nc, p, inSession("a", "session.open", ""))
	subject := subjects.Command(space, p.ID(), p.Generation())
	answers := make(map[int]*nats.Subscription)
	for i := range 40 {
		inbox := nc.NewInbox()
		sub, err := nc.SubscribeSync(inbox)
		if err != nil {
			t.Fatal(err)
		}
		answers[i] = sub
		if err := nc.PublishRequest(subject, inbox, []byte(inSession("a", "runtime.x", fmt.Sprintf(`,"id":"r%d","params":{"n":%d,"hold":true}`, i, i)))); err != nil {
			t.Fatal(err)
		}
	}
	var s *worldSession
	natstest.Until(t, "all have arrived", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		s = w.sessions[realm.Session{Gateway: "gw", ID: "a"}]
		return len(s.order) == 40
	})
	for i, n := range s.order {
		if n != fmt.Sprint(i) {
			t.Fatalf("command %d is %v", i, s.order)
		}
	}
	next := func(i int) string {
		t.Helper()
		m, err := answers[i].NextMsg(5 * time.Second)
		if err != nil {
			t.Fatalf("command %d: %v", i, err)
		}
		return string(m.Data)
	}
	s.held["39"](1, nil)
	if got := next(39); got != `{"ok":true,"result":1}` {
		t.Error(got)
	}
	if got := command(t, nc, p, inSession("a", "session.cancel", `,"params":{"request":"r7"}`)); !strings.Contains(got, `"ok":true`) {
		t.Error(got)
	}
	if got := next(7); !strings.Contains(got, `"code":"canceled"`) {
		t.Error(got)
	}
	s.held["7"](1, nil) // Too late, and no harm.
	for i := range 26 {
		_ = nc.Publish(subject, []byte(inSession("a", "runtime.x", fmt.Sprintf(`,"params":{"n":%d,"hold":true}`, 100+i))))
	}
	if got := command(t, nc, p, inSession("a", "runtime.x", `,"params":{"n":999}`)); !strings.Contains(got, `"code":"busy"`) {
		t.Errorf("the 65th: %s", got)
	}
	if got := command(t, nc, p, inSession("a", "runtime.terminateExecution", "")); strings.Contains(got, `"code":"busy"`) {
		t.Errorf("what ends an evaluation: %s", got)
	}
	end(t, p)
	if got := next(3); !strings.Contains(got, `"code":"source-gone"`) {
		t.Errorf("at the end: %s", got)
	}
	if got := w.all(); !strings.Contains(got, "the program ends") {
		t.Error(got)
	}
}

// What a realm tells during a command comes before its answer, on the subject of answers that lies below the events'.
func TestEventsBeforeAnswers(t *testing.T) {
	p, nc, _ := serving(t, producer.Options{ID: "svc"})
	p.Serve(new(world))
	command(t, nc, p, inSession("a", "session.open", ""))
	sub, err := nc.SubscribeSync(subjects.SessionsOf(space, "gw"))
	if err != nil {
		t.Fatal(err)
	}
	subject := subjects.Command(space, p.ID(), p.Generation())
	for n := range 20 {
		reply := subjects.Reply(space, p.ID(), "gw", "a", fmt.Sprint("t", n))
		if err := nc.PublishRequest(subject, reply, []byte(inSession("a", "runtime.evaluate", fmt.Sprintf(`,"params":{"n":%d}`, n)))); err != nil {
			t.Fatal(err)
		}
		for i := range n + 1 {
			m, err := sub.NextMsg(5 * time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if last := i == n; (m.Subject == reply) != last {
				t.Fatalf("message %d of %d is %s: %s", i, n, m.Subject, m.Data)
			}
		}
	}
}

// A realm that sends much waits for whoever reads it.
func TestEmitWait(t *testing.T) {
	p, nc, _ := serving(t, producer.Options{ID: "svc"})
	p.Serve(new(world))
	command(t, nc, p, inSession("a", "session.open", ""))
	// Nobody listens: the realm hears of it, and does not wait.
	if got := command(t, nc, p, inSession("a", "heap.takeHeapSnapshot", `,"params":{"n":3}`)); !strings.Contains(got, `"code":"source-gone"`) {
		t.Error(got)
	}
	sub, err := nc.SubscribeSync(subjects.EventsOf(space, "gw"))
	if err != nil {
		t.Fatal(err)
	}
	_ = nc.Flush()
	done := make(chan string, 1)
	go func() { done <- command(t, nc, p, inSession("a", "heap.takeHeapSnapshot", `,"params":{"n":3}`)) }()
	for i := range 3 {
		m, err := sub.NextMsg(5 * time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if e, err := realm.ParseEvent(m.Data); err != nil || e.Event != "heap.addHeapSnapshotChunk" || string(e.Data) != fmt.Sprintf(`{"chunk":%d}`, i) {
			t.Errorf("%s, %v", m.Data, err)
		}
		if extra, err := sub.NextMsg(30 * time.Millisecond); err == nil {
			t.Errorf("it did not wait: %s", extra.Data)
		}
		select {
		case got := <-done:
			t.Fatalf("answered before all was taken: %s", got)
		default:
		}
		if err := m.Respond(nil); err != nil {
			t.Fatal(err)
		}
	}
	if got := <-done; !strings.Contains(got, `"ok":true`) {
		t.Error(got)
	}
}

// Events that are lost are counted, and the next one says how many.
func TestLostSessionEvents(t *testing.T) {
	p, nc, _ := serving(t, producer.Options{ID: "svc"})
	w := new(world)
	p.Serve(w)
	command(t, nc, p, inSession("a", "session.open", ""))
	sub, err := nc.SubscribeSync(subjects.EventsOf(space, "gw"))
	if err != nil {
		t.Fatal(err)
	}
	_ = nc.Flush()
	out := w.sessions[realm.Session{Gateway: "gw", ID: "a"}].out
	out.Emit("runtime.odd", make(chan int))
	out.Emit("runtime.long", strings.Repeat("x", 2<<20))
	out.Emit("runtime.fine", 1)
	m, err := sub.NextMsg(5 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := realm.ParseEvent(m.Data); err != nil || e.Event != "runtime.fine" || e.Lost != 2 {
		t.Errorf("%s, %v", m.Data, err)
	}
}

// A session whose asker is silent ends, and one that is touched does not.
func TestSessionLease(t *testing.T) {
	p, nc, _ := serving(t, producer.Options{ID: "svc"})
	p.SetLease(300 * time.Millisecond)
	w := new(world)
	p.Serve(w)
	p.OnCommand("tree.inspect", func(context.Context, json.RawMessage) (any, error) { return nil, nil })
	for _, id := range []string{"silent", "touched", "asking"} {
		command(t, nc, p, inSession(id, "session.open", ""))
	}
	for strings.Contains(w.all(), "silent") == false {
		command(t, nc, p, inSession("asking", "tree.inspect", ""))
		if got := command(t, nc, p, inSession("touched", "session.touch", "")); !strings.Contains(got, `"ok":true`) {
			t.Fatal(got)
		}
	}
	if got := w.all(); got != "silent: realm: no session: nobody was heard for 300ms" {
		t.Error(got)
	}
	if got := command(t, nc, p, inSession("asking", "session.touch", "")); !strings.Contains(got, `"ok":true`) {
		t.Error(got)
	}
}

// Sessions are bounded in number.
func TestSessionBounds(t *testing.T) {
	p, nc, _ := serving(t, producer.Options{ID: "svc"})
	w := new(world)
	p.Serve(w)
	for i := range 64 {
		if got := command(t, nc, p, inSession(fmt.Sprint("s", i), "session.open", "")); !strings.Contains(got, `"ok":true`) {
			t.Fatal(got)
		}
	}
	if got := command(t, nc, p, inSession("more", "session.open", "")); !strings.Contains(got, `"code":"busy"`) {
		t.Error(got)
	}
	end(t, p)
	if n := strings.Count(w.all(), "the program ends"); n != 64 {
		t.Errorf("%d sessions heard of the end", n)
	}
}
