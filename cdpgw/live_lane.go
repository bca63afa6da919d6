package cdpgw

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/natscope/natscope/store/command"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
)

// liveState is what a connection has to do with live realms.
type liveState struct {
	// lanes are the ways to the realms; session.mu guards the map.
	lanes map[realmOf]*liveLane
	// inspections counts the selections of nodes; see domState.inspected.
	inspections int

	// mu guards all below. It is a leaf: translation happens outside of session.mu.
	mu sync.Mutex
	// resolved are the live objects of recorded ones.
	resolved map[ObjectID]realm.ObjectID
	// nodes are the nodes of live objects, as far as they were asked for.
	nodes map[ObjectID]hit
	// watched is when a live expression was last written to the audit.
	watched map[string]time.Time
}

// maxRemembered bounds each of the tables of a liveState.
const maxRemembered = 1000

// remember adds to one of the tables, which begins anew when it is full.
func remember[K comparable, V any](table *map[K]V, k K, v V) {
	if *table == nil || len(*table) >= maxRemembered {
		*table = make(map[K]V)
	}
	(*table)[k] = v
}

// liveLane is the way to one realm: commands are sent in the order in which they
// came, and answered when they are ready.
type liveLane struct {
	// tail is closed when the last command that came is sent. session.mu guards it.
	tail <-chan struct{}
	// running is how many evaluations and calls of functions run.
	running atomic.Int64
	// told is how many selections of nodes the realm was told of.
	told atomic.Int64
}

// turn is a command's place in a lane.
type turn struct {
	lane *liveLane
	prev <-chan struct{}
	done chan struct{}
	once sync.Once
}

// turn queues a command of this connection for a realm.
func (s *session) turn(at realmOf) *turn {
	l := s.realms.lanes[at]
	if l == nil {
		if s.realms.lanes == nil {
			s.realms.lanes = make(map[realmOf]*liveLane)
		}
		l = &liveLane{}
		s.realms.lanes[at] = l
	}
	t := &turn{lane: l, prev: l.tail, done: make(chan struct{})}
	l.tail = t.done
	return t
}

// wait waits until the commands before are sent.
func (t *turn) wait(ctx context.Context) error {
	if t.prev == nil {
		return nil
	}
	select {
	case <-t.prev:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// over lets the next command be sent.
func (t *turn) over() { t.once.Do(func() { close(t.done) }) }

// ordered is a slow command with a place in a lane, which it gives up when it cannot run.
type ordered struct {
	run later
	// over gives the place up.
	over func()
}

// queued makes a slow command of f, which is called when it is its turn and must
// call t.over when its own command is sent; returning does so too.
func (s *session) queued(at realmOf, f func(ctx context.Context, t *turn) (any, error)) ordered {
	t := s.turn(at)
	return ordered{over: t.over, run: func(ctx context.Context) (any, error) {
		defer t.over()
		if err := t.wait(ctx); err != nil {
			return nil, err
		}
		return f(ctx, t)
	}}
}

// longest is how long commands may take that wait for the program and not for natscope.
const longest = 10 * time.Minute

// patienceFor returns how long a command may take.
func (g *Gateway) patienceFor(m realm.Method) time.Duration {
	switch m {
	case realm.MethodEvaluate, realm.MethodCallFunctionOn, "runtime.awaitPromise", "runtime.queryObjects",
		"heap.takeHeapSnapshot", "heap.stopTrackingHeapObjects", "heap.collectGarbage", "profiler.stop":
		return longest
	}
	return g.limits.Command
}

// ask carries a command out in this connection's session at a realm, outside of
// all locks. What can change a program is written to the audit first.
func (s *session) ask(ctx context.Context, at liveAt, m realm.Method, params json.RawMessage, sent func()) (json.RawMessage, error) {
	if !s.target.grant.Controls() {
		if err := s.allowed(m, params); err != nil {
			return nil, err
		}
		params = m.Brief(params)
	}
	if m.ChangesWith(params) && !s.repeated(at, m, params) {
		if err := s.audit(ctx, at.realmOf, m, params); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, s.gateway.patienceFor(m))
	defer cancel()
	return s.gateway.realms.DoInOrder(ctx, at.realmOf.at(), s.id, realm.Request{Method: m, Params: params}, sent)
}

// at names the generation for package command.
func (r realmOf) at() command.At { return command.At{Source: r.source, Generation: r.generation} }

// repeatedEvery is how often the audit notes a live expression, which DevTools evaluates four times a second.
const repeatedEvery = time.Minute

// repeated reports whether a command is the evaluation of a live expression that
// the audit has already.
func (s *session) repeated(at liveAt, m realm.Method, params json.RawMessage) bool {
	var p struct {
		Expression  string `json:"expression"`
		ObjectGroup string `json:"objectGroup"`
	}
	if m != realm.MethodEvaluate || json.Unmarshal(params, &p) != nil || p.ObjectGroup != "live-expression" {
		return false
	}
	key, now := at.prefix()+p.Expression, time.Now()
	l := &s.realms
	l.mu.Lock()
	defer l.mu.Unlock()
	if t, ok := l.watched[key]; ok && now.Sub(t) < repeatedEvery {
		return true
	}
	remember(&l.watched, key, now)
	return false
}

// resolve returns the realm's id of an object, which it makes live if it is not.
func (s *session) resolve(ctx context.Context, ref objectRef) (realm.ObjectID, error) {
	if ref.id != "" {
		return ref.id, nil
	}
	l := &s.realms
	l.mu.Lock()
	id := l.resolved[ref.was]
	l.mu.Unlock()
	if id != "" {
		return id, nil
	}
	raw, err := s.objectOf(ctx, ref, nil)
	if err != nil {
		return "", err
	}
	var o struct {
		ObjectID realm.ObjectID `json:"objectId"`
	}
	if json.Unmarshal(raw, &o) != nil || o.ObjectID == "" {
		return "", realm.ErrNotFound
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	remember(&l.resolved, ref.was, o.ObjectID)
	return o.ObjectID, nil
}

// objectOf asks the realm for the live object of a recorded one, as the realm describes it.
func (s *session) objectOf(ctx context.Context, ref objectRef, sent func()) (json.RawMessage, error) {
	params, err := json.Marshal(ref.params)
	if err != nil {
		return nil, err
	}
	raw, err := s.ask(ctx, ref.at, ref.find, params, sent)
	if err != nil {
		return nil, err
	}
	var r realm.ObjectResult
	if err := json.Unmarshal(raw, &r); err != nil || len(r.Object) == 0 {
		return nil, realm.ErrNotFound
	}
	return r.Object, nil
}

// forgetResolved forgets that an object is live, after the realm did.
func (s *session) forgetResolved(refs ...objectRef) {
	l := &s.realms
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range refs {
		delete(l.resolved, r.was)
	}
}

// sessionLost is told that a realm does not know a session any more: what it held is gone.
func (g *Gateway) sessionLost(at command.At, id subjects.SessionID) {
	for _, s := range g.hub.all() {
		if s.id != id {
			continue
		}
		s.mu.Lock()
		if lane := s.realms.lanes[realmOf{at.Source, at.Generation}]; lane != nil {
			lane.told.Store(0)
		}
		s.mu.Unlock()
		s.realms.mu.Lock()
		s.realms.resolved = nil
		s.realms.mu.Unlock()
	}
}

// isGone reports whether an error says that an object or a session is not there (any more).
func isGone(err error) bool {
	return errors.Is(err, realm.ErrNotFound) || errors.Is(err, realm.ErrNoSession) || errors.Is(err, realm.ErrGone)
}
