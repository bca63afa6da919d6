package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/store/command"
	"github.com/natscope/natscope/store/internal/natstest"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
)

const (
	gen      subjects.Generation = "01jz0000000000000000000001"
	patience                     = 10 * time.Second
)

// commander makes a Commander on a connection of its own.
func commander(t testing.TB, s *natstest.Server) *command.NATS {
	t.Helper()
	c, err := command.New(s.Connect(), "dev", "gw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// source answers the commands of a source.
func source(t testing.TB, nc *nats.Conn, f func(m *nats.Msg, r realm.Request)) *nats.Subscription {
	t.Helper()
	sub, err := nc.Subscribe(subjects.Command("dev", "orders", gen), func(m *nats.Msg) {
		r, err := realm.ParseRequest(m.Data)
		if err != nil {
			t.Errorf("%s: %v", m.Data, err)
		}
		f(m, r)
	})
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

func ask(t testing.TB, c command.Commander, wait time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	result, err := c.Do(ctx, "orders", gen, realm.Request{Method: realm.MethodEdit, Params: json.RawMessage(`{"id":1}`), Session: &realm.Session{Gateway: "gw", ID: "s1"}})
	return string(result), err
}

func TestCommands(t *testing.T) {
	s := natstest.Start(t)
	c, nc := commander(t, s), s.Connect()
	start := time.Now()
	if _, err := ask(t, c, patience); !errors.Is(err, realm.ErrGone) || time.Since(start) > patience/2 {
		t.Errorf("nobody is there: %v after %v", err, time.Since(start))
	}
	var answer func(*nats.Msg)
	sub := source(t, nc, func(m *nats.Msg, r realm.Request) {
		if r.DeadlineMS <= 0 || r.Session.ID != "s1" {
			t.Errorf("%s", m.Data)
		}
		if answer != nil {
			answer(m)
		}
	})
	if _, err := ask(t, c, 50*time.Millisecond); !errors.Is(err, realm.ErrTimeout) {
		t.Errorf("no answer: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Do(ctx, "orders", gen, realm.Request{Method: realm.MethodPing, Session: &realm.Session{ID: "s1"}, DeadlineMS: 1}); !errors.Is(err, realm.ErrCanceled) {
		t.Errorf("taken back: %v", err)
	}
	pieces := func(list ...string) func(*nats.Msg) {
		return func(m *nats.Msg) {
			for _, p := range list {
				at, data, _ := strings.Cut(p, " ")
				_ = m.RespondMsg(&nats.Msg{Data: []byte(data), Header: nats.Header{subjects.HeaderChunk: {at}}})
			}
		}
	}
	for name, x := range map[string]struct {
		answer func(*nats.Msg)
		err    error
	}{
		"done":               {func(m *nats.Msg) { _ = m.Respond([]byte(`{"ok":true,"result":{"a":1}}`)) }, nil},
		"refused":            {func(m *nats.Msg) { _ = m.Respond([]byte(`{"ok":false,"error":{"code":"refused","message":"no"}}`)) }, realm.ErrRefused},
		"rubbish":            {func(m *nats.Msg) { _ = m.Respond([]byte(`rubbish`)) }, realm.ErrMalformed},
		"nothing":            {func(m *nats.Msg) { _ = m.Respond(nil) }, realm.ErrMalformed},
		"in pieces":          {pieces(`1/3 {"ok":true,`, `2/3 "result":`, `3/3 {"a":1}}`), nil},
		"a piece is missing": {pieces(`1/3 {"ok":true,`, `3/3 {"a":1}}`), realm.ErrFailed},
		"pieces of nothing":  {pieces(`0/3 {"ok":true,`), realm.ErrMalformed},
		"more than was asked": {func(m *nats.Msg) {
			pieces(`1/2 {"ok":true,`, `2/2 "result":{"a":1}}`)(m)
			_ = m.Respond([]byte("more"))
		}, nil},
		"a piece comes double": {pieces(`1/2 {"ok":true,`, `1/2 {"ok":true,`), realm.ErrFailed},
	} {
		_ = sub.Unsubscribe()
		sub = source(t, nc, func(m *nats.Msg, _ realm.Request) { x.answer(m) })
		got, err := ask(t, c, patience)
		if !errors.Is(err, x.err) || x.err == nil && got != `{"a":1}` {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	_ = sub.Unsubscribe()
	big := bytes.Repeat([]byte("x"), 1<<20)
	sub = source(t, nc, func(m *nats.Msg, _ realm.Request) {
		for i := range 70 {
			_ = m.RespondMsg(&nats.Msg{Data: big[:1<<20-1000], Header: nats.Header{subjects.HeaderChunk: {subjects.Chunk{Index: i + 1, Count: 70}.String()}}})
		}
	})
	if _, err := ask(t, c, patience); !errors.Is(err, realm.ErrTooLarge) {
		t.Errorf("an endless answer: %v", err)
	}
	if _, err := c.Do(t.Context(), "orders", gen, realm.Request{Method: realm.MethodEdit, Params: json.RawMessage(`"` + string(big) + `"`)}); !errors.Is(err, realm.ErrTooLarge) {
		t.Errorf("a command that no message takes: %v", err)
	}
	_ = sub.Unsubscribe()
	source(t, nc, func(*nats.Msg, realm.Request) { c.Close() })
	if _, err := ask(t, c, patience); !errors.Is(err, realm.ErrFailed) || !strings.Contains(err.Error(), "stopping") {
		t.Errorf("closed meanwhile: %v", err)
	}
	if _, err := ask(t, c, patience); !errors.Is(err, realm.ErrFailed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestAudit(t *testing.T) {
	s := natstest.Start(t)
	c := commander(t, s)
	if err := c.Audit(t.Context(), realm.Audit{Method: realm.MethodEdit}); err == nil {
		t.Error("an audit without a stream succeeds")
	}
	stream, err := s.JetStream().CreateStream(t.Context(), subjects.AuditStream("dev", subjects.Storage{Memory: true}))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Audit(t.Context(), realm.Audit{Time: 5, Gateway: "gw", Method: realm.MethodEdit, Params: json.RawMessage(`{"id":1}`)}); err != nil {
		t.Fatal(err)
	}
	m, err := stream.GetLastMsgForSubject(t.Context(), subjects.Audit("dev", "gw"))
	if err != nil || !strings.Contains(string(m.Data), `"method":"tree.edit","params":{"id":1}`) {
		t.Errorf("%v, %v", m, err)
	}
}

// Events and answers come in the order in which the source sent them, and a
// listener is done with an event before a later answer is there.
func TestEventsAndAnswersInOrder(t *testing.T) {
	s := natstest.Start(t)
	c, nc := commander(t, s), s.Connect()
	var mu sync.Mutex
	var heard []string
	stop, err := c.Listen(func(e command.Event) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, string(e.Source)+" "+string(e.Session)+" "+e.Event.Event)
		if e.Waits() != (e.Event.Event == "waits") {
			t.Errorf("%s waits: %v", e.Event.Event, e.Waits())
		}
		e.Acknowledge()
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Listen(nil); err == nil {
		t.Error("two listen")
	}
	event := func(gateway, name string) {
		_ = nc.Publish(subjects.Event("dev", "orders", subjects.GatewayID(gateway), "s1"), []byte(`{"event":"`+name+`"}`))
	}
	source(t, nc, func(m *nats.Msg, _ realm.Request) {
		event("other", "elsewhere")
		event("gw", "")
		for i := range 50 {
			event("gw", fmt.Sprint(i))
		}
		_ = m.Respond([]byte(`{"ok":true}`))
	})
	for range 20 {
		mu.Lock()
		heard = nil
		mu.Unlock()
		if _, err := ask(t, c, patience); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		if len(heard) != 50 || heard[49] != "orders s1 49" {
			t.Errorf("heard %d events before the answer: %q", len(heard), heard)
		}
		mu.Unlock()
	}
	if _, err := nc.Request(subjects.Event("dev", "orders", "gw", "s1"), []byte(`{"event":"waits"}`), patience); err != nil {
		t.Errorf("an event that waits: %v", err)
	}
	stop()
	if _, err := nc.Request(subjects.Event("dev", "orders", "gw", "s1"), []byte(`{"event":"waits"}`), patience); err != nil {
		t.Errorf("an event that waits while nobody listens: %v", err)
	}
}

// fake is a source with sessions.
type fake struct {
	mu   sync.Mutex
	open map[string]bool
	log  []string
	// opening, if not nil, is received from before a session is open.
	opening chan struct{}
}

func (f *fake) answer(m *nats.Msg, r realm.Request) {
	f.mu.Lock()
	f.log = append(f.log, string(r.Method)+" "+r.Session.ID)
	known, opening := f.open[r.Session.ID], f.opening
	switch r.Method {
	case realm.MethodOpenSession:
		f.open[r.Session.ID] = true
	case realm.MethodCloseSession:
		delete(f.open, r.Session.ID)
	}
	f.mu.Unlock()
	switch {
	case r.Method == realm.MethodOpenSession:
		if opening != nil {
			<-opening
		}
		_ = m.Respond([]byte(`{"ok":true,"result":{"leaseMs":30000,"capabilities":["runtime"]}}`))
	case !known:
		_ = m.Respond([]byte(`{"ok":false,"error":{"code":"no-session","message":"no session; open one"}}`))
	default:
		_ = m.Respond([]byte(`{"ok":true,"result":1}`))
	}
}

func (f *fake) heard(s string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, x := range f.log {
		if x == s {
			n++
		}
	}
	return n
}

func TestSessions(t *testing.T) {
	s := natstest.Start(t)
	c := commander(t, s)
	lost := make(chan string, 10)
	all := command.NewSessionsEvery(c, "gw", func(at command.At, id subjects.SessionID) { lost <- string(at.Source) + " " + string(id) }, 200*time.Millisecond)
	at := command.At{Source: "orders", Generation: gen}
	do := func(id subjects.SessionID) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		_, err := all.Do(ctx, at, id, realm.Request{Method: realm.MethodEvaluate})
		return err
	}
	if err := do("a"); !errors.Is(err, realm.ErrGone) || all.IsOpen(at, "a") {
		t.Errorf("nobody is there: %v", err)
	}
	f := &fake{open: make(map[string]bool), opening: make(chan struct{})}
	sub := source(t, s.Connect(), f.answer)
	var asking sync.WaitGroup
	for range 10 {
		asking.Go(func() {
			if err := do("a"); err != nil {
				t.Error(err)
			}
		})
	}
	natstest.Until(t, patience, "it is opened", func() bool { return f.heard("session.open a") > 0 })
	close(f.opening)
	asking.Wait()
	if n := f.heard("session.open a"); n != 1 || f.heard("runtime.evaluate a") != 10 {
		t.Errorf("opened %d times: %q", n, f.log)
	}
	if r, err := all.Open(t.Context(), at, "a"); err != nil || len(r.Capabilities) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	natstest.Until(t, patience, "it is touched", func() bool { return f.heard("session.touch a") > 0 })

	f.mu.Lock()
	clear(f.open)
	f.mu.Unlock()
	if err := do("a"); !errors.Is(err, realm.ErrNoSession) {
		t.Errorf("the realm forgot it: %v", err)
	}
	if got := <-lost; got != "orders a" {
		t.Error(got)
	}
	if err := do("a"); err != nil {
		t.Errorf("once more: %v", err)
	}
	_ = do("b")
	all.CloseSession("a")
	natstest.Until(t, patience, "it is closed", func() bool { return f.heard("session.close a") == 1 })
	all.CloseSource(at, "other")
	all.Close()
	natstest.Until(t, patience, "all are closed", func() bool { return f.heard("session.close b") == 1 })
	if all.IsOpen(at, "b") {
		t.Error("open after Close")
	}
	_ = sub.Unsubscribe()
}
