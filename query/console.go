package query

import (
	"encoding/json"
	"time"

	"github.com/natscope/natscope/subjects"
)

// ConsoleRequest asks for console entries.
type ConsoleRequest struct {
	Page
	Level  string    `json:"level,omitempty" jsonschema:"least level: debug, info, warning or error"`
	Since  time.Time `json:"since,omitzero" jsonschema:"only entries from this time on"`
	Values bool      `json:"values,omitempty" jsonschema:"answer the arguments as values, too"`
	Stack  bool      `json:"stack,omitempty" jsonschema:"answer stacks, too"`
}

// ConsoleAnswer lists console entries in the order of time.
type ConsoleAnswer struct {
	Entries []ConsoleEntry `json:"entries" jsonschema:"the entries, the oldest first"`
	Paged
}

// ConsoleEntry is one line of a log, one call of a console method, or one exception.
type ConsoleEntry struct {
	Source     subjects.SourceID   `json:"source" jsonschema:"id of the source"`
	Number     uint64              `json:"number" jsonschema:"counts the entries of the source, from 1"`
	Generation subjects.Generation `json:"generation" jsonschema:"generation that wrote it"`
	Time       time.Time           `json:"time" jsonschema:"when"`
	Level      string              `json:"level" jsonschema:"debug, info, warning or error"`
	Type       string              `json:"type" jsonschema:"console method, or exception"`
	Text       string              `json:"text" jsonschema:"the entry as one text, cut to 8000 bytes"`
	Logger     string              `json:"logger,omitempty" jsonschema:"logger or group"`
	Request    RequestID           `json:"request,omitempty" jsonschema:"the request that it belongs to"`
	Trace      string              `json:"trace,omitempty" jsonschema:"traceparent that it belongs to"`
	At         string              `json:"at,omitempty" jsonschema:"where it was written, file:line"`
	Args       []json.RawMessage   `json:"args,omitempty" jsonschema:"the arguments as values, when they were asked for"`
	Stack      []string            `json:"stack,omitempty" jsonschema:"where it was written, innermost first, when it was asked for"`
}

// FaultsRequest asks for what went wrong with the records of sources.
type FaultsRequest struct {
	Page
}

// FaultsAnswer lists faults.
type FaultsAnswer struct {
	Faults []Fault `json:"faults" jsonschema:"the faults, the oldest first"`
	Paged
}

// Fault is something that went wrong with a source's records.
type Fault struct {
	Source subjects.SourceID `json:"source" jsonschema:"id of the source"`
	Number uint64            `json:"number" jsonschema:"counts the faults of the source, from 1"`
	Time   time.Time         `json:"time,omitzero" jsonschema:"when, roughly"`
	Kind   string            `json:"kind" jsonschema:"malformed, gap, dropped, tree, notice or unopened"`
	Plane  subjects.Plane    `json:"plane,omitempty" jsonschema:"the plane whose records it is about"`
	Text   string            `json:"text" jsonschema:"what happened"`
}
