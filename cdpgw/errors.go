package cdpgw

import (
	"context"
	"errors"
	"fmt"

	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/subjects/realm"
)

// code is an error code of the protocol.
type code int

// The codes that Chrome uses.
const (
	codeParse          code = -32700
	codeInvalidRequest code = -32600
	codeNotFound       code = -32601
	codeInvalidParams  code = -32602
	codeServer         code = -32000
	codeSession        code = -32001
)

// protocolError is an error as it goes to the client.
type protocolError struct {
	Code    code   `json:"code"`
	Message string `json:"message"`
	Data    string `json:"data,omitempty"`
}

func (e *protocolError) Error() string { return e.Message }

// failf returns an error of a domain: a sentence for the person in front of DevTools.
func failf(format string, args ...any) error {
	return &protocolError{Code: codeServer, Message: fmt.Sprintf(format, args...)}
}

// notFound is the error of a method that does not exist here, in Chrome's words.
func notFound(method string) error {
	return &protocolError{Code: codeNotFound, Message: fmt.Sprintf("'%.200s' wasn't found", method)}
}

// invalidParams is the error of parameters that cannot be read.
func invalidParams(reason string) error {
	return &protocolError{Code: codeInvalidParams, Message: "Invalid parameters", Data: reason}
}

// toProtocol maps every error to what the client is told. It is the only place that does.
func toProtocol(err error) *protocolError {
	var e *protocolError
	if errors.As(err, &e) {
		return e
	}
	message := err.Error()
	var r *realm.Error
	switch {
	case errors.As(err, &r):
		message = r.Error()
	case errors.Is(err, replica.ErrBodyEvicted):
		message = "The body was captured but is no longer kept: it became too old, or newer bodies took its place. natscope up and natscope store keep more with --body-age and --body-bytes."
	case errors.Is(err, replica.ErrNoBody):
		message = "No data found for resource with given identifier: the source captured no body for this request."
	case errors.Is(err, replica.ErrClosed):
		message = "The gateway is stopping; reconnect DevTools."
	case errors.Is(err, context.DeadlineExceeded):
		message = "The answer did not come in time; try again."
	case errors.Is(err, context.Canceled):
		message = "The connection is closing."
	}
	return &protocolError{Code: codeServer, Message: message}
}
