package store

import (
	"context"
	"log/slog"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
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
	// Limits bounds what is kept; zero fields mean the defaults.
	Limits subjects.Limits
	// Logger takes what an operator should know; nil means silence.
	Logger *slog.Logger
}

// Store keeps the state of a space.
type Store struct{}

// EnsureStreams creates or updates the streams of a space.
func EnsureStreams(ctx context.Context, js jetstream.JetStream, space subjects.Space, s subjects.Storage) error {
	for _, c := range []jetstream.StreamConfig{subjects.RecordStream(space, s), subjects.BodyStream(space, s), subjects.AuditStream(space, s), subjects.StateStream(space, s)} {
		if _, err := js.CreateOrUpdateStream(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// Start ensures the streams and begins to keep the state.
func Start(ctx context.Context, o Options) (*Store, error) { return &Store{}, nil }

// Close saves what is dirty and ends the store. It is idempotent.
func (s *Store) Close(ctx context.Context) error { return nil }
