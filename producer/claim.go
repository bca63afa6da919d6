package producer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
)

// The times of claims.
const (
	// claimWait is how long the holder of an id has to answer before it counts as gone.
	claimWait = time.Second
	// claimGrace is how much longer a claim waits after somebody gave the id up: there may be another holder.
	claimGrace = 100 * time.Millisecond
	// aliveWait is how long Options.Alive may take, so that its answer comes within claimWait.
	aliveWait = 800 * time.Millisecond
	// noticeEvery is the least time between two notices about claims of others.
	noticeEvery = 10 * time.Second
	// maxJudging bounds the calls of Options.Alive that run at once.
	maxJudging = 8
	// maxSuffix is the largest number that is tried behind an id.
	maxSuffix = 999
)

// claimState is what the loop knows of its own claim.
type claimState struct {
	// held says that the id is the source's own, as far as anybody answered.
	held bool
	// token names the question that is open, 0 for none; deadline is when it counts as unanswered.
	token    uint64
	deadline time.Time
	// noticed is when the last notice about a claim of another program was made, unsaid how many were not worth one since.
	noticed time.Time
	unsaid  int
	// judging counts the calls of Options.Alive that run.
	judging int
}

// claim asks whether another program has the id, before the source opens. It
// returns when it wants to be looked at again.
func (l *loop) claim(now time.Time) time.Time {
	c := &l.claims
	if c.held || !l.connected {
		return time.Time{}
	}
	if c.token != 0 {
		if now.Before(c.deadline) {
			return c.deadline
		}
		l.hold()
		return time.Time{}
	}
	id := l.p.ident.Load()
	data, _ := json.Marshal(subjects.Claim{Generation: id.generation, Realm: l.p.realm, Who: l.p.who()})
	l.token++
	m := &nats.Msg{Subject: subjects.ClaimSubject(l.p.o.Space, id.source), Data: data}
	m.Reply = l.link.inbox + "." + strconv.FormatUint(l.token, 10)
	if err := l.link.nc.PublishMsg(m); err != nil {
		// Whoever cannot ask opens all the same; a store settles it.
		l.hold()
		return time.Time{}
	}
	c.token, c.deadline = l.token, now.Add(claimWait)
	return c.deadline
}

// claimed deals with the answer to the source's own claim.
func (l *loop) claimed(now time.Time, r reply) {
	a, err := subjects.ParseClaimAnswer(r.data)
	switch {
	case r.noResponders:
		l.hold()
		return
	case err != nil:
		return
	case !a.Held:
		if soon := now.Add(claimGrace); soon.Before(l.claims.deadline) {
			l.claims.deadline = soon
		}
		return
	}
	l.claims.token = 0
	who := a.Who
	if who == "" {
		who = "generation " + cutText(string(a.Generation), subjects.MaxToken)
	}
	id := l.p.ID()
	next := l.otherID()
	l.moved(id, next, "the other one is "+who)
	l.p.ident.Store(&identity{next, generations.next(time.Now())})
	l.serve()
}

// hold takes the id and answers the claims of others from now on.
func (l *loop) hold() {
	l.claims.held, l.claims.token = true, 0
	l.listen(subjects.ClaimSubject(l.p.o.Space, l.p.ID()), l.onClaim)
}

// otherID is the next id to try when the present one belongs to another program.
func (l *loop) otherID() subjects.SourceID {
	l.suffix = max(l.suffix, 1) + 1
	n := strconv.Itoa(l.suffix)
	if l.suffix > maxSuffix {
		// Somebody answers whatever is asked: an id that nobody else makes needs no answer.
		n = string(l.p.Generation())
		l.claims.held = true
	}
	return subjects.SourceID(subjects.Token(string(l.p.o.ID) + "-" + n))
}

// moved says that the source has another id than it was given. why is about the
// program that has it; that of the first move counts until the readers heard it.
func (l *loop) moved(from, to subjects.SourceID, why string) {
	l.p.trouble("id taken", fmt.Errorf("another living program has the id %s, so this one is %s; give them different instance names: %s", from, to, why))
	if l.movedWhy == "" {
		l.movedFrom, l.movedWhy = from, why
	}
	l.noticeText = fmt.Sprintf("another living program has the id %s, so this one is %s; give them different instance names: %s", l.movedFrom, to, l.movedWhy)
}

// notice tells the readers something about the source as a whole.
func (l *loop) notice(text string) {
	l.noticeText = text
	if l.opened {
		l.flushNotice()
	}
}

// flushNotice records the notice that waits, once the source is open.
func (l *loop) flushNotice() {
	if l.noticeText == "" {
		return
	}
	l.p.notice(l.noticeText)
	l.noticeText, l.movedFrom, l.movedWhy = "", "", ""
}

// wanted tells of a program that asked for the id and was refused.
func (l *loop) wanted(now time.Time, c subjects.Claim) {
	// Before it is open, the source itself may have something to say that must not be written over.
	if !l.opened || !l.claims.noticed.IsZero() && now.Sub(l.claims.noticed) < noticeEvery {
		l.claims.unsaid++
		return
	}
	more := ""
	if l.claims.unsaid > 0 {
		more = fmt.Sprintf(", and so did %d others since the last time", l.claims.unsaid)
	}
	l.claims.noticed, l.claims.unsaid = now, 0
	who := c.Who
	if who == "" {
		who = "generation " + string(c.Generation)
	}
	id := l.p.ID()
	text := fmt.Sprintf("another program started under the id %s and has to take another one; give them different instance names: the other one is %s%s", id, who, more)
	l.p.trouble("id wanted", errors.New(text))
	l.notice(text)
}

// onClaim answers a program that wants the id. It runs on a goroutine of nats.go.
func (l *loop) onClaim(m *nats.Msg) {
	c, err := subjects.ParseClaim(m.Data)
	id := l.p.ident.Load()
	switch {
	case err != nil, c.Generation == id.generation:
		// Rubbish, or the echo of the source's own question.
	case c.Realm == l.p.realm || l.p.isClosing():
		respond(m, subjects.ClaimAnswer{})
	case l.p.o.Alive != nil:
		l.give(order{kind: orderClaim, msg: m, claim: c, id: id.source, unsure: true})
	default:
		respond(m, l.held(id))
		l.give(order{kind: orderClaim, claim: c, id: id.source})
	}
}

func (l *loop) held(id *identity) subjects.ClaimAnswer {
	return subjects.ClaimAnswer{Held: true, Generation: id.generation, Who: l.p.who()}
}

// judged is what Options.Alive said about the program that an order is about.
type judged struct {
	o     order
	alive bool
}

// judge asks Options.Alive, away from the loop.
func (l *loop) judge(o order) {
	if l.claims.judging >= maxJudging {
		// So many questions come from programs that are not shy of asking again.
		l.answer(time.Now(), o, true)
		return
	}
	l.claims.judging++
	l.helpers.Go(func() {
		ctx, cancel := context.WithTimeout(l.ctx, aliveWait)
		defer cancel()
		alive := true
		if err := contained(func() { alive = l.p.o.Alive(ctx) }); err != nil {
			l.p.trouble("alive or not", fmt.Errorf("the function Alive failed: %w", err))
		}
		select {
		case l.judgements <- judged{o, alive}:
		case <-l.ctx.Done():
		}
	})
}

// answer answers an order that depends on whether the program behind the source lives.
func (l *loop) answer(now time.Time, o order, alive bool) {
	id := l.p.ident.Load()
	switch o.kind {
	case orderClaim:
		if o.id != id.source {
			// The source moved away meanwhile. Who was told that the id is taken took another one.
			alive = false
		}
		if !alive {
			if o.msg != nil {
				respond(o.msg, subjects.ClaimAnswer{})
			}
			return
		}
		if o.msg != nil {
			respond(o.msg, l.held(id))
		}
		l.wanted(now, o.claim)
	case orderPing:
		if !alive {
			respond(o.msg, realm.AnswerOf(nil, fmt.Errorf("%w: the program behind this source does not answer", realm.ErrGone)))
			return
		}
		respond(o.msg, l.p.pong())
	case orderSuperseded:
		if !alive {
			// Nobody is left who could need another id.
			respond(o.msg, subjects.ControlAnswer{Error: "the program behind this source does not answer"})
			return
		}
		l.displaced(o)
	}
}

// errClosing is the answer of a source that would open again only to close.
const errClosing = "the source is closing"

// displaced gives the id up and opens again under another one.
func (l *loop) displaced(o order) {
	id := l.p.ident.Load()
	if l.p.isClosing() {
		respond(o.msg, subjects.ControlAnswer{Error: errClosing})
		return
	}
	if o.generation == id.generation {
		next := l.otherID()
		l.reopen(next)
		l.moved(id.source, next, o.reason)
	}
	respond(o.msg, subjects.ControlAnswer{OK: true})
}

// comeBack opens again under the same id: behind a generation of another
// program, or behind the source's own, whose opening record no reader has.
func (l *loop) comeBack(o order) {
	id := l.p.ident.Load()
	a := subjects.ControlAnswer{OK: true}
	switch {
	case l.p.isClosing():
		a = subjects.ControlAnswer{Error: errClosing}
	case o.generation != id.generation || id.generation > o.after:
	case id.generation == o.after:
		l.lostStream()
	default:
		if err := generations.beyond(o.after); err != nil {
			a = subjects.ControlAnswer{Error: err.Error()}
			l.p.trouble("cannot open again", err)
		} else {
			l.reopen(id.source)
			l.noticeText = fmt.Sprintf("another program was there under the id %s, and this one has it again: %s", id.source, o.reason)
			l.p.trouble("opened again", errors.New(l.noticeText))
		}
	}
	respond(o.msg, a)
}
