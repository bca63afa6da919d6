package replica

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/internal/natstest"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
)

// tally counts the console entries that it saw, first those of the initial state.
type tally struct{ next, wrong uint64 }

func (c *tally) begin(s *fold.Space) {
	c.next = 1
	if src := s.Source("a"); src != nil {
		c.next = src.Console.Count + 1
	}
}

func (c *tally) Changed(_ *fold.Space, changes []fold.Change) {
	for _, x := range changes {
		if x.Kind != fold.ConsoleAdded {
			continue
		}
		if x.Console.Order != c.next {
			c.wrong++
		}
		c.next = x.Console.Order + 1
	}
}

// TestWatchIsOneStep: nothing falls between the initial state and the first change.
func TestWatchIsOneStep(t *testing.T) {
	const total = 2000
	srv := natstest.Start(t)
	js := srv.JetStream()
	streams(t, js, subjects.Storage{Memory: true})
	r := open(t, srv, subjects.Limits{Heartbeat: time.Minute})
	var writer sync.WaitGroup
	writer.Go(func() {
		src := natstest.NewSource(t, js, "t", "a")
		src.Open()
		for range total / 10 {
			var records []subjects.Record
			for range 10 {
				records = append(records, src.Record(console.TopicMessage, console.Message{Type: "log"}))
			}
			src.Frame(subjects.PlaneConsole, 0, records...)
		}
	})
	watchers := make([]tally, 50)
	for i := range watchers {
		see(t, r, 20*time.Second, "time to watch", func(s *fold.Space) bool {
			src := s.Source("a")
			return src != nil && src.Console.Count >= uint64(i)*total/50
		})
		defer r.Watch(watchers[i].begin, &watchers[i])()
	}
	writer.Wait()
	see(t, r, 10*time.Second, "all of it", func(s *fold.Space) bool { return s.Source("a").Console.Count == total })
	r.View(func(*fold.Space) {
		for i, w := range watchers {
			if w.wrong > 0 || w.next != total+1 {
				t.Errorf("watcher %d: %d out of order, next %d", i, w.wrong, w.next)
			}
		}
	})
}

// bomb is a watcher with a bug.
type bomb struct{}

func (bomb) Changed(*fold.Space, []fold.Change) { panic("boom") }

func TestWatcherPanics(t *testing.T) {
	srv := natstest.Start(t)
	js := srv.JetStream()
	streams(t, js, subjects.Storage{})
	r := open(t, srv, subjects.Limits{Heartbeat: time.Minute})
	var before, after tally
	before.begin(fold.New("t", subjects.Limits{}))
	after.begin(fold.New("t", subjects.Limits{}))
	defer r.Watch(nil, &before)()
	defer r.Watch(nil, bomb{})()
	defer r.Watch(nil, &after)()
	src := natstest.NewSource(t, js, "t", "a")
	src.Open()
	src.Send(subjects.PlaneConsole, console.TopicMessage, console.Message{Type: "log"})
	src.Send(subjects.PlaneConsole, console.TopicMessage, console.Message{Type: "log"})
	see(t, r, 5*time.Second, "both", func(s *fold.Space) bool { return s.Source("a") != nil && s.Source("a").Console.Count == 2 })
	if n := r.Status().Panics; n != 1 {
		t.Errorf("%d panics, want 1", n)
	}
	r.View(func(*fold.Space) {
		if before.next != 3 || after.next != 3 || before.wrong+after.wrong > 0 {
			t.Errorf("the others: %+v %+v", before, after)
		}
	})
}

func TestOpenRefuses(t *testing.T) {
	srv := natstest.Start(t)
	if _, err := Open(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "Conn") {
		t.Errorf("without a connection: %v", err)
	}
	if _, err := Open(t.Context(), Options{Conn: srv.Connect(), Space: "No Token"}); err == nil {
		t.Error("a space that is no token was accepted")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := Open(ctx, Options{Conn: srv.Connect(), Space: "t"})
	if err == nil || !strings.Contains(err.Error(), "start a store") {
		t.Errorf("without streams: %v", err)
	}
}

func TestCloseTwice(t *testing.T) {
	srv := natstest.Start(t)
	streams(t, srv.JetStream(), subjects.Storage{})
	r := open(t, srv, subjects.Limits{})
	for range 2 {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestHostileMessages: what is no frame changes nothing but counters.
func TestHostileMessages(t *testing.T) {
	srv := natstest.Start(t)
	js := srv.JetStream()
	streams(t, js, subjects.Storage{})
	r := open(t, srv, subjects.Limits{Heartbeat: time.Minute})
	src := natstest.NewSource(t, js, "t", "a")
	src.Open()
	var last uint64
	for _, subject := range []string{"natscope.t.rec.a", "natscope.t.rec.a.b.c.d", "natscope.t.rec.Ä.g.tree", "natscope.t.rec.unknown.g.tree"} {
		ack, err := js.Publish(t.Context(), subject, []byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		last = ack.Sequence
	}
	for _, h := range []subjects.Header{nil, {"Natscope-Version": {"2"}}, {"Natscope-Version": {"1"}, "Natscope-Seq": {"1"}, "Natscope-Count": {"1"}, "Natscope-Encoding": {"zstd"}}} {
		last = src.Raw(subjects.PlaneTree, h, []byte("x"))
	}
	natstest.Until(t, 5*time.Second, "all were read", func() bool { return uint64(r.Status().Covered) == last })
	r.View(func(s *fold.Space) {
		if x := s.Source("a"); len(s.Sources()) != 1 || x.FaultCount != 3 || s.Stray != 4 {
			t.Errorf("%d sources, %d faults of a, %d strays", len(s.Sources()), x.FaultCount, s.Stray)
		}
	})
}
