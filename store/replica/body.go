package replica

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// ErrNoBody says that the request has no such body, or that nothing of it was captured.
var ErrNoBody = errors.New("replica: no such body")

// ErrBodyEvicted says that the body was captured but is no longer kept.
var ErrBodyEvicted = errors.New("replica: body evicted")

// bodyPatience is how long a body may lag behind the end of its request, or be
// silent after its source went, before nothing more is expected of it.
const bodyPatience = 1500 * time.Millisecond

// bodySettled is how long after the end of its request a body is expected to be
// whole, or not to be there at all. It leaves room for clocks that differ.
const bodySettled = 10 * time.Second

// bodyCheck is how often it is looked whether a silent body can still go on.
const bodyCheck = 250 * time.Millisecond

// Body is what was captured of one body.
type Body struct {
	// Data is the captured prefix of the body.
	Data []byte
	// End is why the capture ended: one of the subjects.Body constants.
	End string
	// Total is the size of the whole body in bytes, as far as the producer knows it.
	Total int64
	// Complete says that Data is the whole body.
	Complete bool
}

// BodyPart is a piece of a body.
type BodyPart struct {
	// Offset is where Data belongs; parts come without holes and overlaps.
	Offset int64
	// Data is valid during the call only.
	Data []byte
	// End and Total are those of Body, in the last part only.
	End   string
	Total int64
}

// Body returns one body. It waits for the end of a body that still runs until
// ctx ends. The error wraps ErrNoBody, ErrBodyEvicted, or the error of ctx.
// What it returns is never larger than the capture limit of its direction.
func (r *Replica) Body(ctx context.Context, s subjects.BodySubject) (Body, error) {
	var b Body
	limit := r.bodyLimit(s.Direction)
	cut := false
	err := r.FollowBody(ctx, s, func(p BodyPart) error {
		room := limit - int64(len(b.Data))
		if int64(len(p.Data)) > room {
			p.Data, cut = p.Data[:max(room, 0)], true
		}
		b.Data = append(b.Data, p.Data...)
		b.End, b.Total = p.End, p.Total
		return nil
	})
	if err != nil {
		return Body{}, err
	}
	if cut {
		b.End = subjects.BodyTruncated
	}
	b.Complete = b.End == subjects.BodyComplete && int64(len(b.Data)) == b.Total
	return b, nil
}

func (r *Replica) bodyLimit(d subjects.Direction) int64 {
	if d == subjects.RequestBody {
		return r.limits.RequestBodyBytes
	}
	return r.limits.ResponseBodyBytes
}

// FollowBody calls f with every part of a body from its start, then with the
// parts of a running body as they come, and returns nil after its last part,
// which has End set. A body with a hole ends before the hole, as truncated; one
// whose source went ends as aborted. It stops early with the error of f. Other
// errors wrap ErrNoBody, ErrBodyEvicted, or the error of ctx.
func (r *Replica) FollowBody(ctx context.Context, s subjects.BodySubject, f func(BodyPart) error) error {
	if s.Space != r.name {
		return fmt.Errorf("%w: %s is not of space %s", ErrNoBody, s, r.name)
	}
	if _, err := subjects.ParseBody(s.String()); err != nil {
		return fmt.Errorf("%w: %w", ErrNoBody, err)
	}
	b := bodyReader{r: r, subject: s, f: f, quiet: time.Now(), timeout: requestTimeout}
	for {
		done, err := b.follow(ctx)
		if done || err != nil {
			return err
		}
	}
}

// bodyReader is where the reading of one body is.
type bodyReader struct {
	r       *Replica
	subject subjects.BodySubject
	f       func(BodyPart) error
	// after is the stream sequence of the last message, offset the end of what was passed on.
	after  uint64
	offset int64
	// torn says that chunks are missing, so that only the end is waited for.
	torn bool
	// quiet is since when nothing has come.
	quiet time.Time
	// timeout bounds the next request.
	timeout time.Duration
}

// follow reads until the body ends, or until the tail fails; then it is called again.
func (b *bodyReader) follow(ctx context.Context) (done bool, err error) {
	t, err := openTail(ctx, b.r.js, subjects.BodyStreamName(b.r.name), b.subject.String(), b.after+1, b.timeout)
	if err != nil {
		return false, b.pause(ctx, err)
	}
	defer t.discard()
	if t.pending == 0 && b.r.captured(b.subject).settled {
		// Nothing is there, and nothing will come: whoever reads many bodies must not wait for each.
		b.quiet = time.Now().Add(-bodyPatience)
		if done, err := b.silent(); done || err != nil {
			return done, err
		}
	}
	tick := time.NewTicker(bodyCheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("replica: body %s: %w", b.subject, context.Cause(ctx))
		case <-t.failed:
			return false, b.pause(ctx, t.why)
		case m := <-t.msgs:
			if done, err := b.take(m); done || err != nil {
				return done, err
			}
		case <-tick.C:
			if len(t.msgs) > 0 {
				continue
			}
			if done, err := b.silent(); done || err != nil {
				return done, err
			}
		}
	}
}

// pause waits a moment before a new tail, unless there is nothing to wait for.
func (b *bodyReader) pause(ctx context.Context, cause error) error {
	if errors.Is(cause, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("%w: %w", ErrNoBody, cause)
	}
	b.timeout = min(2*b.timeout, requestMax)
	t := time.NewTimer(followMin)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("replica: body %s: %w; the last trouble: %w", b.subject, context.Cause(ctx), cause)
	case <-t.C:
		return nil
	}
}

// take passes on what is new in one message. Malformed messages are passed over.
func (b *bodyReader) take(m entry) (done bool, err error) {
	b.after, b.quiet = m.seq, time.Now()
	c, err := subjects.ParseBodyChunk(subjects.Header(m.header))
	if err != nil {
		return false, nil
	}
	if b.offset == 0 && c.Offset > 0 && !b.torn {
		// The end of a body of which nothing was captured says so by its offset or its reason; chunks without their start do not.
		return false, fmt.Errorf("%w: the first %d bytes of %s are gone", ErrBodyEvicted, c.Offset, b.subject)
	}
	part := BodyPart{Offset: b.offset, End: c.End, Total: c.Total}
	switch end := c.Offset + int64(len(m.data)); {
	case c.Offset > b.offset:
		b.torn = true
	case end > b.offset && !b.torn:
		part.Data = m.data[b.offset-c.Offset:]
		b.offset = end
	}
	if b.torn && part.End == subjects.BodyComplete {
		part.End = subjects.BodyTruncated
	}
	if part.Data == nil && part.End == "" {
		return false, nil
	}
	return part.End != "", b.f(part)
}

// silent decides what the silence of a body means.
func (b *bodyReader) silent() (done bool, err error) {
	k := b.r.captured(b.subject)
	since := time.Since(b.quiet)
	switch {
	case k.running || since < bodyPatience:
		return false, nil
	case b.after > 0:
		return true, b.f(BodyPart{Offset: b.offset, End: subjects.BodyAborted, Total: b.offset})
	case k.bytes > 0:
		return false, fmt.Errorf("%w: %s", ErrBodyEvicted, b.subject)
	}
	return false, fmt.Errorf("%w: %s", ErrNoBody, b.subject)
}

// capture says what the state knows of a body.
type capture struct {
	// running says that more of it may come.
	running bool
	// settled says that the request ended long ago.
	settled bool
	// bytes is how much was captured of a body that ended.
	bytes int64
}

func (r *Replica) captured(b subjects.BodySubject) (k capture) {
	r.View(func(s *fold.Space) {
		src := s.Source(b.Source)
		if src == nil {
			return
		}
		q := src.Net.Get(string(b.Generation), b.Request)
		if q == nil {
			return
		}
		k.settled = q.Ending != network.Running && time.Since(time.UnixMilli(int64(q.Origin+q.EndedAt))) > bodySettled
		k.running = src.Connected && src.Generation == b.Generation && q.Ending == network.Running
		switch {
		case b.Direction == subjects.RequestBody && q.BodyEnd != nil:
			k.running, k.bytes = false, q.BodyEnd.Value.Captured
		case b.Direction == subjects.ResponseBody && q.End != nil:
			k.bytes = q.End.Captured
		case b.Direction == subjects.ResponseBody:
			k.bytes = q.Received.Bytes
		}
	})
	return k
}
