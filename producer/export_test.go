package producer

import "time"

// SetLease sets how long sessions live that are opened from now on.
func (p *Producer) SetLease(d time.Duration) {
	p.sessions.mu.Lock()
	defer p.sessions.mu.Unlock()
	p.sessions.lease = d
}
