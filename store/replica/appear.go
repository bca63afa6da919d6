package replica

import (
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/tree"
)

// appearance returns the changes that tell a watcher of a source which appears
// with all that is known of it, as if its records had just come.
func appearance(src *fold.Source) []fold.Change {
	changes := []fold.Change{{Kind: fold.SourceAdded, Source: src}, {Kind: fold.SourceOpened, Source: src}}
	if src.Tree.Root != nil {
		changes = append(changes, fold.Change{Kind: fold.TreeChanged, Source: src, Tree: tree.Change{Kind: tree.Inserted, Entry: src.Tree.Root}})
	}
	for _, q := range src.Net.Requests {
		changes = request(changes, src, q)
	}
	for _, e := range src.Console.Entries {
		changes = append(changes, fold.Change{Kind: fold.ConsoleAdded, Source: src, Console: e})
	}
	for i := range src.Faults {
		changes = append(changes, fold.Change{Kind: fold.FaultAdded, Source: src, Fault: &src.Faults[i]})
	}
	if src.Life.Closed {
		changes = append(changes, fold.Change{Kind: fold.SourceClosed, Source: src})
	}
	return append(changes, fold.Change{Kind: fold.PresenceChanged, Source: src})
}

// request appends the changes through which a request came to its state.
func request(changes []fold.Change, src *fold.Source, q *network.Request) []fold.Change {
	add := func(c network.Change) {
		c.Request = q
		changes = append(changes, fold.Change{Kind: fold.RequestChanged, Source: src, Request: &c})
	}
	add(network.Change{Topic: network.TopicStart, T: q.Start.T})
	if q.BodyEnd != nil {
		add(network.Change{Topic: network.TopicRequestBodyEnd, T: q.BodyEnd.T})
	}
	if q.Response != nil {
		add(network.Change{Topic: network.TopicResponse, T: q.Response.T})
	}
	if q.Received.Bytes > 0 {
		sum := q.Received
		sum.ID = q.ID()
		add(network.Change{Topic: network.TopicDataReceived, T: q.LastData, Data: &sum})
	}
	for i := range q.Messages {
		add(network.Change{Topic: network.TopicMessage, T: q.Messages[i].T, Message: &q.Messages[i].Value})
	}
	switch {
	case q.Ending == network.Running:
	case q.End != nil:
		add(network.Change{Topic: network.TopicEnd, T: q.EndedAt})
	default:
		add(network.Change{Topic: network.TopicError, T: q.EndedAt})
	}
	return changes
}
