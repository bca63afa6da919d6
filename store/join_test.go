package store

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/internal/bucket"
	"github.com/natscope/natscope/store/internal/natstest"
	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/subjects"
)

// journal keeps every message that was stored, so that a reference can be folded from it.
type journal struct {
	mu   sync.Mutex
	msgs map[uint64]stored
	last uint64
}

type stored struct {
	subject string
	h       subjects.Header
	data    []byte
}

func (j *journal) sent(seq uint64, subject string, h subjects.Header, data []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.msgs == nil {
		j.msgs = make(map[uint64]stored)
	}
	j.msgs[seq] = stored{subject, h, data}
	j.last = max(j.last, seq)
}

// reference folds all of the journal.
func (j *journal) reference(t testing.TB, l subjects.Limits) string {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	s := fold.New("t", l)
	for seq := uint64(1); seq <= j.last; seq++ {
		m, ok := j.msgs[seq]
		if !ok {
			t.Fatalf("message %d of %d was not sent by this test", seq, j.last)
		}
		s.Apply(m.subject, subjects.StreamSeq(seq), m.h, m.data)
	}
	return natstest.Dump(t, s)
}

// unsaved is how many messages the writers may be ahead of the saved state; the
// stream holds some 300.
const unsaved = 150

// watchCursor keeps saved at what the state bucket covers, until the test ends.
func watchCursor(t *testing.T, srv *natstest.Server, saved *atomic.Uint64) {
	t.Helper()
	kv := bucket.New(srv.JetStream(), "t")
	stop := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			if c, _, err := kv.Cursor(context.Background()); err == nil {
				saved.Store(uint64(c.Covered))
			}
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-ended })
}

// TestJoinWhileEverythingHappens is the promise of a replica: whenever it joins,
// whatever happens to stores and stream, it holds what the records say.
func TestJoinWhileEverythingHappens(t *testing.T) {
	const sources, records, joins = 4, 2000, 8
	srv := natstest.Start(t)
	js := srv.JetStream()
	l := patient
	l.Requests, l.ConsoleEntries = 300, 200
	// The stream holds a small part of what is written, so that most of it is
	// gone for late joiners; but a good deal more than is written between two saves.
	storage := subjects.Storage{RecordBytes: 400 << 10}
	if err := EnsureStreams(t.Context(), js, "t", storage); err != nil {
		t.Fatal(err)
	}
	keep := startStore(t, srv, l, storage)
	first := openReplica(t, srv, l)

	var saved atomic.Uint64
	watchCursor(t, srv, &saved)
	var j journal
	var writers, others sync.WaitGroup
	var done atomic.Bool
	for i := range sources {
		id := subjects.SourceID(fmt.Sprintf("s%d", i))
		js := srv.JetStream()
		writers.Go(func() {
			src := natstest.NewSource(t, js, "t", id)
			src.Patience = 10 * time.Second
			src.Sent = j.sent
			// The stream must hold what is not saved yet, however slow the stores
			// of a loaded machine are: otherwise records are lost for good, which is
			// not what this test is about.
			src.Between = func() {
				natstest.Until(t, time.Minute, "the stores keep up", func() bool {
					j.mu.Lock()
					defer j.mu.Unlock()
					return j.last < saved.Load()+unsaved
				})
			}
			src.Live(records, uint64(i))
		})
	}
	// One store is killed and started again all the time, while another goes on.
	others.Go(func() {
		for !done.Load() {
			s := startStore(t, srv, l, storage)
			before := s.Replica().Status().Covered
			natstest.Until(t, 20*time.Second, "the stream moves on", func() bool {
				return done.Load() || s.Replica().Status().Covered > before+100
			})
			_ = s.Close(expired())
		}
	})
	replicas := make([]*replica.Replica, joins)
	for i := range replicas {
		others.Go(func() {
			at := uint64(i * 50)
			natstest.Until(t, 30*time.Second, "the time to join", func() bool {
				j.mu.Lock()
				defer j.mu.Unlock()
				return j.last >= at || done.Load()
			})
			replicas[i] = openReplica(t, srv, l)
		})
	}
	writers.Wait()
	done.Store(true)
	others.Wait()
	want := j.reference(t, l)
	replicas = append(replicas, first, keep.Replica(), openReplica(t, srv, l))
	for i, r := range replicas {
		natstest.Until(t, 10*time.Second, fmt.Sprintf("replica %d reaches %d", i, j.last), func() bool { return uint64(r.Status().Covered) >= j.last })
		if d := natstest.Diff(want, dump(t, r)); d != "" {
			t.Errorf("replica %d (%+v): %s", i, r.Status(), d)
		}
	}
	stream, err := js.Stream(t.Context(), subjects.RecordStreamName("t"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d messages written, %d in the stream at its end", j.last, stream.CachedInfo().State.Msgs)
	if info := stream.CachedInfo(); info.State.FirstSeq < j.last/4 {
		t.Errorf("of %d messages only those before %d were evicted, so this test shows little", j.last, info.State.FirstSeq)
	}
}
