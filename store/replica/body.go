package replica

import (
	"context"
	"errors"

	"github.com/natscope/natscope/subjects"
)

// ErrNoBody says that the request has no such body, or that nothing of it was captured.
var ErrNoBody = errors.New("replica: no such body")

// ErrBodyEvicted says that the body was captured but is no longer kept.
var ErrBodyEvicted = errors.New("replica: body evicted")

// Body is what was captured of one body.
type Body struct {
	// Data is the captured prefix of the body.
	Data []byte
	// End is why the capture ended: one of the subjects.Body constants, or empty if it had not ended.
	End string
	// Total is the size of the whole body in bytes, as far as the producer knows it; with End only.
	Total int64
	// Complete says that Data is the whole body.
	Complete bool
}

// BodyPart is a piece of a body.
type BodyPart struct {
	// Offset is where Data belongs; parts come without holes and overlaps.
	Offset int64
	// Data is valid during the call only.
	Data []byte
	// End and Total are those of Body, in the last part only.
	End   string
	Total int64
}

// Body returns one body. It waits for its end until ctx ends.
func (r *Replica) Body(ctx context.Context, s subjects.BodySubject) (Body, error) {
	return Body{}, ErrNoBody
}

// FollowBody calls f with every part of a body from its start, and returns after its end.
func (r *Replica) FollowBody(ctx context.Context, s subjects.BodySubject, f func(BodyPart) error) error {
	return ErrNoBody
}
