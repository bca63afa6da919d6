package producer

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// overdue deals with a message whose acknowledgement did not come.
func (l *loop) overdue(now time.Time, x *lane) {
	if l.link != nil && denied(l.link.nc.LastError(), x.out.msg.Subject) {
		l.denied(now, x.out.msg.Subject)
		return
	}
	l.p.trouble("no acknowledgement", fmt.Errorf("the stream did not answer for %s", x.out.msg.Subject))
	x.resend()
}

// unsent deals with a message that could not even be sent.
func (l *loop) unsent(now time.Time, x *lane, err error) {
	switch {
	case errors.Is(err, nats.ErrMaxPayload) && x == l.life && l.shorten():
	case errors.Is(err, nats.ErrMaxPayload) && x != l.life:
		l.complain(x.tooLarge())
	case errors.Is(err, nats.ErrBadSubject) && x != l.life:
		l.complain(x.giveUp(err))
	default:
		x.retry(now)
	}
}

// denied deals with a subject that the source may not publish on. The opening
// record waits for better permissions; everything else would wait for ever.
func (l *loop) denied(now time.Time, subject string) {
	for _, x := range l.lanes {
		if x.out == nil || x.out.msg.Subject != subject {
			continue
		}
		err := fmt.Errorf("the server does not permit publishing on %s: grant it, or use other credentials", subject)
		if x == l.life {
			x.tries = 16
			x.retry(now)
			l.p.trouble("not permitted", err)
			return
		}
		l.complain(x.giveUp(err))
	}
}

func (l *loop) complain(err error) {
	if err != nil {
		l.p.trouble("records lost", err)
	}
}

// acknowledged deals with a message to the inbox of acknowledgements, whose subject ends with a token.
func (l *loop) acknowledged(now time.Time, m *nats.Msg) {
	if n, ok := strings.CutPrefix(m.Subject, l.link.inbox+"."+eventToken); ok {
		l.p.events.acknowledged(n, m)
		return
	}
	token, err := strconv.ParseUint(strings.TrimPrefix(m.Subject, l.link.inbox+"."), 10, 64)
	if err != nil {
		return
	}
	l.reply(now, reply{token, len(m.Data) == 0 && m.Header.Get("Status") == "503", m.Data})
}

// reply deals with one answer of the stream.
func (l *loop) reply(now time.Time, r reply) {
	if r.token == l.claims.token {
		l.claimed(now, r)
		return
	}
	for _, x := range l.lanes {
		if x.out != nil && x.token == r.token {
			l.settle(now, x, r)
			return
		}
	}
}

func (l *loop) settle(now time.Time, x *lane, r reply) {
	if x.probing {
		l.probed(now, x, r)
		return
	}
	v, seq, err := judge(r, x.last)
	switch v {
	case stored, storedBefore:
		fell := seq <= x.high
		x.last, x.high = seq, seq
		x.answer = now.Sub(x.lastSend)
		x.done(true)
		if x == l.life && !l.opened {
			l.opened = true
			l.p.opened.Store(true)
			l.nextBeat = time.Time{}
			l.flushNotice()
		}
		if fell && x.q != nil {
			// Sequences of a stream only grow: this is another stream than the one that had the opening record.
			l.lostStream()
		}
	case evicted, rolledBack:
		l.forgotten(x, v, seq, err)
	case tooLarge:
		switch {
		case x != l.life:
			l.complain(x.tooLarge())
		case !l.shorten():
			x.tries = 16
			x.retry(now)
			l.p.trouble("not stored", err)
		}
	default:
		l.p.trouble("not stored yet", err)
		x.retry(now)
	}
}

// forgotten deals with a message that was not stored because the stream has less of its chain than before.
func (l *loop) forgotten(x *lane, v verdict, seq uint64, err error) {
	switch {
	case x.q != nil && l.replaced:
		x.putBack()
	case v == rolledBack:
		l.p.gaps.Add(1)
		l.p.trouble("records lost", fmt.Errorf("the server lost acknowledged records: %w", err))
		x.last, x.high = seq, seq
		l.p.Resnapshot()
		x.resend()
	case x.q != nil:
		x.probing, x.last = true, 0
		x.resend()
	default:
		x.last = 0
		x.resend()
	}
}
