package producer

import (
	"sync/atomic"

	"github.com/natscope/natscope/subjects"
)

// Stats is what a producer did so far.
type Stats struct {
	// ID and Generation are what the source publishes under now.
	ID         subjects.SourceID
	Generation subjects.Generation
	// Connected says that there is a connection; Opened that the opening record
	// is acknowledged; Admitted that a store said it folds the generation.
	Connected, Opened, Admitted bool
	// Superseded says that the source had to give up its id to a program that
	// started while this one could not be heard.
	Superseded bool
	// Reopened counts further generations, Snapshots how often the tree was sent
	// anew, Gaps how often the server lost what it had acknowledged.
	Reopened, Snapshots, Gaps uint64
	// Planes has an entry for each plane; Bodies counts chunks.
	Planes map[subjects.Plane]PlaneStats
	Bodies PlaneStats
	// CutBodies counts bodies that were cut because the queue was full.
	CutBodies uint64
	// Commands counts what gateways asked of the source.
	Commands CommandStats
	// LostEvents counts events that no session was told, since there was no connection or too many waited.
	LostEvents uint64
	// LastError is the newest trouble, as a sentence; empty if there never was any.
	LastError string
}

// CommandStats counts commands.
type CommandStats struct {
	// Running is how many run now.
	Running int
	// Done, Failed and Refused count answers: done, gone wrong or too late, and
	// not carried out for every other reason.
	Done, Failed, Refused uint64
}

// PlaneStats counts the records of one plane, or the chunks of bodies.
type PlaneStats struct {
	// Recorded counts what was enqueued, Published what is acknowledged, Dropped what was lost at the source.
	Recorded, Published, Dropped uint64
	// Coalesced counts records that a newer state replaced before they were sent.
	Coalesced uint64
	// Frames counts acknowledged messages, Resent messages that were sent once more.
	Frames, Resent uint64
	// Queued and QueuedBytes are what waits now.
	Queued, QueuedBytes int
}

// laneCounts is written by the loop and read by Stats.
type laneCounts struct{ published, frames, resent atomic.Uint64 }

// flags is what Stats reads of the loop without asking it.
type flags struct {
	conn, opened, admitted, superseded atomic.Bool
	reopened, snapshotsSent, gaps      atomic.Uint64
}

// Stats returns counts and state. It never waits for the network.
func (p *Producer) Stats() Stats {
	id := p.ident.Load()
	s := Stats{
		ID: id.source, Generation: id.generation,
		Connected: p.conn.Load(), Opened: p.opened.Load(), Admitted: p.admitted.Load(), Superseded: p.superseded.Load(),
		Reopened: p.reopened.Load(), Snapshots: p.snapshotsSent.Load(), Gaps: p.gaps.Load(),
		Planes: make(map[subjects.Plane]PlaneStats, len(p.queues)),
	}
	for _, x := range p.loop.lanes {
		ps := PlaneStats{Published: x.counts.published.Load(), Frames: x.counts.frames.Load(), Resent: x.counts.resent.Load()}
		if x.q == nil {
			x.bodies.stats(&ps, &s.CutBodies)
			s.Bodies = ps
			continue
		}
		x.q.stats(&ps)
		s.Planes[x.q.plane] = ps
	}
	s.Commands, s.LostEvents = p.commands.stats(), p.events.lost.Load()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lastErr != nil {
		s.LastError = p.lastErr.Error()
	}
	return s
}

func (c *commands) stats() CommandStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return CommandStats{Running: len(c.running), Done: c.done.Load(), Failed: c.failed.Load(), Refused: c.refused.Load()}
}

func (q *queue) stats(s *PlaneStats) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s.Recorded, s.Dropped, s.Coalesced = q.recorded, q.dropped, q.coalesced
	s.Queued, s.QueuedBytes = q.records, q.bytes
}

func (q *bodyQueue) stats(s *PlaneStats, cuts *uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s.Recorded, s.Dropped = q.queued, q.lost
	s.Queued, s.QueuedBytes, *cuts = len(q.pieces), q.bytes, q.cuts
}

// lost names the lane as heartbeats do and tells how much it lost.
func (l *lane) lost() (subjects.Plane, uint64) {
	if l.q == nil {
		l.bodies.mu.Lock()
		defer l.bodies.mu.Unlock()
		return bodiesPlane, l.bodies.lost + l.bodies.cuts
	}
	l.q.mu.Lock()
	defer l.q.mu.Unlock()
	return l.q.plane, l.q.dropped
}

func (q *queue) wantsSnapshot() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.needSnapshot
}

func (q *queue) setFrameBytes(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.frameBytes = n
}
