package replica

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/follow"
	"github.com/natscope/natscope/subjects"
)

// The pace of follow.
const (
	// followMin and followMax bound the pause after a failure.
	followMin = 50 * time.Millisecond
	followMax = time.Second
	// followCheck is how often a tail is compared with its stream.
	followCheck = 2 * time.Second
	// followBatch is how many messages are folded under one hold of the lock.
	followBatch = 64
)

// errStalled says that the stream has messages that the tail does not bring.
var errStalled = errors.New("replica: the stream moves on but nothing arrives")

// errForeign says that the stream was made anew.
var errForeign = errors.New("replica: the record stream was made anew")

// follow keeps the replica at the end of the stream, for ever.
func (r *Replica) follow(ctx context.Context) {
	status := r.conn.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer r.conn.RemoveStatusListener(status)
	pause := followMin
	r.timeout = requestTimeout
	for ctx.Err() == nil {
		if !r.conn.IsConnected() {
			r.setWaiting("a connection to NATS")
			wait(ctx, status, followMax)
			continue
		}
		progress, err := r.session(ctx, status)
		if err == nil || progress {
			pause, r.timeout = followMin, requestTimeout
		} else {
			r.timeout = min(2*r.timeout, requestMax)
		}
		if err != nil && ctx.Err() == nil {
			r.setWaiting(describe(err))
			wait(ctx, status, pause)
			pause = min(2*pause, followMax)
		}
	}
}

// wait pauses, less when the connection's status changes.
func wait(ctx context.Context, status <-chan nats.Status, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-status:
	case <-t.C:
	}
}

// describe says what an operator can do about an error.
func describe(err error) string {
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return "the streams of the space; start a store (natscope store) that creates them"
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return "JetStream; enable it in the NATS server (nats-server -js) and for this account"
	}
	return "NATS: " + err.Error()
}

// session follows the stream until something makes a new start necessary:
// an error, or nil when the connection was made anew. progress says that it
// came so far as to follow.
func (r *Replica) session(ctx context.Context, status <-chan nats.Status) (progress bool, err error) {
	for drained := false; !drained; { // Status changes of before this session are no news.
		select {
		case <-status:
		default:
			drained = true
		}
	}
	info, err := r.streamInfo(ctx)
	if err != nil {
		return false, err
	}
	r.adopt(info)
	if !r.loaded || uint64(r.covered())+1 < info.State.FirstSeq {
		if err := r.load(ctx); err != nil {
			return false, err
		}
		r.loaded = true
	}
	t, err := openTail(ctx, r.js, info.Config.Name, subjects.RecordsOf(r.name), uint64(r.covered())+1, r.timeout)
	if err != nil {
		return false, err
	}
	defer t.stop()
	r.mu.Lock()
	r.rebuilds++
	r.mu.Unlock()
	s := session{r: r, t: t, target: info.State.LastSeq}
	s.settle(info)
	return true, s.run(ctx, status)
}

// streamInfo asks for the state of the record stream.
func (r *Replica) streamInfo(ctx context.Context) (*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	stream, err := hedge(ctx, hedgeEvery, func(ctx context.Context) (jetstream.Stream, error) {
		return r.js.Stream(ctx, subjects.RecordStreamName(r.name))
	})
	if err != nil {
		return nil, fmt.Errorf("record stream of space %s: %w", r.name, err)
	}
	return stream.CachedInfo(), nil
}

func (r *Replica) covered() subjects.StreamSeq {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.space.Covered
}

// foreign reports whether info describes another stream than the one that was
// followed: it was deleted and made again, or a memory stream lost everything,
// so that its sequences began anew.
func (r *Replica) foreign(info *jetstream.StreamInfo) bool {
	return !r.stream.IsZero() && !info.Created.Equal(r.stream) || info.State.LastSeq < uint64(r.covered())
}

// adopt takes the stream as the one to follow. The state of another one means nothing any more.
func (r *Replica) adopt(info *jetstream.StreamInfo) {
	if r.foreign(info) {
		r.log.Warn("the record stream is a new one; its state starts over", "stream", info.Config.Name)
		r.reset()
	}
	r.mu.Lock()
	r.stream = info.Created
	r.mu.Unlock()
}

// reset empties the state.
func (r *Replica) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	var changes []fold.Change
	for _, src := range append([]*fold.Source(nil), r.space.Sources()...) {
		changes = append(changes, r.space.Remove(src.ID)...)
	}
	clear(r.lives)
	r.space.Covered = 0
	r.resets++
	r.loaded = false
	r.tell(changes)
}

// session is one tail and where it is.
type session struct {
	r *Replica
	t *tail
	// target is the end of the stream when the session began.
	target uint64
	// moved says that a message came since the last check.
	moved bool
	// stuck counts the checks in a row that found messages in the stream which did not come.
	stuck int
}

func (s *session) run(ctx context.Context, status <-chan nats.Status) error {
	check := time.NewTicker(followCheck)
	defer check.Stop()
	batch := make([]entry, 0, followBatch)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-status:
			return nil
		case <-s.t.failed:
			return s.t.why
		case m := <-s.t.msgs:
			batch = s.fill(append(batch[:0], m))
			if err := s.apply(ctx, batch); err != nil {
				return err
			}
			clear(batch)
		case <-check.C:
			if err := s.check(ctx); err != nil {
				return err
			}
		}
	}
}

// fill adds what waits already.
func (s *session) fill(batch []entry) []entry {
	for len(batch) < followBatch {
		select {
		case m := <-s.t.msgs:
			batch = append(batch, m)
		default:
			return batch
		}
	}
	return batch
}

// apply folds a batch, each run of it between two holes on its own.
func (s *session) apply(ctx context.Context, batch []entry) error {
	s.moved = true
	for len(batch) > 0 {
		if err := s.bridge(ctx, batch[0].seq); err != nil {
			return err
		}
		n := 1
		for n < len(batch) && batch[n].seq == batch[n-1].seq+1 {
			n++
		}
		s.fold(batch[:n])
		batch = batch[n:]
	}
	if uint64(s.r.covered()) >= s.target {
		s.caughtUp()
	}
	return nil
}

// fold folds messages that follow each other. They are decoded before the lock is taken.
func (s *session) fold(run []entry) {
	decoded := make([]fold.Message, len(run))
	for i, m := range run {
		decoded[i] = fold.Decode(m.subject, subjects.Header(m.header), m.data)
	}
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	for i, m := range run {
		s.r.apply(subjects.StreamSeq(m.seq), m.stored, decoded[i])
	}
}

// bridge reads the saved state again when the stream goes on behind a hole:
// retention was faster than this reader, but a store may have read what is gone.
func (s *session) bridge(ctx context.Context, seq uint64) error {
	covered := uint64(s.r.covered())
	if seq <= covered+1 {
		return nil
	}
	if err := s.r.load(ctx); err != nil {
		return err
	}
	if now := uint64(s.r.covered()); seq > now+1 {
		s.r.mu.Lock()
		s.r.skipped += seq - now - 1
		s.r.mu.Unlock()
		s.r.log.Warn("records were evicted from the stream before they were read", "from", now+1, "to", seq-1)
	}
	return nil
}

// apply folds one message, which the server stored at the given time. The write lock is held.
func (r *Replica) apply(seq subjects.StreamSeq, stored time.Time, m fold.Message) {
	changes := r.space.ApplyMessage(seq, m)
	r.applied++
	src := r.space.Source(m.Name.Source)
	if src == nil || src.Covered != seq || src.Generation != m.Name.Generation {
		r.tell(changes)
		return
	}
	s := follow.Sign{Kind: follow.SignRecord, Generation: m.Name.Generation, At: time.Now()}
	if src.Life.Closed {
		// A goodbye may be read long after it was said, and counts from when it was.
		s.Kind, s.At = follow.SignClose, stored
	}
	changes = append(changes, r.sign(src, s)...)
	r.tell(changes)
}

// caughtUp notes that the replica is where the stream was.
func (s *session) caughtUp() {
	s.r.setWaiting("")
	select {
	case <-s.r.ready:
	default:
		// Who opens a replica never sees more sources than the limit, even if all of them came from the stream.
		s.r.mu.Lock()
		s.r.tell(s.r.crowd())
		s.r.mu.Unlock()
		close(s.r.ready)
	}
}

// settle compares the session with the stream when nothing may come that would.
func (s *session) settle(info *jetstream.StreamInfo) {
	// A stream that was emptied by age has a last sequence that nobody delivers.
	if info.State.Msgs == 0 {
		s.r.mu.Lock()
		s.r.space.Covered = max(s.r.space.Covered, subjects.StreamSeq(info.State.LastSeq))
		s.r.mu.Unlock()
	}
	if uint64(s.r.covered()) >= s.target {
		s.caughtUp()
	}
}

// check finds out whether the tail still follows the stream.
func (s *session) check(ctx context.Context) error {
	moved := s.moved
	s.moved = false
	info, err := s.r.streamInfo(ctx)
	if err != nil {
		return err
	}
	if s.r.foreign(info) {
		return errForeign
	}
	s.settle(info)
	if !moved && len(s.t.msgs) == 0 && info.State.LastSeq > uint64(s.r.covered()) && info.State.Msgs > 0 {
		if s.stuck++; s.stuck > 1 {
			return errStalled
		}
		return nil
	}
	s.stuck = 0
	return nil
}
