// Package bucket reads and writes the state bucket of a space.
//
// It owns the requests to JetStream: a consistent read of one source, an atomic
// write of one source under a compare-and-set on its head, the cursor, and the
// removal of a source. It must not know what the values mean, except for the
// cursor. It starts no goroutine; a Bucket is safe for concurrent use.
package bucket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/natscope/natscope/store/state"
	"github.com/natscope/natscope/subjects"
	"github.com/synadia-io/orbit.go/jetstreamext"
)

// ErrConflict says that another store wrote since the revision that the write builds on.
var ErrConflict = errors.New("bucket: another store wrote first")

// ErrTooLarge says that a state has more parts than one atomic write may have.
var ErrTooLarge = errors.New("bucket: the state has too many parts")

// The headers of the NATS key-value store.
const (
	operationHeader = "KV-Operation"
	operationDelete = "DEL"
)

// maxBatch is how many messages the server takes as one.
const maxBatch = 1000

// Bucket is the state bucket of one space.
type Bucket struct {
	js      jetstream.JetStream
	space   subjects.Space
	timeout time.Duration
}

// timeout bounds one request where nothing else is said.
const timeout = 3 * time.Second

// New returns the bucket of a space. It sends nothing.
func New(js jetstream.JetStream, space subjects.Space) *Bucket {
	return &Bucket{js: js, space: space, timeout: timeout}
}

// Within returns the same bucket, each request of which is bounded by d.
func (b *Bucket) Within(d time.Duration) *Bucket {
	c := *b
	c.timeout = d
	return &c
}

func (b *Bucket) stream() string { return subjects.StateStreamName(b.space) }

func (b *Bucket) subject(id subjects.SourceID, part string) string {
	return subjects.StateSubject(b.space, id, part)
}

// Value is one value and its revision.
type Value struct {
	// Data is nil for a key that does not exist.
	Data []byte
	// Revision is 0 for a key that never existed, and that of its removal for one that was deleted.
	Revision uint64
}

// get reads one key.
func (b *Bucket) get(ctx context.Context, id subjects.SourceID, part string) (Value, error) {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	for m, err := range b.last(ctx, b.subject(id, part)) {
		if err != nil {
			return Value{}, fmt.Errorf("read %s.%s of the state bucket: %w", id, part, err)
		}
		return valueOf(m), nil
	}
	return Value{}, nil
}

// last returns the last messages on the given subjects. There may be none.
func (b *Bucket) last(ctx context.Context, subjects ...string) func(func(*jetstream.RawStreamMsg, error) bool) {
	return func(yield func(*jetstream.RawStreamMsg, error) bool) {
		msgs, err := jetstreamext.GetLastMsgsFor(ctx, b.js, b.stream(), subjects)
		if err != nil {
			yield(nil, err)
			return
		}
		for m, err := range msgs {
			if errors.Is(err, jetstreamext.ErrNoMessages) {
				return
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

func valueOf(m *jetstream.RawStreamMsg) Value {
	if m.Header.Get(operationHeader) != "" {
		return Value{Revision: m.Sequence}
	}
	return Value{Data: m.Data, Revision: m.Sequence}
}

// Cursor reads the cursor of the space; it is zero when there is none, or none that can be read.
func (b *Bucket) Cursor(ctx context.Context) (state.Cursor, uint64, error) {
	v, err := b.get(ctx, state.CursorSource, state.CursorPart)
	if err != nil {
		return state.Cursor{}, 0, err
	}
	var c state.Cursor
	if json.Unmarshal(v.Data, &c) != nil || c.Version != state.Version {
		c = state.Cursor{}
	}
	return c, v.Revision, nil
}

// SetCursor writes the cursor over the one with the given revision, and returns
// the new revision. The error wraps ErrConflict when it is not the newest.
func (b *Bucket) SetCursor(ctx context.Context, c state.Cursor, revision uint64) (uint64, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return 0, err
	}
	return b.put(ctx, state.CursorSource, state.CursorPart, data, revision)
}

func (b *Bucket) put(ctx context.Context, id subjects.SourceID, part string, data []byte, revision uint64) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	m := &nats.Msg{Subject: b.subject(id, part), Data: data, Header: nats.Header{}}
	ack, err := b.js.PublishMsg(ctx, m, jetstream.WithExpectLastSequencePerSubject(revision), jetstream.WithRetryAttempts(0))
	if err != nil {
		return 0, writeError(id, err)
	}
	return ack.Sequence, nil
}

// Sources lists the sources that have a head, or had one.
func (b *Bucket) Sources(ctx context.Context) ([]subjects.SourceID, error) {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	s, err := b.js.Stream(ctx, b.stream())
	if err != nil {
		return nil, fmt.Errorf("list the state bucket: %w", err)
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(b.subject("*", state.HeadPart)))
	if err != nil {
		return nil, fmt.Errorf("list the state bucket: %w", err)
	}
	var out []subjects.SourceID
	for subject := range info.State.Subjects {
		id, _, err := subjects.ParseState(b.space, subject)
		if err == nil {
			out = append(out, id)
		}
	}
	return out, nil
}

// Head reads the head of a source.
func (b *Bucket) Head(ctx context.Context, id subjects.SourceID) (Value, error) {
	return b.get(ctx, id, state.HeadPart)
}

// Parts reads all parts of a source as they were at one moment. There are none
// when the source has no head.
func (b *Bucket) Parts(ctx context.Context, id subjects.SourceID) (map[string][]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*b.timeout)
	defer cancel()
	parts, whole, err := b.read(ctx, b.subject(id, ">"))
	if err != nil || !whole {
		return b.piecemeal(ctx, id)
	}
	if parts[state.HeadPart] == nil {
		return nil, nil
	}
	return parts, nil
}

// read reads keys with one request; whole says that the answer was not cut.
func (b *Bucket) read(ctx context.Context, names ...string) (parts map[string][]byte, whole bool, err error) {
	parts, whole = make(map[string][]byte), true
	for m, err := range b.last(ctx, names...) {
		if err != nil {
			return nil, false, err
		}
		whole = m.Header.Get("Nats-Num-Pending") == "0"
		if _, part, err := subjects.ParseState(b.space, m.Subject); err == nil {
			if v := valueOf(m); v.Data != nil {
				parts[part] = v.Data
			}
		}
	}
	return parts, whole, nil
}

// piecemeal reads a state that is too large for one answer of the server: its
// head, then its parts some at a time, and again if the head changed meanwhile.
func (b *Bucket) piecemeal(ctx context.Context, id subjects.SourceID) (map[string][]byte, error) {
	for {
		before, err := b.Head(ctx, id)
		if err != nil || before.Data == nil {
			return nil, err
		}
		h, err := state.ParseHead(before.Data)
		if err != nil {
			return map[string][]byte{state.HeadPart: before.Data}, nil
		}
		all := map[string][]byte{state.HeadPart: before.Data}
		names := h.Names()
		for step := 16; len(names) > 0; names = names[min(step, len(names)):] {
			var keys []string
			for _, n := range names[:min(step, len(names))] {
				keys = append(keys, b.subject(id, n))
			}
			parts, _, err := b.read(ctx, keys...)
			if err != nil {
				return nil, fmt.Errorf("read source %s of the state bucket: %w", id, err)
			}
			for n, v := range parts {
				all[n] = v
			}
		}
		after, err := b.Head(ctx, id)
		if err != nil {
			return nil, err
		}
		if after.Revision == before.Revision {
			return all, nil
		}
	}
}

// Commit writes a source as one, over the head with the given revision, and
// returns the revision of the new head. The error wraps ErrConflict when
// another store wrote since.
func (b *Bucket) Commit(ctx context.Context, id subjects.SourceID, w state.Write, revision uint64) (uint64, error) {
	if len(w.Put)+len(w.Delete) == 0 {
		return b.put(ctx, id, state.HeadPart, w.Head, revision)
	}
	msgs := make([]*nats.Msg, 0, len(w.Put)+len(w.Delete))
	for part, data := range w.Put {
		msgs = append(msgs, &nats.Msg{Subject: b.subject(id, part), Data: data})
	}
	for _, part := range w.Delete {
		msgs = append(msgs, b.deletion(id, part))
	}
	return b.commit(ctx, id, msgs, &nats.Msg{Subject: b.subject(id, state.HeadPart), Data: w.Head}, revision)
}

func (b *Bucket) deletion(id subjects.SourceID, part string) *nats.Msg {
	return &nats.Msg{Subject: b.subject(id, part), Header: nats.Header{operationHeader: {operationDelete}}}
}

func (b *Bucket) commit(ctx context.Context, id subjects.SourceID, msgs []*nats.Msg, last *nats.Msg, revision uint64) (uint64, error) {
	if len(msgs) >= maxBatch {
		return 0, fmt.Errorf("source %s: %w: %d, the limit is %d", id, ErrTooLarge, len(msgs), maxBatch)
	}
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	batch, err := jetstreamext.NewBatchPublisher(b.js, jetstreamext.BatchFlowControl{AckFirst: false})
	if err != nil {
		return 0, err
	}
	for _, m := range msgs {
		if err := batch.AddMsg(m); err != nil {
			return 0, writeError(id, err)
		}
	}
	ack, err := batch.CommitMsg(ctx, last, jetstreamext.WithBatchExpectLastSequencePerSubject(revision))
	if err != nil {
		return 0, writeError(id, err)
	}
	return ack.Sequence, nil
}

// Remove deletes a source with the given parts, if its head still has the given
// revision. Those who watch the bucket see every key go.
func (b *Bucket) Remove(ctx context.Context, id subjects.SourceID, parts []string, revision uint64) error {
	var msgs []*nats.Msg
	for _, p := range parts {
		msgs = append(msgs, b.deletion(id, p))
	}
	head := b.deletion(id, state.HeadPart)
	var err error
	if len(msgs) == 0 {
		ctx, cancel := context.WithTimeout(ctx, b.timeout)
		defer cancel()
		_, err = b.js.PublishMsg(ctx, head, jetstream.WithExpectLastSequencePerSubject(revision))
		if err != nil {
			err = writeError(id, err)
		}
	} else {
		_, err = b.commit(ctx, id, msgs, head, revision)
	}
	return err
}

// Purge drops the marks that Remove left, so that they do not pile up, unless
// the source came back.
func (b *Bucket) Purge(ctx context.Context, id subjects.SourceID) error {
	// The cursor would go with a source of its name.
	if id == state.CursorSource {
		return nil
	}
	v, err := b.Head(ctx, id)
	if err != nil || v.Data != nil || v.Revision == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	s, err := b.js.Stream(ctx, b.stream())
	if err != nil {
		return err
	}
	return s.Purge(ctx, jetstream.WithPurgeSubject(b.subject(id, ">")), jetstream.WithPurgeSequence(v.Revision+1))
}

// writeError names the source, and ErrConflict where that is what happened.
func writeError(id subjects.SourceID, err error) error {
	var api *jetstream.APIError
	if errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
		err != nil && strings.Contains(err.Error(), "wrong last sequence") {
		return fmt.Errorf("write source %s: %w", id, ErrConflict)
	}
	return fmt.Errorf("write source %s: %w", id, err)
}
