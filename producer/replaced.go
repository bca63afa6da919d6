package producer

import (
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

// headerExpectedStream makes a stream store a message only if its newest sequence is the given one.
const headerExpectedStream = "Nats-Expected-Last-Sequence"

// noSequence is one that no stream has, so that every stream refuses the
// message and says which its newest is.
const noSequence = 1 << 62

// probe asks the stream for its newest sequence: after every reconnect, and when
// the stream knows nothing of a chain. It has either evicted all of the chain,
// which then goes on, or it is another stream than before, as after the restart
// of a server with memory storage: then nothing of the present generation must
// get into it, since its opening record is not there.
func (l *lane) probe(nc *nats.Conn, inbox string) error {
	m := nats.NewMsg(l.out.msg.Subject)
	m.Reply = inbox + "." + strconv.FormatUint(l.token, 10)
	m.Header[headerExpectedStream] = []string{strconv.FormatUint(noSequence, 10)}
	return nc.PublishMsg(m)
}

// probed deals with the answer.
func (l *loop) probed(now time.Time, x *lane, r reply) {
	v, newest, err := judge(r, noSequence)
	switch {
	case v != evicted && v != rolledBack:
		l.p.trouble("not stored yet", err)
		x.retry(now)
	case newest < l.high():
		l.lostStream()
		x.probing = false
		x.putBack()
	default:
		x.probing, l.doubt = false, false
		x.resend()
	}
}

// high is the highest sequence that the record stream ever gave this generation.
func (l *loop) high() (high uint64) {
	for _, x := range l.lanes {
		if x.q != nil {
			high = max(high, x.high)
		}
	}
	return high
}

// lostStream notes that the stream is another one than that which has the opening record.
func (l *loop) lostStream() {
	if l.replaced {
		return
	}
	l.replaced = true
	l.p.gaps.Add(1)
	l.p.trouble("stream replaced", errors.New("the stream lost its records; the source opens again"))
}

// renew opens again in a stream that is another one, as soon as it is certain of
// every frame that is on its way whether it was stored: it must not be sent twice.
func (l *loop) renew() {
	if !l.replaced {
		return
	}
	for _, x := range l.lanes {
		if x.q != nil && x.out != nil {
			return
		}
	}
	l.reopen(l.p.ID())
}
