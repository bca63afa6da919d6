package store

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/follow"
	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/subjects"
)

// The terms of asking for a new snapshot.
const (
	// strangerBeats is how many heartbeats of an unknown generation may come before its records.
	strangerBeats = 2
	// maxStrangers bounds the table of unknown generations.
	maxStrangers = 1024
	// controlTimeout bounds one request to a source.
	controlTimeout = time.Second
	// controlTick is how often the control goroutine looks at what is due.
	controlTick = 100 * time.Millisecond
)

// ask is a snapshot that is wanted of a generation.
type ask struct {
	generation subjects.Generation
	reason     string
	follow.Repair
	// revision is where the tree got stuck. unopened says that the open is missing instead.
	revision uint64
	unopened bool
}

// control speaks to sources: it admits them, and asks for what was lost.
type control struct {
	o       Options
	js      jetstream.JetStream
	replica *replica.Replica
	arbiter *arbiter
	log     *slog.Logger

	// mu guards everything below. It is taken under the replica's lock and never the other way round.
	mu        sync.Mutex
	asks      map[subjects.SourceID]*ask
	admits    map[subjects.SourceID]subjects.Generation
	strangers map[subjects.SourceID]*stranger
	// suspects are strangers that have to be looked up in the stream.
	suspects map[subjects.SourceID]subjects.Generation
}

func newControl(o Options, js jetstream.JetStream, r *replica.Replica, a *arbiter, log *slog.Logger) *control {
	return &control{
		o: o, js: js, replica: r, arbiter: a, log: log,
		asks:      make(map[subjects.SourceID]*ask),
		admits:    make(map[subjects.SourceID]subjects.Generation),
		strangers: make(map[subjects.SourceID]*stranger),
		suspects:  make(map[subjects.SourceID]subjects.Generation),
	}
}

// found takes notice of a source that is there when the store starts.
func (c *control) found(src *fold.Source) {
	if src.Connected && !src.Life.Opened {
		c.want(src, "its open was lost", true)
	}
}

// fault takes notice of a fault, under the replica's lock.
func (c *control) fault(src *fold.Source, f *fold.Fault) {
	switch f.Kind {
	case fold.FaultTree:
		c.want(src, f.Text, false)
	case fold.FaultUnopened:
		c.want(src, f.Text, true)
	}
}

func (c *control) want(src *fold.Source, reason string, unopened bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.asks[src.ID]; a != nil && a.generation == src.Generation {
		// It was asked for already. Who is asked to open again brings its tree along,
		// while a tree alone would stay without a name.
		if a.unopened && !src.Life.Opened {
			return
		}
		// A tree that got on since, and got stuck again, is another loss.
		if a.unopened == unopened && a.revision == src.Tree.Revision {
			return
		}
	}
	c.asks[src.ID] = &ask{generation: src.Generation, reason: reason, revision: src.Tree.Revision, unopened: unopened}
}

// lost forgets a source.
func (c *control) lost(id subjects.SourceID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.asks, id)
	delete(c.admits, id)
}

// admit has a generation told that it is folded and saved.
func (c *control) admit(id subjects.SourceID, g subjects.Generation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.admits[id] = g
}

// beat notices living generations that nobody knows: all their records are gone from the stream.
func (c *control) beat(m *nats.Msg) {
	_, id, err := subjects.ParseHeartbeat(m.Subject)
	if err != nil {
		return
	}
	b, err := subjects.ParseBeat(m.Data)
	if err != nil {
		return
	}
	c.arbiter.take(id, follow.Event{Kind: follow.EventBeat, Generation: b.Generation})
	known := false
	c.replica.View(func(s *fold.Space) {
		src := s.Source(id)
		known = src != nil && src.Generation >= b.Generation
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.strange(id, b.Generation, known)
}

func (c *control) run(ctx context.Context) {
	sub, err := c.o.Conn.Subscribe(subjects.HeartbeatsOf(c.o.Space), c.beat)
	if err != nil {
		c.log.Error("cannot listen for unknown sources", "error", err)
	} else {
		defer func() { _ = sub.Unsubscribe() }() // It fails only when the connection is closed.
	}
	tick := time.NewTicker(controlTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.round(ctx)
		}
	}
}

// order is one request that is due.
type order struct {
	id         subjects.SourceID
	generation subjects.Generation
	message    subjects.ControlMessage
}

// round sends what is due.
func (c *control) round(ctx context.Context) {
	c.lookUp(ctx)
	for _, o := range c.due() {
		if ctx.Err() != nil {
			return
		}
		if err := c.send(ctx, o); err != nil {
			c.log.Warn("a source did not take a request", "source", string(o.id), "kind", o.message.Kind, "error", err)
		}
	}
}

// due takes the orders that are due.
func (c *control) due() (out []order) {
	now := time.Now()
	c.replica.View(func(s *fold.Space) {
		c.mu.Lock()
		defer c.mu.Unlock()
		for id, g := range c.admits {
			now, never := c.arbiter.admits(id, g)
			if never {
				delete(c.admits, id)
			}
			if !now {
				continue
			}
			out = append(out, order{id, g, subjects.ControlMessage{Kind: subjects.ControlAdmitted}})
			delete(c.admits, id)
		}
		for id, a := range c.asks {
			var step follow.RepairStep
			a.Repair, step = a.Step(now, a.settled(s.Source(id)))
			switch {
			case step == follow.RepairAsks:
				out = append(out, order{id, a.generation, a.message()})
			case step == follow.RepairDone, step == follow.RepairGivesUp && s.Source(id) == nil:
				delete(c.asks, id)
			}
			// Where it was given up, the entry of a known source stays, so that the same loss is not asked for again.
		}
	})
	return out
}

// message is what a generation is asked.
func (a *ask) message() subjects.ControlMessage {
	if a.unopened {
		// A tree alone would be that of a source without a name; a new generation says who it is.
		return subjects.ControlMessage{Kind: subjects.ControlReopen, Reason: a.reason, After: a.generation}
	}
	return subjects.ControlMessage{Kind: subjects.ControlResnapshot, Reason: a.reason}
}

// settled reports whether what was lost has come, or cannot come any more.
func (a *ask) settled(src *fold.Source) bool {
	switch {
	case src == nil || src.Generation < a.generation:
		// Only a stranger is asked before it is known.
		return !a.unopened
	case src.Generation > a.generation || src.Life.Closed:
		return true
	case a.unopened:
		return src.Life.Opened
	}
	return src.Tree.Revision != a.revision
}

// send sends one request and reads its answer. That nobody answers is no error: the source is gone, or does not care.
func (c *control) send(ctx context.Context, o order) error {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	data, err := json.Marshal(o.message)
	if err != nil {
		return err
	}
	m, err := c.o.Conn.RequestWithContext(ctx, subjects.Control(c.o.Space, o.id, o.generation), data)
	if err != nil {
		return nil
	}
	var answer subjects.ControlAnswer
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	if !answer.OK {
		return fmt.Errorf("refused: %s", answer.Error)
	}
	return nil
}
