package ingest

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

	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
)

// events collects what a session is told.
type events struct {
	mu   sync.Mutex
	list []string
}

func (e *events) Emit(event string, data any) {
	text, _ := json.Marshal(data)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, event+" "+string(text))
}

func (e *events) EmitWait(_ context.Context, event string, data any) error {
	e.Emit(event, data)
	return nil
}

func (e *events) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.list, "\n")
}

// looker is a session at a page, as a producer would hold it.
type looker struct {
	t *testing.T
	*pageSession
	events events
}

func (r *rig) look(id, session string) *looker {
	r.t.Helper()
	r.mu.Lock()
	x := r.byID[subjects.SourceID(id)]
	r.mu.Unlock()
	if x == nil {
		r.t.Fatalf("there is no page %s", id)
	}
	l := &looker{t: r.t}
	s, err := x.live.Open(context.Background(), realm.Session{Gateway: "gw", ID: session}, &l.events)
	if err != nil {
		r.t.Fatal(err)
	}
	l.pageSession = s.(*pageSession)
	return l
}

// ask sends a command and waits for its answer.
func (l *looker) ask(method, params string) (string, error) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	type answer struct {
		result any
		err    error
	}
	c := make(chan answer, 1)
	l.Do(ctx, realm.Method(method), json.RawMessage(params), func(result any, err error) { c <- answer{result, err} })
	a := <-c
	text, _ := a.result.(json.RawMessage)
	return string(text), a.err
}

func (l *looker) must(method, params string) string {
	l.t.Helper()
	result, err := l.ask(method, params)
	if err != nil {
		l.t.Fatalf("%s %s: %v", method, params, err)
	}
	return result
}

// eval evaluates as the Console does and returns the RemoteObject of the result.
func (l *looker) eval(expression string) map[string]any {
	l.t.Helper()
	q, _ := json.Marshal(map[string]any{"expression": expression, "replMode": true, "includeCommandLineAPI": true, "objectGroup": "console", "generatePreview": true})
	var out struct {
		Result map[string]any `json:"result"`
	}
	if err := json.Unmarshal([]byte(l.must("runtime.evaluate", string(q))), &out); err != nil {
		l.t.Fatal(err)
	}
	return out.Result
}

func TestSessionsReachThePage(t *testing.T) {
	r := newRig(t)
	p := r.can("shop", "realm-s1", "runtime", "console", "tree.resolve", "tree.log", "future")
	l := r.look("shop", "s1")
	if got := strings.Join(l.r.Capabilities(), " "); got != "runtime console tree.resolve" {
		t.Errorf("capabilities %q", got)
	}
	var c Command
	p.expect(MsgCommand, &c)
	if c.Method != "session.open" || c.Session != "gw/s1" {
		t.Errorf("%+v", c)
	}
	type answer struct {
		result any
		err    error
	}
	ask := func(ctx context.Context) chan answer {
		out := make(chan answer, 2)
		l.Do(ctx, "runtime.evaluate", json.RawMessage(`{"expression":"1"}`), func(result any, err error) { out <- answer{result, err} })
		p.expect(MsgCommand, &c)
		return out
	}
	got := ask(context.Background())
	p.send(map[string]any{"type": "answer", "id": c.ID, "ok": true, "result": 7})
	p.send(map[string]any{"type": "answer", "id": c.ID, "ok": true, "result": 8})
	if a := <-got; a.err != nil || string(a.result.(json.RawMessage)) != "7" {
		t.Errorf("%+v", a)
	}

	t.Run("parts", func(t *testing.T) {
		got := ask(context.Background())
		for i, text := range []string{`{"ok":true,"res`, `ult":"long `, `text"}`} {
			p.send(answerPart(c.ID, i+1, 3, text))
		}
		if a := <-got; a.err != nil || string(a.result.(json.RawMessage)) != `"long text"` {
			t.Errorf("%+v", a)
		}
		for _, parts := range [][]string{{"1 x", "3 y"}, {"2 x"}, {"1 {", "2 }", "3 nonsense"}} {
			got := ask(context.Background())
			for _, part := range parts {
				p.send(answerPart(c.ID, int(part[0]-'0'), 3, part[2:]))
			}
			if a := <-got; !errors.Is(a.err, realm.ErrFailed) {
				t.Errorf("%v: %+v", parts, a)
			}
		}
		r.mu.Lock()
		x := r.byID["shop"]
		r.mu.Unlock()
		if x.relay.parted != 0 || len(x.relay.waiting) > 1 { // session.open was never answered
			t.Errorf("%d bytes and %d commands are left", x.relay.parted, len(x.relay.waiting))
		}
	})
	t.Run("events", func(t *testing.T) {
		p.send(map[string]any{"type": "event", "session": "gw/other", "event": "runtime.x", "data": 1})
		p.send(map[string]any{"type": "event", "session": "gw/s1", "event": "runtime.inspectRequested", "data": map[string]int{"a": 1}})
		natstest.Until(t, "the event", func() bool { return l.events.String() == `runtime.inspectRequested {"a":1}` })
	})
	t.Run("deadlines", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		if a := <-ask(ctx); !errors.Is(a.err, context.DeadlineExceeded) {
			t.Errorf("%+v", a)
		}
	})
	t.Run("a connection that ends", func(t *testing.T) {
		got := ask(context.Background())
		p.ws.Close()
		if a := <-got; !errors.Is(a.err, realm.ErrGone) {
			t.Errorf("%+v", a)
		}
		if _, err := l.ask("runtime.evaluate", "{}"); !errors.Is(err, realm.ErrGone) {
			t.Error(err)
		}
	})
	l.Close(nil)
	if len(l.r.sessions) != 0 {
		t.Error("the session is still known")
	}
}

// answerPart is a part of an answer as a page sends it.
func answerPart(id uint64, part, of int, text string) map[string]any {
	return map[string]any{"type": MsgPart, "id": id, "part": part, "of": of, "text": text}
}

// TestPagesAskForTrees passes what a page asks on to the query service of its space.
func TestPagesAskForTrees(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Limits.Query = 2 * time.Second })
	p, _ := r.page("shop")
	ask := func(what string) Reply {
		t.Helper()
		p.send(map[string]any{"type": MsgAsk, "id": 7, "what": what})
		var reply Reply
		p.expect(MsgReply, &reply)
		return reply
	}
	if a := ask("secrets"); !strings.Contains(a.Error, "no questions of the kind") {
		t.Errorf("%+v", a)
	}
	if a := ask(AskCordis); !strings.Contains(a.Error, "no query service") {
		t.Errorf("%+v", a)
	}
	answer := `{"tree":{"schemaVersion":1,"host":null,"clients":[]}}`
	sub, err := r.nats.Connect().Subscribe(subjects.QueryVerb(space, "cordis"), func(m *nats.Msg) {
		for i, part := range []string{answer[:10], answer[10:]} {
			out := nats.NewMsg(m.Reply)
			out.Header.Set(subjects.HeaderChunk, fmt.Sprintf("%d/2", i+1))
			out.Data = []byte(part)
			_ = m.RespondMsg(out) // The page may be gone.
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	natstest.Until(t, "the answer", func() bool { return string(ask(AskCordis).Result) == `{"schemaVersion":1,"host":null,"clients":[]}` })
}
