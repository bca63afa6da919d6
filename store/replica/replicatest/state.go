// Package replicatest is a replica without NATS, for the tests of those who read
// one: a real fold that takes real frames, and bodies that come when a test says
// so. It knows neither streams nor the bucket. It has no goroutines: watchers are
// called by whoever changes the state.
package replicatest

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/store/state"
	"github.com/natscope/natscope/subjects"
)

// Origin is the wall-clock time at which the clocks of sources read zero, in milliseconds.
const Origin = 1_700_000_000_000

// SpaceName is the space of every State.
const SpaceName subjects.Space = "dev"

// State is a state of one space. Its methods are safe for concurrent use; what it
// cannot fold ends the test.
type State struct {
	// Unknown is what reading a body of which nothing is known ends with; nil makes
	// it wait for the first part. It is set before use.
	Unknown error

	t        testing.TB
	mu       sync.RWMutex // guards all below
	space    *fold.Space
	created  time.Time
	seq      subjects.StreamSeq
	next     map[string]subjects.Seq
	watchers map[*replica.Watcher]struct{}

	bodyMu sync.Mutex // guards bodies
	bodies map[subjects.BodySubject]*body
}

// body is what came of one body. Its channel is closed at the next change.
type body struct {
	parts   []replica.BodyPart
	changed chan struct{}
	err     error
}

// New returns an empty state with these limits.
func New(t testing.TB, limits subjects.Limits) *State {
	return &State{
		t: t, space: fold.New(SpaceName, limits), created: time.UnixMilli(Origin), next: make(map[string]subjects.Seq),
		watchers: make(map[*replica.Watcher]struct{}), bodies: make(map[subjects.BodySubject]*body),
	}
}

// Space returns the fold itself, for a test that changes nothing meanwhile.
func (s *State) Space() *fold.Space {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.space
}

// View calls f with the state, which nobody changes meanwhile.
func (s *State) View(f func(*fold.Space)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	f(s.space)
}

// Watch calls initial, unless it is nil, and then w for each change until the
// returned function is called.
func (s *State) Watch(initial func(*fold.Space), w replica.Watcher) func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if initial != nil {
		initial(s.space)
	}
	key := &w
	s.watchers[key] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, key)
	}
}

// Watchers returns how many watch.
func (s *State) Watchers() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.watchers)
}

// Stream names the stream that the state would be of; Renew makes it another one.
func (s *State) Stream() state.Stream {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return state.Stream{Name: "s", Created: s.created}
}

// Status returns that of a replica that has nothing to tell.
func (s *State) Status() replica.Status { return replica.Status{} }

// tell passes changes on. The caller holds mu.
func (s *State) tell(changes []fold.Change) {
	for w := range s.watchers {
		(*w).Changed(s.space, changes)
	}
}

// Publish folds one frame, numbered behind those before it.
func (s *State) Publish(id subjects.SourceID, gen subjects.Generation, plane subjects.Plane, records ...subjects.Record) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var data []byte
	for _, r := range records {
		var err error
		if data, err = subjects.AppendRecord(data, r); err != nil {
			s.t.Fatal(err)
		}
	}
	subject := subjects.RecordSubject{Space: SpaceName, Source: id, Generation: gen, Plane: plane}.String()
	seq := s.next[subject] + 1
	s.next[subject] += subjects.Seq(len(records))
	s.seq++
	h, data := subjects.EncodeFrame(subjects.FrameInfo{Seq: seq, Count: len(records)}, data)
	s.tell(s.space.Apply(subject, s.seq, h, data))
}

// Record makes a record of a payload, which must be encodable. t is its time on the source's clock, in milliseconds.
func Record(t float64, topic string, payload any) subjects.Record {
	data, err := json.Marshal(payload)
	if err != nil {
		panic(err)
	}
	return subjects.Record{T: t, Topic: topic, Data: data}
}

// Presence changes whether a source that is known is connected.
func (s *State) Presence(id subjects.SourceID, connected bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	src := s.space.Source(id)
	src.Connected = connected
	var changes []fold.Change
	if !connected {
		changes = src.Gone("the source is gone")
	}
	s.tell(append(changes, fold.Change{Kind: fold.PresenceChanged, Source: src}))
}

// Remove evicts a source.
func (s *State) Remove(id subjects.SourceID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell(s.space.Remove(id))
}

// Renew makes the state that of another stream, which is empty.
func (s *State) Renew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.space, s.seq, s.next = fold.New(SpaceName, s.space.Limits), 0, make(map[string]subjects.Seq)
	s.created = s.created.Add(time.Hour)
	s.tell(nil)
}

// known returns a body, which it makes if nothing is known of it. The caller holds bodyMu.
func (s *State) known(of subjects.BodySubject) *body {
	b := s.bodies[of]
	if b == nil {
		b = &body{changed: make(chan struct{})}
		s.bodies[of] = b
	}
	return b
}

// AddBody appends a part to a body; an end closes it, at the size that came.
func (s *State) AddBody(of subjects.BodySubject, data []byte, end string) {
	s.bodyMu.Lock()
	defer s.bodyMu.Unlock()
	b := s.known(of)
	b.add(replica.BodyPart{Offset: b.size(), Data: data, End: end, Total: b.size() + int64(len(data))})
}

// EndBody closes a body of which total bytes passed.
func (s *State) EndBody(of subjects.BodySubject, end string, total int64) {
	s.bodyMu.Lock()
	defer s.bodyMu.Unlock()
	b := s.known(of)
	b.add(replica.BodyPart{Offset: b.size(), End: end, Total: total})
}

// size is how many bytes came.
func (b *body) size() (n int64) {
	for _, p := range b.parts {
		n += int64(len(p.Data))
	}
	return n
}

func (b *body) add(p replica.BodyPart) {
	b.parts = append(b.parts, p)
	close(b.changed)
	b.changed = make(chan struct{})
}

// FailBody makes reading a body fail.
func (s *State) FailBody(of subjects.BodySubject, err error) {
	s.bodyMu.Lock()
	defer s.bodyMu.Unlock()
	s.known(of).err = err
}

// Body returns a whole body, for whose end it waits.
func (s *State) Body(ctx context.Context, of subjects.BodySubject) (replica.Body, error) {
	var out replica.Body
	err := s.FollowBody(ctx, of, func(p replica.BodyPart) error {
		out.Data = append(out.Data, p.Data...)
		out.End, out.Total = p.End, p.Total
		return nil
	})
	return out, err
}

// FollowBody calls f for each part of a body until its end, an error, or the end of ctx.
func (s *State) FollowBody(ctx context.Context, of subjects.BodySubject, f func(replica.BodyPart) error) error {
	for i := 0; ; {
		s.bodyMu.Lock()
		if s.bodies[of] == nil && s.Unknown != nil {
			s.bodyMu.Unlock()
			return s.Unknown
		}
		b := s.known(of)
		parts, changed, err := b.parts, b.changed, b.err
		s.bodyMu.Unlock()
		if err != nil {
			return err
		}
		for ; i < len(parts); i++ {
			if err := f(parts[i]); err != nil || parts[i].End != "" {
				return err
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
