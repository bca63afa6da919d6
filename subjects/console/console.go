// Package console holds console messages and exceptions: the payloads of the
// console plane and their fold, the newest entries of a source.
//
// It must not know subjects, NATS, CDP's wire messages or live objects: its
// values are encoded (package value). It starts no goroutine; a State is not
// safe for concurrent use.
package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/natscope/natscope/subjects/network"
)

// The topics of the console plane.
const (
	// TopicMessage carries a Message.
	TopicMessage = "message"
	// TopicException carries an Exception.
	TopicException = "exception"
)

// ErrPayload says that a console record is malformed. The text around it names the field.
var ErrPayload = errors.New("console: malformed payload")

// Ref is the number under which the realm of a generation keeps the live
// arguments of a console call, or the value of an exception, for a while: for
// the newest calls, as long as sessions are open. 0 is none.
type Ref uint64

// Message is one call of a console method, or one line of a log.
type Message struct {
	// Type is the console method in CDP's spelling: log, debug, info, error,
	// warning, dir, table, trace, clear, startGroup, startGroupCollapsed,
	// endGroup, assert, count, timeEnd. Readers show an unknown one as log.
	Type string `json:"type"`
	// Args are the arguments, each encoded by package value.
	Args []json.RawMessage `json:"args"`
	// Stack is where the call was made, innermost first.
	Stack []network.Frame `json:"stack,omitempty"`
	// Logger names the logger or group, if any.
	Logger string `json:"logger,omitempty"`
	// Request is the request that the message belongs to, if known.
	Request network.RequestID `json:"request,omitempty"`
	// Trace is the traceparent that the message belongs to, if known.
	Trace string `json:"trace,omitempty"`
	// Ref finds the live arguments.
	Ref Ref `json:"ref,omitempty"`
	// Again says that the producer was told of the message by an engine that keeps
	// its console for whoever comes: an earlier generation may have recorded it.
	Again bool `json:"again,omitempty"`
}

// Exception is an uncaught exception, a panic or an unhandled rejection.
type Exception struct {
	// Text introduces it, such as "Uncaught" or "panic".
	Text string `json:"text"`
	// Value is what was thrown, encoded by package value.
	Value json.RawMessage `json:"value,omitempty"`
	// URL, Line and Column (from 1) say where.
	URL    string `json:"url,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	// Stack is where it was thrown, innermost first.
	Stack []network.Frame `json:"stack,omitempty"`
	// Ref finds what was thrown, as argument 0.
	Ref Ref `json:"ref,omitempty"`
	// Again is as in Message.
	Again bool `json:"again,omitempty"`
}

// Entry is one folded console record; exactly one of Message and Exception is set.
type Entry struct {
	// Generation is the generation that wrote it, as the caller of Apply named it.
	Generation string `json:"generation"`
	// Order numbers the entries of a source, from 1.
	Order uint64 `json:"order"`
	// T is its time on the source's clock, in milliseconds; Wall is the same in milliseconds since the Unix epoch.
	T         float64    `json:"t"`
	Wall      float64    `json:"wall"`
	Message   *Message   `json:"message,omitempty"`
	Exception *Exception `json:"exception,omitempty"`
}

// State is the fold of the console plane of one source over all its generations.
type State struct {
	// Entries holds the newest entries in order.
	Entries []*Entry
	// Evicted counts entries that were dropped to keep the limit.
	Evicted uint64
	// Count counts all entries ever.
	Count uint64
}

// sameMoment is within what the times of one message may differ, in milliseconds:
// each generation has a clock of its own, on which times are whole microseconds.
// A program needs longer for two messages.
const sameMoment = 0.002

// Apply folds one console record. wall is its time in milliseconds since the
// Unix epoch, limit how many entries are kept. The entry is nil for an unknown
// topic, and for a record that comes again and is there already. An error wraps
// ErrPayload and leaves the state as it was.
func (s *State) Apply(generation string, t, wall float64, topic string, data json.RawMessage, limit int) (*Entry, error) {
	e := &Entry{Generation: generation, T: t, Wall: wall}
	switch topic {
	case TopicMessage:
		var m Message
		if err := json.Unmarshal(data, &m); err != nil {
			return nil, fmt.Errorf("%w: message: %w", ErrPayload, err)
		}
		e.Message = &m
	case TopicException:
		var x Exception
		if err := json.Unmarshal(data, &x); err != nil {
			return nil, fmt.Errorf("%w: exception: %w", ErrPayload, err)
		}
		e.Exception = &x
	default:
		return nil, nil
	}
	if e.again() && s.has(e) {
		return nil, nil
	}
	s.Count++
	e.Order = s.Count
	s.Entries = append(s.Entries, e)
	for limit > 0 && len(s.Entries) > limit {
		s.Entries[0] = nil
		s.Entries = s.Entries[1:]
		s.Evicted++
	}
	return e, nil
}

func (e *Entry) again() bool {
	return e.Message != nil && e.Message.Again || e.Exception != nil && e.Exception.Again
}

// has reports whether an earlier generation recorded what e is: a message of the
// same kind at the same moment, or one from before all that is kept, which had
// its place and lost it.
func (s *State) has(e *Entry) bool {
	if s.Evicted > 0 && len(s.Entries) > 0 && s.Entries[0].Generation != e.Generation && e.Wall < s.Entries[0].Wall-sameMoment {
		return true
	}
	for _, x := range s.Entries {
		if x.Generation != e.Generation && math.Abs(x.Wall-e.Wall) <= sameMoment && (x.Exception == nil) == (e.Exception == nil) && (x.Message == nil || x.Message.Type == e.Message.Type) {
			return true
		}
	}
	return false
}
