package goreal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/goreal/internal/graph"
	"github.com/natscope/natscope/producer/goreal/internal/mirror"
	"github.com/natscope/natscope/producer/goreal/internal/remote"
	"github.com/natscope/natscope/subjects/realm"
)

const (
	// maxHandles is how many objects a session holds.
	maxHandles = 10_000
	// maxReads is how many reads of a session wait for one another.
	maxReads = 128
)

// session is one DevTools, or another asker, at the realm.
type session struct {
	r       *Realm
	out     producer.SessionOut
	handles *handles
	// reads shows Go values, one command after the other.
	reads  lane
	closed atomic.Bool
	// last is what it evaluated last; only jobs of the world use it.
	last mirror.Object

	mu sync.Mutex // guards all below
	// nodes are $0 to $4.
	nodes []mirror.Object
	// sources says that it wants to hear of scripts.
	sources bool
	// recording is its profile under way, sampling the allocations before it.
	recording *recording
	sampling  *sampling
	// snapshot is its newest heap snapshot.
	snapshot *graph.Graph
}

func newSession(r *Realm, o producer.SessionOut) *session {
	return &session{r: r, out: o, handles: newHandles(maxHandles), reads: lane{limit: maxReads}}
}

// command is one command of a session. It is answered once.
type command struct {
	s      *session
	ctx    context.Context
	method realm.Method
	done   atomic.Bool
	answer func(result any, err error)
}

// reply answers the command unless that has happened.
func (c *command) reply(result any, err error) {
	if c.done.CompareAndSwap(false, true) && !c.s.closed.Load() {
		c.answer(result, err)
	}
}

// nothing is the result of commands that have none.
type nothing struct{}

func (c *command) ok() { c.reply(nothing{}, nil) }

// Do starts a command. It does not wait for it.
func (s *session) Do(ctx context.Context, m realm.Method, params json.RawMessage, reply func(result any, err error)) {
	c := &command{s: s, ctx: ctx, method: m, answer: reply}
	defer func() {
		if p := recover(); p != nil {
			c.reply(nil, fmt.Errorf("%w: %s: the realm failed: %v", realm.ErrFailed, m, p))
		}
	}()
	if s.closed.Load() {
		return
	}
	h := methods[m]
	if h == nil {
		c.reply(nil, unsupported(m))
		return
	}
	h(c, params)
}

// unsupported says why a method is not answered.
func unsupported(m realm.Method) error {
	switch group, name, _ := strings.Cut(string(m), "."); {
	case group == "debugger" && strings.Contains(strings.ToLower(name), "breakpoint"):
		return fmt.Errorf("%w: a Go program cannot be stopped from here; use delve for breakpoints, or a log line", realm.ErrUnsupported)
	case group == "debugger":
		return fmt.Errorf("%w: a Go program cannot be debugged from here; use delve", realm.ErrUnsupported)
	}
	return fmt.Errorf("%w: a Go program does not answer %.80s", realm.ErrUnsupported, m)
}

// Close ends the session.
func (s *session) Close(error) {
	if s.closed.Swap(true) {
		return
	}
	s.r.forget(s)
	s.handles.close()
	s.reads.close()
	s.stopProfiles()
	s.r.mu.Lock()
	w := s.r.world
	s.r.mu.Unlock()
	if w != nil {
		w.stopJobsOf(s)
	}
}

// stopJobsOf ends the evaluation of a session that is gone.
func (w *world) stopJobsOf(s *session) {
	w.mu.Lock()
	j := w.current
	w.mu.Unlock()
	if j != nil && j.s == s {
		w.interrupt(j, "Execution was terminated: DevTools is gone")
		time.AfterFunc(grace, func() { w.giveUp(j) })
	}
}

// on makes a handler of a function that takes its parameters parsed.
func on[P any](f func(c *command, p P)) func(c *command, params json.RawMessage) {
	return func(c *command, params json.RawMessage) {
		p, err := realm.ParseParams[P](params)
		if err != nil {
			c.reply(nil, err)
			return
		}
		f(c, p)
	}
}

// lens is how a session looks at values that it will hold in a group.
func (s *session) lens(group string) *mirror.Lens {
	return &mirror.Lens{
		Bind:     func(o mirror.Object) string { return s.handles.bind(o, group) },
		Script:   s.r.scripts.find,
		Node:     s.r.isNode,
		Writable: s.r.o.Writable,
	}
}

// read runs f on the session's reader.
func (c *command) read(f func()) {
	ok := c.s.reads.post(func() {
		defer func() {
			if p := recover(); p != nil {
				c.reply(nil, fmt.Errorf("%w: %s: reading failed: %v", realm.ErrFailed, c.method, p))
			}
		}()
		f()
	})
	if !ok {
		c.reply(nil, fmt.Errorf("%w: %d reads of this session wait already", realm.ErrBusy, maxReads))
	}
}

// evaluate runs f on the evaluator, for at most limit (0: as long as evaluations
// may), and ends it when the command's context ends.
func (c *command) evaluate(limit time.Duration, f func(e engine)) {
	w, err := c.s.r.evaluator()
	if err != nil {
		c.reply(nil, err)
		return
	}
	j := &job{s: c.s, limit: limit, fail: func(err error) { c.reply(nil, err) }}
	j.run = func(e engine) {
		if c.s.closed.Load() || c.done.Load() || c.ctx.Err() != nil {
			c.reply(nil, context.Cause(c.ctx))
			return
		}
		stop := context.AfterFunc(c.ctx, func() {
			why := "Execution was terminated"
			if errors.Is(c.ctx.Err(), context.DeadlineExceeded) {
				why += ": it did not end in time"
			}
			w.interrupt(j, why)
			time.AfterFunc(grace, func() { w.giveUp(j) })
		})
		defer stop()
		f(e)
	}
	w.do(j)
}

// object finds what a handle stands for.
func (c *command) object(id string) (o mirror.Object, group string, ok bool) {
	o, group, err := c.s.handles.get(id)
	if err != nil {
		c.reply(nil, err)
	}
	return o, group, err == nil
}

// owned reports whether an object can be used in the engine that runs now.
func (c *command) owned(e engine, os ...mirror.Object) bool {
	for _, o := range os {
		if !e.Owned(o) {
			c.reply(nil, fmt.Errorf("%w: the object is from before the Console began anew; evaluate the expression again", realm.ErrNotFound))
			return false
		}
	}
	return true
}

// evaluated is the result of runtime.evaluate and its kin.
type evaluated struct {
	Result    *remote.Object    `json:"result"`
	Exception *remote.Exception `json:"exceptionDetails,omitempty"`
}

// threw is the result of an evaluation that threw.
func threw(x *remote.Exception) evaluated {
	o := x.Value
	if o == nil {
		u := remote.Undefined()
		o = &u
	}
	return evaluated{o, x}
}
