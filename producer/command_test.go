package producer_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/source"
)

// command sends a raw command to the present generation and returns the raw answer.
func command(t testing.TB, nc *nats.Conn, p *producer.Producer, request string) string {
	t.Helper()
	m, err := nc.Request(subjects.Command(space, p.ID(), p.Generation()), []byte(request), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(m.Data) {
		t.Errorf("%s: answered with %q", request, m.Data)
	}
	return string(m.Data)
}

// serving starts a producer whose answers can be asked for.
func serving(t *testing.T, o producer.Options) (*producer.Producer, *nats.Conn, *natstest.Server) {
	t.Helper()
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{Memory: true})
	o.URL = s.URL()
	p := start(t, o)
	flush(t, p)
	return p, s.Connect(), s
}

func TestCommands(t *testing.T) {
	p, nc, _ := serving(t, producer.Options{})
	p.OnCommand("tree.edit", func(_ context.Context, params json.RawMessage) (any, error) {
		e, err := realm.ParseParams[realm.EditParams](params)
		if err != nil {
			return nil, err
		}
		switch e.Symbol {
		case "no":
			return nil, realm.ErrRefused
		case "odd":
			return nil, errors.New("out of \xff paper")
		case "panic":
			panic("at the disco")
		case "exit":
			runtime.Goexit()
		case "chan":
			return make(chan int), nil
		case "big":
			return strings.Repeat("x", 2<<20), nil
		case "raw":
			return json.RawMessage(`{"a": 1}`), nil
		case "broken":
			return json.RawMessage(`{`), nil
		}
		return map[string]string{"did": e.Symbol}, nil
	})
	p.OnCommand("ping", func(context.Context, json.RawMessage) (any, error) { return nil, errors.New("not me") })
	edit := func(symbol string) string {
		return `{"method":"tree.edit","params":{"id":1,"symbol":"` + symbol + `","value":1}}`
	}
	for request, want := range map[string]string{
		`{"method":"ping"}`:                         `{"ok":true,"generation":"` + string(p.Generation()) + `"`,
		`{"method":"Runtime.evaluate","params":{}}`: `"code":"unsupported"`,
		`{"method":"\u0000\"x"}`:                    `"code":"unsupported"`,
		`{}`:                                        `"code":"malformed"`,
		`not json`:                                  `"code":"malformed"`,
		``:                                          `"code":"malformed"`,
		`{"method":"tree.edit"}`:                    `"code":"malformed"`,
		edit("x"):                                   `{"ok":true,"result":{"did":"x"}}`,
		edit("raw"):                                 `{"ok":true,"result":{"a":1}}`,
		edit("no"):                                  `"code":"refused"`,
		edit("odd"):                                 "out of \ufffd paper",
		edit("panic"):                               `"code":"failed","message":"panic: at the disco"`,
		edit("exit"):                                `"code":"failed"`,
		edit("chan"):                                `"code":"failed"`,
		edit("broken"):                              `"code":"failed"`,
	} {
		if got := command(t, nc, p, request); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
	bigAnswer(t, nc, p, edit("big"))
	p.OnCommand("tree.edit", nil)
	if got := command(t, nc, p, edit("x")); !strings.Contains(got, `"code":"unsupported"`) {
		t.Errorf("after its function was removed: %s", got)
	}
	subject := subjects.Command(space, p.ID(), p.Generation())
	end(t, p)
	if _, err := nc.Request(subject, []byte(`{"method":"ping"}`), 5*time.Second); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("after Close: %v", err)
	}
}

// bigAnswer checks that an answer that no message takes comes in pieces.
func bigAnswer(t *testing.T, nc *nats.Conn, p *producer.Producer, request string) {
	t.Helper()
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.PublishRequest(subjects.Command(space, p.ID(), p.Generation()), inbox, []byte(request)); err != nil {
		t.Fatal(err)
	}
	var whole []byte
	for n := 1; ; n++ {
		m, err := sub.NextMsg(5 * time.Second)
		if err != nil {
			t.Fatal(err)
		}
		at, err := subjects.ParseChunk(subjects.Header(m.Header))
		if err != nil || at.Index != n || at.Count < 2 {
			t.Fatalf("piece %d is %+v, %v", n, at, err)
		}
		whole = append(whole, m.Data...)
		if at.Index == at.Count {
			break
		}
	}
	raw, err := realm.ParseAnswer(whole)
	if err != nil || len(raw) != 2<<20+2 {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
}

// A function that takes too long is answered for, and its place is free when it returns.
func TestSlowCommands(t *testing.T) {
	p, nc, _ := serving(t, producer.Options{})
	release := make(chan struct{})
	var running atomic.Int64
	p.OnCommand("slow", func(context.Context, json.RawMessage) (any, error) {
		running.Add(1)
		defer running.Add(-1)
		<-release
		return nil, nil
	})
	p.OnCommand("obedient", func(ctx context.Context, _ json.RawMessage) (any, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	for _, m := range []string{"slow", "obedient"} {
		if got := command(t, nc, p, `{"method":"`+m+`","deadlineMs":20}`); !strings.Contains(got, `"code":"timeout"`) {
			t.Errorf("%s: %s", m, got)
		}
	}
	// A command that ran out of time is answered a moment before its place is free.
	natstest.Until(t, "only the deaf one runs", func() bool { return p.Stats().Commands.Running == 1 })
	for range 31 {
		if err := nc.Publish(subjects.Command(space, p.ID(), p.Generation()), []byte(`{"method":"slow"}`)); err != nil {
			t.Fatal(err)
		}
	}
	natstest.Until(t, "all places are taken", func() bool { return running.Load() == 32 })
	if got := command(t, nc, p, `{"method":"slow"}`); !strings.Contains(got, `"code":"busy"`) {
		t.Error(got)
	}
	if got := command(t, nc, p, `{"method":"ping"}`); !strings.Contains(got, `"ok":true`) {
		t.Error(got)
	}
	count(p, 0, 5)
	flush(t, p)
	close(release)
	natstest.Until(t, "all places are free", func() bool { return p.Stats().Commands.Running == 0 })
	if s := p.Stats().Commands; s.Done != 31 || s.Failed != 2 || s.Refused != 1 {
		t.Errorf("%+v", s)
	}
}

// Whoever waits when a program ends hears of it at once, also when the function does not listen.
func TestCloseDuringCommand(t *testing.T) {
	p, nc, _ := serving(t, producer.Options{})
	release := make(chan struct{})
	defer close(release)
	began := make(chan struct{}, 2)
	p.OnCommand("deaf", func(context.Context, json.RawMessage) (any, error) {
		began <- struct{}{}
		<-release
		return nil, nil
	})
	answers := make(chan string, 1)
	subject := subjects.Command(space, p.ID(), p.Generation())
	go func() {
		m, err := nc.Request(subject, []byte(`{"method":"deaf"}`), 10*time.Second)
		if err != nil {
			answers <- err.Error()
			return
		}
		answers <- string(m.Data)
	}()
	<-began
	end(t, p)
	if got := <-answers; !strings.Contains(got, `"code":"source-gone"`) {
		t.Error(got)
	}
}

// What a source can do is in its descriptor, from whenever it can.
func TestCapabilities(t *testing.T) {
	p, _, s := serving(t, producer.Options{ID: "svc", Describe: func(d *source.Descriptor) { d.Capabilities = []string{"runtime"} }})
	nothing := func(context.Context, json.RawMessage) (any, error) { return nil, nil }
	want := func(list ...string) {
		t.Helper()
		natstest.Until(t, "it can do "+strings.Join(list, " "), func() bool {
			return strings.Join(folded(t, s).Source("svc").Life.Descriptor.Capabilities, " ") == strings.Join(list, " ")
		})
	}
	want("runtime")
	p.OnCommand("tree.pick", nothing)
	p.OnCommand("tree.edit", nothing)
	p.OnCommand("tree.edit", nothing)
	want("runtime", "tree.edit", "tree.pick")
	p.OnCommand("tree.pick", nil)
	p.OnCommand("tree.never", nil)
	want("runtime", "tree.edit")
	p.Update(source.Update{Capabilities: &[]string{"heap", "tree.edit"}})
	want("heap", "tree.edit")
}

// Events reach the session that asked, and nobody else.
func TestSessionEvents(t *testing.T) {
	p, nc, s := serving(t, producer.Options{ID: "svc"})
	p.OnCommand("tree.pick", func(ctx context.Context, _ json.RawMessage) (any, error) {
		who, ok := producer.SessionOf(ctx)
		if ok {
			p.Emit(who, realm.EventPicked, realm.Picked{ID: 7})
			p.Emit(who, realm.EventPicked, make(chan int))
			p.Emit(realm.Session{Gateway: "a.b", ID: "x"}, realm.EventPicked, nil)
			p.Emit(who, "", nil)
		}
		return ok, nil
	})
	sub, err := nc.SubscribeSync(subjects.EventsOf(space, "gw-1"))
	if err != nil {
		t.Fatal(err)
	}
	if got := command(t, nc, p, `{"method":"tree.pick"}`); !strings.Contains(got, `"result":false`) {
		t.Error(got)
	}
	if got := command(t, nc, p, `{"method":"tree.pick","session":{"gateway":"gw-1","id":"s-1"}}`); !strings.Contains(got, `"result":true`) {
		t.Error(got)
	}
	m, err := sub.NextMsg(5 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	e, err := realm.ParseEvent(m.Data)
	if err != nil || e.Event != realm.EventPicked || string(e.Data) != `{"id":7}` || m.Subject != string(subjects.Event(space, "svc", "gw-1", "s-1")) {
		t.Errorf("%s: %s, %v", m.Subject, m.Data, err)
	}
	if lost := p.Stats().LostEvents; lost != 3 {
		t.Errorf("%d events were lost, want the 3 that make no sense", lost)
	}
	p.Reveal(9)
	flush(t, p)
	if got := s.Read(subjects.RecordStreamName(space)); !strings.Contains(string(got[len(got)-1].Data), `"topic":"natscope.reveal","data":{"id":9}`) {
		t.Errorf("%s", got[len(got)-1].Data)
	}
}

// Events that cannot be sent are lost and counted, not kept for ever.
func TestEventsWithoutConnection(t *testing.T) {
	p := start(t, producer.Options{URL: "nats://127.0.0.1:1", ID: "svc"})
	for range 1000 {
		p.Emit(realm.Session{Gateway: "g", ID: "s"}, "x", nil)
	}
	natstest.Until(t, "all are lost", func() bool { return p.Stats().LostEvents == 1000 })
}
