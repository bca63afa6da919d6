package query

import (
	"time"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/tree"
)

// The kinds of things that a search finds.
const (
	KindRequest = "request"
	KindConsole = "console"
	KindNode    = "node"
	KindValue   = "value"
)

// SearchRequest asks for things of all kinds in all sources. One of Text and Filter must be given.
type SearchRequest struct {
	Sources []string `json:"sources,omitempty" jsonschema:"ids or names of the sources to look at, * stands for any text; none means all"`
	Kinds   []string `json:"kinds,omitempty" jsonschema:"request, console, node, value; none means all"`
	Text    string   `json:"text,omitempty" jsonschema:"text to find; case does not matter"`
	Filter  string   `json:"filter,omitempty" jsonschema:"an expression that things must fulfil"`
	Limit   int      `json:"limit,omitempty" jsonschema:"most hits of each kind; 20 if not given, at most 200"`
}

// The bounds of an answer to SearchRequest, for each kind.
const (
	DefaultHits = 20
	MaxHits     = 200
)

// SearchAnswer lists what was found: of requests and console entries the newest
// first, nodes and values in the order of the document.
type SearchAnswer struct {
	Hits []Hit `json:"hits" jsonschema:"what was found"`
	// More says of which kinds there is more than was answered.
	More []string `json:"more,omitempty" jsonschema:"kinds of which there is more; narrow the search, or ask requests, console or find"`
}

// Hit is one thing that a search found.
type Hit struct {
	Kind   string            `json:"kind" jsonschema:"request, console, node or value"`
	Source subjects.SourceID `json:"source" jsonschema:"id of the source"`
	ID     string            `json:"id" jsonschema:"id of the request or node; number of the console entry"`
	Time   time.Time         `json:"time,omitzero" jsonschema:"when, where that means something"`
	Text   string            `json:"text" jsonschema:"the thing in one line"`
}

// CordisRequest asks for the trees of the Cordis runtimes.
type CordisRequest struct {
	Sources []string `json:"sources,omitempty" jsonschema:"ids or names of the sources, * stands for any text; none means all"`
}

// CordisAnswer holds the trees of the Cordis runtimes, detached from everything live.
type CordisAnswer struct {
	Tree tree.CordisTree `json:"tree" jsonschema:"host and clients with their trees"`
}
