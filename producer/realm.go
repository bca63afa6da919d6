package producer

import (
	"context"
	"encoding/json"

	"github.com/natscope/natscope/subjects/realm"
)

// Realm carries out the commands of sessions: it owns the live objects of the
// program. A producer calls it only while sessions are open or asked for.
type Realm interface {
	// Capabilities lists the groups and methods that it answers in sessions. It is asked for once, by Serve.
	Capabilities() []string
	// Open begins a session. It must not block; ctx ends with the session. An
	// error is what whoever asked for the session hears.
	Open(ctx context.Context, s realm.Session, out SessionOut) (RealmSession, error)
}

// RealmSession is one session at a realm. Its methods are called one at a time,
// on a goroutine that belongs to the session.
type RealmSession interface {
	// Do starts a command. Commands come in the order of their arrival; Do must
	// not block, and calls reply once, at once or later, from any goroutine. ctx
	// ends with the command's deadline, when it is cancelled, and with the session;
	// whoever asked is answered then, and a later reply is a no-op. The result
	// becomes JSON; Verbatim goes as it is. An error travels as one of CommandFunc does.
	Do(ctx context.Context, m realm.Method, params json.RawMessage, reply func(result any, err error))
	// Close ends the session: it was closed, its lease ran out, or the source goes.
	// All that is held for it is to be freed, and what it paused has to run on.
	Close(reason error)
}

// SessionOut brings the events of one session to whoever opened it, in order,
// and before the answers of commands that reply after them. Its methods are safe for concurrent use.
type SessionOut interface {
	// Emit sends an event and returns at once. Events that find no room, and those
	// while there is no connection, are lost and counted, and the next one that gets through says how many.
	Emit(event string, payload any)
	// EmitWait sends an event and waits until the asker has room for the next one.
	// The error is the context's, or wraps realm.ErrGone when nobody listens (any
	// more), or realm.ErrTooLarge. Use it for what comes in many pieces.
	EmitWait(ctx context.Context, event string, payload any) error
}

// Serve says which realm answers sessions, and lists its capabilities among the
// source's. Functions of OnCommand go before it. The last realm wins; nil
// removes it. The sessions of the one before are closed.
func (p *Producer) Serve(r Realm) {
	var list []string
	if r != nil {
		if err := contained(func() { list = r.Capabilities() }); err != nil {
			p.trouble("no realm", err)
			return
		}
	}
	p.sessions.serve(r, list)
	p.mu.Lock()
	p.advertise()
	p.mu.Unlock()
	p.wake()
}

// Verbatim is JSON that is known to be valid. As the result of a command or the
// payload of an event of a session it goes out byte by byte, while anything else,
// json.RawMessage too, is encoded: that costs more than all else for results of megabytes.
type Verbatim []byte

// MarshalJSON implements json.Marshaler.
func (v Verbatim) MarshalJSON() ([]byte, error) {
	if len(v) == 0 {
		return []byte("null"), nil
	}
	return v, nil
}
