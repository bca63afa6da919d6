package replica

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
)

// ErrClosed says that the replica was closed.
var ErrClosed = errors.New("replica: closed")

// Options configure a Replica.
type Options struct {
	// Conn is the connection to use; it stays open at Close. It should reconnect for ever.
	Conn *nats.Conn
	// Space is the space to follow; subjects.DefaultSpace if empty.
	Space subjects.Space
	// Limits bounds what is kept; zero fields mean the defaults.
	Limits subjects.Limits
	// Logger takes what an operator should know; nil means silence.
	Logger *slog.Logger
}

// Watcher is told of every change.
type Watcher interface {
	// Changed is called once for each message or event that changed something,
	// in stream order, under the write lock. It must not block, call the
	// Replica or keep the slice; entries may change with the next message, so
	// it copies what it needs later.
	Changed(*fold.Space, []fold.Change)
}

// Replica is the current state of a space. It is safe for concurrent use.
type Replica struct {
	mu       sync.RWMutex
	space    *fold.Space
	watchers []*Watcher
}

// Open connects a replica to its space.
func Open(ctx context.Context, o Options) (*Replica, error) {
	if o.Conn == nil {
		return nil, errors.New("replica: Options.Conn is nil; pass the NATS connection to use")
	}
	return &Replica{space: fold.New(o.Space, o.Limits)}, nil
}

// View calls f with the state under the read lock. f must not block, and must
// not keep pointers to anything that can change.
func (r *Replica) View(f func(*fold.Space)) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	f(r.space)
}

// Watch calls initial with the state and registers w, as one step: w is told of
// everything that initial did not see, and of nothing else. initial may be nil.
// After cancel returns, w is not called any more.
func (r *Replica) Watch(initial func(*fold.Space), w Watcher) (cancel func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if initial != nil {
		initial(r.space)
	}
	p := &w
	r.watchers = append(r.watchers, p)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for i, x := range r.watchers {
			if x == p {
				r.watchers = append(r.watchers[:i:i], r.watchers[i+1:]...)
				return
			}
		}
	}
}

// Status says how a replica is doing.
type Status struct {
	// Ready says that the stream was followed to the end that it had when Open was called.
	Ready bool
	// Waiting says what the replica waits for, in words; empty when it follows the stream.
	Waiting string
	// Covered is the sequence of the last message that was folded.
	Covered subjects.StreamSeq
}

// Status returns how the replica is doing.
func (r *Replica) Status() Status {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return Status{Covered: r.space.Covered}
}

// Close ends the replica. It is idempotent.
func (r *Replica) Close() error { return nil }
