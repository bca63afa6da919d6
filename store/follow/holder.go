package follow

import (
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/source"
)

// Life is one generation of a source, as far as it matters to who has an id.
type Life struct {
	// Generation names it; empty for none.
	Generation subjects.Generation
	// Realm tells whether another generation is the same program.
	Realm source.RealmID
	// Who describes the program for people.
	Who string
	// Closed says that it said goodbye.
	Closed bool
}

// Phase is what a store waits for before it knows who has an id.
type Phase int

// The phases of a Holder.
const (
	// Settled means that there is no question.
	Settled Phase = iota
	// Asking means that a newcomer is there, and the generation before it is asked whether it lives.
	Asking
	// Moving means that the newcomer was told to take another id.
	Moving
	// Meeting means that an older generation was heard, and the newest is asked whether it lives.
	Meeting
)

// Holder is what a store knows of who has one id. Readers follow the newest
// generation whatever a Holder says; it only sees to it that in the end there is
// one living generation, and whose. The zero value knows nobody.
type Holder struct {
	// Newest is the generation that readers follow.
	Newest Life
	// Before is the generation that had the id when Newest came, as long as it may come back.
	Before Life
	// Older is the generation that was heard, while Meeting.
	Older subjects.Generation
	// Phase says what is waited for.
	Phase Phase
	// Heard counts the beats of older generations since Newest came, as far as it matters.
	Heard int
}

// olderBeats is how many beats of older generations are heard before one of them
// is spoken to: the first may have been under way when its generation ended, or
// another store may be about to settle it.
const olderBeats = 2

// EventKind says what happened to an id.
type EventKind int

// The kinds of events.
const (
	// EventKnown tells of the generation that was there when the store looked first. Life is set.
	EventKnown EventKind = iota + 1
	// EventOpened tells that readers follow a generation now. Life is set.
	EventOpened
	// EventClosed tells that Generation said goodbye.
	EventClosed
	// EventBeat tells that Generation was heard.
	EventBeat
	// EventAnswer tells whether Generation answered when it was asked: Lives.
	EventAnswer
	// EventMoved tells that Generation took the order to move, or is not there to take it.
	EventMoved
)

// Event is something that happened to an id.
type Event struct {
	Kind       EventKind
	Life       Life
	Generation subjects.Generation
	Lives      bool
}

// Effect is something to do: to ask Generation whether it lives, which ends in
// an EventAnswer, or to tell it Message, which ends in an EventMoved.
type Effect struct {
	// Generation is the one that is spoken to.
	Generation subjects.Generation
	// Message is what it is told; nil asks it whether it lives.
	Message *subjects.ControlMessage
}

// Admits reports whether a generation may be told that it has the id.
func (h Holder) Admits(g subjects.Generation) bool {
	return g == h.Newest.Generation && h.Phase != Asking && h.Phase != Moving
}

// Over reports whether a generation can never be admitted any more.
func (h Holder) Over(g subjects.Generation) bool { return g < h.Newest.Generation }

// Step returns the holder after an event, and what is to be done. Events that
// come late, or twice, change nothing.
func (h Holder) Step(e Event) (Holder, []Effect) {
	switch e.Kind {
	case EventKnown:
		if e.Life.Generation >= h.Newest.Generation {
			return Holder{Newest: e.Life}, nil
		}
	case EventOpened:
		return h.opened(e.Life)
	case EventClosed:
		if e.Generation == h.Newest.Generation {
			h.Newest.Closed = true
		}
	case EventBeat:
		return h.beat(e.Generation)
	case EventAnswer:
		return h.answer(e.Generation, e.Lives)
	case EventMoved:
		if h.Phase == Moving && e.Generation == h.Newest.Generation {
			h.Phase = Settled
			return h, []Effect{h.reopen(h.Before.Generation, h.Newest.Who+" started under the same id and takes another one")}
		}
	}
	return h, nil
}

// opened takes in the generation that readers follow now.
func (h Holder) opened(l Life) (Holder, []Effect) {
	was := h.Newest
	switch {
	case l.Generation < was.Generation:
		return h, nil
	case l.Generation == was.Generation:
		// Its open came behind other records of it: only now is known who it is.
		h.Newest = l
		if h.Phase == Asking && l.Realm == h.Before.Realm {
			return Holder{Newest: l}, nil
		}
		return h, nil
	case h.Before.Generation != "" && l.Realm == h.Before.Realm:
		// The one that had the id before is back.
		return Holder{Newest: l}, nil
	case h.Phase == Asking:
		// One more newcomer, or the same one again; the question is about the one before all of them.
		h.Newest = l
		return h, nil
	case h.Phase == Moving:
		h.Newest, h.Phase, h.Heard = l, Asking, 0
		return h, []Effect{{Generation: h.Before.Generation}}
	case was.Generation == "" || was.Closed || l.Realm == was.Realm:
		return Holder{Newest: l}, nil
	}
	return Holder{Newest: l, Before: was, Phase: Asking}, []Effect{{Generation: was.Generation}}
}

// beat takes notice of a generation that lives.
func (h Holder) beat(g subjects.Generation) (Holder, []Effect) {
	if g >= h.Newest.Generation || h.Phase != Settled {
		return h, nil
	}
	if h.Heard++; h.Heard < olderBeats {
		return h, nil
	}
	h.Heard = olderBeats
	if h.Newest.Closed {
		return h, []Effect{h.reopen(g, h.Newest.Who+" was there under the same id and closed")}
	}
	h.Phase, h.Older = Meeting, g
	return h, []Effect{{Generation: h.Newest.Generation}}
}

// answer takes notice of whether a generation that was asked lives.
func (h Holder) answer(g subjects.Generation, lives bool) (Holder, []Effect) {
	switch {
	case h.Phase == Asking && g == h.Before.Generation:
		if !lives {
			return Holder{Newest: h.Newest}, nil
		}
		h.Phase = Moving
		return h, []Effect{{Generation: h.Newest.Generation, Message: &subjects.ControlMessage{
			Kind: subjects.ControlIDTaken, Reason: "it belongs to " + h.Before.Who + ", which was first and lives",
		}}}
	case h.Phase == Meeting && g == h.Newest.Generation:
		older := h.Older
		h.Phase, h.Older = Settled, ""
		if !lives {
			return h, []Effect{h.reopen(older, h.Newest.Who+" was there under the same id and does not answer")}
		}
		return h, []Effect{{Generation: older, Message: &subjects.ControlMessage{
			Kind: subjects.ControlSuperseded, Reason: "it belongs to " + h.Newest.Who + " now, which started while this program was not heard",
		}}}
	}
	return h, nil
}

// reopen tells a generation to come back behind the newest.
func (h Holder) reopen(g subjects.Generation, reason string) Effect {
	return Effect{Generation: g, Message: &subjects.ControlMessage{Kind: subjects.ControlReopen, Reason: reason, After: h.Newest.Generation}}
}
