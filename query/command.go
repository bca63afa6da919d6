package query

import (
	"encoding/json"

	"github.com/natscope/natscope/subjects"
)

// EvaluateRequest asks a program to evaluate an expression.
type EvaluateRequest struct {
	Source     string `json:"source" jsonschema:"id or name of the source"`
	Expression string `json:"expression" jsonschema:"the expression, in the language of the program's console: JavaScript, also for Go programs"`
	ByValue    bool   `json:"byValue,omitempty" jsonschema:"answer the whole result as JSON, not only a line of text"`
	Pure       bool   `json:"pure,omitempty" jsonschema:"refuse what could change anything, such as calls and assignments"`
	TimeoutMS  int    `json:"timeoutMs,omitempty" jsonschema:"how long it may run; 5000 if not given, at most 30000"`
}

// The bounds of an evaluation, in milliseconds and bytes.
const (
	DefaultEvaluateMS = 5000
	MaxEvaluateMS     = 30_000
	MaxExpression     = 64 << 10
)

// EvaluateAnswer is what an expression gave, or how it failed.
type EvaluateAnswer struct {
	Source    subjects.SourceID `json:"source" jsonschema:"id of the source"`
	Type      string            `json:"type" jsonschema:"JavaScript type of the result"`
	Class     string            `json:"class,omitempty" jsonschema:"class or Go type of an object"`
	Text      string            `json:"text" jsonschema:"the result in a line of text"`
	Value     json.RawMessage   `json:"value,omitempty" jsonschema:"the result as JSON, where it was asked for or is no object"`
	Exception string            `json:"exception,omitempty" jsonschema:"what was thrown, with its stack; then there is no result"`
}

// EditRequest asks a program to change one value of a node.
type EditRequest struct {
	ID    NodeID          `json:"id" jsonschema:"id of the node"`
	Name  string          `json:"name" jsonschema:"name of the value, one that can be edited"`
	Path  []any           `json:"path,omitempty" jsonschema:"steps into the value, names or places from 0, to replace only what is there"`
	Value json.RawMessage `json:"value" jsonschema:"what comes in its place, any JSON"`
}

// EditAnswer says that a program took an edit. What it changed comes with the tree.
type EditAnswer struct {
	ID   NodeID `json:"id" jsonschema:"id of the node"`
	Done bool   `json:"done" jsonschema:"the program took it"`
}

// HighlightRequest asks a page to show where a node is.
type HighlightRequest struct {
	ID     NodeID `json:"id,omitempty" jsonschema:"id of the node; none, with source, ends the highlight"`
	Source string `json:"source,omitempty" jsonschema:"id or name of the source whose highlight ends"`
}

// HighlightAnswer says that a page took a highlight.
type HighlightAnswer struct {
	Done bool `json:"done" jsonschema:"the page took it"`
}
