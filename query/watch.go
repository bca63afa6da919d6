package query

import (
	"time"

	"github.com/natscope/natscope/subjects"
)

// The kinds of events of a watch. A question names those that it wants.
const (
	EventSource  = "source"
	EventRequest = "request"
	EventConsole = "console"
	EventFault   = "fault"
	EventCommit  = "commit"
	// EventPublished is a record that a program published under a topic of its own.
	EventPublished = "event"
)

// The kinds of events that come whether they were asked for or not.
const (
	// EventReady says that what follows is new: the snapshot has ended.
	EventReady = "ready"
	// EventReset says that the watch cannot go on from where it was, and why; a new snapshot follows.
	EventReset = "reset"
)

// WatchKinds lists the kinds of events that a watch may ask for.
func WatchKinds() []string {
	return []string{EventSource, EventRequest, EventConsole, EventFault, EventCommit, EventPublished}
}

// The bounds of a watch.
const (
	// DefaultLast and MaxLast are how many things of each kind a snapshot holds.
	DefaultLast = 50
	MaxLast     = 1000
	// MaxWait is the longest that one question waits for events.
	MaxWait = 20 * time.Second
	// MaxEvents is how many events one answer has at most.
	MaxEvents = 500
)

// Mark is a place in the changes of a space, behind which a watch goes on.
type Mark string

// WatchRequest asks what is there and for everything after it. An answer's Next
// is the After of the next question; nothing falls between the two, whichever
// gateway answers. Without After the answer begins with a snapshot.
type WatchRequest struct {
	Sources []string `json:"sources,omitempty" jsonschema:"ids or names of the sources, * stands for any text; none means all"`
	Kinds   []string `json:"kinds,omitempty" jsonschema:"source, request, console, fault, commit, event; none means all"`
	Filter  string   `json:"filter,omitempty" jsonschema:"an expression that requests, console entries, faults and commits must fulfil"`
	Text    string   `json:"text,omitempty" jsonschema:"text that they must contain; case does not matter"`
	Last    int      `json:"last,omitempty" jsonschema:"how many of the newest things of each kind the snapshot holds; 50 if not given, -1 for none, at most 1000"`
	After   Mark     `json:"after,omitempty" jsonschema:"go on behind this mark: next of an answer, or the word now for no snapshot at all"`
	WaitMS  int      `json:"waitMs,omitempty" jsonschema:"how long to wait for the first event when there is none; at most 20000"`
}

// Now is the mark of a watch that wants no snapshot.
const Now Mark = "now"

// WatchAnswer holds events.
type WatchAnswer struct {
	Events []Event `json:"events" jsonschema:"the events in order; none if nothing happened in time"`
	Next   Mark    `json:"next" jsonschema:"mark behind these events; use it as after"`
}

// Event is one thing that happened, or one that was there when the watch began.
type Event struct {
	Kind     string            `json:"kind" jsonschema:"which of the other fields is set"`
	SourceID subjects.SourceID `json:"sourceId,omitempty" jsonschema:"id of the source that it is about"`
	Snapshot bool              `json:"snapshot,omitempty" jsonschema:"was there when the watch began"`
	Source   *Source           `json:"source,omitempty" jsonschema:"a source that is new or changed"`
	Removed  bool              `json:"removed,omitempty" jsonschema:"the source was evicted with everything known of it"`
	Request  *RequestSummary   `json:"request,omitempty" jsonschema:"a request that is new or changed"`
	Console  *ConsoleEntry     `json:"console,omitempty" jsonschema:"a new console entry"`
	Fault    *Fault            `json:"fault,omitempty" jsonschema:"a new fault"`
	Commit   *Commit           `json:"commit,omitempty" jsonschema:"a new commit of the tree"`
	Event    *Published        `json:"event,omitempty" jsonschema:"a record that the program published itself"`
	Reason   string            `json:"reason,omitempty" jsonschema:"why the watch was reset, and what may be missing"`
}

// Published is a record of the event plane, which is not kept anywhere but in the stream.
type Published struct {
	Topic string    `json:"topic" jsonschema:"topic that the program gave it"`
	Time  time.Time `json:"time,omitzero" jsonschema:"when"`
	Data  any       `json:"data" jsonschema:"what it holds"`
}
