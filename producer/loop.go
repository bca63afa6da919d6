package producer

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/source"
)

// headroom is what a message needs besides its body: subject and headers, in bytes.
const headroom = 4 << 10

// loop is the one goroutine that sends. Everything in it belongs to it alone,
// save the channels.
type loop struct {
	p     *Producer
	ctx   context.Context
	life  *lane
	lanes []*lane // life is the first
	token uint64

	link      *link
	connected bool
	// maxFrame and maxPiece bound the bodies of messages, in bytes, for the server that is connected.
	maxFrame, maxPiece int
	redialAt           time.Time

	// openQueued and opened say that the opening record of the generation was
	// made, and that it is acknowledged.
	openQueued bool
	opened     bool
	// replaced says that the stream is another one than that of the opening record, so that the source opens again.
	replaced bool
	// doubt says that the server may have another stream than before, which a probe will tell.
	doubt bool
	// openLimit bounds the opening record in bytes when the stream or the server takes less than expected; 0 means no further bound.
	openLimit    int
	snapshotting bool
	closeQueued  bool
	nextBeat     time.Time
	// suffix is the number behind the id that was tried last, 0 for none.
	suffix int
	claims claimState
	// noticeText waits for the source to be open. movedFrom and movedWhy are what it says of the first id that was lost.
	noticeText, movedWhy string
	movedFrom            subjects.SourceID

	links     chan dialled
	snapshots chan []subjects.Record
	orders    chan order
	// judgements come from the helpers that ask Options.Alive.
	judgements chan judged
	// helpers counts the dialler, the snapshotter, the calls of Options.Alive and the senders of long answers.
	helpers sync.WaitGroup
}

func newLoop(ctx context.Context, p *Producer) *loop {
	l := &loop{
		p: p, ctx: ctx, maxFrame: p.o.Limits.FrameBytes, maxPiece: p.o.Limits.BodyChunkBytes,
		links: make(chan dialled), snapshots: make(chan []subjects.Record), orders: make(chan order, 64), judgements: make(chan judged),
	}
	for _, plane := range subjects.Planes() {
		l.lanes = append(l.lanes, &lane{p: p, q: p.queues[plane]})
	}
	l.lanes = append(l.lanes, &lane{p: p, bodies: p.bodies})
	l.life = l.lanes[0]
	return l
}

func (l *loop) run() {
	defer close(l.p.done)
	defer l.helpers.Wait()
	defer l.p.sessions.wait()
	defer l.p.commands.wait()
	defer l.unlink()
	defer l.endCommands()
	defer l.p.cancel()
	l.connect()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		next, finished := l.step(time.Now())
		if finished {
			l.leave()
			return
		}
		timer.Reset(time.Until(next))
		var statuses chan nats.Status
		var acked chan *nats.Msg
		if l.link != nil {
			statuses, acked = l.link.statuses, l.link.acked
		}
		select {
		case <-l.ctx.Done():
			return
		case <-timer.C:
		case <-l.p.wakes:
		case m := <-acked:
			l.acknowledged(time.Now(), m)
		case s := <-statuses:
			l.status(time.Now(), s)
		case d := <-l.links:
			l.dialled(d)
		case records := <-l.snapshots:
			l.snapshotted(records)
		case o := <-l.orders:
			l.order(time.Now(), o)
		case j := <-l.judgements:
			l.claims.judging--
			l.answer(time.Now(), j.o, j.alive)
		}
	}
}

// step does all that can be done now. next is when to look again even if nothing comes.
func (l *loop) step(now time.Time) (next time.Time, finished bool) {
	next = now.Add(time.Hour)
	sooner := func(t time.Time) {
		if !t.IsZero() && t.Before(next) {
			next = t
		}
	}
	l.observe(now, sooner)
	l.renew()
	sooner(l.claim(now))
	l.open()
	closing, hurry := l.intake()
	l.snapshot()
	for _, x := range l.lanes {
		sooner(l.advance(now, x, hurry))
	}
	sooner(l.beat(now))
	l.emit()
	l.release()
	if closing && l.quiet() {
		if l.closeQueued {
			return next, true
		}
		l.closeQueued = true
		data, _ := json.Marshal(source.Close{Reason: l.p.farewell()})
		l.p.life.front([]subjects.Record{{T: l.p.Now(), Topic: source.TopicClose, Data: data}})
		sooner(l.advance(now, l.life, true))
	}
	return next, false
}

// observe follows the state of the connection.
func (l *loop) observe(now time.Time, sooner func(time.Time)) {
	if l.link == nil {
		l.setConnected(false)
		if !l.redialAt.IsZero() {
			if !now.Before(l.redialAt) {
				l.redialAt = time.Time{}
				l.connect()
			}
			sooner(l.redialAt)
		}
		return
	}
	l.setConnected(l.link.nc.IsConnected())
}

func (l *loop) setConnected(connected bool) {
	if connected == l.connected {
		return
	}
	l.connected = connected
	l.p.conn.Store(connected)
	// What waits for an acknowledgement would wait for ever.
	l.p.events.disconnected()
	// The answer to a question that was open comes no more.
	l.claims.token = 0
	if !connected {
		return
	}
	// The server may be another one than before, and have lost what it kept in memory.
	l.doubt = l.opened
	most := int(min(l.link.nc.MaxPayload(), 1<<30))
	most = max(most-min(headroom, most/2), smallest)
	l.p.commands.limit.Store(int64(most))
	l.maxFrame, l.maxPiece = min(most, l.p.o.Limits.FrameBytes), min(most, l.p.o.Limits.BodyChunkBytes)
	for _, x := range l.lanes {
		x.limit = 0
		if x.q != nil {
			x.q.setFrameBytes(l.maxFrame)
		}
	}
	l.nextBeat = time.Time{}
}

// intake turns a pending update into a record, and tells whether the producer
// is closing and whether somebody waits for the queues to be empty.
func (l *loop) intake() (closing, hurry bool) {
	p := l.p
	idle := l.life.idle()
	p.mu.Lock()
	closing, hurry = p.closing, p.closing || len(p.waiters) > 0
	var u *source.Update
	if l.opened && idle && !l.closeQueued {
		u, p.update = p.update, nil
	}
	p.mu.Unlock()
	if u != nil {
		data, _ := json.Marshal(u)
		p.life.front([]subjects.Record{{T: p.Now(), Topic: source.TopicUpdate, Data: data}})
	}
	return closing, hurry
}

// advance moves one lane on and returns when it wants to be looked at again.
func (l *loop) advance(now time.Time, x *lane, hurry bool) time.Time {
	if x.out != nil && !x.deadline.IsZero() {
		if now.Before(x.deadline) {
			return x.deadline
		}
		l.overdue(now, x)
	}
	if !l.connected {
		return time.Time{}
	}
	if x.out == nil {
		if l.replaced && x.q != nil || !l.openQueued || x != l.life && !l.opened || x.q == l.p.tree && (l.snapshotting || l.p.tree.wantsSnapshot()) {
			return time.Time{}
		}
		ready, due := x.ready(now, hurry)
		if !ready {
			return due
		}
		most := l.maxFrame
		if x.q == nil {
			most = l.maxPiece
		}
		x.load(now, *l.p.ident.Load(), most)
		if x.out == nil {
			return time.Time{}
		}
	}
	if now.Before(x.notBefore) {
		return x.notBefore
	}
	x.probing = x.probing || l.doubt && x.q != nil
	l.token++
	if err := x.send(now, l.link.nc, l.link.inbox, l.token); err != nil {
		l.unsent(now, x, err)
		if x.out == nil {
			return now // What was put back or given up makes room for the next one.
		}
		return x.notBefore
	}
	return x.deadline
}

// beat sends a heartbeat when it is time and returns when the next one is due.
func (l *loop) beat(now time.Time) time.Time {
	if !l.connected || !l.opened {
		return time.Time{}
	}
	if now.Before(l.nextBeat) {
		return l.nextBeat
	}
	l.nextBeat = now.Add(l.p.o.Limits.Heartbeat)
	id := l.p.ident.Load()
	b := subjects.Beat{
		Version: subjects.Version, Generation: id.generation, T: l.p.Now(),
		Seqs: make(map[subjects.Plane]subjects.Seq), Dropped: make(map[subjects.Plane]uint64),
	}
	for _, x := range l.lanes {
		plane, dropped := x.lost()
		if x.newest > 0 {
			b.Seqs[plane] = subjects.Seq(x.newest)
		}
		if dropped > 0 {
			b.Dropped[plane] = dropped
		}
	}
	data, _ := json.Marshal(b)
	// A heartbeat that cannot be sent is as good as one that is lost.
	_ = l.link.nc.Publish(subjects.Heartbeat(l.p.o.Space, id.source), data)
	return l.nextBeat
}

// quiet reports whether everything that was recorded is in the stream.
func (l *loop) quiet() bool {
	if !l.opened || l.snapshotting || l.p.tree.wantsSnapshot() {
		return false
	}
	for _, x := range l.lanes {
		if !x.idle() {
			return false
		}
	}
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	return l.p.update == nil || l.closeQueued
}
