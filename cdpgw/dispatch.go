package cdpgw

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strconv"
	"unicode/utf8"

	"github.com/natscope/natscope/store/fold"
)

// method reads the parameters of a command, outside of all locks, and returns what runs it.
type method func(params json.RawMessage) (call, error)

// call runs a command. It is called inside a View with session.mu held.
type call func(s *session) (any, error)

// later is the result of a command whose answer has to be waited for. It runs in
// a goroutine of its own, without locks, until the connection ends.
type later func(ctx context.Context) (any, error)

// answered is the result of a command that sent its answer itself.
type answered struct{}

// on makes a method of a function of a session.
func on[P any](f func(*session, P) (any, error)) method {
	return func(params json.RawMessage) (call, error) {
		var p P
		if len(params) > 0 {
			if err := json.Unmarshal(params, &p); err != nil {
				return nil, invalidParams(describeJSON(err))
			}
		}
		return func(s *session) (any, error) { return f(s, p) }, nil
	}
}

// constant is a method that always gives the same result.
func constant(result any) method {
	return func(json.RawMessage) (call, error) {
		return func(*session) (any, error) { return result, nil }, nil
	}
}

// methods is the table of everything that the gateway implements.
var methods = merge(pageMethods, domMethods, networkMethods, ioMethods, runtimeMethods, evaluateMethods, objectMethods, debuggerMethods, logMethods, overlayMethods, targetMethods, attachMethods, inspectorMethods, cssMethods, editMethods, realmMethods, cordisMethods)

func merge(tables ...map[string]method) map[string]method {
	all := make(map[string]method)
	for _, t := range tables {
		maps.Copy(all, t)
	}
	return all
}

// incoming is a command as it comes.
type incoming struct {
	ID        json.RawMessage `json:"id"`
	Method    any             `json:"method"`
	Params    json.RawMessage `json:"params"`
	SessionID string          `json:"sessionId"`
}

// handle runs one command and queues its answer, unless it is a slow one.
func (s *session) handle(message []byte) {
	in, name, err := parseCommand(message)
	if err != nil {
		s.answer(in, nil, err)
		return
	}
	run, err := s.callOf(in, name)
	if err != nil {
		s.answer(in, nil, err)
		return
	}
	var messages []unencoded
	s.gateway.state.View(func(space *fold.Space) { messages = s.run(space, in, run) })
	encodeAll(messages)
}

// callOf returns what runs a command: of the root, of a child, or of the child
// that a target of the type node is.
func (s *session) callOf(in incoming, name string) (call, error) {
	if in.SessionID == "" && !s.target.node {
		m := methods[name]
		if m == nil {
			return nil, notFound(name)
		}
		return m(in.Params)
	}
	var p rawParams
	if len(in.Params) > 0 {
		if err := json.Unmarshal(in.Params, &p); err != nil {
			return nil, invalidParams(describeJSON(err))
		}
	}
	if in.SessionID != "" {
		return func(s *session) (any, error) {
			c := s.targets.byID[ChildID(in.SessionID)]
			if c == nil {
				return nil, &protocolError{Code: codeSession, Message: "Session with given id not found."}
			}
			return s.childCommand(c, name, p)
		}, nil
	}
	root := methods[name]
	var run call
	if root != nil {
		var err error
		if run, err = root(in.Params); err != nil {
			return nil, err
		}
	}
	return func(s *session) (any, error) {
		if c := s.nodeCommand(name); c != nil {
			return s.childCommand(c, name, p)
		}
		if run == nil {
			return nil, notFound(name)
		}
		return run(s)
	}, nil
}

// run runs a command under the locks and gives its answer a place in the queue
// under them too, so that no later change overtakes it. It returns the messages to encode.
func (s *session) run(space *fold.Space, in incoming, run call) (messages []unencoded) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { messages = s.takePostponed() }()
	defer s.guard()
	s.space = space
	defer func() { s.space = nil }()
	result, err := run(s)
	s.syncWatched(false)
	switch f := result.(type) {
	case later:
		if err == nil {
			s.start(in, f, func() {})
			return
		}
	case ordered:
		if err == nil {
			s.start(in, f.run, f.over)
			return
		}
	}
	s.postpone(answerTo(in, result, err))
	return
}

// start runs a slow command, or calls dropped if too many run.
func (s *session) start(in incoming, f later, dropped func()) {
	select {
	case s.slots <- struct{}{}:
	default:
		dropped()
		s.answer(in, nil, errBusy())
		return
	}
	s.slow.Go(func() {
		defer func() { <-s.slots }()
		defer s.guard()
		result, err := f(context.WithValue(s.conn.ctx, answerKey{}, in))
		if _, done := result.(answered); !done {
			s.answer(in, result, err)
		}
	})
}

// errBusy is the answer to a slow command too many.
func errBusy() error {
	return failf("%d commands of this connection wait for answers already; close some requests and try again.", maxSlow)
}

// answerKey finds the command of a slow one that sends its answer itself.
type answerKey struct{}

// answerSlow queues the answer of a slow command before the command ends.
func (s *session) answerSlow(ctx context.Context, result any) {
	in, _ := ctx.Value(answerKey{}).(incoming)
	s.answer(in, result, nil)
}

// answer queues an answer.
func (s *session) answer(in incoming, result any, err error) {
	s.conn.queue.answer(encode(answerTo(in, result, err)))
}

func answerTo(in incoming, result any, err error) outgoing {
	out := outgoing{ID: in.ID, SessionID: in.SessionID}
	if err != nil {
		out.Error = toProtocol(err)
	} else if out.Result = result; result == nil {
		out.Result = empty{}
	}
	return out
}

// parseCommand reads the envelope of a command.
func parseCommand(message []byte) (incoming, string, error) {
	var in incoming
	if !utf8.Valid(message) {
		message = bytes.ToValidUTF8(message, []byte("\uFFFD"))
	}
	if err := json.Unmarshal(message, &in); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return incoming{}, "", &protocolError{Code: codeParse, Message: "JSON: " + err.Error()}
		}
		return incoming{}, "", &protocolError{Code: codeInvalidRequest, Message: "Message must be an object: " + describeJSON(err)}
	}
	if _, err := strconv.ParseInt(string(in.ID), 10, 64); err != nil {
		in.ID = nil
		return in, "", &protocolError{Code: codeInvalidRequest, Message: "Message must have integer 'id' property"}
	}
	name, ok := in.Method.(string)
	if !ok || name == "" {
		return in, "", &protocolError{Code: codeInvalidRequest, Message: "Message must have string 'method' property"}
	}
	return in, name, nil
}

// article names a kind of JSON value in a sentence.
func article(kind string) string {
	if kind == "array" || kind == "object" {
		return "an " + kind
	}
	return "a " + kind
}

// describeJSON says what is wrong with a JSON value, without Go's names.
func describeJSON(err error) string {
	var t *json.UnmarshalTypeError
	if errors.As(err, &t) {
		if t.Field == "" {
			return article(t.Value) + " is not what was expected"
		}
		return t.Field + ": " + article(t.Value) + " is not what was expected"
	}
	return err.Error()
}
