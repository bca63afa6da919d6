package replica

import (
	"time"

	"github.com/natscope/natscope/subjects"
)

// presenceSlack is what a heartbeat may be late on its way before it counts as missed.
const presenceSlack = 500 * time.Millisecond

// deadline returns after what silence a source counts as dead.
func deadline(l subjects.Limits) time.Duration {
	return subjects.MissedHeartbeats*l.Heartbeat + presenceSlack
}

// presence is what is known of the life of one source. Its rules are the pure
// function step; nothing else changes it.
type presence struct {
	// generation is the newest one.
	generation subjects.Generation
	// connected says that the source lives, closed that its generation said goodbye.
	connected bool
	closed    bool
	// seen is when the last sign of life came, or until when one is not missed.
	seen time.Time
	// gone is when the source died or left, while it is not connected.
	gone time.Time
}

// signKind is what a sign tells.
type signKind int

const (
	// signRecord is a record of generation.
	signRecord signKind = iota + 1
	// signClose is the goodbye of generation.
	signClose
	// signBeat is a heartbeat of generation.
	signBeat
	// signTick is the passing of time.
	signTick
	// signGrace forgives silence until the given time: the replica itself was deaf.
	signGrace
)

// sign is one event that presence depends on.
type sign struct {
	kind       signKind
	generation subjects.Generation
	at         time.Time
}

// effect is what a sign leads to.
type effect int

const (
	// effectNone means that nothing is to be done.
	effectNone effect = iota
	// effectAlive means that the source is connected now and was not before.
	effectAlive
	// effectLeft means that the source closed; its running requests were ended by the fold.
	effectLeft
	// effectDied means that the source fell silent, so that its running requests end.
	effectDied
)

// step returns the presence after a sign, and what is to be done. after is how
// long a source may be silent.
func (p presence) step(s sign, after time.Duration) (presence, effect) {
	switch s.kind {
	case signTick:
		if p.connected && s.at.Sub(p.seen) > after {
			p.connected, p.gone = false, s.at
			return p, effectDied
		}
		return p, effectNone
	case signGrace:
		if s.at.After(p.seen) {
			p.seen = s.at
		}
		return p, effectNone
	}
	switch {
	case s.generation < p.generation:
		// A late word of a life that is over.
		return p, effectNone
	case s.generation > p.generation:
		// A heartbeat that is ahead of its records waits for them: the open says who it is.
		if s.kind == signBeat {
			return p, effectNone
		}
		p.generation, p.closed = s.generation, false
	}
	if p.closed {
		return p, effectNone
	}
	if s.kind == signClose {
		was := p.connected
		p.closed, p.connected, p.gone = true, false, s.at
		if was {
			return p, effectLeft
		}
		return p, effectNone
	}
	if s.at.After(p.seen) {
		p.seen = s.at
	}
	if !p.connected {
		p.connected, p.gone = true, time.Time{}
		return p, effectAlive
	}
	return p, effectNone
}
