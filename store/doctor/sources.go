package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natscope/natscope/store/internal/bucket"
	"github.com/natscope/natscope/store/state"
	"github.com/natscope/natscope/subjects"
)

// beats is what was heard of heartbeats.
type beats struct {
	// newest holds the newest beat of each source.
	newest map[subjects.SourceID]subjects.Beat
	// bad counts beats that could not be read, and says why the last one could not.
	bad int
	why error
}

// listen hears heartbeats for a while, and looks meanwhile whether stores keep up with the stream.
func (p *patient) listen(ctx context.Context, rec *jetstream.StreamInfo, d time.Duration) beats {
	b := beats{newest: make(map[subjects.SourceID]subjects.Beat)}
	sub, err := p.conn.SubscribeSync(subjects.HeartbeatsOf(p.space))
	if err != nil {
		p.fail("heartbeats", err.Error(), "allow this user to subscribe to "+subjects.HeartbeatsOf(p.space))
		return b
	}
	defer func() { _ = sub.Unsubscribe() }()
	before := p.cursor(ctx)
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			break
		}
		b.hear(m)
	}
	if b.bad > 0 {
		p.warn("heartbeats", fmt.Sprintf("%d could not be read: %s", b.bad, b.why), "bring producers and stores to one version of the contract")
	}
	if rec != nil {
		p.stores(context.WithoutCancel(ctx), rec, before)
	}
	return b
}

func (b *beats) hear(m *nats.Msg) {
	_, id, err := subjects.ParseHeartbeat(m.Subject)
	if err == nil {
		var beat subjects.Beat
		if beat, err = subjects.ParseBeat(m.Data); err == nil {
			b.newest[id] = beat
			return
		}
	}
	b.bad, b.why = b.bad+1, err
}

// cursor reads how far the saved state reaches; zero when there is none.
func (p *patient) cursor(ctx context.Context) state.Cursor {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	c, _, err := bucket.New(p.js, p.space).Cursor(ctx)
	if err != nil {
		return state.Cursor{}
	}
	return c
}

// stores looks whether somebody saves the state. rec and before are from the
// start of the examination: what was in the stream then must be saved by now.
func (p *patient) stores(ctx context.Context, rec *jetstream.StreamInfo, before state.Cursor) {
	const check = "stores"
	start := fmt.Sprintf("start one: natscope store --space %s", p.space)
	now := p.cursor(ctx)
	last := subjects.StreamSeq(rec.State.LastSeq)
	switch {
	case now.Version == 0 && last == 0:
		p.warn(check, "nothing was ever recorded or saved, so it cannot be seen whether a store runs", "start a source, and look again")
	case now.Version == 0:
		p.fail(check, "no state was ever saved", start)
	case !now.Stream.Same(state.Stream{Name: rec.Config.Name, Created: rec.Created}):
		p.fail(check, "the saved state is that of a former record stream", start)
	case now.Covered < last && now.Covered == before.Covered:
		p.fail(check, fmt.Sprintf("the state covers the stream up to %d of %d, and does not move", now.Covered, last), start)
	case uint64(now.Covered)+1 < rec.State.FirstSeq:
		p.warn(check, fmt.Sprintf("the stream begins at %d, the state ends at %d: a gateway that joins now misses what is between", rec.State.FirstSeq, now.Covered), "raise --record-bytes or --record-age, or run a faster store")
	case now.Covered < last:
		p.warn(check, fmt.Sprintf("the state covers the stream up to %d of %d and is catching up", now.Covered, last), "look again in a moment")
	default:
		p.ok(check, "the state covers the stream up to %d", now.Covered)
	}
}

// sources compares what is saved of the sources with what was heard of them.
func (p *patient) sources(ctx context.Context, b beats) {
	const check = "sources"
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	kv := bucket.New(p.js, p.space)
	ids, err := kv.Sources(ctx)
	if err != nil {
		p.fail(check, "the state bucket cannot be read: "+err.Error()+p.lastError(), "allow this user to read "+subjects.StateStreamName(p.space))
		return
	}
	saved, alive := 0, 0
	for _, id := range ids {
		v, err := kv.Head(ctx, id)
		if err != nil || v.Data == nil {
			continue
		}
		saved++
		if p.source(id, v.Data, b) {
			alive++
		}
	}
	for id := range b.newest {
		if v, err := kv.Head(ctx, id); err == nil && v.Data == nil {
			p.fail("source "+string(id), "it beats, but nothing is saved of it", "check that it may publish on "+subjects.RecordsOfSource(p.space, id)+", and that a store runs")
		}
	}
	p.ok(check, "%d saved, %d of them alive, %d heard", saved, alive, len(b.newest))
}

// source looks at the head of one source and reports whether it lives.
func (p *patient) source(id subjects.SourceID, data []byte, b beats) bool {
	check := "source " + string(id)
	h, err := state.ParseHead(data)
	if errors.Is(err, state.ErrDamaged) {
		p.fail(check, err.Error(), "it is folded anew from what the stream has; if it stays, stores of different versions run")
		return false
	}
	beat, heard := b.newest[id]
	switch {
	case h.Connected && !heard:
		p.warn(check, "it counts as connected, but no heartbeat was heard", "look again in ten seconds; if it stays, check that stores receive "+subjects.HeartbeatsOf(p.space))
	case heard && beat.Generation != h.Generation:
		p.warn(check, fmt.Sprintf("it beats as generation %s, the state is that of %s", beat.Generation, h.Generation), "two programs may have one id: give them different instance names")
	}
	var lost uint64
	for _, n := range beat.Dropped {
		lost += n
	}
	if lost > 0 {
		p.warn(check, fmt.Sprintf("it dropped %d records because its queues were full", lost), "raise QueueRecords or QueueBytes of its limits, or record less")
	}
	if h.FaultCount > 0 && len(h.Faults) > 0 {
		last := h.Faults[len(h.Faults)-1]
		p.warn(check, fmt.Sprintf("%d faults, the last at %s: %s", h.FaultCount, time.UnixMilli(int64(last.T)).Format(time.DateTime), last.Text), "see the warnings in its Console")
	}
	return h.Connected && heard
}
