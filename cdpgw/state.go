package cdpgw

import (
	"context"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/subjects"
)

// State is the folded state that a gateway projects. *replica.Replica is one.
type State interface {
	// View calls f with the state under the read lock.
	View(f func(*fold.Space))
	// Watch calls initial with the state and registers w, as one step.
	Watch(initial func(*fold.Space), w replica.Watcher) (cancel func())
	// Body returns one body and waits for its end until ctx ends.
	Body(ctx context.Context, s subjects.BodySubject) (replica.Body, error)
	// FollowBody calls f with every part of a body from its start, and returns after its end.
	FollowBody(ctx context.Context, s subjects.BodySubject, f func(replica.BodyPart) error) error
}

var _ State = (*replica.Replica)(nil)
