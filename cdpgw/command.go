package cdpgw

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/natscope/natscope/store/command"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
)

// Commander brings commands to sources and their events back.
type Commander = command.Commander

// The times of commands.
const (
	// commandWait is how long a person waits for what they asked for.
	commandWait = 10 * time.Second
	// auditWait is how long the audit may take before a command is given up.
	auditWait = 3 * time.Second
)

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
