package store

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/internal/natstest"
	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/source"
	"github.com/natscope/natscope/subjects/tree"
)

// member is a program that is written by hand: it asks nobody before it opens,
// beats, answers, and does what it is told.
type member struct {
	*natstest.Source
	t    testing.TB
	nc   *nats.Conn
	subs []*nats.Subscription
	// requests come from NATS and are answered by turn, in the goroutine of the test.
	requests chan *nats.Msg
	// told lists what it was told, with what was said of the other program.
	told []string
	dead bool
}

func newMember(t testing.TB, srv *natstest.Server, realm string) *member {
	js := srv.JetStream()
	m := &member{Source: natstest.NewSource(t, js, "t", "shop"), t: t, nc: js.Conn(), requests: make(chan *nats.Msg, 100)}
	m.Realm = source.RealmID(realm)
	return m
}

// open begins a generation with a tree of one node that names the program.
func (m *member) open() {
	m.t.Helper()
	m.Begin()
	m.enter()
}

// enter opens the generation that was begun.
func (m *member) enter() {
	m.t.Helper()
	for _, s := range m.subs {
		_ = s.Unsubscribe()
	}
	m.subs = nil
	for _, subject := range []string{subjects.Command("t", m.ID, m.Generation), subjects.Control("t", m.ID, m.Generation)} {
		s, err := m.nc.ChanSubscribe(subject, m.requests)
		if err != nil {
			m.t.Fatal(err)
		}
		m.subs = append(m.subs, s)
	}
	if err := m.nc.Flush(); err != nil {
		m.t.Fatal(err)
	}
	m.OpenAgain()
	m.Send(subjects.PlaneTree, tree.TopicSnapshot, tree.Snapshot{Version: tree.SchemaVersion, Profile: tree.ProfileComponent, Revision: 1, Root: &tree.Node{ID: 1, Name: string(m.Realm)}})
}

// die ends it without a word.
func (m *member) die() {
	m.dead = true
	m.nc.Close()
}

// turn answers what came, and beats.
func (m *member) turn() {
	m.t.Helper()
	if m.dead {
		return
	}
	for {
		select {
		case r := <-m.requests:
			m.answer(r)
			continue
		default:
		}
		m.Beat()
		return
	}
}

func (m *member) answer(r *nats.Msg) {
	m.t.Helper()
	if strings.Contains(r.Subject, ".cmd.") {
		_ = r.Respond([]byte(`{"ok":true}`)) // Whoever asked may be gone.
		return
	}
	var c subjects.ControlMessage
	if err := json.Unmarshal(r.Data, &c); err != nil {
		m.t.Error(err)
	}
	if strings.HasSuffix(r.Subject, string(m.Generation)) {
		switch c.Kind {
		case subjects.ControlIDTaken, subjects.ControlSuperseded:
			m.told = append(m.told, c.Kind+": "+c.Reason)
			m.ID += "-2"
			m.open()
		case subjects.ControlReopen:
			m.told = append(m.told, c.Kind+": "+c.Reason)
			m.open()
		}
	}
	_ = r.Respond([]byte(`{"ok":true}`)) // Whoever asked may be gone.
}

// settled reports why not every living program is the one that readers follow, with its own tree; empty if so.
func settled(r *replica.Replica, members ...*member) (why string) {
	r.View(func(s *fold.Space) {
		for _, m := range members {
			src := s.Source(m.ID)
			switch {
			case m.dead:
			case src == nil:
				why += fmt.Sprintf("%s is unknown; ", m.ID)
			case src.Generation != m.Generation || !src.Connected:
				why += fmt.Sprintf("%s of realm %s: generation %s, followed is %s, connected %v; ", m.ID, m.Realm, m.Generation, src.Generation, src.Connected)
			case src.Tree.Root == nil || src.Tree.Root.Name != string(m.Realm):
				why += fmt.Sprintf("%s has not the tree of realm %s; ", m.ID, m.Realm)
			}
		}
	})
	return why
}

// quick limits make sources die soon.
var quick = subjects.Limits{Heartbeat: 200 * time.Millisecond}

// live lets the members live until ok holds.
func live(t testing.TB, within time.Duration, what string, ok func() bool, members ...*member) {
	t.Helper()
	natstest.Until(t, within, what, func() bool {
		for _, m := range members {
			m.turn()
		}
		return ok()
	})
}

// TestTwoProgramsOneID: with one store and with several, the program that was
// first keeps the id, the second one gets another, both hear of each other, and
// both are there with their trees. It does not matter how long the second one takes.
func TestTwoProgramsOneID(t *testing.T) {
	for stores := 1; stores <= 2; stores++ {
		t.Run(fmt.Sprint(stores), func(t *testing.T) {
			t.Parallel()
			srv := natstest.Start(t)
			var all []*Store
			for range stores {
				all = append(all, startStore(t, srv, quick, subjects.Storage{}))
			}
			r := openReplica(t, srv, quick)
			first, second := newMember(t, srv, "first"), newMember(t, srv, "second")
			first.open()
			live(t, 5*time.Second, "the first one is there", func() bool { return settled(r, first) == "" }, first)
			second.open()
			live(t, 10*time.Second, "both are there", func() bool { return second.ID != "shop" && settled(r, first, second) == "" }, first, second)
			if first.ID != "shop" || second.ID != "shop-2" {
				t.Errorf("the first is %s, the second %s", first.ID, second.ID)
			}
			if len(first.told) != 1 || !strings.HasPrefix(first.told[0], "reopen: ") || len(second.told) != 1 || !strings.HasPrefix(second.told[0], "id-taken: ") {
				t.Errorf("told: %q, %q", first.told, second.told)
			}
			before := first.Generation + second.Generation
			beats := 0
			live(t, 10*time.Second, "they live on", func() bool { beats++; return beats > 200 }, first, second)
			for _, s := range all {
				if why := settled(s.Replica(), first, second); why != "" || first.Generation+second.Generation != before {
					t.Errorf("it does not stay so: %s", why)
				}
			}
		})
	}
}

// TestRestartKeepsID: a program that was killed and starts again has its id at
// once, and is not told anything.
func TestRestartKeepsID(t *testing.T) {
	srv := natstest.Start(t)
	startStore(t, srv, quick, subjects.Storage{})
	startStore(t, srv, quick, subjects.Storage{})
	r := openReplica(t, srv, quick)
	old := newMember(t, srv, "old")
	old.open()
	live(t, 5*time.Second, "it is there", func() bool { return settled(r, old) == "" }, old)
	for range 5 {
		old.die()
		next := newMember(t, srv, "next")
		next.open()
		beats := 0
		live(t, time.Second, "it is there again", func() bool { beats++; return beats > 20 && settled(r, next) == "" }, next)
		if next.ID != "shop" || len(next.told) > 0 {
			t.Errorf("it is %s and was told %q", next.ID, next.told)
		}
		old = next
	}
}

// TestFrozenProgramMovesAway: a program that does not answer while it is
// restarted loses its id, and takes another when it wakes up. Its late goodbye changes nothing.
func TestFrozenProgramMovesAway(t *testing.T) {
	srv := natstest.Start(t)
	startStore(t, srv, quick, subjects.Storage{})
	r := openReplica(t, srv, quick)
	frozen, next := newMember(t, srv, "frozen"), newMember(t, srv, "next")
	frozen.open()
	live(t, 5*time.Second, "it is there", func() bool { return settled(r, frozen) == "" }, frozen)
	next.open()
	begun := time.Now()
	live(t, 5*time.Second, "the store gives up asking", func() bool { return time.Since(begun) > askTimeout+100*time.Millisecond }, next)
	if next.ID != "shop" || len(next.told) > 0 || settled(r, next) != "" {
		t.Fatalf("the newcomer is %s, was told %q: %s", next.ID, next.told, settled(r, next))
	}
	live(t, 5*time.Second, "both are there", func() bool { return frozen.ID == "shop-2" && settled(r, frozen, next) == "" }, frozen, next)
	if len(frozen.told) != 1 || !strings.HasPrefix(frozen.told[0], "superseded: ") {
		t.Errorf("told %q", frozen.told)
	}
	ghost := natstest.NewSource(t, srv.JetStream(), "t", "shop")
	ghost.Begin()
	ghost.Generation = "g000000000000"
	ghost.Close("late")
	live(t, 5*time.Second, "the late goodbye is read", func() bool {
		late := uint64(0)
		r.View(func(s *fold.Space) { late = s.Source("shop").Late })
		return late > 0
	}, frozen, next)
	if why := settled(r, frozen, next); why != "" {
		t.Error(why)
	}
}

// TestLateStore: programs that share an id while there is no store are told apart
// when one comes. Readers show the newer one until then, so it is the one that stays.
func TestLateStore(t *testing.T) {
	srv := natstest.Start(t)
	if err := EnsureStreams(t.Context(), srv.JetStream(), "t", subjects.Storage{}); err != nil {
		t.Fatal(err)
	}
	r := openReplica(t, srv, quick)
	first, second := newMember(t, srv, "first"), newMember(t, srv, "second")
	first.open()
	second.open()
	beats := 0
	live(t, 10*time.Second, "they live for a while", func() bool { beats++; return beats > 100 }, first, second)
	if first.ID != "shop" || second.ID != "shop" || settled(r, second) != "" {
		t.Fatalf("without a store: %s, %s, %s", first.ID, second.ID, settled(r, second))
	}
	startStore(t, srv, quick, subjects.Storage{})
	startStore(t, srv, quick, subjects.Storage{})
	live(t, 10*time.Second, "both are there", func() bool { return first.ID == "shop-2" && settled(r, first, second) == "" }, first, second)
	if second.ID != "shop" || len(second.told) > 0 || len(first.told) != 1 {
		t.Errorf("told: %q, %q", first.told, second.told)
	}
}

// TestClockBehind: a program whose clock is behind that of its predecessor keeps its id.
func TestClockBehind(t *testing.T) {
	srv := natstest.Start(t)
	startStore(t, srv, quick, subjects.Storage{})
	r := openReplica(t, srv, quick)
	behind, ahead := newMember(t, srv, "behind"), newMember(t, srv, "ahead")
	behind.Begin()
	ahead.open()
	live(t, 5*time.Second, "the predecessor is there", func() bool { return settled(r, ahead) == "" }, ahead)
	ahead.die()
	behind.enter()
	live(t, 5*time.Second, "it is there", func() bool { return settled(r, behind) == "" }, behind)
	if behind.ID != "shop" || len(behind.told) != 1 || !strings.HasPrefix(behind.told[0], "reopen: ") {
		t.Errorf("it is %s and was told %q", behind.ID, behind.told)
	}
}

// TestAdmittedWhenSure: a newcomer is not admitted while it is not sure that the id is its own.
func TestAdmittedWhenSure(t *testing.T) {
	srv := natstest.Start(t)
	st := startStore(t, srv, quick, subjects.Storage{})
	frozen := newMember(t, srv, "frozen")
	frozen.open()
	natstest.Until(t, 5*time.Second, "it is known", func() bool { now, _ := st.arbiter.admits("shop", frozen.Generation); return now })
	next := newMember(t, srv, "next")
	next.open()
	natstest.Until(t, 5*time.Second, "it is asked for", func() bool { _, never := st.arbiter.admits("shop", frozen.Generation); return never })
	if now, never := st.arbiter.admits("shop", next.Generation); now || never {
		t.Errorf("admitted %v, never %v", now, never)
	}
	natstest.Until(t, 5*time.Second, "it is admitted", func() bool { now, _ := st.arbiter.admits("shop", next.Generation); return now })
	if now, never := st.arbiter.admits("nobody", "g"); now || !never {
		t.Errorf("an unknown source: admitted %v, never %v", now, never)
	}
}
