package query

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Code says what kind of error kept a question from being answered.
type Code string

// The codes of errors, as they travel. Readers treat unknown ones as CodeFailed.
const (
	// CodeMalformed means that the question cannot be read; the message names the field.
	CodeMalformed Code = "malformed"
	// CodeNotFound means that there is no such thing, or not any more.
	CodeNotFound Code = "not-found"
	// CodeGone means that the thing was there and is no longer kept.
	CodeGone Code = "gone"
	// CodeRefused means that the asker may not do this, or that the program refused it.
	CodeRefused Code = "refused"
	// CodeUnsupported means that the source cannot do this.
	CodeUnsupported Code = "unsupported"
	// CodeBusy means that too many questions run; asking again helps.
	CodeBusy Code = "busy"
	// CodeTimeout means that the answer was not there before the deadline.
	CodeTimeout Code = "timeout"
	// CodeUnavailable means that nobody is there who could answer.
	CodeUnavailable Code = "unavailable"
	// CodeFailed means that something went wrong.
	CodeFailed Code = "failed"
)

// The sentinels of the codes, for errors.Is at both ends.
var (
	ErrMalformed   = errors.New("query: malformed")
	ErrNotFound    = errors.New("query: not found")
	ErrGone        = errors.New("query: no longer kept")
	ErrRefused     = errors.New("query: refused")
	ErrUnsupported = errors.New("query: unsupported")
	ErrBusy        = errors.New("query: busy")
	ErrTimeout     = errors.New("query: timeout")
	ErrUnavailable = errors.New("query: unavailable")
	ErrFailed      = errors.New("query: failed")
)

var sentinels = []struct {
	code Code
	err  error
}{
	{CodeMalformed, ErrMalformed}, {CodeNotFound, ErrNotFound}, {CodeGone, ErrGone}, {CodeRefused, ErrRefused},
	{CodeUnsupported, ErrUnsupported}, {CodeBusy, ErrBusy}, {CodeTimeout, ErrTimeout}, {CodeUnavailable, ErrUnavailable},
	{CodeFailed, ErrFailed},
}

// maxMessage is how many bytes of an error's message travel.
const maxMessage = 2 << 10

// Error is an error as it travels. errors.Is finds the sentinel of its code.
type Error struct {
	// Code is one of the Code constants.
	Code Code `json:"code" jsonschema:"what kind of error it is"`
	// Message is a sentence for people that says what to do next.
	Message string `json:"message" jsonschema:"what went wrong and what to do next"`
}

// Error returns the message, or the code where there is none.
func (e *Error) Error() string {
	if e.Message == "" {
		return string(e.Code)
	}
	return e.Message
}

// Unwrap returns the sentinel of the code.
func (e *Error) Unwrap() error {
	for _, s := range sentinels {
		if s.code == e.Code {
			return s.err
		}
	}
	return ErrFailed
}

// ErrorOf returns an error as it travels: with the code of the first sentinel
// that it wraps, valid UTF-8, without the sentinel's name, and bounded.
func ErrorOf(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	out := &Error{Code: CodeFailed, Message: strings.ToValidUTF8(err.Error(), "\ufffd")}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		out.Code = CodeTimeout
	case errors.Is(err, context.Canceled):
		out.Code = CodeUnavailable
	}
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			out.Code = s.code
			out.Message = strings.TrimPrefix(out.Message, s.err.Error()+": ")
			break
		}
	}
	if len(out.Message) > maxMessage {
		out.Message = strings.ToValidUTF8(out.Message[:maxMessage], "") + "…"
	}
	return out
}

// Errorf makes an error of a kind: one of the sentinels, and a sentence for people.
func Errorf(kind error, format string, args ...any) error {
	return fmt.Errorf("%w: %s", kind, fmt.Sprintf(format, args...))
}
