package producer

import (
	"context"

	"github.com/natscope/natscope/subjects/network"
)

// requestKey finds the request in whose course something happens in a context.
type requestKey struct{}

// inRequest is a recorded request.
type inRequest struct {
	id    network.RequestID
	trace string
}

// InRequest returns a context in which a recorded request is served: what is
// logged with it belongs to the request. trace is the request's traceparent, or empty.
func InRequest(ctx context.Context, id network.RequestID, trace string) context.Context {
	return context.WithValue(ctx, requestKey{}, inRequest{id, trace})
}

// RequestOf returns the recorded request in whose course ctx is used, and its
// traceparent; empty for none.
func RequestOf(ctx context.Context) (id network.RequestID, trace string) {
	if ctx == nil {
		return "", ""
	}
	r, _ := ctx.Value(requestKey{}).(inRequest)
	return r.id, r.trace
}
