package producer

import (
	"encoding/json"
	"fmt"
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
	orderReopen
	orderClaim
	orderPing
	orderError
)

// order is something that a callback of nats.go asks of the loop.
type order struct {
	kind orderKind
	// generation is the one that was meant; an order to an older one is a no-op.
	generation subjects.Generation
	reason     string
	err        error
	// msg is the request that the loop answers itself, if it does.
	msg *nats.Msg
	// after goes with orderReopen, claim with orderClaim, and so does id, which is
	// the one that is wanted.
	after subjects.Generation
	claim subjects.Claim
	id    subjects.SourceID
	// unsure says that Options.Alive has to be asked first.
	unsure bool
}

func (l *loop) order(now time.Time, o order) {
	if o.kind == orderError {
		l.asyncError(now, o.err)
		return
	}
	if o.unsure {
		l.judge(o)
		return
	}
	switch o.kind {
	case orderAdmitted:
		if o.generation == l.p.Generation() {
			l.p.admitted.Store(true)
		}
	case orderIDTaken, orderSuperseded:
		if o.kind == orderSuperseded && o.generation == l.p.Generation() {
			l.p.superseded.Store(true)
		}
		l.displaced(o)
	case orderReopen:
		l.comeBack(o)
	case orderClaim:
		l.answer(now, o, true)
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
	if l.claims.token != 0 && denied(err, subjects.ClaimSubject(l.p.o.Space, l.p.ID())) {
		// Who may not ask opens all the same.
		l.hold()
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
			o.kind, o.msg, o.unsure = orderSuperseded, m, l.p.o.Alive != nil
		case subjects.ControlIDTaken:
			o.kind, o.msg = orderIDTaken, m
		case subjects.ControlReopen:
			o.kind, o.msg, o.after = orderReopen, m, c.After
		default:
			answer = subjects.ControlAnswer{Error: fmt.Sprintf("unknown kind %.40q; known are admitted, resnapshot, superseded, id-taken, reopen", c.Kind)}
		}
	}
	if o.kind != 0 && !l.give(o) {
		answer = subjects.ControlAnswer{Error: "the source is too busy, ask again"}
	} else if o.msg != nil {
		return // The loop answers when it is done.
	}
	respond(m, answer)
}

func respond(m *nats.Msg, v any) {
	if m.Reply == "" {
		return
	}
	data, _ := json.Marshal(v)
	// Whoever asked will time out if this fails; there is nobody else to tell.
	_ = m.Respond(data)
}
