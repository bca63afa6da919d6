package store

import (
	"time"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/follow"
	"github.com/natscope/natscope/store/state"
	"github.com/natscope/natscope/subjects"
)

// stagingPatience is how long a snapshot of many records may keep its source
// from being saved. After that its reader loses the snapshot and asks for another.
const stagingPatience = 10 * time.Second

// kept is one source and what is known of its saved state.
type kept struct {
	src     *fold.Source
	tracker *state.Tracker
	// presence says that the source's presence changed since it was saved.
	presence bool
	// staging is since when a snapshot of many records is on its way.
	staging time.Time

	// The fields below belong to the writer.

	// known says that the fields below are what the bucket holds, as far as is known.
	known bool
	// looked says that they were known before.
	looked bool
	// whole says that this store has saved the source.
	whole bool
	// base is the saved head, nil if there is none that can be built upon.
	base *state.Head
	// parts names what is in the bucket; revision is that of the head.
	parts    []string
	revision uint64
	// rivalled is when another store was seen to save this source.
	rivalled time.Time
	// dirtySince is since when the source has something to save.
	dirtySince time.Time
	// admitted is the generation that was saved, and therefore admitted, last.
	admitted subjects.Generation
}

// saved returns the sequence up to which the saved state reaches.
func (k *kept) saved() subjects.StreamSeq {
	if k.base == nil {
		return 0
	}
	return k.base.Covered
}

// dirty reports whether there is something to save.
func (k *kept) dirty() bool { return k.presence || k.tracker.Dirty(k.saved()) }

// keeper follows all sources of the replica. Everything in it is read and
// written under the replica's lock: by Changed under the write lock, and by the
// one goroutine of the writer within View.
type keeper struct {
	limits  subjects.Limits
	control *control
	arbiter *arbiter
	sources map[subjects.SourceID]*kept
	// removed holds the sources that are to be deleted from the bucket.
	removed map[subjects.SourceID]*kept
}

func newKeeper(l subjects.Limits, c *control, a *arbiter) *keeper {
	return &keeper{limits: l, control: c, arbiter: a, sources: make(map[subjects.SourceID]*kept), removed: make(map[subjects.SourceID]*kept)}
}

// begin takes in the sources that are there already.
func (k *keeper) begin(s *fold.Space) {
	for _, src := range s.Sources() {
		k.add(src)
		k.control.found(src)
		k.arbiter.take(src.ID, follow.Event{Kind: follow.EventKnown, Life: lifeOf(src)})
	}
}

func (k *keeper) add(src *fold.Source) {
	e := &kept{src: src, tracker: state.NewTracker(src, k.limits)}
	if old := k.removed[src.ID]; old != nil {
		// It is back before it was deleted: what is saved is overwritten instead.
		delete(k.removed, src.ID)
	}
	k.sources[src.ID] = e
}

// Changed takes notice of changes.
func (k *keeper) Changed(_ *fold.Space, changes []fold.Change) {
	for _, c := range changes {
		k.changed(c)
	}
}

func (k *keeper) changed(c fold.Change) {
	id := c.Source.ID
	e := k.sources[id]
	switch c.Kind {
	case fold.SourceAdded:
		k.add(c.Source)
		return
	case fold.SourceRemoved:
		if e != nil && e.src == c.Source {
			delete(k.sources, id)
			k.removed[id] = e
		}
		k.arbiter.forget(id)
		k.control.lost(id)
		return
	}
	// A source that appears as a whole was taken in as a whole.
	if e == nil || e.src != c.Source {
		return
	}
	switch c.Kind {
	case fold.PresenceChanged:
		e.presence = true
	case fold.FaultAdded:
		k.control.fault(c.Source, c.Fault)
	case fold.SourceOpened:
		k.arbiter.take(id, follow.Event{Kind: follow.EventOpened, Life: lifeOf(c.Source)})
		e.tracker.Changed(c)
	case fold.SourceClosed:
		k.arbiter.take(id, follow.Event{Kind: follow.EventClosed, Generation: c.Source.Generation})
		e.tracker.Changed(c)
	default:
		e.tracker.Changed(c)
	}
}

// held reports whether a source must not be saved now, because a snapshot of
// many records is on its way.
func (e *kept) held(now time.Time) bool {
	if !e.src.Tree.Staging() {
		e.staging = time.Time{}
		return false
	}
	if e.staging.IsZero() {
		e.staging = now
	}
	return e.src.Connected && now.Sub(e.staging) < stagingPatience
}
