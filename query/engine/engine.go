package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/query/filter"
	"github.com/natscope/natscope/store/command"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/store/state"
	"github.com/natscope/natscope/subjects"
)

// State is the folded state that questions are answered from. *replica.Replica is one.
type State interface {
	// View calls f with the state under the read lock.
	View(f func(*fold.Space))
	// Watch calls initial with the state and registers w, as one step.
	Watch(initial func(*fold.Space), w replica.Watcher) (cancel func())
	// FollowBody calls f with every part of a body from its start, and returns after its end.
	FollowBody(ctx context.Context, s subjects.BodySubject, f func(replica.BodyPart) error) error
	// Stream names the record stream that the state was folded from.
	Stream() state.Stream
	// Status says how the reader is doing.
	Status() replica.Status
}

var _ State = (*replica.Replica)(nil)

// ErrOptions says that Options cannot be used; the text names the field.
var ErrOptions = errors.New("engine: invalid options")

// Options configure an Engine.
type Options struct {
	// State is the folded state. Required; it outlives the engine.
	State State
	// Commander brings commands to the sources; nil means that nothing can be asked of them. It outlives the engine.
	Commander command.Commander
	// Gateway is the name that Commander has; it names the engine in the audit.
	Gateway subjects.GatewayID
	// Limits bounds deadlines and sizes; zero fields mean the defaults.
	Limits subjects.Limits
}

// Engine implements query.API over a state. It is safe for concurrent use.
type Engine struct {
	state   State
	limits  subjects.Limits
	bodies  *bodyCache
	journal *journal
	// live asks programs; nil where nothing can be asked of them.
	live *programs
	// allow reports whether a source may be seen; nil allows all.
	allow func(subjects.SourceID) bool
	// who asks, for the audit; empty for those who may only look.
	who string
}

var _ query.API = (*Engine)(nil)

// New returns an engine. The error wraps ErrOptions.
func New(o Options) (*Engine, error) {
	if o.State == nil {
		return nil, fmt.Errorf("%w: State is nil; pass the replica of the space", ErrOptions)
	}
	j := &journal{state: o.State, changed: make(chan struct{})}
	e := &Engine{state: o.State, limits: o.Limits.WithDefaults(), bodies: new(bodyCache), journal: j}
	if o.Commander != nil {
		if !subjects.IsToken(string(o.Gateway)) {
			return nil, fmt.Errorf("%w: Gateway %.80q: %w", ErrOptions, o.Gateway, subjects.ErrToken)
		}
		e.live = newPrograms(o.Commander, o.Gateway)
	}
	return e, nil
}

// As returns an engine that may also have programs evaluate and edit. who
// describes the asker in the audit. It shares everything with e, which closes both.
func (e *Engine) As(who string) *Engine {
	c := *e
	c.who = who
	return &c
}

// Only returns an engine that answers as if there were no other sources than
// those that allow allows. It shares everything with e, which closes both.
func (e *Engine) Only(allow func(subjects.SourceID) bool) *Engine {
	c := *e
	c.allow = allow
	return &c
}

// Close ends the following of the state. Questions that are asked later are
// answered, save that a watch begins to follow again.
func (e *Engine) Close() {
	e.journal.close()
	if e.live != nil {
		e.live.sessions.Close()
	}
}

// view is the state at one moment.
type view struct {
	space *fold.Space
	epoch query.Epoch
	now   time.Time
	allow func(subjects.SourceID) bool
}

// sources returns the sources that may be seen, in the order of their appearance.
func (v view) sources() []*fold.Source {
	all := v.space.Sources()
	if v.allow == nil {
		return all
	}
	var out []*fold.Source
	for _, src := range all {
		if v.allow(src.ID) {
			out = append(out, src)
		}
	}
	return out
}

// source returns a source that may be seen, or nil.
func (v view) source(id subjects.SourceID) *fold.Source {
	if v.allow != nil && !v.allow(id) {
		return nil
	}
	return v.space.Source(id)
}

// view calls f with the state under its read lock, and again if the stream was
// made anew meanwhile, whose ids would be wrong.
func (e *Engine) view(f func(view)) {
	for {
		stream := e.state.Stream()
		e.state.View(func(s *fold.Space) { f(view{space: s, epoch: epochOf(stream), now: time.Now(), allow: e.allow}) })
		if e.state.Stream().Same(stream) {
			return
		}
	}
}

func epochOf(s state.Stream) query.Epoch {
	if s.Created.IsZero() {
		return 0
	}
	return query.Epoch(s.Created.UnixMilli())
}

// newFilter compiles the filter of a question.
func newFilter(expression, text string) (*filter.Filter, error) {
	f, err := filter.New(expression, text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", query.ErrMalformed, err)
	}
	return f, nil
}

// checkEvery is how many things are looked at between two looks at the clock.
const checkEvery = 256

// holdFor is how long one look at the state may take: whoever applies records,
// and with it everybody's DevTools, waits meanwhile.
const holdFor = 100 * time.Millisecond

// budget ends the looking at things when their number or the time is used up.
type budget struct {
	ctx  context.Context
	left int
	// until is zero where the number alone is bound enough.
	until time.Time
}

// newBudget begins a look at n things at most.
func newBudget(ctx context.Context, n int) budget {
	return budget{ctx: ctx, left: n, until: time.Now().Add(holdFor)}
}

// spend takes notice of one thing and reports whether there is a budget for it.
func (b *budget) spend() bool {
	b.left--
	if b.left < 0 {
		return false
	}
	return b.left%checkEvery != 0 || b.ctx.Err() == nil && (b.until.IsZero() || time.Now().Before(b.until))
}

// millis converts a time of a record to a time; 0 and nonsense are the zero time.
func millis(ms float64) time.Time {
	if !(ms > 0 && ms < 1e15) {
		return time.Time{}
	}
	return time.UnixMicro(int64(ms * 1000)).UTC()
}

// bound returns n, or a default for 0 or less, and never more than most.
func bound[T int | int64](n, def, most T) T {
	if n <= 0 {
		n = def
	}
	return min(n, most)
}
