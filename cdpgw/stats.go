package cdpgw

import "sync/atomic"

// Stats counts what a gateway did since it began.
type Stats struct {
	// Connections is how many DevTools connections there are now.
	Connections int
	// Opened counts connections that were admitted, Lagged those that were closed
	// because they could not keep up, Revoked those whose access was withdrawn.
	Opened, Lagged, Revoked uint64
	// QueuedBytes is how many bytes wait for the clients of all connections.
	QueuedBytes int
}

// counters is what Stats reads.
type counters struct {
	lagged, revoked atomic.Uint64
}

// Stats returns counts. It is safe for concurrent use.
func (g *Gateway) Stats() Stats {
	s := Stats{Opened: uint64(g.sessions.Load()), Lagged: g.counts.lagged.Load(), Revoked: g.counts.revoked.Load()}
	for _, x := range g.hub.all() {
		s.Connections++
		s.QueuedBytes += x.conn.queue.size()
	}
	return s
}

// size returns how many bytes wait.
func (q *queue) size() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting.bytes + q.waiting.answers
}
