package realm

import (
	"context"
	"errors"
	"strings"
)

// Code says what kind of error kept a command from being carried out.
type Code string

// The codes of errors. Readers treat unknown ones as CodeFailed.
const (
	// CodeUnsupported means that the realm cannot do this at all.
	CodeUnsupported Code = "unsupported"
	// CodeMalformed means that the command or its parameters cannot be read.
	CodeMalformed Code = "malformed"
	// CodeRefused means that the program does not allow it, such as a change of a value that cannot be set.
	CodeRefused Code = "refused"
	// CodeNotFound means that the node, value or object is not there, or not there any more.
	CodeNotFound Code = "object-not-found"
	// CodeTimeout means that the realm did not finish in time; it may still do it.
	CodeTimeout Code = "timeout"
	// CodeGone means that the program behind the source cannot be reached.
	CodeGone Code = "source-gone"
	// CodeTooLarge means that the result is larger than a message can be.
	CodeTooLarge Code = "result-too-large"
	// CodeBusy means that as many commands run as the realm takes; asking again helps.
	CodeBusy Code = "busy"
	// CodeNoSession means that the realm does not know the session of a command that needs one. The
	// asker opens it (anew); what was held for the old one is gone.
	CodeNoSession Code = "no-session"
	// CodeCanceled means that the session took the command back while it ran.
	CodeCanceled Code = "canceled"
	// CodeFailed means that something went wrong while it was carried out.
	CodeFailed Code = "failed"
)

// The sentinels of the codes, for errors.Is at both ends.
var (
	ErrUnsupported = errors.New("realm: unsupported")
	ErrMalformed   = errors.New("realm: malformed")
	ErrRefused     = errors.New("realm: refused")
	ErrNotFound    = errors.New("realm: object not found")
	ErrTimeout     = errors.New("realm: timeout")
	ErrGone        = errors.New("realm: source gone")
	ErrTooLarge    = errors.New("realm: result too large")
	ErrBusy        = errors.New("realm: busy")
	ErrNoSession   = errors.New("realm: no session")
	ErrCanceled    = errors.New("realm: canceled")
	ErrFailed      = errors.New("realm: failed")
)

var sentinels = map[Code]error{
	CodeUnsupported: ErrUnsupported, CodeMalformed: ErrMalformed, CodeRefused: ErrRefused, CodeNotFound: ErrNotFound,
	CodeTimeout: ErrTimeout, CodeGone: ErrGone, CodeTooLarge: ErrTooLarge, CodeBusy: ErrBusy, CodeFailed: ErrFailed,
	CodeNoSession: ErrNoSession, CodeCanceled: ErrCanceled,
}

// maxMessage is how many bytes of an error's message travel.
const maxMessage = 1 << 10

// Error is an error as it travels. errors.Is finds the sentinel of its code.
type Error struct {
	// Code is one of the Code constants.
	Code Code `json:"code"`
	// Message is a sentence for people.
	Message string `json:"message"`
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
	if s := sentinels[e.Code]; s != nil {
		return s
	}
	return ErrFailed
}

// CodeOf returns the code of an error: that of the Error or of the sentinel in
// its chain, CodeTimeout and CodeCanceled for those of a context, and CodeFailed for everything else.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) && sentinels[e.Code] != nil {
		return e.Code
	}
	for code, s := range sentinels {
		if errors.Is(err, s) {
			return code
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return CodeTimeout
	}
	if errors.Is(err, context.Canceled) {
		return CodeCanceled
	}
	return CodeFailed
}

// ErrorOf returns an error as it travels: valid UTF-8, without the name of the
// sentinel in front of its message, and cut to about 1000 bytes.
func ErrorOf(err error) *Error {
	code := CodeOf(err)
	message := strings.ToValidUTF8(err.Error(), "\ufffd")
	if s := sentinels[code]; s != nil {
		message = strings.TrimPrefix(message, s.Error()+": ")
	}
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	return &Error{Code: code, Message: message}
}
