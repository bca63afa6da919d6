package natstest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/source"
	"github.com/natscope/natscope/subjects/tree"
)

// generations makes every generation of a test process newer than the one before.
var generations atomic.Int64

// Source writes the records of one source by hand, one acknowledged frame at a time.
type Source struct {
	// ID is the source's id, Generation its current generation.
	ID         subjects.SourceID
	Generation subjects.Generation
	// Realm is what the next Open names; empty means the generation.
	Realm source.RealmID

	// Sent, if set, is told of every message that was stored.
	Sent func(seq uint64, subject string, h subjects.Header, data []byte)
	// Between, if set, is called where Live may pause: never within a snapshot of many records.
	Between func()
	// Patience is how long one try waits for its acknowledgement. It is short, so
	// that a restart of the server is noticed soon. A stream that evicts what it
	// stored within that time makes the next try a second copy: tests with such
	// streams set it high.
	Patience time.Duration

	t     testing.TB
	js    jetstream.JetStream
	space subjects.Space
	next  map[subjects.Plane]subjects.Seq
	last  map[subjects.Plane]uint64
	clock float64
	// alone counts the messages of a source without JetStream.
	alone uint64
}

// NewSource returns a source that has not opened yet. Without js it sends
// nothing but counts by itself, and only Sent is told.
func NewSource(t testing.TB, js jetstream.JetStream, space subjects.Space, id subjects.SourceID) *Source {
	return &Source{ID: id, t: t, js: js, space: space, Patience: 400 * time.Millisecond}
}

// Open begins a new generation.
func (s *Source) Open() {
	s.t.Helper()
	s.Begin()
	s.OpenAgain()
}

// OpenAgain sends the open of the current generation.
func (s *Source) OpenAgain() {
	s.t.Helper()
	realm := s.Realm
	if realm == "" {
		realm = source.RealmID(s.Generation)
	}
	s.Send(subjects.PlaneLife, source.TopicOpen, source.Descriptor{Name: "the " + string(s.ID), Kind: source.KindHost, Realm: realm, Origin: 1.7e12})
}

// Begin turns to a new generation without saying so.
func (s *Source) Begin() {
	s.Generation = subjects.Generation(fmt.Sprintf("g%012d", generations.Add(1)))
	s.next, s.last, s.clock = make(map[subjects.Plane]subjects.Seq), make(map[subjects.Plane]uint64), 0
}

// Record makes a record; the payload becomes its data.
func (s *Source) Record(topic string, payload any) subjects.Record {
	s.t.Helper()
	data, err := json.Marshal(payload)
	if err != nil {
		s.t.Fatalf("payload of %s: %v", topic, err)
	}
	s.clock += 0.5
	return subjects.Record{T: s.clock, Topic: topic, Data: data}
}

// Send publishes one record as a frame.
func (s *Source) Send(p subjects.Plane, topic string, payload any) uint64 {
	s.t.Helper()
	return s.Frame(p, 0, s.Record(topic, payload))
}

// Skip leaves out n record numbers of a plane, as if the records were lost.
func (s *Source) Skip(p subjects.Plane, n int) { s.next[p] = s.seq(p) + subjects.Seq(n) }

func (s *Source) seq(p subjects.Plane) subjects.Seq {
	if n := s.next[p]; n > 0 {
		return n
	}
	return 1
}

// Frame publishes records as one frame, until it is acknowledged, and returns its stream sequence.
func (s *Source) Frame(p subjects.Plane, dropped uint64, records ...subjects.Record) uint64 {
	s.t.Helper()
	var body []byte
	var err error
	for _, r := range records {
		if body, err = subjects.AppendRecord(body, r); err != nil {
			s.t.Fatal(err)
		}
	}
	seq := s.seq(p)
	h, data := subjects.EncodeFrame(subjects.FrameInfo{Seq: seq, Count: len(records), Dropped: dropped}, body)
	s.next[p] = seq + subjects.Seq(len(records))
	return s.Raw(p, h, data)
}

// Raw publishes any message on the subject of a plane, until it is
// acknowledged, and exactly once: each builds on the one before it.
func (s *Source) Raw(p subjects.Plane, h subjects.Header, data []byte) uint64 {
	s.t.Helper()
	subject := subjects.RecordSubject{Space: s.space, Source: s.ID, Generation: s.Generation, Plane: p}.String()
	seq := s.store(p, subject, h, data)
	if s.Sent != nil && seq > 0 {
		s.Sent(seq, subject, h, data)
	}
	return seq
}

func (s *Source) store(p subjects.Plane, subject string, h subjects.Header, data []byte) uint64 {
	s.t.Helper()
	if s.js == nil {
		s.alone++
		return s.alone
	}
	for end := time.Now().Add(20 * time.Second); ; {
		ctx, cancel := context.WithTimeout(context.Background(), s.Patience)
		ack, err := s.js.PublishMsg(ctx, &nats.Msg{Subject: subject, Header: maps.Clone(nats.Header(h)), Data: data},
			jetstream.WithExpectLastSequencePerSubject(s.last[p]))
		cancel()
		var api *jetstream.APIError
		switch {
		case err == nil:
			s.last[p] = ack.Sequence
			return ack.Sequence
		case errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence:
			var stored uint64
			if _, err := fmt.Sscanf(api.Description, "wrong last sequence: %d", &stored); err != nil {
				s.t.Errorf("publish on %s: %v", subject, api)
				return 0
			}
			was := s.last[p]
			s.last[p] = stored
			// Its acknowledgement was lost; otherwise the one before it was evicted, or lost by the server.
			if stored > was {
				return stored
			}
		case time.Now().After(end) || errors.Is(err, nats.ErrConnectionClosed):
			s.t.Errorf("publish on %s: %v", subject, err)
			return 0
		}
	}
}

// Beat sends a heartbeat.
func (s *Source) Beat() {
	s.t.Helper()
	data, err := json.Marshal(subjects.Beat{Version: subjects.Version, Generation: s.Generation, T: s.clock})
	if err != nil {
		s.t.Fatal(err)
	}
	// While the server is away a heartbeat is lost, as in life.
	_ = s.js.Conn().Publish(subjects.Heartbeat(s.space, s.ID), data)
}

// Close says goodbye.
func (s *Source) Close(reason string) {
	s.t.Helper()
	s.Send(subjects.PlaneLife, source.TopicClose, source.Close{Reason: reason})
}

// Tree returns a snapshot whose root has n children.
func Tree(revision uint64, n int) tree.Snapshot {
	root := &tree.Node{ID: 1, Name: "app"}
	for i := range n {
		root.Children = append(root.Children, tree.Node{ID: tree.NodeID(i + 2), Name: "item", Attrs: []tree.Attr{{Name: "n", Value: fmt.Sprint(i)}}})
	}
	return tree.Snapshot{Version: tree.SchemaVersion, Profile: tree.ProfileComponent, Revision: revision, Root: root}
}

// Pad returns text of n bytes that does not compress to nothing.
func Pad(n, seed int) string {
	var b strings.Builder
	x := uint64(seed)*2654435761 + 1
	for b.Len() < n {
		x = x*6364136223846793005 + 1442695040888963407
		fmt.Fprintf(&b, "%x", x>>20)
	}
	return b.String()[:n]
}
