package producer

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/subjects"
)

// orderKind says what an order asks of the loop.
type orderKind int

const (
	orderAdmitted orderKind = iota + 1
	orderSuperseded
	orderIDTaken
	orderError
)

// order is something that a callback of nats.go asks of the loop.
type order struct {
	kind orderKind
	// generation is the one that was meant; an order to an older one is a no-op.
	generation subjects.Generation
	reason     string
	err        error
}

func (l *loop) order(now time.Time, o order) {
	if o.kind == orderError {
		l.asyncError(now, o.err)
		return
	}
	id := l.p.ident.Load()
	if o.generation != id.generation {
		return
	}
	switch o.kind {
	case orderAdmitted:
		l.p.admitted.Store(true)
	case orderSuperseded:
		l.p.superseded.Store(true)
		l.p.trouble("superseded", fmt.Errorf("a newer program has the id %s: %s", id.source, o.reason))
	case orderIDTaken:
		l.suffix = max(l.suffix, 1) + 1
		next := subjects.SourceID(subjects.Token(string(l.p.o.ID) + "-" + strconv.Itoa(l.suffix)))
		l.p.trouble("id taken", fmt.Errorf("another living program has the id %s; this one is now %s: %s", id.source, next, o.reason))
		l.reopen(next)
	}
}

// asyncError deals with an error that the connection reports on its own.
func (l *loop) asyncError(now time.Time, err error) {
	for _, x := range l.lanes {
		if x.out != nil && denied(err, x.out.msg.Subject) {
			l.denied(now, x.out.msg.Subject)
			return
		}
	}
	l.p.trouble("connection", err)
}

// onControl answers the store. It runs on a goroutine of nats.go.
func (l *loop) onControl(m *nats.Msg) {
	var c subjects.ControlMessage
	answer := subjects.ControlAnswer{OK: true}
	// The subject names the generation that is meant, which may be over by now.
	o := order{generation: subjects.Generation(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:])}
	if err := json.Unmarshal(m.Data, &c); err != nil {
		answer = subjects.ControlAnswer{Error: "the request is not JSON: " + cutText(err.Error(), 200)}
	} else {
		o.reason = cutText(c.Reason, 512)
		switch c.Kind {
		case subjects.ControlAdmitted:
			o.kind = orderAdmitted
		case subjects.ControlResnapshot:
			l.p.Resnapshot()
		case subjects.ControlSuperseded:
			o.kind = orderSuperseded
		case subjects.ControlIDTaken:
			o.kind = orderIDTaken
		default:
			answer = subjects.ControlAnswer{Error: fmt.Sprintf("unknown kind %.40q; known are admitted, resnapshot, superseded, id-taken", c.Kind)}
		}
	}
	if o.kind != 0 && !l.give(o) {
		answer = subjects.ControlAnswer{Error: "the source is too busy, ask again"}
	}
	respond(m, answer)
}

// commandError says why a command was not carried out.
type commandError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// commandAnswer is the answer to a command.
type commandAnswer struct {
	OK         bool                `json:"ok"`
	Generation subjects.Generation `json:"generation,omitempty"`
	T          float64             `json:"t,omitempty"`
	Error      *commandError       `json:"error,omitempty"`
}

// onCommand answers gateways: a producer alone has no realm, so all it can do is
// to say that it lives. It runs on a goroutine of nats.go.
func (l *loop) onCommand(m *nats.Msg) {
	var c struct {
		Method string `json:"method"`
	}
	switch err := json.Unmarshal(m.Data, &c); {
	case err != nil:
		respond(m, commandAnswer{Error: &commandError{"malformed", "the command is not a JSON object with a method"}})
	case c.Method == "ping":
		respond(m, commandAnswer{OK: true, Generation: l.p.Generation(), T: l.p.Now()})
	default:
		respond(m, commandAnswer{Error: &commandError{"unsupported", fmt.Sprintf("this source does not support %.80q: it has no live realm", c.Method)}})
	}
}

func respond(m *nats.Msg, v any) {
	if m.Reply == "" {
		return
	}
	data, _ := json.Marshal(v)
	// Whoever asked will time out if this fails; there is nobody else to tell.
	_ = m.Respond(data)
}
