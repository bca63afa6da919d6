package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/internal/bucket"
	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/store/state"
	"github.com/natscope/natscope/subjects"
)

// The pace of the writer.
const (
	// saveEvery is the time between two passes over the dirty sources.
	saveEvery = 120 * time.Millisecond
	// rivalPatience is how long a dirty source is left to the store that saved it last.
	rivalPatience = 250 * time.Millisecond
	// rivalMemory is for how long a store counts as the one that saves a source.
	rivalMemory = 3 * time.Second
)

// writer saves what is dirty. Its one goroutine is the only one that writes.
type writer struct {
	o       Options
	js      jetstream.JetStream
	bucket  *bucket.Bucket
	replica *replica.Replica
	keeper  *keeper
	log     *slog.Logger
	// patience is rivalPatience and this store's own share of luck, so that several stores do not move as one.
	patience time.Duration

	stream state.Stream
	cursor state.Cursor
	// cursorRevision is that of cursor in the bucket, if cursorKnown.
	cursorRevision uint64
	cursorKnown    bool

	// swept says that saved sources which nobody knows any more were looked for since the stream was found.
	swept bool

	reconnects uint64
	complained string
}

func newWriter(o Options, js jetstream.JetStream, b *bucket.Bucket, r *replica.Replica, k *keeper, log *slog.Logger) *writer {
	return &writer{
		o: o, js: js, bucket: b, replica: r, keeper: k, log: log,
		patience: rivalPatience + rand.N(rivalPatience/2), reconnects: o.Conn.Stats().Reconnects,
	}
}

func (w *writer) run(ctx context.Context) {
	tick := time.NewTicker(saveEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if w.o.Conn.Status() != nats.CONNECTED {
			continue
		}
		if n := w.o.Conn.Stats().Reconnects; n != w.reconnects {
			w.reconnects = n
			w.forget()
		}
		w.complain(ctx, w.pass(ctx, false))
	}
}

// complain logs an error once, not at every pass.
func (w *writer) complain(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != w.complained && text != "" {
		w.log.Error("the state could not be saved; it will be tried again", "error", text)
	}
	w.complained = text
}

// forget makes the writer look again at what the bucket holds.
func (w *writer) forget() {
	w.stream, w.cursorKnown = state.Stream{}, false
	w.replica.View(func(*fold.Space) {
		for _, e := range w.keeper.sources {
			e.known = false
		}
	})
}

// flush saves everything that is dirty, whoever else may be at it.
func (w *writer) flush(ctx context.Context) error { return w.pass(ctx, true) }

// pass saves what is dirty once.
func (w *writer) pass(ctx context.Context, all bool) error {
	if err := w.identify(ctx); err != nil {
		return err
	}
	var errs []error
	for _, e := range w.unknown() {
		if err := w.look(ctx, e); err != nil {
			errs = append(errs, err)
		}
	}
	covered, captures := w.capture(all)
	if !w.replica.Stream().Same(w.stream) {
		// The replica turned to another stream meanwhile: what was captured may belong to either.
		w.replica.View(func(*fold.Space) {
			for _, c := range captures {
				c.undo()
			}
		})
		return nil
	}
	for _, c := range captures {
		switch err := w.save(ctx, c); {
		case errors.Is(err, bucket.ErrConflict):
			covered = min(covered, c.before)
		case err != nil:
			covered = min(covered, c.before)
			errs = append(errs, err)
		}
	}
	if err := w.advance(ctx, covered); err != nil {
		errs = append(errs, err)
	}
	if err := w.removals(ctx); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// identify finds out which stream the replica follows.
func (w *writer) identify(ctx context.Context) error {
	if id := w.replica.Stream(); !id.Same(w.stream) {
		w.stream, w.cursorKnown, w.swept = id, false, false
	}
	if w.cursorKnown {
		return nil
	}
	var err error
	w.cursor, w.cursorRevision, err = w.bucket.Cursor(ctx)
	w.cursorKnown = err == nil
	return err
}

// unknown lists the dirty sources whose saved state must be looked at before they are saved.
func (w *writer) unknown() (out []*kept) {
	now := time.Now()
	w.replica.View(func(*fold.Space) {
		for _, e := range w.keeper.sources {
			if !e.dirty() {
				e.dirtySince = time.Time{}
				continue
			}
			if e.dirtySince.IsZero() {
				e.dirtySince = now
			}
			// Another store saved it last: see what it did, once it had the time to.
			if now.Sub(e.rivalled) < rivalMemory && now.Sub(e.dirtySince) > w.patience {
				e.known = false
			}
			if !e.known {
				out = append(out, e)
			}
		}
	})
	return out
}

// look reads what the bucket holds of a source.
func (w *writer) look(ctx context.Context, e *kept) error {
	v, err := w.bucket.Head(ctx, e.src.ID)
	if err != nil {
		return err
	}
	var base *state.Head
	var parts []string
	if v.Data != nil {
		if h, err := state.ParseHead(v.Data); err == nil {
			parts = h.Names()
			// Nothing can be built upon a damaged state until this store has written it as a whole.
			if h.Stream.Same(w.stream) && (e.whole || !w.replica.Damaged(e.src.ID)) {
				base = &h
			}
		}
	}
	w.replica.View(func(*fold.Space) { e.seen(base, parts, v.Revision) })
	return nil
}

// seen takes notice of what the bucket holds.
func (e *kept) seen(base *state.Head, parts []string, revision uint64) {
	now := time.Now()
	e.rivalled = time.Time{}
	if base != nil && e.looked && revision != e.revision {
		// Somebody else saved it meanwhile, so it is left to them a little longer.
		e.rivalled, e.dirtySince = now, now
	}
	if base != nil && base.Covered >= e.src.Covered && base.Connected == e.src.Connected {
		e.presence = false
	}
	e.known, e.looked, e.base, e.parts, e.revision = true, true, base, parts, revision
}

// capture is one source on its way to the bucket.
type capture struct {
	e        *kept
	c        *state.Capture
	parts    []string
	revision uint64
	// before is up to where the source was saved before.
	before subjects.StreamSeq
}

// undo makes the source dirty again, under the replica's lock.
func (c *capture) undo() {
	c.c.Undo()
	c.e.presence, c.e.known = true, false
}

// capture copies what is dirty. covered is up to where the bucket is complete
// once all captures are saved.
func (w *writer) capture(all bool) (covered subjects.StreamSeq, out []capture) {
	now := time.Now()
	w.replica.View(func(s *fold.Space) {
		covered = s.Covered
		for _, e := range w.keeper.sources {
			if !e.dirty() {
				continue
			}
			rival := !all && now.Sub(e.rivalled) < rivalMemory
			if rival || !e.known || e.held(now) || e.saved() > e.src.Covered {
				covered = min(covered, e.saved())
				continue
			}
			e.presence = false
			out = append(out, capture{e, e.tracker.Capture(e.base, w.stream), e.parts, e.revision, e.saved()})
		}
	})
	return covered, out
}

// save writes one capture.
func (w *writer) save(ctx context.Context, c capture) error {
	write, err := c.c.Encode(c.parts)
	var revision uint64
	if err == nil {
		revision, err = w.bucket.Commit(ctx, c.e.src.ID, write, c.revision)
	}
	generation := c.c.Head.Generation
	w.replica.View(func(*fold.Space) {
		if err != nil {
			c.undo()
			c.e.rivalled = time.Now()
			return
		}
		c.e.whole = true
		c.e.base, c.e.parts, c.e.revision, c.e.dirtySince = &c.c.Head, c.c.Head.Names(), revision, time.Time{}
	})
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if c.e.admitted != generation && c.c.Head.Connected {
		c.e.admitted = generation
		w.keeper.control.admit(c.e.src.ID, generation)
	}
	return nil
}

// advance moves the cursor up to where the bucket is complete.
func (w *writer) advance(ctx context.Context, covered subjects.StreamSeq) error {
	if !w.cursorKnown {
		return nil
	}
	if w.cursor.Stream.Same(w.stream) && w.cursor.Covered >= covered || covered == 0 {
		return nil
	}
	c := state.Cursor{Version: state.Version, Stream: w.stream, Covered: covered}
	revision, err := w.bucket.SetCursor(ctx, c, w.cursorRevision)
	if err != nil {
		w.cursorKnown = false
		if errors.Is(err, bucket.ErrConflict) {
			return nil
		}
		return err
	}
	w.cursor, w.cursorRevision = c, revision
	return nil
}

// removals deletes from the bucket what was evicted, and what belongs to a stream that is no more.
func (w *writer) removals(ctx context.Context) error {
	gone := make(map[subjects.SourceID]subjects.StreamSeq)
	w.replica.View(func(*fold.Space) {
		for id, e := range w.keeper.removed {
			gone[id] = e.src.Covered
		}
	})
	if !w.swept {
		ids, err := w.bucket.Sources(ctx)
		if err != nil {
			return err
		}
		w.replica.View(func(*fold.Space) {
			for _, id := range ids {
				if w.keeper.sources[id] == nil {
					gone[id] = max(gone[id], 0)
				}
			}
		})
		w.swept = true
	}
	var errs []error
	for id, covered := range gone {
		done, err := w.remove(ctx, id, covered)
		if err != nil && !errors.Is(err, bucket.ErrConflict) {
			errs = append(errs, err)
		}
		if done {
			w.replica.View(func(*fold.Space) { delete(w.keeper.removed, id) })
		}
	}
	return errors.Join(errs...)
}

// remove deletes one source, which was folded up to covered when it was evicted.
func (w *writer) remove(ctx context.Context, id subjects.SourceID, covered subjects.StreamSeq) (done bool, err error) {
	v, err := w.bucket.Head(ctx, id)
	if err != nil {
		return false, err
	}
	if v.Data == nil {
		return true, w.bucket.Purge(ctx, id)
	}
	var parts []string
	if h, err := state.ParseHead(v.Data); err == nil {
		parts = h.Names()
		if h.Stream.Same(w.stream) {
			switch {
			case h.Covered > covered && !w.replica.Damaged(id):
				// Another store saw it come back, and so will this one.
				return true, nil
			case w.cursor.Covered < covered:
				// Late joiners would fold the end of its records again.
				return false, nil
			}
		}
	}
	if err := w.bucket.Remove(ctx, id, parts, v.Revision); err != nil {
		return false, err
	}
	return true, w.bucket.Purge(ctx, id)
}
