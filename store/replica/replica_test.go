package replica

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/internal/natstest"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/tree"
)

// streams makes the streams of the space "t".
func streams(t testing.TB, js jetstream.JetStream, s subjects.Storage) {
	t.Helper()
	for _, c := range []jetstream.StreamConfig{subjects.RecordStream("t", s), subjects.BodyStream("t", s), subjects.StateStream("t", s)} {
		if _, err := js.CreateOrUpdateStream(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
}

// open opens a replica of the space "t".
func open(t testing.TB, srv *natstest.Server, l subjects.Limits) *Replica {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := Open(ctx, Options{Conn: srv.Connect(), Space: "t", Limits: l})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// see polls a condition on the state.
func see(t testing.TB, r *Replica, within time.Duration, what string, ok func(*fold.Space) bool) {
	t.Helper()
	natstest.Until(t, within, what, func() (done bool) {
		r.View(func(s *fold.Space) { done = ok(s) })
		return done
	})
}

func TestFollow(t *testing.T) {
	srv := natstest.Start(t)
	js := srv.JetStream()
	streams(t, js, subjects.Storage{})
	src := natstest.NewSource(t, js, "t", "shop")
	src.Open()
	src.Send(subjects.PlaneTree, tree.TopicSnapshot, natstest.Tree(1, 3))
	r := open(t, srv, subjects.Limits{})
	r.View(func(s *fold.Space) {
		x := s.Source("shop")
		if x == nil || x.Tree.Len() != 4 || !x.Connected || x.Name() != "the shop" {
			t.Fatalf("what was in the stream before Open is not there: %+v", x)
		}
	})
	src.Send(subjects.PlaneTree, tree.TopicOps, tree.Ops{Revision: 2, Ops: []tree.Op{{Op: tree.OpRemove, ID: 3}}})
	see(t, r, 2*time.Second, "the removal", func(s *fold.Space) bool { return s.Source("shop").Tree.Len() == 3 })
	if s := r.Status(); !s.Ready || s.Waiting != "" || s.Sources != 1 || s.Connected != 1 {
		t.Errorf("status %+v", s)
	}
}
