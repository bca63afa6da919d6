package producer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/source"
)

// opened waits until a producer is open and returns its id.
func opened(t testing.TB, p *producer.Producer) subjects.SourceID {
	t.Helper()
	natstest.Until(t, "it is open", func() bool { return p.Stats().Opened })
	return p.ID()
}

// claimOf asks for an id as a program that is about to open.
func claimOf(t testing.TB, nc *nats.Conn, id subjects.SourceID, realm source.RealmID) (subjects.ClaimAnswer, error) {
	t.Helper()
	data, err := json.Marshal(subjects.Claim{Generation: "01zzzzzzzzzzzzzzzzzzzzzzzz", Realm: realm, Who: "the asker"})
	if err != nil {
		t.Fatal(err)
	}
	m, err := nc.Request(subjects.ClaimSubject(space, id), data, 3*time.Second)
	if err != nil {
		return subjects.ClaimAnswer{}, err
	}
	a, err := subjects.ParseClaimAnswer(m.Data)
	if err != nil {
		t.Fatalf("%s: %v", m.Data, err)
	}
	return a, nil
}

// notices returns what a source told of itself.
func notices(src *fold.Source) (out []string) {
	for _, f := range src.Faults {
		if f.Kind == fold.FaultNotice {
			out = append(out, f.Text)
		}
	}
	return out
}

// TestSecondProgram: programs with one id are told apart without any store, and
// all of them say so.
func TestSecondProgram(t *testing.T) {
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{Memory: true})
	var all []*producer.Producer
	for i := range 3 {
		p := start(t, producer.Options{URL: s.URL(), ID: "svc", Name: fmt.Sprint("program ", i+1)})
		want := subjects.SourceID([]string{"svc", "svc-2", "svc-3"}[i])
		if got := opened(t, p); got != want {
			t.Fatalf("program %d is %s, want %s", i+1, got, want)
		}
		count(p, 0, 5)
		flush(t, p)
		all = append(all, p)
	}
	for _, p := range all {
		flush(t, p)
		wantCount(t, numbers(t, s, p.ID()), 5)
	}
	space := folded(t, s)
	first, third := notices(space.Source("svc")), notices(space.Source("svc-3"))
	if len(first) != 1 || !strings.Contains(first[0], `"program 2", process `) {
		t.Errorf("the first program says %q", first)
	}
	if len(third) != 1 || !strings.Contains(third[0], `the id svc, so this one is svc-3`) || !strings.Contains(third[0], `"program 1", process `) {
		t.Errorf("the third program says %q", third)
	}
	// The second one restarts and finds its own id again, the first one is gone and leaves its id to whoever comes.
	end(t, all[1])
	if got := opened(t, start(t, producer.Options{URL: s.URL(), ID: "svc"})); got != "svc-2" {
		t.Errorf("after a restart it is %s", got)
	}
	end(t, all[0])
	if got := opened(t, start(t, producer.Options{URL: s.URL(), ID: "svc"})); got != "svc" {
		t.Errorf("a free id is not taken: %s", got)
	}
}

// TestClaimAnswers shows whom a holder answers what.
func TestClaimAnswers(t *testing.T) {
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{Memory: true})
	nc := s.Connect()
	if _, err := claimOf(t, nc, "svc", "r"); err != nats.ErrNoResponders {
		t.Errorf("nobody has the id: %v", err)
	}
	p := start(t, producer.Options{URL: s.URL(), ID: "svc"})
	opened(t, p)
	if a, err := claimOf(t, nc, "svc", "another realm"); err != nil || !a.Held || a.Generation != p.Generation() || !strings.Contains(a.Who, "process") {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := claimOf(t, nc, "svc", p.Realm()); err != nil || a.Held {
		t.Errorf("its own realm: %+v, %v", a, err)
	}
	for _, bad := range []string{"", "{", "[]", `{"generation":"*"}`} {
		if _, err := nc.Request(subjects.ClaimSubject(space, "svc"), []byte(bad), 50*time.Millisecond); err != nats.ErrTimeout {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for range 100 {
		if a, err := claimOf(t, nc, "svc", "yet another"); err != nil || !a.Held {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	flush(t, p)
	if n := notices(folded(t, s).Source("svc")); len(n) != 1 {
		t.Errorf("101 claims made the notices %q", n)
	}
	end(t, p)
	if _, err := claimOf(t, nc, "svc", "r"); err != nats.ErrNoResponders {
		t.Errorf("the source is closed: %v", err)
	}
}

// TestFrozenHolder: a program that cannot be heard loses its id within about a
// second to one that asks, and moves away when it is told so.
func TestFrozenHolder(t *testing.T) {
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{Memory: true})
	proxy := natstest.NewProxy(t, s, nil)
	old := start(t, producer.Options{URL: proxy.URL(), ID: "svc"})
	opened(t, old)
	proxy.Freeze(true)
	begun := time.Now()
	p := start(t, producer.Options{URL: s.URL(), ID: "svc"})
	if id := opened(t, p); id != "svc" || time.Since(begun) > 2500*time.Millisecond {
		t.Errorf("after %v it is %s", time.Since(begun), id)
	}
	generation := old.Generation()
	proxy.Freeze(false)
	m, err := s.Connect().Request(subjects.Control(space, "svc", generation), []byte(`{"kind":"superseded","reason":"it was frozen"}`), 5*time.Second)
	if err != nil || !strings.Contains(string(m.Data), `"ok":true`) {
		t.Fatalf("%v, %v", m, err)
	}
	natstest.Until(t, "it moves away", func() bool { st := old.Stats(); return st.ID == "svc-2" && st.Opened && st.Superseded })
	flush(t, old)
	if n := notices(folded(t, s).Source("svc-2")); len(n) != 1 || !strings.Contains(n[0], "it was frozen") {
		t.Errorf("notices %q", n)
	}
}

// TestReopen: a source that is told so comes back behind the generation that it is told of.
func TestReopen(t *testing.T) {
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{Memory: true})
	nc := s.Connect()
	p := start(t, producer.Options{URL: s.URL(), ID: "svc"})
	opened(t, p)
	realm, generation := p.Realm(), p.Generation()
	// Far in the future, as of a program whose clock is ahead.
	ahead := generation[:3] + "zzzzzzz0000000000000000"
	for _, after := range []subjects.Generation{"", "a b", "7zzzzzzzzzzzzzzzzzzzzzzzzz"} {
		if a := ask(t, nc, p, fmt.Sprintf(`{"kind":"reopen","after":%q}`, after)); after > generation && a.OK {
			t.Errorf("behind %q: %+v", after, a)
		}
	}
	if p.Generation() != generation {
		t.Errorf("generation %s became %s", generation, p.Generation())
	}
	for range 2 { // The second time the generation that is asked is over.
		m, err := nc.Request(subjects.Control(space, "svc", generation), fmt.Appendf(nil, `{"kind":"reopen","after":%q,"reason":"the other one moved"}`, ahead), time.Second)
		if err == nats.ErrNoResponders {
			break
		}
		if err != nil || !strings.Contains(string(m.Data), `"ok":true`) {
			t.Fatalf("%v, %v", m, err)
		}
	}
	natstest.Until(t, "it is open again", func() bool { return p.Stats().Opened })
	if p.ID() != "svc" || p.Generation() <= ahead || p.Realm() != realm || p.Stats().Reopened != 1 {
		t.Errorf("%+v", p.Stats())
	}
	flush(t, p)
	src := folded(t, s).Source("svc")
	if n := notices(src); src.Generation != p.Generation() || len(n) != 1 || !strings.Contains(n[0], "the other one moved") {
		t.Errorf("generation %s, notices %q", src.Generation, n)
	}
}

// TestReopenLostOpening: a source whose opening record no reader has opens again, and nobody was in its place.
func TestReopenLostOpening(t *testing.T) {
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{Memory: true})
	nc := s.Connect()
	p := start(t, producer.Options{URL: s.URL(), ID: "svc"})
	opened(t, p)
	generation := p.Generation()
	if a := ask(t, nc, p, fmt.Sprintf(`{"kind":"reopen","after":%q,"reason":"the stream has no record of this generation"}`, generation)); !a.OK {
		t.Errorf("%+v", a)
	}
	natstest.Until(t, "it is open again", func() bool { return p.Generation() > generation && p.Stats().Opened })
	flush(t, p)
	src := folded(t, s).Source("svc")
	if n := notices(src); src.Generation != p.Generation() || len(n) != 0 || p.Stats().Reopened != 1 {
		t.Errorf("generation %s, notices %q, %+v", src.Generation, n, p.Stats())
	}
}

// TestTwoAnswers: who gives an id up does not speak for another one who has it.
func TestTwoAnswers(t *testing.T) {
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{Memory: true})
	nc := s.Connect()
	for _, answer := range []string{`{"held":false}`, `rubbish`, `{"held":true,"who":"the real one"}`} {
		if _, err := nc.Subscribe(subjects.ClaimSubject(space, "svc"), func(m *nats.Msg) { _ = m.Respond([]byte(answer)) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	p := start(t, producer.Options{URL: s.URL(), ID: "svc"})
	if id := opened(t, p); id != "svc-2" || !strings.Contains(p.Stats().LastError, "the real one") {
		t.Errorf("it is %s: %s", id, p.Stats().LastError)
	}
}

// TestClosingGivesWay: a source that is closing defends its id no more, and does
// not open again only to close.
func TestClosingGivesWay(t *testing.T) {
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{Memory: true})
	// From some time on nothing is acknowledged, so that it goes on closing.
	var deaf atomic.Bool
	proxy := natstest.NewProxy(t, s, func(b []byte) []byte {
		if deaf.Load() && strings.Contains(string(b), `"stream":`) {
			return nil
		}
		return b
	})
	p := start(t, producer.Options{URL: proxy.URL(), ID: "svc"})
	opened(t, p)
	generation := p.Generation()
	deaf.Store(true)
	ctx, cancel := context.WithCancel(context.Background())
	closed := make(chan error, 1)
	go func() { closed <- p.Close(ctx) }()
	nc := s.Connect()
	natstest.Until(t, "it gives way", func() bool {
		a, err := claimOf(t, nc, "svc", "another")
		return err == nil && !a.Held
	})
	for subject, request := range map[string]string{
		subjects.Command(space, "svc", generation): `{"method":"ping"}`,
		subjects.Control(space, "svc", generation): `{"kind":"superseded"}`,
	} {
		m, err := nc.Request(subject, []byte(request), 5*time.Second)
		if err != nil || !strings.Contains(string(m.Data), `"ok":false`) {
			t.Errorf("%s: %v, %v", request, m, err)
		}
	}
	if p.ID() != "svc" {
		t.Errorf("it is %s", p.ID())
	}
	cancel()
	<-closed
}

// TestAlive: a producer that stands for another program asks it before it defends the id.
func TestAlive(t *testing.T) {
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{Memory: true})
	nc := s.Connect()
	var alive, calls atomic.Int64
	p := start(t, producer.Options{URL: s.URL(), ID: "page", Alive: func(ctx context.Context) bool {
		calls.Add(1)
		switch alive.Load() {
		case 0:
			return false
		case 1:
			return true
		case 2:
			<-ctx.Done()
			return false
		}
		panic("alive?")
	}})
	opened(t, p)
	ping := func() string {
		m, err := nc.Request(subjects.Command(space, p.ID(), p.Generation()), []byte(`{"method":"ping"}`), 3*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		return string(m.Data)
	}
	for state, want := range map[int64]bool{0: false, 1: true, 2: false, 3: true} {
		alive.Store(state)
		if a, err := claimOf(t, nc, "page", "another"); err != nil || a.Held != want {
			t.Errorf("state %d: %+v, %v", state, a, err)
		}
		if got := ping(); strings.Contains(got, `"ok":true`) != want {
			t.Errorf("state %d: %s", state, got)
		}
	}
	if calls.Load() != 8 {
		t.Errorf("%d questions", calls.Load())
	}
	alive.Store(0)
	if a := ask(t, nc, p, `{"kind":"superseded"}`); a.OK || p.ID() != "page" {
		t.Errorf("nobody is left: %+v, %s", a, p.ID())
	}
	alive.Store(1)
	if a := ask(t, nc, p, `{"kind":"superseded"}`); !a.OK {
		t.Errorf("%+v", a)
	}
	natstest.Until(t, "it has another id", func() bool { return p.ID() == "page-2" && p.Stats().Opened })
}

// TestClaimNotPermitted: a server that does not let sources ask does not keep them from opening.
func TestClaimNotPermitted(t *testing.T) {
	s := natstest.Start(t, func(o *server.Options) {
		o.Users = []*server.User{{Username: "u", Password: "p", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"natscope.*.claim.>"}}}}}
	})
	s.As("u", "p")
	s.Streams(space, subjects.Storage{Memory: true})
	begun := time.Now()
	p := start(t, producer.Options{URL: s.URL(), ID: "svc", NATS: []nats.Option{nats.UserInfo("u", "p")}})
	if id := opened(t, p); id != "svc" || time.Since(begun) > 900*time.Millisecond {
		t.Errorf("after %v it is %s", time.Since(begun), id)
	}
}

// TestEverythingIsTaken: somebody who answers every claim does not keep a program from opening.
func TestEverythingIsTaken(t *testing.T) {
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{Memory: true})
	nc := s.Connect()
	if _, err := nc.Subscribe(subjects.ClaimSubject(space, "*"), func(m *nats.Msg) { _ = m.Respond([]byte(`{"held":true}`)) }); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	p := start(t, producer.Options{URL: s.URL(), ID: "svc"})
	if id := opened(t, p); !strings.HasPrefix(string(id), "svc-") || len(id) < 20 {
		t.Errorf("it is %s", id)
	}
	flush(t, p)
}
