package mirror

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
)

// Guard says how a value is read without harm. Do calls f once, while nobody
// writes to the value, or returns an error that says why it did not; f only
// copies a few words and never waits. A Guard is used by several goroutines.
type Guard interface {
	Do(f func()) error
}

// writer is a Guard under which a value may be written, too.
type writer interface {
	Write(f func()) error
}

// ErrBusy says that a lock of the program was held for too long. The text around it says how long.
var ErrBusy = errors.New("goreal: the value is locked by the program")

// ErrReadOnly says that a value cannot be written through its guard.
var ErrReadOnly = errors.New("goreal: the value can only be read")

// ErrUnguarded says that a map was not read because nothing guards it.
var ErrUnguarded = errors.New("goreal: nothing guards this map")

// Patience is how long a read waits for a lock unless its guard says otherwise.
const Patience = 100 * time.Millisecond

// tryLocker is a lock that can be tried.
type tryLocker interface {
	sync.Locker
	TryLock() bool
}

// Locked reads under a lock: a *sync.RWMutex is locked for reading, others are
// locked. It waits at most Patience. The result of RLocker can be read under, not written.
func Locked(l sync.Locker) Guard { return TryLocked(l, Patience) }

// TryLocked is Locked with another patience.
func TryLocked(l sync.Locker, patience time.Duration) Guard {
	switch l := l.(type) {
	case nil:
		return nil
	case *sync.RWMutex:
		return lockGuard{read: rlock{l}, write: l, patience: patience}
	case tryLocker:
		return lockGuard{read: l, write: l, patience: patience}
	}
	return &plainGuard{lock: l, patience: patience}
}

// rlock is the reading side of a lock.
type rlock struct{ *sync.RWMutex }

func (l rlock) TryLock() bool { return l.TryRLock() }
func (l rlock) Lock()         { l.RLock() }
func (l rlock) Unlock()       { l.RUnlock() }

// lockGuard is comparable: two for one lock are the same.
type lockGuard struct {
	read, write tryLocker
	patience    time.Duration
}

func (g lockGuard) Do(f func()) error    { return underLock(g.read, g.patience, f) }
func (g lockGuard) Write(f func()) error { return underLock(g.write, g.patience, f) }

// underLock tries a lock until patience ends. A writer of the program that waits
// for the lock goes first, since a try does not queue.
func underLock(l tryLocker, patience time.Duration, f func()) error {
	if !tryFor(patience, l.TryLock) {
		return fmt.Errorf("%w for %s already; ask again", ErrBusy, patience)
	}
	defer l.Unlock()
	f()
	return nil
}

// tryFor repeats try with growing pauses until it succeeds or patience ends.
func tryFor(patience time.Duration, try func() bool) bool {
	if try() {
		return true
	}
	end := time.Now().Add(patience)
	for pause := 10 * time.Microsecond; time.Now().Before(end); pause = min(2*pause, time.Millisecond) {
		time.Sleep(pause)
		if try() {
			return true
		}
	}
	return false
}

// plainGuard reads under a lock that cannot be tried. A goroutine waits for it,
// so that the reader need not.
type plainGuard struct {
	lock     sync.Locker
	patience time.Duration
	// waiting says that a goroutine waits for the lock already.
	waiting atomic.Bool
}

func (g *plainGuard) Do(f func()) error {
	if !g.waiting.CompareAndSwap(false, true) {
		return fmt.Errorf("%w, and another read waits for it; ask again", ErrBusy)
	}
	// state tells who has the lock: nobody yet, the reader, or nobody any more.
	var state atomic.Int32
	got, done, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		defer g.waiting.Store(false)
		g.lock.Lock()
		defer g.lock.Unlock()
		if state.CompareAndSwap(0, 1) {
			close(got)
			<-done
		}
	}()
	t := time.NewTimer(g.patience)
	defer t.Stop()
	select {
	case <-got:
	case <-t.C:
		if state.CompareAndSwap(0, 2) {
			return fmt.Errorf("%w for %s already; ask again", ErrBusy, g.patience)
		}
		<-got
	}
	defer func() {
		close(done)
		<-over
	}()
	f()
	return nil
}

// OnExecutor reads on a goroutine of the program, such as its event loop:
// submit hands a function over to be run there. A read waits at most half a
// second for its turn.
func OnExecutor(submit func(f func())) Guard {
	return &executor{submit: submit, patience: 500 * time.Millisecond}
}

type executor struct {
	submit   func(func())
	patience time.Duration
	// waiting bounds the reads that were handed over and did not run.
	waiting atomic.Int32
}

const maxWaiting = 8

func (g *executor) Do(f func()) error {
	if g.waiting.Add(1) > maxWaiting {
		g.waiting.Add(-1)
		return fmt.Errorf("%w: its executor runs nothing; ask again", ErrBusy)
	}
	var state atomic.Int32
	var panicked any
	done := make(chan struct{})
	// submit may block when its queue is full, so it is not called here.
	go func() {
		g.submit(func() {
			defer g.waiting.Add(-1)
			if !state.CompareAndSwap(0, 1) {
				return
			}
			defer close(done)
			// Whatever goes wrong in a read must not end the program's own loop.
			defer func() { panicked = recover() }()
			f()
		})
	}()
	t := time.NewTimer(g.patience)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
		if state.CompareAndSwap(0, 2) {
			return fmt.Errorf("%w: its executor did not come to it in %s; ask again", ErrBusy, g.patience)
		}
		<-done
	}
	if panicked != nil {
		panic(panicked)
	}
	return nil
}

func (g *executor) Write(f func()) error { return g.Do(f) }

// Immutable says that nobody writes to the value any more.
var Immutable Guard = immutable{}

type immutable struct{}

func (immutable) Do(f func()) error { f(); return nil }

// frozen is the guard of a map that its maker gave away: nobody writes to it,
// but what it holds is live.
type frozen struct{}

func (frozen) Do(f func()) error { f(); return nil }

// OfFrozen is Of for such a map. Maps of its own type inside of it are frozen, too.
func OfFrozen(v any) Value {
	return Value{v: enter(reflect.ValueOf(v)), g: frozen{}, root: true, size: -1}
}

// inherited is the guard of v, which was found in a value that g guards.
func inherited(g Guard, v reflect.Value) Guard {
	if _, ok := g.(frozen); !ok || v.IsValid() && v.Kind() == reflect.Map && v.Type().Implements(frozenType) {
		return g
	}
	return nil
}

var frozenType = reflect.TypeFor[interface{ Immutable() bool }]()

// pinned makes a guard of somebody else's comparable.
type pinned struct{ Guard }

func (p *pinned) Write(f func()) error {
	if w, ok := p.Guard.(writer); ok {
		return w.Write(f)
	}
	return ErrReadOnly
}

// comparable returns a guard that can be compared, with the same effect.
func comparableGuard(g Guard) Guard {
	if g == nil || reflect.TypeOf(g).Comparable() {
		return g
	}
	return &pinned{g}
}

// own guards a value by the locks inside of it, and what is around it by outer,
// which may be nil. It is comparable.
type own struct {
	outer Guard
	locks locks
}

// locks are the locks of one struct, up to four.
type locks [4]any

func (g own) Do(f func()) error    { return g.do(false, f) }
func (g own) Write(f func()) error { return g.do(true, f) }

func (g own) do(write bool, f func()) error {
	failed := error(nil)
	ok := tryFor(Patience, func() bool {
		had := false
		attempt := func() { had = g.locks.try(write, f) }
		if g.outer == nil {
			attempt()
		} else if write {
			failed = writeUnder(g.outer, attempt)
		} else {
			failed = g.outer.Do(attempt)
		}
		return had || failed != nil
	})
	switch {
	case failed != nil:
		return failed
	case !ok:
		return fmt.Errorf("%w for %s already; ask again", ErrBusy, Patience)
	}
	return nil
}

// try runs f under all locks if none is taken.
func (l locks) try(write bool, f func()) bool {
	for _, x := range l {
		var t tryLocker
		switch m := x.(type) {
		case *sync.Mutex:
			t = m
		case *sync.RWMutex:
			t = rlock{m}
			if write {
				t = m
			}
		default:
			continue
		}
		if !t.TryLock() {
			return false
		}
		defer t.Unlock()
	}
	f()
	return true
}

// writeUnder writes under a guard that allows it.
func writeUnder(g Guard, f func()) error {
	w, ok := g.(writer)
	if !ok {
		return ErrReadOnly
	}
	return w.Write(f)
}

// guardOf is the guard of the fields of a struct: the locks inside of it, if
// any, and what guards the values around it.
func guardOf(s reflect.Value, g Guard, root bool) Guard {
	if _, ok := g.(immutable); ok || !s.CanAddr() || root && g != nil {
		return g
	}
	outer := g
	if o, ok := g.(own); ok {
		outer = o.outer
	}
	l, ok := locksOf(s, outer)
	if !ok {
		return g
	}
	return own{outer: outer, locks: l}
}

// holds reports whether a guard takes a lock by itself: to take it twice would wait for ever.
func holds(g Guard, lock any) bool {
	l, ok := g.(lockGuard)
	return ok && any(l.write) == lock
}

// locksOf finds the locks among the fields of a struct and of the structs it
// embeds, other than the one that outer takes.
func locksOf(s reflect.Value, outer Guard) (l locks, ok bool) {
	n := 0
	for _, i := range infoOf(s.Type()).locks {
		if n == len(l) {
			break
		}
		if x := lockAt(s.FieldByIndex(i)); x != nil && !holds(outer, x) {
			l[n] = x
			n++
		}
	}
	return l, n > 0
}

// lockAt returns the lock that a field is, or points to.
func lockAt(f reflect.Value) any {
	if f.Kind() == reflect.Pointer {
		if f.IsNil() {
			return nil
		}
		f = f.Elem()
	}
	return pointer(f)
}

// OfLocked is Of for a value that a lock guards, which may be nil: one among the
// locks inside of the value needs no guard of its own.
func OfLocked(v any, lock sync.Locker) Value {
	x := Of(v, nil)
	if lock == nil {
		return x
	}
	if s, ok := x.structOf(); ok && s.CanAddr() {
		l, _ := locksOf(s, nil)
		for _, own := range l {
			if own == any(lock) {
				return x
			}
		}
	}
	return Of(v, Locked(lock))
}
