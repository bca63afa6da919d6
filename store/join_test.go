package store

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/internal/natstest"
	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/source"
	"github.com/natscope/natscope/subjects/tree"
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

// busy writes records of all kinds for one source, in frames of random size.
func busy(t testing.TB, js jetstream.JetStream, id subjects.SourceID, j *journal, records int, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	src := natstest.NewSource(t, js, "t", id)
	src.Sent = j.sent
	src.Open()
	revision, next, alive := uint64(0), 2000, []tree.NodeID(nil)
	request := 0
	for n := 0; n < records && !t.Failed(); {
		switch rnd.IntN(40) {
		case 0:
			src.Open()
			revision = 0
			continue
		case 1:
			src.Skip(subjects.PlaneConsole, 1+rnd.IntN(3))
			continue
		case 2:
			src.Send(subjects.PlaneLife, source.TopicUpdate, source.Update{Title: new(fmt.Sprint(n))})
			n++
			continue
		}
		if revision == 0 {
			revision++
			if rnd.IntN(2) == 0 {
				src.Send(subjects.PlaneTree, tree.TopicSnapshot, natstest.Tree(revision, 20+rnd.IntN(100)))
				alive = []tree.NodeID{1}
			} else {
				// A snapshot of many records, each in a frame of its own, so that a save may fall between them.
				src.Send(subjects.PlaneTree, tree.TopicBegin, tree.Snapshot{Version: 1, Profile: tree.ProfileComponent, Revision: revision})
				alive = []tree.NodeID{1}
				src.Send(subjects.PlaneTree, tree.TopicNodes, tree.Nodes{Revision: revision, Nodes: []tree.PlacedNode{{Node: tree.Node{ID: 1, Name: "app"}}}})
				for i := range 4 {
					src.Send(subjects.PlaneTree, tree.TopicNodes, tree.Nodes{Revision: revision, Nodes: []tree.PlacedNode{{Parent: 1, Node: tree.Node{ID: tree.NodeID(i + 2), Name: "part"}}}})
				}
				src.Send(subjects.PlaneTree, tree.TopicCommit, tree.Commit{Revision: revision, Count: 5})
			}
		}
		var records []subjects.Record
		plane := []subjects.Plane{subjects.PlaneTree, subjects.PlaneNet, subjects.PlaneConsole, subjects.PlaneEvent}[rnd.IntN(4)]
		for range 1 + rnd.IntN(30) {
			n++
			switch plane {
			case subjects.PlaneTree:
				revision++
				op := tree.Op{Op: tree.OpAdd, Parent: alive[rnd.IntN(len(alive))], Node: &tree.Node{ID: tree.NodeID(next), Name: "new", Text: natstest.Pad(40, n)}}
				if i := rnd.IntN(len(alive)); i > 0 && rnd.IntN(3) == 0 {
					op = tree.Op{Op: tree.OpUpdate, Node: &tree.Node{ID: alive[i], Name: "new", Text: fmt.Sprint(n)}}
				} else {
					alive = append(alive, tree.NodeID(next))
					next++
				}
				records = append(records, src.Record(tree.TopicOps, tree.Ops{Revision: revision, Commit: revision, Ops: []tree.Op{op}}))
			case subjects.PlaneNet:
				request++
				rid := network.RequestID(fmt.Sprintf("r%d", request))
				records = append(records, src.Record(network.TopicStart, network.Start{ID: rid, URL: "http://x/" + natstest.Pad(30, n)}))
				if old := network.RequestID(fmt.Sprintf("r%d", max(1, request-rnd.IntN(150)))); rnd.IntN(2) == 0 {
					records = append(records, src.Record(network.TopicResponse, network.Response{ID: old, Status: 200}), src.Record(network.TopicEnd, network.End{ID: old, Bytes: 1}))
				}
			case subjects.PlaneConsole:
				records = append(records, src.Record(console.TopicMessage, console.Message{Type: "log", Logger: natstest.Pad(30, n)}))
			default:
				records = append(records, src.Record("custom", n))
			}
		}
		src.Frame(plane, 0, records...)
	}
}

// TestJoinWhileEverythingHappens is the promise of a replica: whenever it joins,
// whatever happens to stores and stream, it holds what the records say.
func TestJoinWhileEverythingHappens(t *testing.T) {
	const sources, records, joins = 4, 5000, 10
	srv := natstest.Start(t)
	js := srv.JetStream()
	l := patient
	l.Requests, l.ConsoleEntries = 300, 200
	// The stream holds a small part of what is written, so that most of it is
	// gone for late joiners; but a good deal more than is written between two saves.
	storage := subjects.Storage{RecordBytes: 600 << 10}
	if err := EnsureStreams(t.Context(), js, "t", storage); err != nil {
		t.Fatal(err)
	}
	keep := startStore(t, srv, l, storage)
	first := openReplica(t, srv, l)

	var j journal
	var writers, others sync.WaitGroup
	var done atomic.Bool
	for i := range sources {
		id := subjects.SourceID(fmt.Sprintf("s%d", i))
		js := srv.JetStream()
		writers.Go(func() { busy(t, js, id, &j, records, uint64(i)) })
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
			at := uint64(i * 60)
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
	if info := stream.CachedInfo(); info.State.FirstSeq < j.last/4 {
		t.Errorf("of %d messages only those before %d were evicted, so this test shows little", j.last, info.State.FirstSeq)
	}
}
