package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/natscope/natscope/store/internal/bucket"
	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/subjects"
)

// Options configure a Store.
type Options struct {
	// Conn is the connection to use; it stays open at Close. It should reconnect for ever.
	Conn *nats.Conn
	// Space is the space to keep; subjects.DefaultSpace if empty.
	Space subjects.Space
	// Storage says where and how the streams are kept.
	Storage subjects.Storage
	// Limits bounds what is kept; zero fields mean the defaults. All stores and
	// gateways of a space should have the same ones.
	Limits subjects.Limits
	// Logger takes what an operator should know; nil means silence.
	Logger *slog.Logger
}

// Store keeps the state of a space. It is safe for concurrent use.
type Store struct {
	replica *replica.Replica
	keeper  *keeper
	writer  *writer
	control *control
	arbiter *arbiter

	unwatch func()
	cancel  context.CancelFunc
	ended   sync.WaitGroup
	closing sync.Once
	err     error
}

// Start creates the streams where they are missing and begins to keep the
// state. It returns when the store has read everything that is in the record
// stream. ctx only bounds the start.
func Start(ctx context.Context, o Options) (*Store, error) {
	if o.Conn == nil {
		return nil, errors.New("store: Options.Conn is nil; pass the NATS connection to use")
	}
	if o.Space == "" {
		o.Space = subjects.DefaultSpace
	}
	if !subjects.IsToken(string(o.Space)) {
		return nil, fmt.Errorf("store: space %.80q: %w", o.Space, subjects.ErrToken)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Limits = o.Limits.WithDefaults()
	js, err := jetstream.New(o.Conn)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if err := awaitStreams(ctx, js, o.Space, o.Storage, o.Logger); err != nil {
		return nil, err
	}
	r, err := replica.Open(ctx, replica.Options{Conn: o.Conn, Space: o.Space, Limits: o.Limits, Logger: o.Logger})
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	run, cancel := context.WithCancel(context.Background())
	s := &Store{replica: r, cancel: cancel}
	log := o.Logger.With("space", string(o.Space))
	s.arbiter = newArbiter(o, log)
	s.control = newControl(o, js, r, s.arbiter, log)
	s.keeper = newKeeper(o.Limits, s.control, s.arbiter)
	s.writer = newWriter(o, js, bucket.New(js, o.Space), r, s.keeper, log)
	s.unwatch = r.Watch(s.keeper.begin, s.keeper)
	s.ended.Go(func() { s.writer.run(run) })
	s.ended.Go(func() { s.control.run(run) })
	s.ended.Go(func() { s.arbiter.run(run) })
	s.ended.Go(func() { repair(run, o, js, r, log) })
	return s, nil
}

// Replica returns the fold that the store keeps. It ends with the store.
func (s *Store) Replica() *replica.Replica { return s.replica }

// Close saves what is dirty, as far as ctx allows, and ends the store. It is idempotent.
func (s *Store) Close(ctx context.Context) error {
	s.closing.Do(func() {
		s.cancel()
		s.ended.Wait()
		if ctx.Err() == nil {
			s.err = s.writer.flush(ctx)
		}
		s.unwatch()
		_ = s.replica.Close() // It never fails.
	})
	return s.err
}
