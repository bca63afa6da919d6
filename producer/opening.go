package producer

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/source"
)

// open makes the opening record as soon as it is known how long it may be.
func (l *loop) open() {
	if l.openQueued || !l.connected || !l.claims.held {
		return
	}
	l.openQueued = true
	l.p.life.front([]subjects.Record{l.openRecord()})
}

// openRecord makes the opening record of the present generation. Long texts are
// cut until it fits.
func (l *loop) openRecord() subjects.Record {
	l.p.mu.Lock()
	d := l.p.descriptor
	l.p.update = nil
	l.p.mu.Unlock()
	d.Capabilities = d.Capabilities[:min(len(d.Capabilities), 64)]
	most := l.maxFrame - lineOverhead
	if l.openLimit > 0 {
		most = min(most, l.openLimit)
	}
	for limit := maxDescriptorText; ; limit /= 2 {
		for _, s := range []*string{&d.Name, &d.Service, &d.Instance, &d.Runtime, &d.Hostname, &d.URL, &d.Title, &d.Library} {
			*s = cutText(*s, limit)
		}
		data, _ := json.Marshal(d)
		if len(data) <= most || limit == 0 {
			return subjects.Record{T: l.p.Now(), Topic: source.TopicOpen, Data: data}
		}
	}
}

// shorten makes a shorter opening record in place of one that is too large. It
// reports whether that may help.
func (l *loop) shorten() bool {
	if l.opened || l.life.out == nil || len(l.life.out.frame.body) <= smallest/2 {
		return false
	}
	l.openLimit = max(len(l.life.out.frame.body)/2, smallest/2)
	l.life.restart()
	l.p.life.replaceable()
	l.p.life.rewind()
	l.openQueued = false
	l.open()
	return true
}

// reopen begins a new generation, under the same id or another one, which has to be claimed first.
func (l *loop) reopen(id subjects.SourceID) {
	p := l.p
	if id != p.ID() && l.suffix <= maxSuffix {
		l.claims.held, l.claims.token = false, 0
	}
	for _, x := range l.lanes {
		x.restart()
	}
	p.life.replaceable()
	for _, q := range p.queues {
		q.rewind()
	}
	p.bodies.abandon()
	p.sessions.closeAll(fmt.Errorf("%w: the source opened again; open a session anew", realm.ErrNoSession), false)
	p.ident.Store(&identity{id, generations.next(time.Now())})
	p.reopened.Add(1)
	l.openQueued, l.opened, l.closeQueued = false, false, false
	l.replaced, l.doubt = false, false
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
