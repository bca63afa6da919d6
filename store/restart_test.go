package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/follow"
	"github.com/natscope/natscope/store/internal/bucket"
	"github.com/natscope/natscope/store/internal/natstest"
	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/store/state"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/source"
	"github.com/natscope/natscope/subjects/tree"
)

// kinds counts changes by kind.
type kinds struct {
	mu sync.Mutex
	n  map[fold.Kind]int
}

func (k *kinds) Changed(_ *fold.Space, changes []fold.Change) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.n == nil {
		k.n = make(map[fold.Kind]int)
	}
	for _, c := range changes {
		k.n[c.Kind]++
	}
}

func (k *kinds) of(kind fold.Kind) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.n[kind]
}

// TestServerRestart: views are current within five seconds of the server's return.
func TestServerRestart(t *testing.T) {
	for name, storage := range map[string]subjects.Storage{"file": {}, "memory": {Memory: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := natstest.Start(t)
			js := srv.JetStream()
			s := startStore(t, srv, patient, storage)
			r := openReplica(t, srv, patient)
			var seen kinds
			defer r.Watch(nil, &seen)()
			src := natstest.NewSource(t, js, "t", "a")
			src.Open()
			write(src, 3)
			for round := range 3 {
				srv.Down()
				natstest.Until(t, 5*time.Second, "the replica notices", func() bool { return r.Status().Waiting != "" })
				srv.Up()
				back := time.Now()
				if storage.Memory {
					natstest.Until(t, 5*time.Second, "the streams are there again", func() bool {
						ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
						defer cancel()
						_, err := js.Stream(ctx, subjects.RecordStreamName("t"))
						return err == nil
					})
					src.Open()
					write(src, 3)
				}
				revision := uint64(3 + round)
				if storage.Memory {
					revision = 3
				}
				src.Send(subjects.PlaneTree, tree.TopicOps, tree.Ops{Revision: revision, Ops: []tree.Op{{Op: tree.OpUpdate, Node: &tree.Node{ID: 20, Name: "item", Text: fmt.Sprint(round)}}}})
				for _, x := range []*replica.Replica{r, s.Replica()} {
					natstest.Until(t, 5*time.Second-time.Since(back), "the view is current", func() (ok bool) {
						x.View(func(sp *fold.Space) {
							a := sp.Source("a")
							ok = a != nil && a.Tree.Node(20) != nil && a.Tree.Node(20).Text == fmt.Sprint(round)
						})
						return ok
					})
				}
				t.Logf("current %v after the server was back", time.Since(back))
			}
			if got := seen.of(fold.SourceRemoved); storage.Memory && got != 3 || !storage.Memory && got != 0 {
				t.Errorf("the source was removed %d times", got)
			}
			if storage.Memory {
				return
			}
			r.View(func(sp *fold.Space) {
				if n := sp.Source("a").FaultCount; n != 0 {
					t.Errorf("%d faults: %+v", n, sp.Source("a").Faults)
				}
			})
		})
	}
}

// TestTwoStores: both fold, one saves, and the other takes over.
func TestTwoStores(t *testing.T) {
	srv := natstest.Start(t)
	js := srv.JetStream()
	a := startStore(t, srv, patient, subjects.Storage{})
	b := startStore(t, srv, patient, subjects.Storage{})
	src := natstest.NewSource(t, js, "t", "a")
	src.Open()
	write(src, 20)
	ops := func(n int) (last uint64) {
		for range n {
			last = src.Send(subjects.PlaneTree, "unknown", nil)
		}
		return last
	}
	covers(t, js, ops(200))
	// Whichever saved last dies; then the other one must.
	_ = a.Close(expired())
	start := time.Now()
	covers(t, js, ops(20))
	t.Logf("saved again after %v", time.Since(start))
	a = startStore(t, srv, patient, subjects.Storage{})
	covers(t, js, ops(20))
	_ = b.Close(expired())
	covers(t, js, ops(20))
	want := dump(t, a.Replica())
	parts, err := bucket.New(js, "t").Parts(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	saved, _, err := state.Decode("a", parts, patient)
	if err != nil {
		t.Fatal(err)
	}
	sp := fold.New("t", patient)
	sp.Restore(saved)
	if d := natstest.Diff(want, natstest.Dump(t, sp)); d != "" {
		t.Fatal(d)
	}
}

// TestSnapshotOnItsWay: what is half there is not saved, and nothing of it is lost for who joins meanwhile.
func TestSnapshotOnItsWay(t *testing.T) {
	srv := natstest.Start(t)
	js := srv.JetStream()
	s := startStore(t, srv, patient, subjects.Storage{})
	src := natstest.NewSource(t, js, "t", "a")
	src.Open()
	begin := src.Send(subjects.PlaneTree, tree.TopicBegin, tree.Snapshot{Version: 1, Profile: tree.ProfileComponent, Revision: 1})
	src.Send(subjects.PlaneTree, tree.TopicNodes, tree.Nodes{Revision: 1, Nodes: []tree.PlacedNode{{Node: tree.Node{ID: 1, Name: "app"}}}})
	other := natstest.NewSource(t, js, "t", "b")
	other.Open()
	b := bucket.New(js, "t")
	natstest.Until(t, 5*time.Second, "the other source is saved", func() bool {
		v, err := b.Head(t.Context(), "b")
		return err == nil && v.Data != nil
	})
	c, _, err := b.Cursor(t.Context())
	if err != nil || uint64(c.Covered) >= begin {
		t.Errorf("the cursor is at %d (%v), the snapshot began at %d", c.Covered, err, begin)
	}
	r := openReplica(t, srv, patient)
	last := src.Send(subjects.PlaneTree, tree.TopicCommit, tree.Commit{Revision: 1, Count: 1})
	covers(t, js, last)
	natstest.Until(t, 5*time.Second, "the joiner is there", func() bool { return uint64(r.Status().Covered) >= last })
	want := dump(t, s.Replica())
	if d := natstest.Diff(want, dump(t, r)); d != "" || !strings.Contains(want, `"app"`) {
		t.Fatalf("%s\n%s", d, want)
	}
}

// controls answers the control requests of one generation and notes them.
func controls(t testing.TB, js *nats.Conn, src *natstest.Source, answer func(subjects.ControlMessage)) {
	t.Helper()
	sub, err := js.Subscribe(subjects.Control("t", src.ID, src.Generation), func(m *nats.Msg) {
		var c subjects.ControlMessage
		if err := json.Unmarshal(m.Data, &c); err != nil {
			t.Error(err)
		}
		answer(c)
		_ = m.Respond([]byte(`{"ok":true}`))
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sub.Unsubscribe() })
	if err := js.Flush(); err != nil {
		t.Fatal(err)
	}
}

func TestAdmittedAndResnapshot(t *testing.T) {
	srv := natstest.Start(t)
	js := srv.JetStream()
	startStore(t, srv, patient, subjects.Storage{})
	src := natstest.NewSource(t, js, "t", "a")
	src.Begin()
	got := make(chan subjects.ControlMessage, 16)
	controls(t, js.Conn(), src, func(c subjects.ControlMessage) { got <- c })
	next := func(kind string) {
		t.Helper()
		select {
		case c := <-got:
			if c.Kind != kind {
				t.Fatalf("got %+v, want %s", c, kind)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("no %s", kind)
		}
	}
	src.OpenAgain()
	src.Send(subjects.PlaneTree, tree.TopicSnapshot, natstest.Tree(1, 2))
	next(subjects.ControlAdmitted)
	bad := tree.Ops{Revision: 7, Ops: []tree.Op{{Op: tree.OpRemove, ID: 2}}}
	src.Send(subjects.PlaneTree, tree.TopicOps, bad)
	src.Send(subjects.PlaneTree, tree.TopicOps, bad)
	for range follow.RepairTries {
		next(subjects.ControlResnapshot)
	}
	src.Send(subjects.PlaneTree, tree.TopicSnapshot, natstest.Tree(8, 3))
	src.Send(subjects.PlaneTree, tree.TopicOps, tree.Ops{Revision: 20})
	next(subjects.ControlResnapshot)
	src.Send(subjects.PlaneTree, tree.TopicSnapshot, natstest.Tree(21, 3))
	// A new generation is admitted too; nothing else was said meanwhile.
	src.Begin()
	controls(t, js.Conn(), src, func(c subjects.ControlMessage) { got <- c })
	src.OpenAgain()
	next(subjects.ControlAdmitted)
}

// TestStranger: a generation that beats but has no record left is asked to show itself.
func TestStranger(t *testing.T) {
	srv := natstest.Start(t)
	js := srv.JetStream()
	startStore(t, srv, patient, subjects.Storage{})
	src := natstest.NewSource(t, js, "t", "a")
	src.Begin()
	asked := make(chan subjects.ControlMessage, 16)
	controls(t, js.Conn(), src, func(c subjects.ControlMessage) { asked <- c })
	// The store may not listen yet when it has started.
	var c subjects.ControlMessage
	beat := time.NewTicker(50 * time.Millisecond)
	defer beat.Stop()
	natstest.Until(t, 10*time.Second, "the stranger is asked", func() bool {
		select {
		case <-beat.C:
			src.Beat()
		case c = <-asked:
			return true
		}
		return false
	})
	if c.Kind != subjects.ControlReopen || c.After != src.Generation {
		t.Errorf("got %+v", c)
	}
}

// TestKnownStranger: a generation whose records this store has not read yet is left alone.
func TestKnownStranger(t *testing.T) {
	srv := natstest.Start(t)
	js := srv.JetStream()
	s := startStore(t, srv, patient, subjects.Storage{})
	src := natstest.NewSource(t, js, "t", "a")
	src.Begin()
	src.Send(subjects.PlaneLife, source.TopicUpdate, source.Update{})
	for g, want := range map[subjects.Generation]bool{src.Generation: true, "g999999999999": false} {
		if got, err := s.control.recorded(t.Context(), "a", g); err != nil || got != want {
			t.Errorf("generation %s: recorded %v, %v", g, got, err)
		}
	}
}

// TestUnopenedWithBrokenTree: a generation without an open is asked to open again,
// not only for the tree of which its first records are a part.
func TestUnopenedWithBrokenTree(t *testing.T) {
	srv := natstest.Start(t)
	js := srv.JetStream()
	startStore(t, srv, patient, subjects.Storage{})
	src := natstest.NewSource(t, js, "t", "a")
	src.Begin()
	asked := make(chan subjects.ControlMessage, 16)
	controls(t, js.Conn(), src, func(c subjects.ControlMessage) { asked <- c })
	for revision := range uint64(3) {
		src.Send(subjects.PlaneTree, tree.TopicOps, tree.Ops{Revision: 20 + revision})
	}
	natstest.Until(t, 10*time.Second, "the source is asked to open again", func() bool {
		select {
		case c := <-asked:
			return c.Kind == subjects.ControlReopen && c.After == src.Generation
		default:
			return false
		}
	})
}
