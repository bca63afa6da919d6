package goreal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/goreal/internal/mirror"
	"github.com/natscope/natscope/subjects/realm"
)

// ErrName says that a name cannot be exposed. The text around it says why.
var ErrName = errors.New("goreal: the name cannot be exposed")

// keepEngine is how long the engine with its globals outlives the last session,
// so that they are still there when somebody reloads DevTools.
const keepEngine = 5 * time.Minute

// Realm is the live realm of a program. Its methods are safe for concurrent use
// and never wait for anybody.
type Realm struct {
	p       *producer.Producer
	o       Options
	scripts *scripts
	calls   keeper

	mu       sync.Mutex // guards all below
	roots    []root
	byName   map[string]int
	sessions map[*session]struct{}
	world    *world
	// stuck counts the worlds that were left behind and still run.
	stuck int
	// letGo ends the engine a while after the last session.
	letGo *time.Timer
}

// root is an exposed value.
type root struct {
	name string
	x    mirror.Value
	// read tells the value, if it is a snapshot.
	read func() any
}

// New makes the realm of a producer and serves it: sessions can be opened at
// once. It costs nothing until that happens.
func New(p *producer.Producer, o Options) *Realm {
	r := newRealm(p, o)
	p.Serve(served{r})
	return r
}

func newRealm(p *producer.Producer, o Options) *Realm {
	r := &Realm{p: p, o: o.withDefaults(), byName: make(map[string]int), sessions: make(map[*session]struct{})}
	r.scripts = newScripts(r.o.SourceRoots)
	r.calls.inUse = r.inUse
	r.exposeOwn()
	return r
}

// maxRoots is how many values can be exposed.
const maxRoots = 10_000

// Expose shows a value under a global name in the Console, from now on. guard
// says how it is read; nil means under the locks inside of it, if it has any. Of
// two values with one name the last one counts. The realm holds on to the value.
// A pointer is what makes a value live: a struct by value is a copy of it. The
// error wraps ErrName when the name is no identifier of JavaScript, or when
// there are 10 000 already.
func (r *Realm) Expose(name string, value any, guard Guard) error {
	if !isIdentifier(name) {
		return fmt.Errorf("%w: %.80q is no JavaScript identifier; use letters, digits, _ and $, beginning with a letter", ErrName, name)
	}
	x := root{name: name}
	if s, ok := value.(snapshot); ok {
		x.read = s.read
	} else {
		x.x = mirror.Of(value, guard)
	}
	r.mu.Lock()
	i, known := r.byName[name]
	switch {
	case known:
		r.roots[i] = x
	case len(r.roots) >= maxRoots:
		r.mu.Unlock()
		return fmt.Errorf("%w: %d values are exposed already", ErrName, maxRoots)
	default:
		r.byName[name] = len(r.roots)
		r.roots = append(r.roots, x)
	}
	w := r.world
	r.mu.Unlock()
	if w != nil {
		w.do(&job{run: func(e engine) { x.into(e) }})
	}
	return nil
}

// into defines the global.
func (x root) into(e engine) {
	if x.read == nil {
		e.Expose(x.name, x.x)
		return
	}
	e.ExposeFunc(x.name, x.value)
}

// value is the value as it is now.
func (x root) value() (v mirror.Value, err error) {
	if x.read == nil {
		return x.x, nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("goreal: the snapshot %s panicked: %v", x.name, p)
		}
	}()
	return mirror.Of(x.read(), Immutable), nil
}

// populate defines everything that is exposed in a new engine.
func (r *Realm) populate(e engine) {
	r.mu.Lock()
	roots := append([]root(nil), r.roots...)
	r.mu.Unlock()
	for _, x := range roots {
		x.into(e)
	}
}

// isIdentifier reports whether a name can be written in JavaScript as it is.
func isIdentifier(s string) bool {
	for i, c := range s {
		letter := c == '_' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != "" && !reserved[s]
}

var reserved = map[string]bool{"break": true, "case": true, "catch": true, "class": true, "const": true, "continue": true, "debugger": true, "default": true, "delete": true, "do": true, "else": true, "export": true, "extends": true, "false": true, "finally": true, "for": true, "function": true, "if": true, "import": true, "in": true, "instanceof": true, "new": true, "null": true, "return": true, "super": true, "switch": true, "this": true, "throw": true, "true": true, "try": true, "typeof": true, "var": true, "void": true, "while": true, "with": true, "let": true, "static": true, "yield": true, "await": true, "enum": true, "undefined": true, "globalThis": true}

// open begins a session.
func (r *Realm) open(out producer.SessionOut) *session {
	s := newSession(r, out)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sessions[s] = struct{}{}
	if r.letGo != nil {
		r.letGo.Stop()
		r.letGo = nil
	}
	return s
}

// forget takes a session out.
func (r *Realm) forget(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sessions, s)
	if len(r.sessions) == 0 && r.letGo == nil {
		r.letGo = time.AfterFunc(keepEngine, r.release)
		r.calls.clear()
	}
}

// release lets go of the engine if nobody uses it.
func (r *Realm) release() {
	r.mu.Lock()
	w := r.world
	if len(r.sessions) > 0 {
		w = nil
	} else {
		r.world, r.letGo = nil, nil
	}
	r.mu.Unlock()
	if w != nil {
		w.close()
	}
}

// inUse reports whether a session is open.
func (r *Realm) inUse() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sessions) > 0
}

// evaluator returns the world, which is made when there is none.
func (r *Realm) evaluator() (*world, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.world == nil {
		if r.stuck >= maxStuck {
			return nil, fmt.Errorf("%w: %d evaluations run that nothing can end; the program has to be restarted before more are run", realm.ErrBusy, r.stuck)
		}
		r.world = newWorld(r)
	}
	return r.world, nil
}

// abandon leaves a world behind that cannot be stopped.
func (r *Realm) abandon(w *world) {
	r.mu.Lock()
	if r.world == w {
		r.world = nil
	}
	r.stuck++
	r.mu.Unlock()
	r.o.Logger.Warn("goreal: an evaluation cannot be ended and was left alone")
}

// returned notes that a world that was left behind ended after all.
func (r *Realm) returned() {
	r.mu.Lock()
	r.stuck--
	r.mu.Unlock()
}

// each calls f for all sessions.
func (r *Realm) each(f func(*session)) {
	r.mu.Lock()
	list := make([]*session, 0, len(r.sessions))
	for s := range r.sessions {
		list = append(list, s)
	}
	r.mu.Unlock()
	for _, s := range list {
		f(s)
	}
}

// served is the realm as the producer sees it.
type served struct{ r *Realm }

// Capabilities lists what the realm answers.
func (s served) Capabilities() []string {
	list := []string{"runtime", "console", "sources", "profiler", "heap"}
	if s.r.o.Tree != nil {
		list = append(list, string(realm.MethodResolveNode), string(realm.MethodNodeOf), string(realm.MethodInspected))
	}
	return list
}

// Open begins a session.
func (s served) Open(_ context.Context, _ realm.Session, out producer.SessionOut) (producer.RealmSession, error) {
	return s.r.open(out), nil
}
