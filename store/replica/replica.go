package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/follow"
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
	conn     *nats.Conn
	js       jetstream.JetStream
	name     subjects.Space
	limits   subjects.Limits
	deadline time.Duration
	log      *slog.Logger

	// ready is closed when the stream was followed to the end that it had at Open.
	ready  chan struct{}
	cancel context.CancelFunc
	ended  sync.WaitGroup
	beats  *nats.Subscription

	// loaded and timeout belong to the goroutine follow. timeout bounds its
	// requests: short at first, since a server that just came back loses some, and
	// longer from failure to failure, since a loaded one takes its time.
	loaded  bool
	timeout time.Duration

	// mu guards everything below, and everything that space leads to.
	mu sync.RWMutex
	// stream is when the stream was created; only follow writes it.
	stream   time.Time
	space    *fold.Space
	lives    map[subjects.SourceID]follow.Presence
	watchers []*Watcher
	waiting  string
	// damaged holds the sources whose saved state could not be read.
	damaged map[subjects.SourceID]bool
	counters
}

// Open connects a replica to its space and returns when the state is loaded and
// the record stream was followed to the end that it has now. It waits for NATS
// and for the streams as long as ctx lets it; then the error says what was
// missing. ctx only bounds the opening.
func Open(ctx context.Context, o Options) (*Replica, error) {
	if o.Conn == nil {
		return nil, errors.New("replica: Options.Conn is nil; pass the NATS connection to use")
	}
	if o.Space == "" {
		o.Space = subjects.DefaultSpace
	}
	if !subjects.IsToken(string(o.Space)) {
		return nil, fmt.Errorf("replica: space %.80q: %w", o.Space, subjects.ErrToken)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	js, err := jetstream.New(o.Conn)
	if err != nil {
		return nil, fmt.Errorf("replica: %w", err)
	}
	limits := o.Limits.WithDefaults()
	run, cancel := context.WithCancel(context.Background())
	r := &Replica{
		conn: o.Conn, js: js, name: o.Space, limits: limits, deadline: follow.Patience(limits),
		log:     o.Logger.With("space", string(o.Space)),
		ready:   make(chan struct{}),
		cancel:  cancel,
		space:   fold.New(o.Space, limits),
		lives:   make(map[subjects.SourceID]follow.Presence),
		damaged: make(map[subjects.SourceID]bool),
	}
	if r.beats, err = o.Conn.Subscribe(subjects.HeartbeatsOf(o.Space), r.beat); err != nil {
		cancel()
		return nil, fmt.Errorf("replica: subscribe to heartbeats: %w", err)
	}
	r.ended.Go(func() { r.follow(run) })
	r.ended.Go(func() { r.watchLives(run) })
	select {
	case <-r.ready:
		return r, nil
	case <-ctx.Done():
		waiting := cmp.Or(r.Status().Waiting, "the end of the record stream")
		_ = r.Close()
		return nil, fmt.Errorf("replica: open space %s: %w while waiting for: %s", o.Space, context.Cause(ctx), waiting)
	}
}

// View calls f with the state under the read lock. f must not block or call the
// replica again, and must not keep pointers to anything that can change.
func (r *Replica) View(f func(*fold.Space)) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	f(r.space)
}

// Watch calls initial with the state and registers w, as one step: w is told of
// everything that initial did not see, and of nothing else. initial may be nil.
// After cancel has returned, w is not called any more.
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
		r.drop(p)
	}
}

// drop unregisters a watcher. The slice is copied, since tell may be walking it.
func (r *Replica) drop(p *Watcher) {
	var rest []*Watcher
	for _, x := range r.watchers {
		if x != p {
			rest = append(rest, x)
		}
	}
	r.watchers = rest
}

// tell passes changes to all watchers. The write lock is held.
func (r *Replica) tell(changes []fold.Change) {
	if len(changes) == 0 {
		return
	}
	for _, w := range r.watchers {
		r.call(w, changes)
	}
}

// call contains the panic of a watcher and drops it: its picture is broken, the
// replica and the other watchers are not.
func (r *Replica) call(w *Watcher, changes []fold.Change) {
	defer func() {
		if v := recover(); v != nil {
			r.panics++
			r.drop(w)
			r.log.Error("a watcher panicked and was dropped", "panic", v)
		}
	}()
	(*w).Changed(r.space, changes)
}

// Close ends the replica; watchers are not called after it. It is idempotent.
func (r *Replica) Close() error {
	r.cancel()
	_ = r.beats.Unsubscribe() // It fails only when the connection or the subscription is closed already.
	r.ended.Wait()
	return nil
}
