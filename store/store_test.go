package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/internal/bucket"
	"github.com/natscope/natscope/store/internal/natstest"
	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/store/state"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/tree"
)

// patient limits keep sources alive that do not beat.
var patient = subjects.Limits{Heartbeat: time.Minute}

func startStore(t testing.TB, srv *natstest.Server, l subjects.Limits, storage subjects.Storage) *Store {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	s, err := Start(ctx, Options{Conn: srv.Connect(), Space: "t", Limits: l, Storage: storage})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(expired()) })
	return s
}

// expired is a context that lets a store save nothing at its close, as if it were killed.
func expired() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func openReplica(t testing.TB, srv *natstest.Server, l subjects.Limits) *replica.Replica {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := replica.Open(ctx, replica.Options{Conn: srv.Connect(), Space: "t", Limits: l})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func dump(t testing.TB, r *replica.Replica) (out string) {
	t.Helper()
	r.View(func(s *fold.Space) { out = natstest.Dump(t, s) })
	return out
}

// write sends some of everything.
func write(src *natstest.Source, requests int) {
	src.Send(subjects.PlaneTree, tree.TopicSnapshot, natstest.Tree(1, 40))
	src.Send(subjects.PlaneTree, tree.TopicOps, tree.Ops{Revision: 2, Commit: 1, Ops: []tree.Op{
		{Op: tree.OpRemove, ID: 5},
		{Op: tree.OpAdd, Parent: 3, Node: &tree.Node{ID: 100, Name: "late", Children: []tree.Node{{ID: 101, Name: "leaf"}}}},
		{Op: tree.OpMove, ID: 7, Parent: 100, After: 101},
		{Op: tree.OpUpdate, Node: &tree.Node{ID: 9, Name: "item", Text: "changed"}},
	}})
	for i := range requests {
		id := network.RequestID(fmt.Sprintf("r%d", i))
		src.Send(subjects.PlaneNet, network.TopicStart, network.Start{ID: id, URL: "http://x/" + string(id), Method: "GET"})
		if i%3 > 0 {
			src.Send(subjects.PlaneNet, network.TopicResponse, network.Response{ID: id, Status: 200})
			src.Send(subjects.PlaneNet, network.TopicEnd, network.End{ID: id, Bytes: 3, Captured: 3})
		}
		src.Send(subjects.PlaneConsole, console.TopicMessage, console.Message{Type: "log", Args: nil})
	}
}

// covers waits until the saved state of the space reaches up to seq.
func covers(t testing.TB, js jetstream.JetStream, seq uint64) {
	t.Helper()
	b := bucket.New(js, "t")
	natstest.Until(t, 10*time.Second, fmt.Sprintf("the cursor reaches %d", seq), func() bool {
		c, _, err := b.Cursor(t.Context())
		return err == nil && uint64(c.Covered) >= seq
	})
}

func TestSavedStateEqualsTheFold(t *testing.T) {
	srv := natstest.Start(t)
	js := srv.JetStream()
	l := patient
	l.Requests, l.ConsoleEntries = 100, 150
	s := startStore(t, srv, l, subjects.Storage{})
	var last uint64
	for _, id := range []subjects.SourceID{"a", "b"} {
		src := natstest.NewSource(t, js, "t", id)
		src.Open()
		write(src, 230)
		src.Skip(subjects.PlaneNet, 3)
		src.Frame(subjects.PlaneNet, 1, src.Record(network.TopicStart, network.Start{ID: "z", URL: "u"}))
		last = src.Raw(subjects.PlaneNet, subjects.Header{"Natscope-Version": {"1"}}, []byte("no frame"))
	}
	covers(t, js, last)
	want := dump(t, s.Replica())
	if !strings.Contains(want, `"kind":"gap"`) || !strings.Contains(want, `"kind":"malformed"`) || !strings.Contains(want, "changed") {
		t.Fatalf("the fold has not what was written:\n%.2000s", want)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Without a record in the stream, everything must come from the saved state.
	stream, err := js.Stream(t.Context(), subjects.RecordStreamName("t"))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := natstest.Diff(want, dump(t, openReplica(t, srv, l))); d != "" {
		t.Fatal(d)
	}
}

func TestOnlyDirtyShardsAreWritten(t *testing.T) {
	srv := natstest.Start(t)
	js := srv.JetStream()
	startStore(t, srv, patient, subjects.Storage{})
	src := natstest.NewSource(t, js, "t", "a")
	src.Open()
	covers(t, js, src.Send(subjects.PlaneTree, tree.TopicSnapshot, natstest.Tree(1, 8000)))
	before := revisions(t, js)
	covers(t, js, src.Send(subjects.PlaneTree, tree.TopicOps, tree.Ops{Revision: 2, Ops: []tree.Op{{Op: tree.OpUpdate, Node: &tree.Node{ID: 77, Name: "item", Text: "new"}}}}))
	var changed []string
	for k, r := range revisions(t, js) {
		if before[k] != r && !strings.HasSuffix(k, "cursor") && !strings.HasSuffix(k, "head") {
			changed = append(changed, k)
		}
	}
	slices.Sort(changed)
	// One with the node, and one with the newest commits of the history.
	if len(before) < 8 || len(changed) != 2 || !strings.Contains(changed[0], ".h.") || !strings.Contains(changed[1], ".t.") {
		t.Errorf("of %d keys these changed for one node: %v", len(before), changed)
	}
}

// revisions returns the revision of every key of the bucket. It asks the stream
// for each key: a watch of the bucket never says that it has seen all of them
// when they are purged meanwhile.
func revisions(t testing.TB, js jetstream.JetStream) map[string]uint64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	stream, err := js.Stream(ctx, subjects.StateStreamName("t"))
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(">"))
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]uint64)
	for subject := range info.State.Subjects {
		m, err := stream.GetLastMsgForSubject(ctx, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if m.Header.Get("KV-Operation") == "" {
			out[strings.TrimPrefix(subject, "$KV."+subjects.StateBucketName("t")+".")] = m.Sequence
		}
	}
	return out
}

func TestEvictedSourcesLeaveTheBucket(t *testing.T) {
	srv := natstest.Start(t)
	js := srv.JetStream()
	l := patient
	l.DisconnectedTrees = 1
	s := startStore(t, srv, l, subjects.Storage{})
	for i := range 4 {
		src := natstest.NewSource(t, js, "t", subjects.SourceID(fmt.Sprintf("s%d", i)))
		src.Open()
		write(src, 3)
		src.Close("done")
		natstest.Until(t, 5*time.Second, "it is disconnected", func() (gone bool) {
			s.Replica().View(func(sp *fold.Space) { x := sp.Source(src.ID); gone = x != nil && !x.Connected })
			return gone
		})
	}
	var keys map[string]uint64
	defer func() { t.Log(keys, s.Replica().Status()) }()
	natstest.Until(t, 10*time.Second, "only the youngest is kept", func() bool {
		keys = revisions(t, js)
		for k := range keys {
			if !strings.HasPrefix(k, "s3.") && !strings.HasPrefix(k, "_space.") {
				return false
			}
		}
		return len(keys) > 2
	})
	r := openReplica(t, srv, l)
	r.View(func(sp *fold.Space) {
		if n := len(sp.Sources()); n != 1 || sp.Sources()[0].ID != "s3" || sp.Sources()[0].FaultCount != 0 {
			t.Errorf("a late joiner sees %d sources:\n%s", n, natstest.Dump(t, sp))
		}
	})
}

func TestDamagedStateIsFoldedAnew(t *testing.T) {
	srv := natstest.Start(t)
	js := srv.JetStream()
	s := startStore(t, srv, patient, subjects.Storage{})
	src := natstest.NewSource(t, js, "t", "a")
	src.Open()
	write(src, 10)
	covers(t, js, src.Send(subjects.PlaneTree, tree.TopicOps, tree.Ops{Revision: 3, Ops: []tree.Op{{Op: tree.OpRemove, ID: 8}}}))
	want := dump(t, s.Replica())
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(t.Context(), subjects.StateBucketName("t"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Put(t.Context(), "a.t.0", []byte("rotten")); err != nil {
		t.Fatal(err)
	}
	if d := natstest.Diff(want, dump(t, openReplica(t, srv, patient))); d != "" {
		t.Fatal(d)
	}
	// The next store heals what is saved.
	s = startStore(t, srv, patient, subjects.Storage{})
	src.Send(subjects.PlaneLife, "unknown", nil)
	natstest.Until(t, 5*time.Second, "the state is whole again", func() bool {
		parts, err := bucket.New(js, "t").Parts(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = state.Decode("a", parts, patient)
		return err == nil
	})
	_ = s
}

func TestEnsureStreams(t *testing.T) {
	srv := natstest.Start(t)
	js := srv.JetStream()
	if err := EnsureStreams(t.Context(), js, "t", subjects.Storage{}); err != nil {
		t.Fatal(err)
	}
	if err := EnsureStreams(t.Context(), js, "t", subjects.Storage{RecordBytes: 1 << 20, RecordAge: time.Minute}); err != nil {
		t.Fatalf("changing limits: %v", err)
	}
	s, err := js.Stream(t.Context(), subjects.RecordStreamName("t"))
	if err != nil || s.CachedInfo().Config.MaxBytes != 1<<20 || s.CachedInfo().Config.MaxAge != time.Minute {
		t.Errorf("limits did not change: %v %+v", err, s)
	}
}

// Streams stay where they were made: a store that was started otherwise works on
// them, and takes the limits of where they are for those that nobody chose.
func TestStreamsStayOnDiskOrInMemory(t *testing.T) {
	for _, made := range []subjects.Storage{{Memory: true}, {}} {
		srv := natstest.Start(t)
		js := srv.JetStream()
		if err := EnsureStreams(t.Context(), js, "t", made); err != nil {
			t.Fatal(err)
		}
		startStore(t, srv, patient, subjects.Storage{Memory: !made.Memory})
		for _, want := range []jetstream.StreamConfig{subjects.RecordStream("t", made), subjects.BodyStream("t", made), subjects.AuditStream("t", made), subjects.StateStream("t", made)} {
			s, err := js.Stream(t.Context(), want.Name)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.CachedInfo().Config; got.Storage != want.Storage || got.MaxBytes != want.MaxBytes {
				t.Errorf("%s is in %s with at most %d bytes, want %s with %d", want.Name, got.Storage, got.MaxBytes, want.Storage, want.MaxBytes)
			}
		}
	}
}

func TestNoJetStream(t *testing.T) {
	srv := natstest.StartWithout(t)
	_, err := Start(t.Context(), Options{Conn: srv.Connect(), Space: "t"})
	if !errors.Is(err, ErrNoJetStream) {
		t.Errorf("start without JetStream: %v", err)
	}
}
