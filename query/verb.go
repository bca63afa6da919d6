package query

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"time"
)

// Verb is one question that can be asked, for doors that serve all of them alike.
type Verb struct {
	// Name is the last level of its subject, and of its HTTP path.
	Name string
	// Title says in a few words what it does, Doc in a sentence or two.
	Title, Doc string
	// Changes says that it can change a program.
	Changes bool
	// Wait is how long it may take beyond the usual deadline.
	Wait time.Duration
	// Question and Answer are the types of what goes in and out.
	Question, Answer reflect.Type

	call func(context.Context, API, []byte) (any, error)
}

// Call asks the question that is encoded as a JSON object, or as nothing for
// the empty one. Unknown fields are ignored. The error wraps a sentinel.
func (v *Verb) Call(ctx context.Context, api API, question []byte) (any, error) {
	return v.call(ctx, api, question)
}

func verb[Q, A any](name, title, doc string, ask func(API, context.Context, Q) (A, error)) *Verb {
	return &Verb{
		Name: name, Title: title, Doc: doc, Question: reflect.TypeFor[Q](), Answer: reflect.TypeFor[A](),
		call: func(ctx context.Context, api API, question []byte) (any, error) {
			var q Q
			if len(bytes.TrimSpace(question)) > 0 {
				if err := json.Unmarshal(question, &q); err != nil {
					return nil, Errorf(ErrMalformed, "the question of %s cannot be read: %v", name, err)
				}
			}
			return ask(api, ctx, q)
		},
	}
}

var verbs = []*Verb{
	verb("sources", "List the programs", "Lists the inspected programs with their state and how much is known of each.", API.Sources),
	verb("tree", "Read a tree", "Reads what a program is made of: components, workers, connections, routes. Bounded by depth, nodes and bytes; ask from a node to see more of it.", API.Tree),
	verb("find", "Find nodes", "Finds nodes in the trees of all programs by text or by an expression.", API.FindNodes),
	verb("node", "Inspect a node", "Reads one node with its attributes, its values and its newest changes.", API.Node),
	verb("values", "Read values", "Reads the values of a node; with a path, what is inside of one of them.", API.Values),
	verb("requests", "List requests", "Lists captured HTTP requests, event streams and WebSockets, in order of their starts.", API.Requests),
	verb("request", "Inspect a request", "Reads one request with headers, timing, stack and messages, without its bodies.", API.Request),
	verb("body", "Read a body", "Reads a range of the captured body of a request or response.", API.Body),
	verb("console", "Read logs", "Lists log lines, console calls and exceptions of all programs in order of time.", API.Console),
	verb("history", "Read history", "Lists what changed in the trees, with the values before and after.", API.History),
	verb("faults", "List faults", "Lists what went wrong with the records of programs: gaps, losses, malformed records.", API.Faults),
	verb("search", "Search everything", "Finds requests, log lines, nodes and values of all programs by text or by an expression.", API.Search),
	verb("cordis", "Read Cordis trees", "Reads the trees of the Cordis runtimes, host and clients.", API.Cordis),
	waiting(verb("watch", "Watch", "Answers what is there and then, question by question, everything after it.", API.Watch), MaxWait),
	verb("highlight", "Highlight a node", "Has a page show where a node is, for a while.", API.Highlight),
	changing(waiting(verb("evaluate", "Evaluate an expression", "Has a program evaluate an expression, as its console does.", API.Evaluate), MaxEvaluateMS*time.Millisecond)),
	changing(verb("edit", "Edit a value", "Has a program change one value of a node. What it changed comes with the tree.", API.Edit)),
}

func changing(v *Verb) *Verb {
	v.Changes = true
	return v
}

func waiting(v *Verb, d time.Duration) *Verb {
	v.Wait = d
	return v
}

// Verbs lists every question that can be asked. Callers must not change them.
func Verbs() []*Verb { return verbs }
