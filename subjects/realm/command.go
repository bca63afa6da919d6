package realm

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Method names a command.
type Method string

// The commands.
const (
	// MethodPing asks whether the source is there. Every source answers it.
	MethodPing Method = "ping"
	// MethodInspect reads one value of a node: InspectParams, InspectResult.
	MethodInspect Method = "tree.inspect"
	// MethodEdit changes one value of a node: EditParams. What it changed comes as records of the tree.
	MethodEdit Method = "tree.edit"
	// MethodHighlight shows where a node is on the page: HighlightParams.
	MethodHighlight Method = "tree.highlight"
	// MethodPick begins or ends the picking of a node by the person in front of the page: PickParams.
	MethodPick Method = "tree.pick"
	// MethodLog logs a node to the program's own console: LogParams.
	MethodLog Method = "tree.log"
	// MethodStoreGlobal keeps a value of a node under a global name: StoreGlobalParams, StoreGlobalResult.
	MethodStoreGlobal Method = "tree.storeGlobal"
	// MethodOpen opens the place of a node's definition in an editor: OpenParams.
	MethodOpen Method = "tree.open"
)

// Methods returns the commands that need no session, ping aside.
func Methods() []Method {
	return []Method{MethodInspect, MethodEdit, MethodHighlight, MethodPick, MethodLog, MethodStoreGlobal, MethodOpen, MethodWatch}
}

// Supports reports whether a source with the given capabilities answers a
// method. A capability is the name of a method, or what stands before its dot,
// which then means every method of that group. Ping is always answered.
func Supports(capabilities []string, m Method) bool {
	if m == MethodPing {
		return true
	}
	group, _, grouped := strings.Cut(string(m), ".")
	for _, c := range capabilities {
		if c == string(m) || grouped && c == group {
			return true
		}
	}
	return false
}

// The bounds of a request.
const (
	// MaxRequest is the most bytes of a request.
	MaxRequest = 1 << 20
	// maxMethod is the most bytes of a method's name.
	maxMethod = 128
	// maxDeadline bounds DeadlineMS: a day.
	maxDeadline = 24 * 60 * 60 * 1000
)

// Session names who asks, and where the events go that the command causes. The
// zero Session is nobody: a command without one gets no events.
type Session struct {
	// Gateway and ID are the tokens of the session's event subject.
	Gateway string `json:"gateway,omitempty"`
	ID      string `json:"id,omitempty"`
}

// Request is a command to a realm.
type Request struct {
	// Method is the command's name.
	Method Method `json:"method"`
	// Params are the command's parameters, an object; absent for none.
	Params json.RawMessage `json:"params,omitempty"`
	// ID names the command in its session, so that it can be cancelled; empty if it will not be.
	ID RequestID `json:"id,omitempty"`
	// Session is who asks, nil for nobody.
	Session *Session `json:"session,omitempty"`
	// DeadlineMS is how long the asker waits, in milliseconds; 0 means as long as the source lets commands run.
	DeadlineMS int64 `json:"deadlineMs,omitempty"`
}

// Deadline returns how long a command may run, given the source's own limit.
func (r Request) Deadline(limit time.Duration) time.Duration {
	if d := time.Duration(r.DeadlineMS) * time.Millisecond; d > 0 && d < limit {
		return d
	}
	return limit
}

// MaxAnswer is the most bytes of an answer, in all its pieces.
const MaxAnswer = 64 << 20

// Answer is the answer to a command. Exactly one of Result and Error means something.
type Answer struct {
	// OK says that the command was carried out.
	OK bool `json:"ok"`
	// Result is what the command gave, absent if nothing.
	Result json.RawMessage `json:"result,omitempty"`
	// Error says why it was not carried out.
	Error *Error `json:"error,omitempty"`
}

// ParseRequest parses a command. The error wraps ErrMalformed. Unknown fields
// are ignored; a deadline that makes no sense is as good as none.
func ParseRequest(data []byte) (Request, error) {
	var r Request
	switch {
	case len(data) > MaxRequest:
		return Request{}, fmt.Errorf("%w: a command of %d bytes, the limit is %d", ErrMalformed, len(data), MaxRequest)
	case !utf8.Valid(data):
		return Request{}, fmt.Errorf("%w: the command is not UTF-8", ErrMalformed)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return Request{}, fmt.Errorf("%w: the command is not a JSON object with a method: %w", ErrMalformed, err)
	}
	if r.Method == "" || len(r.Method) > maxMethod {
		return Request{}, fmt.Errorf("%w: method must have 1 to %d bytes", ErrMalformed, maxMethod)
	}
	if len(r.ID) > maxRequestID {
		return Request{}, fmt.Errorf("%w: id has more than %d bytes", ErrMalformed, maxRequestID)
	}
	if r.DeadlineMS < 0 || r.DeadlineMS > maxDeadline {
		r.DeadlineMS = 0
	}
	return r, nil
}

// ParseAnswer parses the answer to a command and returns its result, or its
// error: an *Error of the realm, or one that wraps ErrMalformed.
func ParseAnswer(data []byte) (json.RawMessage, error) {
	var a Answer
	if err := json.Unmarshal(data, &a); err != nil {
		return nil, fmt.Errorf("%w: the answer is not JSON: %w", ErrMalformed, err)
	}
	switch {
	case a.OK:
		return a.Result, nil
	case a.Error == nil:
		return nil, &Error{Code: CodeFailed, Message: "the source did not say why"}
	}
	return nil, a.Error
}

// AnswerOf makes the answer of a result, or of an error if err is not nil.
func AnswerOf(result json.RawMessage, err error) Answer {
	if err != nil {
		return Answer{Error: ErrorOf(err)}
	}
	return Answer{OK: true, Result: result}
}

// ParseParams reads the parameters of a command into P and checks them. Absent
// parameters are an empty object. The error wraps ErrMalformed.
func ParseParams[P any](data json.RawMessage) (P, error) {
	var p P
	if len(data) > 0 {
		if err := json.Unmarshal(data, &p); err != nil {
			return p, fmt.Errorf("%w: params: %w", ErrMalformed, err)
		}
	}
	if c, ok := any(p).(interface{ check() error }); ok {
		if err := c.check(); err != nil {
			return p, fmt.Errorf("%w: params: %w", ErrMalformed, err)
		}
	}
	return p, nil
}
