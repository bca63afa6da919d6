package replica

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/follow"
	"github.com/natscope/natscope/store/internal/bucket"
	"github.com/natscope/natscope/store/state"
	"github.com/natscope/natscope/subjects"
)

// loaders is how many sources are read at once.
const loaders = 4

// saved is one source as it was saved.
type saved struct {
	source *fold.Source
	head   state.Head
}

// load reads the saved state and takes from it every source that it knows
// further than the replica does. It moves Covered up to where the saved state
// of all sources is complete, so that the stream is followed from there.
func (r *Replica) load(ctx context.Context) error {
	b := bucket.New(r.js, r.name).Within(r.timeout)
	// The cursor comes first: heads that are read later cover at least as much.
	cursor, _, err := b.Cursor(ctx)
	if err != nil {
		return err
	}
	if !cursor.Stream.Same(r.identity()) {
		cursor = state.Cursor{}
	}
	ids, err := b.Sources(ctx)
	if err != nil {
		return err
	}
	sources, damaged, err := r.read(ctx, b, ids)
	if err != nil {
		return err
	}
	// A source that cannot be read is folded from what the stream has, so the
	// first load must not skip anything of the stream.
	if damaged && !r.loaded {
		cursor.Covered = 0
	}
	// The order of appearance is that of the elements.
	slices.SortFunc(sources, func(a, b saved) int { return cmp.Compare(a.source.Element, b.source.Element) })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reloads++
	for _, s := range sources {
		r.take(s)
	}
	r.space.Covered = max(r.space.Covered, cursor.Covered)
	r.tell(r.crowd())
	return nil
}

// identity names the stream that is followed. The lock is held, or this is follow.
func (r *Replica) identity() state.Stream {
	return state.Stream{Name: subjects.RecordStreamName(r.name), Created: r.stream}
}

// read reads and decodes all sources of the stream that is followed.
func (r *Replica) read(ctx context.Context, b *bucket.Bucket, ids []subjects.SourceID) (out []saved, damaged bool, err error) {
	var mu sync.Mutex // guards what is returned
	var wg sync.WaitGroup
	slots := make(chan struct{}, loaders)
	for _, id := range ids {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			s, e := r.readOne(ctx, b, id)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(e, state.ErrDamaged):
				damaged = true
				r.markDamaged(id)
				r.log.Error("a saved state is damaged and is folded anew from the stream", "source", string(id), "error", e)
			case e != nil:
				err = e
			case s.source != nil:
				out = append(out, s)
			}
		})
	}
	wg.Wait()
	return out, damaged, err
}

func (r *Replica) readOne(ctx context.Context, b *bucket.Bucket, id subjects.SourceID) (saved, error) {
	parts, err := b.Parts(ctx, id)
	if err != nil || parts == nil {
		return saved{}, err
	}
	src, h, err := state.Decode(id, parts, r.limits)
	if err != nil {
		return saved{}, err
	}
	if !h.Stream.Same(r.identity()) {
		return saved{}, nil
	}
	return saved{src, h}, nil
}

// take puts a saved source in place of one that knows less. The write lock is held.
func (r *Replica) take(s saved) {
	old := r.space.Source(s.source.ID)
	if old != nil && old.Covered >= s.source.Covered {
		return
	}
	if old != nil {
		r.tell(r.space.Remove(old.ID))
	}
	p := follow.Presence{Generation: s.source.Generation, Connected: s.head.Connected, Closed: s.source.Life.Closed, Gone: s.head.GoneAt}
	if p.Connected {
		// Whoever lived when the state was saved has the usual time to say that it still does.
		p.Seen = time.Now()
	}
	s.source.Connected, s.source.GoneAt = p.Connected, p.Gone
	r.lives[s.source.ID] = p
	r.space.Restore(s.source)
	r.tell(appearance(s.source))
}

// markDamaged notes that the saved state of a source is of no use.
func (r *Replica) markDamaged(id subjects.SourceID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.damaged[id] = true
}

// Damaged reports whether the saved state of a source could not be read, so
// that a store must write it as a whole.
func (r *Replica) Damaged(id subjects.SourceID) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.damaged[id]
}
