package producer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/subjects"
)

// The times of the sender. They are no configuration: each follows from how
// JetStream behaves, not from what an application wants.
const (
	// linger is the least time between two frames of a lane that are not full. The
	// first one after a quiet time goes at once. While a lane is never quiet the
	// time grows to lingerMax, which no eye notices and which saves most of the
	// messages: what a source costs its program is the number of its frames.
	linger    = 2 * time.Millisecond
	lingerMax = 32 * time.Millisecond
	// nearby is how soon a stream answers that is not held up by the network. A
	// lane that has more than one full frame waiting for such a stream is held up
	// by its processor, so it does not compress.
	nearby = 5 * time.Millisecond
	// quietTime is how long a lane sends nothing before it counts as quiet.
	quietTime = 50 * time.Millisecond
	// retryMin and retryMax bound the wait before the same message is sent again.
	// A stream without a leader answers at once, so less would only make noise.
	retryMin = 50 * time.Millisecond
	retryMax = time.Second
	// ackWait is how long an acknowledgement may take at first, ackWaitMax at most.
	// A disk that is slow and works must not be mistaken for one that is gone.
	ackWait    = 2 * time.Second
	ackWaitMax = 5 * time.Second
)

// The headers that chain the messages of a lane.
const (
	headerExpected        = "Nats-Expected-Last-Subject-Sequence"
	headerExpectedSubject = "Nats-Expected-Last-Subject-Sequence-Subject"
)

// parcel is one message in the making: a frame or a piece of a body.
type parcel struct {
	frame *frame
	piece *piece
	msg   *nats.Msg
	// filter is the subject that the chain covers, where it is more than the message's own.
	filter string
}

// lane brings what waits in one queue into the stream, one message at a time.
// The loop owns it.
type lane struct {
	p *Producer
	// q is nil for the lane of bodies.
	q      *queue
	bodies *bodyQueue

	// last is the sequence of the newest message of the chain, 0 for none: that of the lane, or of
	// the body whose piece is on its way. high is the highest ever.
	last, high uint64
	// newest is the number of the newest record that is in the stream.
	newest uint64
	// limit bounds the next messages in bytes, when the stream takes less than the server; 0 means no further bound.
	limit int

	out *parcel
	// probing says that the stream is asked about itself before the message is sent again.
	probing bool
	// token names the message in the subject of its reply.
	token uint64
	tries int
	// deadline is when the acknowledgement counts as lost; zero while the message is not on its way.
	deadline time.Time
	// notBefore is when the message may be sent again.
	notBefore time.Time
	lastSend  time.Time
	// pace is the present time between two frames, answer how long the last acknowledgement took.
	pace, answer time.Duration

	counts laneCounts
}

// idle reports whether the lane has nothing to do.
func (l *lane) idle() bool {
	if l.out != nil {
		return false
	}
	if l.q == nil {
		return !l.bodies.waiting()
	}
	some, _ := l.q.waiting()
	return !some
}

// ready reports whether the lane may take a message now, or when it may; zero means when something comes.
func (l *lane) ready(now time.Time, hurry bool) (bool, time.Time) {
	if l.q == nil {
		return l.bodies.waiting(), time.Time{}
	}
	due := l.lastSend.Add(l.pace)
	early := now.Before(due)
	switch some, full := l.q.look(early); {
	case early && !full && !(some && hurry):
		return false, due
	case !some:
		return false, time.Time{}
	}
	return true, time.Time{}
}

// load takes what the next message carries and composes it.
func (l *lane) load(now time.Time, id identity, max int) {
	l.pace = pace(l.pace, now.Sub(l.lastSend))
	if l.limit > 0 {
		max = min(max, l.limit)
	}
	if l.q == nil {
		if piece := l.bodies.take(max); piece != nil {
			// Each body is a chain of its own. One chain over all of them would make the server look
			// through every body that it keeps, with every piece that comes.
			l.out, l.last = composePiece(l.p.o.Space, id, piece), piece.body.last
		}
	} else if f := l.q.take(max); f != nil {
		if len(f.body) > max {
			f.cut(l.q.plane, max)
		}
		_, full := l.q.waiting()
		plain := full && l.answer > 0 && l.answer < nearby
		l.out = composeFrame(l.p.o.Space, id, l.q.plane, f, plain)
	}
	l.tries, l.deadline, l.notBefore = 0, time.Time{}, time.Time{}
}

// pace is the time until the next frame, after one that follows the one before it by gap.
func pace(last, gap time.Duration) time.Duration {
	if gap >= quietTime {
		return linger
	}
	return min(max(last*2, linger), lingerMax)
}

func composeFrame(space subjects.Space, id identity, plane subjects.Plane, f *frame, plain bool) *parcel {
	name := subjects.RecordSubject{Space: space, Source: id.source, Generation: id.generation, Plane: plane}
	c := &parcel{frame: f}
	if plane == subjects.PlaneEvent {
		c.filter = name.String() + ".>"
		name.Topic = subjects.EventTopic(f.topic)
	}
	encode := subjects.EncodeFrame
	if plain {
		encode = subjects.EncodePlainFrame
	}
	h, body := encode(subjects.FrameInfo{Seq: subjects.Seq(f.seq), Count: f.len(), Dropped: f.dropped}, f.body)
	c.msg = &nats.Msg{Subject: name.String(), Header: nats.Header(h), Data: body}
	return c
}

func composePiece(space subjects.Space, id identity, p *piece) *parcel {
	name := subjects.BodySubject{Space: space, Source: id.source, Generation: id.generation, Request: p.body.request, Direction: p.body.direction}
	h := subjects.BodyChunk{Offset: p.offset, End: p.end, Total: p.total}.Header()
	return &parcel{
		piece: p,
		msg:   &nats.Msg{Subject: name.String(), Header: nats.Header(h), Data: p.data},
	}
}

// send publishes the message. The acknowledgement comes to inbox with the token.
func (l *lane) send(now time.Time, nc *nats.Conn, inbox string, token uint64) error {
	l.token = token
	m := l.out.msg
	m.Reply = inbox + "." + strconv.FormatUint(token, 10)
	m.Header[headerExpected] = []string{strconv.FormatUint(l.last, 10)}
	if l.out.filter != "" {
		m.Header[headerExpectedSubject] = []string{l.out.filter}
	}
	if l.tries > 0 {
		l.counts.resent.Add(1)
	}
	wait := min(ackWait<<min(l.tries, 4), ackWaitMax)
	l.tries++
	l.lastSend, l.deadline = now, now.Add(wait)
	if l.probing {
		return l.probe(nc, inbox)
	}
	return nc.PublishMsg(m)
}

// retry makes the message wait before it is sent again, unchanged.
func (l *lane) retry(now time.Time) {
	wait := min(retryMin<<min(max(l.tries-1, 0), 6), retryMax)
	l.deadline, l.notBefore = time.Time{}, now.Add(wait+rand.N(wait/4+1))
}

// resend makes the message go out again as soon as possible.
func (l *lane) resend() { l.deadline, l.notBefore = time.Time{}, time.Time{} }

// done ends the message that is in flight.
func (l *lane) done(delivered bool) {
	c := l.out
	l.out = nil
	if c.piece != nil {
		c.piece.body.last = l.last
		l.bodies.settle(c.piece, delivered)
		if delivered {
			l.counts.frames.Add(1)
			if !c.piece.part {
				l.counts.published.Add(1)
			}
		}
		return
	}
	if delivered {
		l.newest = c.frame.seq + uint64(c.frame.len()) - 1
		l.counts.published.Add(uint64(c.frame.len()))
		l.counts.frames.Add(1)
	}
	l.q.settle(c.frame, delivered)
}

// putBack makes the message's records wait again.
func (l *lane) putBack() {
	c := l.out
	l.out = nil
	if c.piece != nil {
		l.bodies.putBack(c.piece)
		return
	}
	l.q.putBack(c.frame)
}

// smallest is the size in bytes below which a message is not split any further.
const smallest = 1 << 10

// tooLarge takes a message that the stream will never store back and makes
// smaller ones of it, or gives it up. The error is nil while there is hope.
func (l *lane) tooLarge() error {
	size := 0
	if f := l.out.frame; f != nil {
		size = len(f.body)
	} else {
		size = len(l.out.piece.data)
	}
	if size <= smallest {
		return l.giveUp(fmt.Errorf("%d bytes are too large for the stream: raise its maximum message size", size))
	}
	l.limit = max(size/2, smallest)
	l.putBack()
	return nil
}

// giveUp drops the message, since it can never succeed.
func (l *lane) giveUp(reason error) error {
	subject := l.out.msg.Subject
	l.done(false)
	return fmt.Errorf("%s dropped: %w", subject, reason)
}

// restart forgets the chain, for a new generation.
func (l *lane) restart() {
	if l.out != nil {
		l.putBack()
	}
	l.last, l.high, l.newest, l.limit, l.tries, l.probing = 0, 0, 0, 0, 0, false
	l.deadline, l.notBefore, l.lastSend = time.Time{}, time.Time{}, time.Time{}
}

// denied reports whether err says that the server does not permit publishing on the subject.
func denied(err error, subject string) bool {
	return errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), `"`+subject+`"`)
}
