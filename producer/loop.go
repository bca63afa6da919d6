package producer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	openQueued   bool
	opened       bool
	snapshotting bool
	closeQueued  bool
	nextBeat     time.Time
	suffix       int

	replies   chan reply
	links     chan dialled
	snapshots chan []subjects.Record
	orders    chan order
	// helpers counts the dialler and the snapshotter.
	helpers sync.WaitGroup
}

func newLoop(ctx context.Context, p *Producer) *loop {
	l := &loop{
		p: p, ctx: ctx, maxFrame: p.o.Limits.FrameBytes, maxPiece: p.o.Limits.BodyChunkBytes,
		replies: make(chan reply, 64), links: make(chan dialled), snapshots: make(chan []subjects.Record), orders: make(chan order, 16),
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
	defer l.unlink()
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
		if l.link != nil {
			statuses = l.link.statuses
		}
		select {
		case <-l.ctx.Done():
			return
		case <-timer.C:
		case <-l.p.wakes:
		case r := <-l.replies:
			l.reply(time.Now(), r)
		case s := <-statuses:
			l.status(time.Now(), s)
		case d := <-l.links:
			l.dialled(d)
		case records := <-l.snapshots:
			l.snapshotted(records)
		case o := <-l.orders:
			l.order(time.Now(), o)
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
	l.open()
	closing, hurry := l.intake()
	l.snapshot()
	for _, x := range l.lanes {
		sooner(l.advance(now, x, hurry))
	}
	sooner(l.beat(now))
	l.release()
	if closing && l.quiet() {
		if l.closeQueued {
			return next, true
		}
		l.closeQueued = true
		data, _ := json.Marshal(source.Close{})
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
	if !connected {
		return
	}
	// The server may be another one than before.
	most := int(min(l.link.nc.MaxPayload(), 1<<30))
	most = max(most-min(headroom, most/2), smallest)
	l.maxFrame, l.maxPiece = min(most, l.p.o.Limits.FrameBytes), min(most, l.p.o.Limits.BodyChunkBytes)
	for _, x := range l.lanes {
		x.limit = 0
		if x.q != nil {
			x.q.setFrameBytes(l.maxFrame)
		}
	}
	l.nextBeat = time.Time{}
}

// open makes the opening record as soon as it is known how long it may be.
func (l *loop) open() {
	if l.openQueued || !l.connected {
		return
	}
	l.openQueued = true
	l.p.life.front([]subjects.Record{l.openRecord()})
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
		if !l.openQueued || x != l.life && !l.opened || x.q == l.p.tree && (l.snapshotting || l.p.tree.wantsSnapshot()) {
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
	l.token++
	if err := x.send(now, l.link.nc, l.link.inbox, l.token); err != nil {
		l.unsent(now, x, err)
		return x.notBefore
	}
	return x.deadline
}

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

// reply deals with one answer of the stream.
func (l *loop) reply(now time.Time, r reply) {
	for _, x := range l.lanes {
		if x.out != nil && x.token == r.token {
			l.settle(now, x, r)
			return
		}
	}
}

func (l *loop) settle(now time.Time, x *lane, r reply) {
	v, seq, err := judge(r, x.last)
	switch v {
	case stored, storedBefore:
		fell := seq <= x.high
		x.last, x.high = seq, seq
		x.done(true)
		if x == l.life && !l.opened {
			l.opened = true
			l.p.opened.Store(true)
			l.nextBeat = time.Time{}
		}
		if fell && x.q != nil {
			// Sequences of a stream only grow: this is another stream than the one that had the opening record.
			l.p.gaps.Add(1)
			l.p.trouble("stream replaced", errors.New("the stream lost its records; the source opens again"))
			l.reopen(l.p.ID())
		}
	case evicted:
		x.last = 0
		x.resend()
	case rolledBack:
		l.p.gaps.Add(1)
		l.p.trouble("records lost", fmt.Errorf("the server lost acknowledged records: %w", err))
		x.last, x.high = seq, seq
		l.p.Resnapshot()
		x.resend()
	case tooLarge:
		if x == l.life {
			x.tries = 16
			x.retry(now)
			l.p.trouble("not stored", err)
			return
		}
		l.complain(x.tooLarge())
	default:
		l.p.trouble("not stored yet", err)
		x.retry(now)
	}
}

// openRecord makes the opening record of the present generation. Long texts are
// cut until it fits.
func (l *loop) openRecord() subjects.Record {
	l.p.mu.Lock()
	d := l.p.descriptor
	l.p.update = nil
	l.p.mu.Unlock()
	d.Capabilities = d.Capabilities[:min(len(d.Capabilities), 64)]
	for limit := maxDescriptorText; ; limit /= 2 {
		for _, s := range []*string{&d.Name, &d.Service, &d.Instance, &d.Runtime, &d.Hostname, &d.URL, &d.Title, &d.Library} {
			*s = cutText(*s, limit)
		}
		data, _ := json.Marshal(d)
		if len(data) <= l.maxFrame-lineOverhead || limit == 0 {
			return subjects.Record{T: l.p.Now(), Topic: source.TopicOpen, Data: data}
		}
	}
}

// reopen begins a new generation, under the same id or another one.
func (l *loop) reopen(id subjects.SourceID) {
	p := l.p
	for _, x := range l.lanes {
		x.restart()
	}
	p.life.replaceable()
	for _, q := range p.queues {
		q.rewind()
	}
	p.bodies.abandon()
	p.ident.Store(&identity{id, generations.next(time.Now())})
	p.reopened.Add(1)
	l.openQueued, l.opened = false, false
	p.opened.Store(false)
	p.admitted.Store(false)
	p.Resnapshot()
	if l.link != nil {
		l.serve()
	}
}

// snapshot starts the snapshotter when the tree plane must be sent anew.
func (l *loop) snapshot() {
	if l.snapshotting || !l.opened || !l.connected || !l.p.tree.wantsSnapshot() {
		return
	}
	l.p.mu.Lock()
	f := l.p.snapshot
	l.p.mu.Unlock()
	if f == nil {
		return // OnSnapshot is about to take the wish back.
	}
	l.p.tree.replaceable()
	l.snapshotting = true
	l.helpers.Go(func() {
		var records []subjects.Record
		if err := contained(func() { records = f() }); err != nil {
			l.p.trouble("no snapshot", fmt.Errorf("the snapshot function failed: %w", err))
		}
		select {
		case l.snapshots <- records:
		case <-l.ctx.Done():
		}
	})
}

func (l *loop) snapshotted(records []subjects.Record) {
	l.snapshotting = false
	n := l.p.tree.front(records)
	l.p.snapshotsSent.Add(1)
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	for _, w := range l.p.waiters {
		w.targets[subjects.PlaneTree] += uint64(n)
	}
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
