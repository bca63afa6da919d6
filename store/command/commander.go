package command

import (
	"context"
	"encoding/json"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
)

// Event is what a realm told one session.
type Event struct {
	realm.Event
	// Source is the realm's, Session the asker's.
	Source  subjects.SourceID
	Session subjects.SessionID
	// acknowledge tells the source that there is room for the next event; nil if it does not wait.
	acknowledge func()
}

// Waits reports whether the source waits for Acknowledge.
func (e Event) Waits() bool { return e.acknowledge != nil }

// Acknowledge tells a source that waits that there is room for its next event.
// It is called once, from any goroutine, also for events that nobody wants.
func (e Event) Acknowledge() {
	if e.acknowledge != nil {
		e.acknowledge()
	}
}

// Acknowledged returns an event whose Acknowledge calls f: for Commanders.
func (e Event) Acknowledged(f func()) Event {
	e.acknowledge = f
	return e
}

// Pending waits for the answer to a command that was sent. It is called once.
type Pending func() (json.RawMessage, error)

// Commander brings commands to sources and their events back. Its methods are
// safe for concurrent use.
type Commander interface {
	// Do asks one generation of a source and returns the result. The error wraps
	// one of package realm's: ErrGone, at once, when nobody is there.
	Do(ctx context.Context, src subjects.SourceID, gen subjects.Generation, r realm.Request) (json.RawMessage, error)
	// Start is Do in two steps: the command is sent when it returns, so that those
	// of one caller arrive in their order, and Pending waits, until ctx ends.
	Start(ctx context.Context, src subjects.SourceID, gen subjects.Generation, r realm.Request) (Pending, error)
	// Tell is Do for a command whose answer nobody needs. It does not wait.
	Tell(src subjects.SourceID, gen subjects.Generation, r realm.Request) error
	// Listen calls f for each event of this gateway's sessions until stop is
	// called. Answers that a source sent after an event come after f returned; f
	// must not wait for one. There is one listener at a time.
	Listen(f func(Event)) (stop func(), err error)
	// Audit writes a record and returns when it is stored.
	Audit(ctx context.Context, a realm.Audit) error
}
