package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/natscope/natscope/subjects"
)

// ErrNoJetStream says that the NATS server has no JetStream, without which nothing can be kept.
var ErrNoJetStream = errors.New("store: JetStream is not enabled; start the server with JetStream (nats-server -js) and allow it for this account")

// The time for the creation of one stream, at the first try and at later ones: a
// server that just came back loses requests, a loaded one takes its time.
const (
	ensureFirst = 500 * time.Millisecond
	ensureMax   = 10 * time.Second
)

// EnsureStreams creates the streams of a space, or brings the limits of
// existing ones up to date. A stream that exists stays on disk or in memory as it
// was made, whatever s says: no server can change that, and two natscope that serve
// one space need not know how the other was started. The error wraps ErrNoJetStream,
// or names the stream and what the server said.
func EnsureStreams(ctx context.Context, js jetstream.JetStream, space subjects.Space, s subjects.Storage) error {
	return ensureAll(ctx, js, space, s, ensureMax)
}

func ensureAll(ctx context.Context, js jetstream.JetStream, space subjects.Space, s subjects.Storage, timeout time.Duration) error {
	for _, config := range []func(subjects.Space, subjects.Storage) jetstream.StreamConfig{
		subjects.RecordStream, subjects.BodyStream, subjects.AuditStream, subjects.StateStream,
	} {
		if err := ensure(ctx, js, func(s subjects.Storage) jetstream.StreamConfig { return config(space, s) }, s, timeout); err != nil {
			return err
		}
	}
	return nil
}

func ensure(ctx context.Context, js jetstream.JetStream, config func(subjects.Storage) jetstream.StreamConfig, s subjects.Storage, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c := config(s)
	_, err := js.CreateOrUpdateStream(ctx, c)
	if refused(err, errStreamConfig) {
		if old, lookErr := js.Stream(ctx, c.Name); lookErr == nil && old.CachedInfo().Config.Storage != c.Storage {
			s.Memory = !s.Memory
			c = config(s)
			_, err = js.CreateOrUpdateStream(ctx, c)
		}
	}
	var api *jetstream.APIError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount), errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("stream %s: %w", c.Name, ErrNoJetStream)
	case errors.As(err, &api) && (api.ErrorCode == errMemory || api.ErrorCode == errStorage || noRoom(api)):
		return fmt.Errorf("store: create stream %s of at most %d MiB: %w; raise the server's max_memory_store or max_file_store, or choose smaller limits (Storage)", c.Name, c.MaxBytes>>20, err)
	case errors.As(err, &api) && api.ErrorCode == errStreamConfig:
		return fmt.Errorf("store: stream %s exists with settings that cannot change: %w; use another space, or delete the stream", c.Name, err)
	}
	return fmt.Errorf("store: create stream %s: %w", c.Name, err)
}

func refused(err error, code jetstream.ErrorCode) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == code
}

// The server's codes for what does not get better by itself.
const (
	// errStreamConfig refuses an update that a stream does not allow.
	errStreamConfig jetstream.ErrorCode = 10052
	// errMemory and errStorage refuse a stream that is larger than what is left.
	errMemory  jetstream.ErrorCode = 10028
	errStorage jetstream.ErrorCode = 10047
	// errPeers refuses a stream for which a cluster finds too few servers; the text says why.
	errPeers jetstream.ErrorCode = 10005
)

// noRoom reports whether the servers of a cluster are there but have too little storage left.
func noRoom(e *jetstream.APIError) bool {
	return e.ErrorCode == errPeers && strings.Contains(e.Description, "insufficient storage") && !absent(e)
}

// absent reports whether a stream waits for servers of a cluster that are not there now.
func absent(e *jetstream.APIError) bool {
	return e.ErrorCode == errPeers && strings.Contains(e.Description, "offline")
}

// hopeless reports whether an error does not get better by itself.
func hopeless(err error) bool {
	var api *jetstream.APIError
	if !errors.As(err, &api) || absent(api) {
		return false
	}
	return api.Code == 400 || api.ErrorCode == errStreamConfig || api.ErrorCode == errMemory || api.ErrorCode == errStorage
}

// silencePatience is how long JetStream may answer nothing before it counts as
// not enabled: a server that starts answers clients first.
const silencePatience = 3 * time.Second

// awaitStreams is EnsureStreams for as long as it takes, up to the end of ctx,
// unless an error says that it is of no use. What it waits for is logged once it takes long.
func awaitStreams(ctx context.Context, js jetstream.JetStream, space subjects.Space, s subjects.Storage, log *slog.Logger) error {
	var silent time.Time
	start, told := time.Now(), ""
	for timeout := ensureFirst; ; timeout = min(2*timeout, ensureMax) {
		err := ensureAll(ctx, js, space, s, timeout)
		switch {
		case err == nil:
			return nil
		case hopeless(err):
			return err
		case !errors.Is(err, ErrNoJetStream):
			silent = time.Time{}
		case silent.IsZero():
			silent = time.Now()
		case time.Since(silent) > silencePatience:
			return err
		}
		if time.Since(start) > silencePatience && err.Error() != told {
			told = err.Error()
			log.Warn("the streams cannot be created yet; it will be tried again", "error", told)
		}
		t := time.NewTimer(100 * time.Millisecond)
		select {
		case <-ctx.Done():
			t.Stop()
			return err
		case <-t.C:
		}
	}
}
