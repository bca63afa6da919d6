package replica

import (
	"testing"
	"time"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/internal/natstest"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

func TestPresenceRules(t *testing.T) {
	const after = 6 * time.Second
	type at struct {
		second float64
		kind   signKind
		gen    subjects.Generation
		want   effect
		alive  bool
	}
	tests := map[string][]at{
		"a record makes it live, silence lets it die once": {
			{0, signRecord, "g1", effectAlive, true}, {6, signTick, "", effectNone, true},
			{6.1, signTick, "", effectDied, false}, {9, signTick, "", effectNone, false},
		},
		"beats keep it alive": {
			{0, signRecord, "g1", effectAlive, true}, {5, signBeat, "g1", effectNone, true}, {10, signTick, "", effectNone, true}, {11.1, signTick, "", effectDied, false},
		},
		"a suspended process returns by a beat": {
			{0, signRecord, "g1", effectAlive, true}, {7, signTick, "", effectDied, false}, {60, signBeat, "g1", effectAlive, true}, {66, signTick, "", effectNone, true},
		},
		"a suspended process returns by a record": {
			{0, signRecord, "g1", effectAlive, true}, {7, signTick, "", effectDied, false}, {60, signRecord, "g1", effectAlive, true},
		},
		"goodbye is final for its generation": {
			{0, signRecord, "g1", effectAlive, true}, {1, signClose, "g1", effectLeft, false}, {2, signRecord, "g1", effectNone, false},
			{2, signBeat, "g1", effectNone, false}, {9, signTick, "", effectNone, false}, {10, signRecord, "g2", effectAlive, true},
		},
		"goodbye of the dead is no news": {
			{0, signRecord, "g1", effectAlive, true}, {7, signTick, "", effectDied, false}, {8, signClose, "g1", effectNone, false}, {9, signBeat, "g1", effectNone, false},
		},
		"late words of an older generation change nothing": {
			{0, signRecord, "g2", effectAlive, true}, {1, signClose, "g1", effectNone, true}, {5, signBeat, "g1", effectNone, true},
			{5, signRecord, "g1", effectNone, true}, {6.1, signTick, "", effectDied, false}, {7, signBeat, "g1", effectNone, false},
		},
		"a beat ahead of its records waits for them": {
			{0, signRecord, "g1", effectAlive, true}, {5, signBeat, "g2", effectNone, true}, {6.1, signTick, "", effectDied, false},
			{7, signBeat, "g2", effectNone, false}, {8, signRecord, "g2", effectAlive, true},
		},
		"a deaf reader forgives silence": {
			{0, signRecord, "g1", effectAlive, true}, {10, signGrace, "", effectNone, true}, {15, signTick, "", effectNone, true}, {16.1, signTick, "", effectDied, false},
		},
		"grace does not shorten a life": {
			{10, signRecord, "g1", effectAlive, true}, {5, signGrace, "", effectNone, true}, {16, signTick, "", effectNone, true},
		},
		"grace wakes nobody": {
			{0, signRecord, "g1", effectAlive, true}, {7, signTick, "", effectDied, false}, {8, signGrace, "", effectNone, false},
		},
	}
	start := time.Unix(1000, 0)
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			var p presence
			for i, s := range steps {
				var e effect
				p, e = p.step(sign{s.kind, s.gen, start.Add(time.Duration(s.second * float64(time.Second)))}, after)
				if e != s.want || p.connected != s.alive {
					t.Fatalf("step %d at %v s: effect %d, connected %v; want %d, %v", i, s.second, e, p.connected, s.want, s.alive)
				}
				if p.connected != p.gone.IsZero() {
					t.Fatalf("step %d: connected %v but gone at %v", i, p.connected, p.gone)
				}
			}
		})
	}
}

// FuzzPresence checks what must hold after any signs: a death comes only from
// a life, and only one life at a time.
func FuzzPresence(f *testing.F) {
	f.Add([]byte{1, 4, 3, 2, 1, 5, 4})
	f.Fuzz(func(t *testing.T, script []byte) {
		var p presence
		now := time.Unix(1000, 0)
		for _, b := range script {
			kind := signKind(b%5) + 1
			now = now.Add(time.Duration(b>>5) * time.Second)
			was := p
			next, e := p.step(sign{kind, subjects.Generation("g" + string('0'+rune(b>>3&3))), now}, 6*time.Second)
			if (e == effectAlive) != (!was.connected && next.connected) || (e == effectLeft || e == effectDied) != (was.connected && !next.connected) {
				t.Fatalf("effect %d from %+v to %+v", e, was, next)
			}
			if next.generation < was.generation || next.closed && next.connected {
				t.Fatalf("from %+v to %+v", was, next)
			}
			p = next
		}
	})
}

// log notes the kinds of all changes.
type log struct{ kinds []fold.Kind }

func (l *log) Changed(_ *fold.Space, changes []fold.Change) {
	for _, c := range changes {
		l.kinds = append(l.kinds, c.Kind)
	}
}

func TestDeathAndReturn(t *testing.T) {
	srv := natstest.Start(t)
	js := srv.JetStream()
	streams(t, js, subjects.Storage{})
	r := open(t, srv, subjects.Limits{Heartbeat: 100 * time.Millisecond})
	var l log
	cancel := r.Watch(nil, &l)
	src := natstest.NewSource(t, js, "t", "shop")
	src.Open()
	src.Send(subjects.PlaneNet, network.TopicStart, network.Start{ID: "r", URL: "u"})
	see(t, r, 2*time.Second, "it lives", func(s *fold.Space) bool { x := s.Source("shop"); return x != nil && x.Connected })
	see(t, r, 3*time.Second, "it dies of silence and its request ends", func(s *fold.Space) bool {
		x := s.Source("shop")
		q := x.Net.Get(string(src.Generation), "r")
		return !x.Connected && q != nil && q.Ending == network.SourceGone
	})
	natstest.Until(t, 2*time.Second, "a beat brings it back", func() bool {
		src.Beat()
		back := false
		r.View(func(s *fold.Space) { back = s.Source("shop").Connected })
		return back
	})
	src.Close("done")
	see(t, r, 2*time.Second, "it leaves", func(s *fold.Space) bool { return !s.Source("shop").Connected })
	src.Beat()
	if err := js.Conn().Flush(); err != nil {
		t.Fatal(err)
	}
	cancel()
	n := 0
	for _, k := range l.kinds {
		if k == fold.PresenceChanged {
			n++
		}
	}
	if n != 4 {
		t.Errorf("presence changed %d times, want 4 (alive, dead, alive, left): %v", n, l.kinds)
	}
}

func TestMalformedHeartbeats(t *testing.T) {
	srv := natstest.Start(t)
	js := srv.JetStream()
	streams(t, js, subjects.Storage{})
	r := open(t, srv, subjects.Limits{})
	for _, data := range []string{"", "{", `{"version":9,"generation":"g"}`} {
		if err := js.Conn().Publish(subjects.Heartbeat("t", "x"), []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	natstest.Until(t, 2*time.Second, "they are counted", func() bool { return r.Status().BadBeats == 3 })
}
