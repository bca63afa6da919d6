package query

import "github.com/natscope/natscope/subjects"

// The bounds of pages.
const (
	// DefaultLimit is how many things a page has when the question says nothing.
	DefaultLimit = 100
	// MaxLimit is the most things of a page; more are cut to it.
	MaxLimit = 1000
	// PageBytes is about how many bytes of JSON a page has at most; it ends earlier than its limit then.
	PageBytes = 640 << 10
	// MaxScan is how many things one question looks at, for at most a tenth of a
	// second; a page that found less ends there, and Next goes on.
	MaxScan = 200_000
)

// Page says which part of a list to answer. Without a cursor it is the newest
// part. Things are always in the order of time, the oldest first.
type Page struct {
	Sources []string `json:"sources,omitempty" jsonschema:"ids or names of the sources to look at, * stands for any text; none means all"`
	Filter  string   `json:"filter,omitempty" jsonschema:"an expression that things must fulfil, such as: status >= 500 && url contains 'api'"`
	Text    string   `json:"text,omitempty" jsonschema:"text that things must contain; case does not matter"`
	Limit   int      `json:"limit,omitempty" jsonschema:"most things to answer; 100 if not given, at most 1000"`
	After   Cursor   `json:"after,omitempty" jsonschema:"go on behind this cursor: next of an answer, or the word oldest"`
	Before  Cursor   `json:"before,omitempty" jsonschema:"go back from this cursor: prev of an answer, or the word newest"`
}

// Paged says where a page is in its list.
type Paged struct {
	Next   Cursor   `json:"next" jsonschema:"cursor behind this page; use it as after, also later, to see what came"`
	Prev   Cursor   `json:"prev" jsonschema:"cursor before this page; use it as before to go back"`
	More   bool     `json:"more" jsonschema:"more is there now in the direction that was asked"`
	Missed []Missed `json:"missed,omitempty" jsonschema:"what was behind the cursor but is no longer kept"`
	Reset  bool     `json:"reset,omitempty" jsonschema:"the record stream was made anew since the cursor; the page begins at the start of the new one"`
}

// Missed counts things of one source that were evicted before they were read.
type Missed struct {
	Source subjects.SourceID `json:"source" jsonschema:"id of the source"`
	Count  uint64            `json:"count" jsonschema:"how many things were evicted before they could be read"`
}
