package replica

import (
	"github.com/natscope/natscope/store/state"
	"github.com/natscope/natscope/subjects"
)

// counters counts what a replica saw.
type counters struct {
	applied  uint64
	evicted  uint64
	badBeats uint64
	panics   uint64
	reloads  uint64
	rebuilds uint64
	resets   uint64
	skipped  uint64
}

// Status says how a replica is doing.
type Status struct {
	// Ready says that the stream was followed to the end that it had when Open was called.
	Ready bool
	// Waiting says what the replica waits for, in words; empty while it follows the stream.
	Waiting string
	// Covered is the stream sequence of the last message that was folded.
	Covered subjects.StreamSeq
	// Sources counts the sources that are kept, Connected those that live.
	Sources   int
	Connected int
	// Applied counts messages that were folded since Open.
	Applied uint64
	// Stray counts messages that belong to no source, BadBeats heartbeats that could not be read.
	Stray    uint64
	BadBeats uint64
	// Evicted counts disconnected sources that were dropped to keep the limit.
	Evicted uint64
	// Skipped counts stream sequences that retention took before they were read.
	Skipped uint64
	// Reloads counts how often the saved state was read, Rebuilds how often the
	// stream had to be taken up again, Resets how often the stream itself was a new one.
	Reloads  uint64
	Rebuilds uint64
	Resets   uint64
	// Panics counts watchers that were dropped because they panicked.
	Panics uint64
}

// Status returns how the replica is doing.
func (r *Replica) Status() Status {
	r.mu.RLock()
	defer r.mu.RUnlock()
	s := Status{
		Waiting: r.waiting, Covered: r.space.Covered, Stray: r.space.Stray, Sources: len(r.space.Sources()),
		Applied: r.applied, BadBeats: r.badBeats, Evicted: r.evicted, Skipped: r.skipped,
		Reloads: r.reloads, Rebuilds: r.rebuilds, Resets: r.resets, Panics: r.panics,
	}
	for _, src := range r.space.Sources() {
		if src.Connected {
			s.Connected++
		}
	}
	select {
	case <-r.ready:
		s.Ready = true
	default:
	}
	return s
}

// setWaiting notes what the replica waits for, and logs it when it is news.
func (r *Replica) setWaiting(text string) {
	r.mu.Lock()
	news := text != r.waiting
	r.waiting = text
	r.mu.Unlock()
	if news && text != "" {
		r.log.Warn("the replica waits", "for", text)
	}
}

// Stream names the record stream that is followed.
func (r *Replica) Stream() state.Stream {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.identity()
}
