package replica

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/follow"
	"github.com/natscope/natscope/subjects"
)

// goneText is why the running requests of a dead source ended.
const goneText = "the source is gone: it sent no heartbeat"

// maxTick is the longest time between two looks at who lives.
const maxTick = 250 * time.Millisecond

// sign passes a sign to the presence of a source and carries out what it leads
// to. It returns the changes. The write lock is held.
func (r *Replica) sign(src *fold.Source, s follow.Sign) []fold.Change {
	p, e := r.lives[src.ID].Step(s, r.deadline)
	r.lives[src.ID] = p
	src.Connected, src.GoneAt = p.Connected, p.Gone
	switch e {
	case follow.CameAlive, follow.Left:
	case follow.Died:
		return append(src.Gone(goneText), fold.Change{Kind: fold.PresenceChanged, Source: src})
	default:
		return nil
	}
	return []fold.Change{{Kind: fold.PresenceChanged, Source: src}}
}

// crowd evicts the sources that have been gone longest while there are more
// of them than the limit allows. The write lock is held.
func (r *Replica) crowd() []fold.Change {
	var changes []fold.Change
	for {
		var oldest *fold.Source
		n := 0
		for _, src := range r.space.Sources() {
			if src.Connected {
				continue
			}
			n++
			if oldest == nil || goneBefore(src, oldest) {
				oldest = src
			}
		}
		if n <= r.limits.DisconnectedTrees {
			return changes
		}
		delete(r.lives, oldest.ID)
		r.evicted++
		changes = append(changes, r.space.Remove(oldest.ID)...)
	}
}

// goneBefore orders disconnected sources by the time when they went; the stream breaks ties.
func goneBefore(a, b *fold.Source) bool {
	if a.GoneAt.Equal(b.GoneAt) {
		return a.Covered < b.Covered
	}
	return a.GoneAt.Before(b.GoneAt)
}

// beat takes one heartbeat from NATS.
func (r *Replica) beat(m *nats.Msg) {
	_, id, err := subjects.ParseHeartbeat(m.Subject)
	if err != nil {
		return
	}
	b, err := subjects.ParseBeat(m.Data)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.badBeats++
		return
	}
	src := r.space.Source(id)
	if src == nil {
		return
	}
	r.tell(r.sign(src, follow.Sign{Kind: follow.SignBeat, Generation: b.Generation, At: time.Now()}))
}

// watchLives lets silent sources die. While NATS is away nobody can be heard,
// so nobody dies, and after it everyone gets the time to come back too.
func (r *Replica) watchLives(ctx context.Context) {
	tick := time.NewTicker(min(max(r.limits.Heartbeat/8, 5*time.Millisecond), maxTick))
	defer tick.Stop()
	reconnects := r.conn.Stats().Reconnects
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !r.conn.IsConnected() {
			continue
		}
		now := time.Now()
		if n := r.conn.Stats().Reconnects; n != reconnects {
			reconnects = n
			r.grace(now.Add(r.limits.ReconnectMax))
		}
		r.mu.Lock()
		var changes []fold.Change
		for _, src := range r.space.Sources() {
			changes = append(changes, r.sign(src, follow.Sign{Kind: follow.SignTick, At: now})...)
		}
		r.tell(append(changes, r.crowd()...))
		r.mu.Unlock()
	}
}

// grace forgives the silence of all sources until the given time.
func (r *Replica) grace(until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, p := range r.lives {
		r.lives[id], _ = p.Step(follow.Sign{Kind: follow.SignGrace, At: until}, r.deadline)
	}
}
