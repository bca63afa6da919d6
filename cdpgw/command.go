package cdpgw

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
)

// Commander brings commands to sources and their events back. Its methods are
// safe for concurrent use.
type Commander interface {
	// Do asks one generation of a source and returns the result. The error wraps
	// one of package realm's: ErrGone, at once, when nobody is there.
	Do(ctx context.Context, src subjects.SourceID, gen subjects.Generation, r realm.Request) (json.RawMessage, error)
	// Listen calls f for each event of this gateway's sessions until stop is called. f may block for a moment.
	Listen(f func(subjects.SourceID, subjects.SessionID, realm.Event)) (stop func(), err error)
	// Audit writes a record and returns when it is stored.
	Audit(ctx context.Context, a realm.Audit) error
}

// The times of commands.
const (
	// commandWait is how long a person waits for what they asked for.
	commandWait = 10 * time.Second
	// auditWait is how long the audit may take before a command is given up.
	auditWait = 3 * time.Second
)

// natsCommander is the Commander over a NATS connection, which only this file knows.
type natsCommander struct {
	nc      *nats.Conn
	space   subjects.Space
	gateway subjects.GatewayID
}

// Do implements Commander.
func (c *natsCommander) Do(ctx context.Context, src subjects.SourceID, gen subjects.Generation, r realm.Request) (json.RawMessage, error) {
	if deadline, ok := ctx.Deadline(); ok {
		r.DeadlineMS = max(time.Until(deadline).Milliseconds(), 1)
	}
	data, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", realm.ErrMalformed, r.Method, err)
	}
	m, err := c.nc.RequestWithContext(ctx, subjects.Command(c.space, src, gen), data)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, fmt.Errorf("%w: the program behind %s is gone", realm.ErrGone, src)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return nil, fmt.Errorf("%w: %s did not answer in time; it may still do what was asked", realm.ErrTimeout, src)
	case err != nil:
		return nil, fmt.Errorf("%w: the gateway could not reach %s: %w", realm.ErrFailed, src, err)
	}
	return realm.ParseAnswer(m.Data)
}

// Listen implements Commander.
func (c *natsCommander) Listen(f func(subjects.SourceID, subjects.SessionID, realm.Event)) (func(), error) {
	sub, err := c.nc.Subscribe(subjects.EventsOf(c.space, c.gateway), func(m *nats.Msg) {
		src, _, session, err := subjects.ParseEvent(m.Subject)
		if err != nil {
			return
		}
		// What is no event is a fault of the source that nobody here can mend.
		if e, err := realm.ParseEvent(m.Data); err == nil {
			f(src, session, e)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("cdpgw: listen to the events of sessions: %w", err)
	}
	return func() { _ = sub.Unsubscribe() }, nil
}

// Audit implements Commander. The acknowledgement is the stream's.
func (c *natsCommander) Audit(ctx context.Context, a realm.Audit) error {
	data, err := json.Marshal(a.Bound())
	if err != nil {
		return fmt.Errorf("cdpgw: audit: %w", err)
	}
	m, err := c.nc.RequestWithContext(ctx, subjects.Audit(c.space, c.gateway), data)
	if err != nil {
		return fmt.Errorf("cdpgw: audit: %w", err)
	}
	var ack struct {
		Stream string          `json:"stream"`
		Error  json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &ack); err != nil || ack.Stream == "" || ack.Error != nil {
		return fmt.Errorf("cdpgw: audit: the stream did not take the record: %.200s", m.Data)
	}
	return nil
}

// realmOf names one generation of a source, for which a command is meant.
type realmOf struct {
	source     subjects.SourceID
	generation subjects.Generation
}

// errOnlyLook is what somebody hears who may not change programs.
const errOnlyLook = "This connection may only look: its role is view. Changes need a token with the role debug."

// reachable returns the live realm of a source, or why a method cannot reach it.
func (s *session) reachable(src *fold.Source, m realm.Method) (realmOf, error) {
	name := src.Name()
	switch {
	case s.gateway.commander == nil:
		return realmOf{}, failf("This gateway only shows what sources recorded: it was started without a connection to them.")
	case m.Changes() && !s.target.grant.Controls():
		return realmOf{}, failf("%s", errOnlyLook)
	case !src.Connected || !src.Life.Opened || src.Life.Closed:
		return realmOf{}, failf("%s is not connected; what is shown is its last state.", name)
	case !realm.Supports(src.Life.Descriptor.Capabilities, m):
		return realmOf{}, failf("%s does not support %s.", name, m)
	}
	return realmOf{src.ID, src.Generation}, nil
}

// command asks a source for something, outside of all locks. What can change a
// program is written to the audit first. The error is a *realm.Error.
func (s *session) command(ctx context.Context, at realmOf, m realm.Method, params any) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, min(commandWait, s.gateway.limits.Command))
	defer cancel()
	data, err := json.Marshal(params)
	if err != nil {
		return nil, realm.ErrorOf(err)
	}
	if m.Changes() {
		if err := s.audit(ctx, at, m, data); err != nil {
			return nil, realm.ErrorOf(err)
		}
	}
	r := realm.Request{Method: m, Params: data, Session: &realm.Session{Gateway: string(s.gateway.id), ID: string(s.id)}}
	result, err := s.gateway.commander.Do(ctx, at.source, at.generation, r)
	if err != nil {
		return nil, realm.ErrorOf(err)
	}
	return result, nil
}

// who names the person behind the session: the name of their token, and their address.
func (s *session) who() string {
	if name := s.target.grant.Name; name != "" {
		return name + " at " + s.conn.remote
	}
	return s.conn.remote
}

func (s *session) audit(ctx context.Context, at realmOf, m realm.Method, params json.RawMessage) error {
	ctx, cancel := context.WithTimeout(ctx, auditWait)
	defer cancel()
	err := s.gateway.commander.Audit(ctx, realm.Audit{
		Time: float64(time.Now().UnixMicro()) / 1000, Gateway: string(s.gateway.id), Session: string(s.id), Who: s.who(),
		Source: string(at.source), Generation: string(at.generation), Method: m, Params: params,
	})
	if err != nil {
		s.gateway.log.Error("a command was not sent, since the audit could not be written", "method", string(m), "source", string(at.source), "error", err)
		return fmt.Errorf("%w: not done, because it could not be written to the audit; is a natscope store running?", realm.ErrRefused)
	}
	return nil
}

// live runs f under the locks, as a change does: what it sends is a live event.
// It is for goroutines of their own.
func (s *session) live(f func()) {
	s.gateway.state.View(func(space *fold.Space) {
		s.mu.Lock()
		defer s.mu.Unlock()
		defer s.guard()
		s.space, s.following = space, true
		defer func() { s.space, s.following = nil, false }()
		f()
		s.syncWatched(false)
	})
}

// during runs f under the locks for a slow command: what it sends goes out before
// the answer and counts as part of it, however much that is.
func (s *session) during(f func()) {
	var messages []unencoded
	s.gateway.state.View(func(space *fold.Space) {
		s.mu.Lock()
		defer s.mu.Unlock()
		defer func() { messages = s.takePostponed() }()
		defer s.guard()
		s.space = space
		defer func() { s.space = nil }()
		f()
		s.syncWatched(false)
	})
	encodeAll(messages)
}

// sourceEvent brings an event of a source to the session that it is for.
func (g *Gateway) sourceEvent(src subjects.SourceID, id subjects.SessionID, e realm.Event) {
	for _, s := range g.hub.all() {
		if s.id == id {
			s.live(func() {
				if s.source(src) != nil {
					s.pickEvent(src, e)
				}
			})
			return
		}
	}
}

// complain shows a person who has only DevTools in front of them why something
// was not done: DevTools itself tells of a failed edit nowhere.
func (s *session) complain(text string) {
	if !s.log.enabled {
		return
	}
	s.event("Log.entryAdded", entryAddedEvent{logEntry{
		Source: "other", Level: "error", Text: "natscope: " + strings.ToValidUTF8(text, "\ufffd"), Timestamp: float64(time.Now().UnixMilli()),
	}})
}
