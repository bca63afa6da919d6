package store

import (
	"context"
	"errors"
	"maps"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/natscope/natscope/subjects"
)

// stranger is a generation that beats but has no records.
type stranger struct {
	generation subjects.Generation
	beats      int
}

// strange counts the heartbeats of a generation that nobody knows. The lock is held.
func (c *control) strange(id subjects.SourceID, g subjects.Generation, known bool) {
	if known {
		delete(c.strangers, id)
		return
	}
	x := c.strangers[id]
	if x == nil || x.generation != g {
		if x == nil && len(c.strangers) >= maxStrangers {
			return
		}
		x = &stranger{generation: g}
		c.strangers[id] = x
	}
	x.beats++
	if x.beats == strangerBeats {
		c.suspects[id] = g
	}
}

// lookUp asks the strangers to open again that the stream does not know either.
// One that it knows is only ahead of this store, which will come to its records.
func (c *control) lookUp(ctx context.Context) {
	c.mu.Lock()
	suspects := maps.Clone(c.suspects)
	clear(c.suspects)
	c.mu.Unlock()
	for id, g := range suspects {
		recorded, err := c.recorded(ctx, id, g)
		c.mu.Lock()
		switch x := c.strangers[id]; {
		case x == nil || x.generation != g:
			// It is known by now, or another one.
		case err != nil:
			c.suspects[id] = g
		case recorded:
			// It may be evicted before it is read, so the count begins anew.
			delete(c.strangers, id)
		default:
			c.asks[id] = &ask{generation: g, reason: "the stream has no record of this generation", unopened: true}
		}
		c.mu.Unlock()
	}
}

// recorded reports whether the stream has a record of the life of a generation.
func (c *control) recorded(ctx context.Context, id subjects.SourceID, g subjects.Generation) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	stream, err := c.js.Stream(ctx, subjects.RecordStreamName(c.o.Space))
	if err != nil {
		return false, err
	}
	_, err = stream.GetLastMsgForSubject(ctx, subjects.RecordSubject{Space: c.o.Space, Source: id, Generation: g, Plane: subjects.PlaneLife}.String())
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil
	}
	return err == nil, err
}
