package follow

import (
	"time"

	"github.com/natscope/natscope/subjects"
)

// presenceSlack is what a heartbeat may be late on its way before it counts as missed.
const presenceSlack = 500 * time.Millisecond

// Patience returns after what silence a source counts as dead.
func Patience(l subjects.Limits) time.Duration {
	return subjects.MissedHeartbeats*l.Heartbeat + presenceSlack
}

// Presence is what a reader knows of the life of one source. The zero value is
// that of a source of which nothing was heard.
type Presence struct {
	// Generation is the newest one.
	Generation subjects.Generation
	// Connected says that the source lives, Closed that its generation said goodbye.
	Connected, Closed bool
	// Seen is when the last sign of life came, or until when one is not missed.
	Seen time.Time
	// Gone is when the source died or left, while it is not connected.
	Gone time.Time
}

// SignKind is what a sign tells.
type SignKind int

// The kinds of signs.
const (
	// SignRecord is a record of a generation.
	SignRecord SignKind = iota + 1
	// SignClose is the goodbye of a generation.
	SignClose
	// SignBeat is a heartbeat of a generation.
	SignBeat
	// SignTick is the passing of time.
	SignTick
	// SignGrace forgives silence until the given time: the reader itself was deaf.
	SignGrace
)

// Sign is one event that presence depends on.
type Sign struct {
	// Kind says what was heard.
	Kind SignKind
	// Generation is set for signs of a generation.
	Generation subjects.Generation
	// At is when it was, by the reader's clock.
	At time.Time
}

// Outcome is what a sign leads to.
type Outcome int

// The outcomes of signs.
const (
	// Unchanged means that nothing is to be done.
	Unchanged Outcome = iota
	// CameAlive means that the source is connected now and was not before.
	CameAlive
	// Left means that the source closed; its running requests were ended by the fold.
	Left
	// Died means that the source fell silent, so that its running requests end.
	Died
)

// Step returns the presence after a sign, and what is to be done. patience is
// how long a source may be silent.
func (p Presence) Step(s Sign, patience time.Duration) (Presence, Outcome) {
	switch s.Kind {
	case SignTick:
		if p.Connected && s.At.Sub(p.Seen) > patience {
			p.Connected, p.Gone = false, s.At
			return p, Died
		}
		return p, Unchanged
	case SignGrace:
		if s.At.After(p.Seen) {
			p.Seen = s.At
		}
		return p, Unchanged
	}
	switch {
	case s.Generation < p.Generation:
		// A late word of a life that is over.
		return p, Unchanged
	case s.Generation > p.Generation:
		// A heartbeat that is ahead of its records waits for them: the open says who it is.
		if s.Kind == SignBeat {
			return p, Unchanged
		}
		p.Generation, p.Closed = s.Generation, false
	}
	if p.Closed {
		return p, Unchanged
	}
	if s.Kind == SignClose {
		was := p.Connected
		p.Closed, p.Connected, p.Gone = true, false, s.At
		if was {
			return p, Left
		}
		return p, Unchanged
	}
	if s.At.After(p.Seen) {
		p.Seen = s.At
	}
	if !p.Connected {
		p.Connected, p.Gone = true, time.Time{}
		return p, CameAlive
	}
	return p, Unchanged
}
