package query

import (
	"time"

	"github.com/natscope/natscope/subjects"
)

// The states of a Source.
const (
	StateConnected    = "connected"
	StateDisconnected = "disconnected"
)

// SourcesRequest asks for sources.
type SourcesRequest struct {
	Sources []string `json:"sources,omitempty" jsonschema:"ids or names of the sources, * stands for any text; none means all"`
	State   string   `json:"state,omitempty" jsonschema:"only connected or only disconnected ones"`
	Limit   int      `json:"limit,omitempty" jsonschema:"most sources to answer; 1000 if not given, at most 5000"`
	After   string   `json:"after,omitempty" jsonschema:"go on behind the source with this id: next of an answer"`
}

// The bounds of an answer to SourcesRequest.
const (
	DefaultSources = 1000
	MaxSources     = 5000
)

// SourcesAnswer lists sources in the order in which they first appeared.
type SourcesAnswer struct {
	Space   subjects.Space `json:"space" jsonschema:"the space that the sources belong to"`
	Sources []Source       `json:"sources" jsonschema:"the sources in the order in which they first appeared"`
	Total   int            `json:"total" jsonschema:"how many sources match"`
	Next    string         `json:"next,omitempty" jsonschema:"use it as after to get the rest; absent when this is the end"`
	// Waiting is what the reader waits for; then the answer may be old.
	Waiting string `json:"waiting,omitempty" jsonschema:"why the state may be old: what its reader waits for"`
}

// Source describes one inspected program.
type Source struct {
	ID           subjects.SourceID   `json:"id" jsonschema:"id of the source, which survives restarts"`
	Name         string              `json:"name" jsonschema:"the name that people gave it"`
	Kind         string              `json:"kind" jsonschema:"host for a process, client for a page"`
	State        string              `json:"state" jsonschema:"connected or disconnected; what a disconnected source left behind is still there"`
	Reason       string              `json:"reason,omitempty" jsonschema:"why it is not connected, where it said so"`
	Generation   subjects.Generation `json:"generation" jsonschema:"names its newest admission; each start or page load has another"`
	OpenedAt     time.Time           `json:"openedAt,omitzero" jsonschema:"when the generation began"`
	GoneAt       time.Time           `json:"goneAt,omitzero" jsonschema:"when it went"`
	Title        string              `json:"title,omitempty" jsonschema:"title of a page"`
	URL          string              `json:"url,omitempty" jsonschema:"address of a page or process"`
	Runtime      string              `json:"runtime,omitempty" jsonschema:"language and version, or browser"`
	Hostname     string              `json:"hostname,omitempty" jsonschema:"machine"`
	PID          int                 `json:"pid,omitempty" jsonschema:"process id"`
	Library      string              `json:"library,omitempty" jsonschema:"the producer library and its version"`
	Capabilities []string            `json:"capabilities,omitempty" jsonschema:"what commands it answers"`
	Nodes        int                 `json:"nodes" jsonschema:"nodes of its tree"`
	Requests     int                 `json:"requests" jsonschema:"requests that are kept"`
	Running      int                 `json:"running" jsonschema:"requests that have not ended"`
	Failed       int                 `json:"failed" jsonschema:"kept requests that failed or have a status of 400 or more, or one of gRPC that is not 0"`
	Messages     int                 `json:"messages" jsonschema:"console entries that are kept"`
	Errors       int                 `json:"errors" jsonschema:"kept console entries that are errors or exceptions"`
	Commits      int                 `json:"commits" jsonschema:"commits of the tree's history that are kept"`
	Faults       uint64              `json:"faults" jsonschema:"faults in its records, ever"`
	Lost         uint64              `json:"lost" jsonschema:"records of this generation that were lost"`
}
