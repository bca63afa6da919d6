package ingest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
)

// can connects a page with capabilities.
func (r *rig) can(id, realmID string, capabilities ...string) *peer {
	r.t.Helper()
	p, _, err := r.dial("http://localhost:1234")
	if err != nil {
		r.t.Fatal(err)
	}
	p.send(map[string]any{"type": "hello", "version": 1, "id": id, "realm": realmID, "now": 1000, "title": "A page", "capabilities": capabilities})
	p.expect(MsgWelcome, nil)
	return p
}

// command sends a command to a source and returns what it is answered.
func (r *rig) command(id string, q realm.Request) (string, error) {
	r.t.Helper()
	data, err := json.Marshal(q)
	if err != nil {
		r.t.Fatal(err)
	}
	m, err := r.conn.Request(subjects.Command(space, subjects.SourceID(id), r.source(id).Generation), data, 10*time.Second)
	if err != nil {
		return "", err
	}
	result, err := realm.ParseAnswer(m.Data)
	return string(result), err
}

// asked is an answer that comes later.
type asked struct {
	result string
	err    error
}

func (r *rig) later(id string, q realm.Request) <-chan asked {
	out := make(chan asked, 1)
	go func() {
		result, err := r.command(id, q)
		out <- asked{result, err}
	}()
	return out
}

func (r *rig) capable(id string, want ...string) {
	r.t.Helper()
	r.until(id+" can do "+strings.Join(want, " "), func(s *fold.Space) bool {
		src := s.Source(subjects.SourceID(id))
		return src != nil && strings.Join(src.Life.Descriptor.Capabilities, " ") == strings.Join(want, " ")
	})
}

func TestCommandsReachThePage(t *testing.T) {
	r := newRig(t)
	p := r.can("shop", "realm-c1", "tree.edit", "tree.pick", "future")
	r.capable("shop", "tree.edit", "tree.pick")
	edit := realm.Request{Method: realm.MethodEdit, Params: json.RawMessage(`{"id":7,"symbol":"count","value":3}`)}
	answer := r.later("shop", edit)
	var c Command
	p.expect(MsgCommand, &c)
	if c.ID == 0 || c.Method != realm.MethodEdit || string(c.Params) != string(edit.Params) {
		t.Errorf("%+v", c)
	}
	// Answers to nobody's question, and such that make no sense, do no harm.
	p.send(map[string]any{"type": "answer", "id": c.ID + 5, "ok": true})
	p.send(map[string]any{"type": "answer", "ok": true})
	p.send(map[string]any{"type": "answer", "id": c.ID, "ok": true, "result": map[string]int{"a": 1}})
	p.send(map[string]any{"type": "answer", "id": c.ID, "ok": true, "result": "twice"})
	if a := <-answer; a.err != nil || a.result != `{"a":1}` {
		t.Errorf("%+v", a)
	}
	for _, x := range []struct {
		answer map[string]any
		want   error
		text   string
	}{
		{map[string]any{"ok": false, "error": map[string]string{"code": "refused", "message": "only even numbers"}}, realm.ErrRefused, "only even numbers"},
		{map[string]any{"ok": false, "error": map[string]string{"code": "molten", "message": "hot"}}, realm.ErrFailed, "hot"},
		{map[string]any{"ok": false}, realm.ErrFailed, "did not say why"},
	} {
		answer := r.later("shop", edit)
		p.expect(MsgCommand, &c)
		x.answer["type"], x.answer["id"] = "answer", c.ID
		p.send(x.answer)
		if a := <-answer; !errors.Is(a.err, x.want) || !strings.Contains(a.err.Error(), x.text) {
			t.Errorf("%v: %+v", x.answer, a)
		}
	}
	if _, err := r.command("shop", realm.Request{Method: realm.MethodHighlight}); !errors.Is(err, realm.ErrUnsupported) {
		t.Errorf("what the page cannot do: %v", err)
	}
	edit.DeadlineMS = 30
	if _, err := r.command("shop", edit); !errors.Is(err, realm.ErrTimeout) {
		t.Errorf("a page that says nothing: %v", err)
	}
}

// Whoever waits for a page hears at once that it went, and that it came back able to do other things.
func TestCommandsOfAPageThatGoes(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Resume = 20 * time.Second })
	p := r.can("shop", "realm-c2", "tree.log")
	r.capable("shop", "tree.log")
	answer := r.later("shop", realm.Request{Method: realm.MethodLog})
	p.expect(MsgCommand, nil)
	_ = p.ws.Close()
	if a := <-answer; !errors.Is(a.err, realm.ErrGone) {
		t.Errorf("%+v", a)
	}
	natstest.Until(t, "the page is known to be away", func() bool {
		_, err := r.command("shop", realm.Request{Method: realm.MethodLog})
		return errors.Is(err, realm.ErrGone) && strings.Contains(err.Error(), "no connection")
	})
	p = r.can("shop", "realm-c2", "tree.inspect", "tree.log")
	r.capable("shop", "tree.inspect", "tree.log")
	generation := r.source("shop").Generation
	p.send(map[string]string{"type": "bye"})
	natstest.Until(t, "nobody answers any more", func() bool {
		_, err := r.conn.Request(subjects.Command(space, "shop", generation), []byte(`{"method":"tree.log"}`), time.Second)
		return errors.Is(err, nats.ErrNoResponders)
	})
}

// The page picks while any session does, and all of them hear what was picked.
func TestPicksOfManySessions(t *testing.T) {
	r := newRig(t)
	p := r.can("shop", "realm-c3", "tree.pick")
	r.capable("shop", "tree.pick")
	sub, err := r.conn.SubscribeSync(subjects.EventsOf(space, "gw"))
	if err != nil {
		t.Fatal(err)
	}
	pick := func(session string, active bool) bool {
		t.Helper()
		q := realm.Request{Method: realm.MethodPick, Params: fmt.Appendf(nil, `{"active":%v}`, active)}
		if session != "" {
			q.Session = &realm.Session{Gateway: "gw", ID: session}
		}
		answer := r.later("shop", q)
		var c Command
		p.expect(MsgCommand, &c)
		p.send(map[string]any{"type": "answer", "id": c.ID, "ok": true})
		if a := <-answer; a.err != nil {
			t.Fatal(a.err)
		}
		got, err := realm.ParseParams[realm.PickParams](c.Params)
		if err != nil {
			t.Fatal(err)
		}
		return got.Active
	}
	if _, err := r.command("shop", realm.Request{Method: realm.MethodPick, Params: json.RawMessage(`{"active":true}`)}); !errors.Is(err, realm.ErrMalformed) {
		t.Errorf("a pick of nobody: %v", err)
	}
	if !pick("a", true) || !pick("b", true) || !pick("a", false) || pick("b", false) {
		t.Error("the page picks while nobody does, or the other way round")
	}
	pick("a", true)
	pick("b", true)
	p.send(map[string]any{"type": "event", "event": "highlighted", "data": map[string]int{"id": 4}})
	p.send(map[string]any{"type": "event", "event": "dance", "data": map[string]int{"id": 4}})
	p.send(map[string]any{"type": "event", "event": "picked", "data": map[string]string{"id": "x"}})
	p.send(map[string]any{"type": "event", "event": "picked", "data": map[string]int{"id": 5}})
	p.send(map[string]any{"type": "event", "event": "picked", "data": map[string]int{"id": 6}})
	got := map[string]int{}
	for range 4 {
		m, err := sub.NextMsg(5 * time.Second)
		if err != nil {
			t.Fatalf("%v after %v", err, got)
		}
		e, err := realm.ParseEvent(m.Data)
		if err != nil {
			t.Fatal(err)
		}
		got[m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]+" "+e.Event+" "+string(e.Data)]++
	}
	for _, want := range []string{`a highlighted {"id":4}`, `b highlighted {"id":4}`, `a picked {"id":5}`, `b picked {"id":5}`} {
		if got[want] != 1 {
			t.Errorf("%q came %d times: %v", want, got[want], got)
		}
	}
	// A page that goes ends its pick, and tells nobody: another page may still be picked from.
	pick("a", true)
	_ = p.ws.Close()
	natstest.Until(t, "nobody picks any more", func() bool {
		r.mu.Lock()
		x := r.byID["shop"]
		r.mu.Unlock()
		return len(x.pickers.all(false, time.Now())) == 0
	})
	if n, _, _ := sub.Pending(); n != 0 {
		t.Errorf("%d events more", n)
	}
}

// A pick that nobody repeats is over, and the number of those who pick is bounded.
func TestPickLeases(t *testing.T) {
	r := newPickers()
	now := time.Now()
	a, b := realm.Session{Gateway: "g", ID: "a"}, realm.Session{Gateway: "g", ID: "b"}
	r.set(a, true, now)
	r.set(b, true, now.Add(pickLease/2))
	if got := r.all(false, now.Add(pickLease+1)); len(got) != 1 || got[0] != b {
		t.Errorf("%v", got)
	}
	if r.set(a, false, now.Add(2*pickLease)) {
		t.Error("a lease that is over still counts")
	}
	for i := range 3 * maxPickers {
		r.set(realm.Session{ID: fmt.Sprint(i)}, true, now)
	}
	if got := r.all(true, now); len(got) != maxPickers {
		t.Errorf("%d sessions pick", len(got))
	}
	if got := r.all(false, now); len(got) != 0 {
		t.Errorf("%v still pick", got)
	}
}
