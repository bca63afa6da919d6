package replica

import (
	"testing"
	"time"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/internal/natstest"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

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
