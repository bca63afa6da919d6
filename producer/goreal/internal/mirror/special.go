package mirror

import (
	"context"
	"fmt"
	"log/slog"
	"math/big"
	"reflect"
	"sync"
	"time"
)

var (
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
	syncMapType  = reflect.TypeFor[sync.Map]()
	bigIntType   = reflect.TypeFor[big.Int]()
	errorType    = reflect.TypeFor[error]()
	logValuer    = reflect.TypeFor[slog.LogValuer]()
)

// isAtomic reports whether a type, or what it points to, is one of sync/atomic.
func isAtomic(t reflect.Type) bool {
	t = elem(t)
	return t.PkgPath() == "sync/atomic" && t.Kind() == reflect.Struct
}

// isOpaque reports whether the fields of a type mean nothing to a reader.
func isOpaque(t reflect.Type) bool {
	switch elem(t) {
	case timeType, mutexType, rwMutexType, syncMapType, bigIntType, reflect.TypeFor[sync.WaitGroup](), reflect.TypeFor[sync.Once](),
		reflect.TypeFor[sync.Pool](), reflect.TypeFor[sync.Cond](), reflect.TypeFor[time.Location]():
		return true
	}
	return false
}

// atomicLoad reads a value of sync/atomic with its own Load, which is never a race.
func atomicLoad(v reflect.Value) (reflect.Value, bool) {
	p := pointer(v)
	if p == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return reflect.Value{}, false
	}
	m := reflect.ValueOf(p).MethodByName("Load")
	if !m.IsValid() || m.Type().NumIn() != 0 {
		return reflect.Value{}, false
	}
	return m.Call(nil)[0], true
}

// lockState probes a lock of package sync; empty for anything else.
func lockState(v reflect.Value) string {
	switch m := pointer(v).(type) {
	case *sync.Mutex:
		if m == nil {
			return ""
		}
		if m.TryLock() {
			m.Unlock()
			return "unlocked"
		}
		return "locked"
	case *sync.RWMutex:
		if m == nil {
			return ""
		}
		if m.TryRLock() {
			m.RUnlock()
			if m.TryLock() {
				m.Unlock()
				return "unlocked"
			}
			return "read-locked"
		}
		return "write-locked"
	}
	return ""
}

// maxRange is how many entries of a sync.Map are counted.
const maxRange = 1_000_000

// syncMapEntries reads a sync.Map; n counts all entries, up to maxRange.
func syncMapEntries(v reflect.Value, limit int) (out []pair, n int) {
	m, ok := pointer(v).(*sync.Map)
	if !ok || m == nil {
		return nil, 0
	}
	m.Range(func(k, val any) bool {
		n++
		if len(out) < limit {
			out = append(out, pair{take(reflect.ValueOf(k)), take(reflect.ValueOf(val))})
		}
		return n < maxRange
	})
	sortPairs(out)
	return out, n
}

// asTime returns a time.Time, or what a pointer to one leads to.
func asTime(v reflect.Value) (time.Time, bool) {
	switch t := iface(v).(type) {
	case time.Time:
		return t, true
	case *time.Time:
		if t != nil {
			return *t, true
		}
	}
	return time.Time{}, false
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return "time.Time zero"
	}
	s := t.Format(time.RFC3339Nano)
	if n := t.Location().String(); n != "UTC" && n != "" && n != "Local" {
		s += " (" + n + ")"
	}
	return s
}

// contained calls a method of the program for its text; a panic becomes the text.
func contained(what string, f func() string) (s string) {
	defer func() {
		if p := recover(); p != nil {
			s = fmt.Sprintf("<%s panicked: %v>", what, p)
		}
	}()
	return f()
}

// methodPatience is how long a method that only makes a text may take.
const methodPatience = 100 * time.Millisecond

// timely is contained for methods that may wait for something: one that does
// not return in time is left alone and named.
func timely(what string, f func() string) string {
	done := make(chan string, 1)
	go func() { done <- contained(what, f) }()
	t := time.NewTimer(methodPatience)
	defer t.Stop()
	select {
	case s := <-done:
		return s
	case <-t.C:
		return "<" + what + " did not return in " + methodPatience.String() + ">"
	}
}

// asError returns the value as an error; false for anything else, and for a nil pointer.
func asError(v reflect.Value) (error, bool) {
	if !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, false
	}
	if t := v.Type(); !t.Implements(errorType) && !reflect.PointerTo(t).Implements(errorType) {
		return nil, false
	}
	e, ok := iface(v).(error)
	return e, ok
}

func errorText(e error) string { return timely("Error", e.Error) }

// unwrapped returns the cause of an error, or the causes.
func unwrapped(e error) (causes []error, cause error) {
	defer func() { _ = recover() }()
	switch u := e.(type) {
	case interface{ Unwrap() error }:
		cause = u.Unwrap()
	case interface{ Unwrap() []error }:
		causes = u.Unwrap()
	}
	return causes, cause
}

// stdText is the text of a standard library's value whose String only reads it, read under its guard.
func (x Value) stdText() (s string, ok bool) {
	v := x.v
	switch elem(v.Type()).PkgPath() {
	case "time", "net", "net/netip", "net/url", "math/big", "reflect", "io/fs", "os", "syscall", "net/mail", "log/slog", "encoding/json", "go/token", "regexp":
	default:
		return "", false
	}
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return "", false
	}
	for _, p := range []any{iface(v), pointer(v)} {
		str, is := p.(fmt.Stringer)
		if !is {
			continue
		}
		if err := read(x.g, func() { s = contained("String", str.String) }); err != nil {
			s = "<" + reason(err) + ">"
		}
		return s, true
	}
	return "", false
}

// numberText is what a named number calls itself. Its receiver is a copy, so the
// method reaches nothing through it.
func numberText(v reflect.Value) (string, bool) {
	if v.Type().PkgPath() == "" {
		return "", false
	}
	s, ok := iface(v).(fmt.Stringer)
	if !ok {
		return "", false
	}
	return contained("String", s.String), true
}

// isSecret reports whether values of a type say themselves what is logged of them and are no structs.
func isSecret(t reflect.Type) bool {
	return t.PkgPath() != "" && elem(t).Kind() != reflect.Struct && t.Kind() != reflect.Interface && t.Implements(logValuer)
}

// secretText is what a value that is no struct lets be logged of itself: so a
// secret is not shown either.
func secretText(v reflect.Value) (string, bool) {
	if !isSecret(v.Type()) {
		return "", false
	}
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return "", false
	}
	l, ok := iface(v).(slog.LogValuer)
	if !ok {
		return "<secret>", true
	}
	return timely("LogValue", func() string { return slog.AnyValue(l).Resolve().String() }), true
}

// contextText describes a context of package context.
func contextText(v reflect.Value) (string, bool) {
	c, ok := asContext(v)
	if !ok {
		return "", false
	}
	if layers := contextLayers(c); len(layers) > 0 {
		return "context." + layers[0].kind, true
	}
	return "context", true
}

// layer is one context of a chain.
type layer struct {
	kind string
	key  reflect.Value
	val  reflect.Value
}

// maxLayers is how long chains of contexts are followed.
const maxLayers = 64

// contextLayers takes the chain of contexts apart that the standard library made.
func contextLayers(c context.Context) (out []layer) {
	defer func() { _ = recover() }()
	for c != nil && len(out) < maxLayers {
		v := reflect.ValueOf(c)
		e := deref(v)
		l := layer{kind: elem(v.Type()).Name()}
		if elem(v.Type()).PkgPath() != "context" {
			l.kind = typeName(v.Type())
			return append(out, l)
		}
		if l.kind == "valueCtx" && e.CanAddr() {
			l.key, l.val = enter(open(e.FieldByName("key"))), enter(open(e.FieldByName("val")))
		}
		out = append(out, l)
		if e.Kind() != reflect.Struct {
			break
		}
		f := e.FieldByName("Context")
		if cc := e.FieldByName("cancelCtx"); !f.IsValid() && cc.IsValid() {
			f = cc.FieldByName("Context")
		}
		if !f.IsValid() || f.Kind() != reflect.Interface || f.IsNil() {
			break
		}
		c, _ = open(f).Interface().(context.Context)
	}
	return out
}

// asContext returns a context of package context; others are the program's own.
func asContext(v reflect.Value) (context.Context, bool) {
	if v.Kind() == reflect.Pointer && v.IsNil() || elem(v.Type()).PkgPath() != "context" {
		return nil, false
	}
	c, ok := iface(v).(context.Context)
	return c, ok
}

// Time returns the value as a time.
func (x Value) Time() (time.Time, bool) { return asTime(x.v) }

// Big returns a copy of a big number.
func (x Value) Big() (*big.Int, bool) {
	b, ok := pointer(x.v).(*big.Int)
	if !ok || b == nil {
		return nil, false
	}
	c := new(big.Int)
	return c, read(x.g, func() { c.Set(b) }) == nil
}

// ErrorText returns what an error says.
func (x Value) ErrorText() (string, bool) {
	e, ok := asError(x.v)
	if !ok {
		return "", false
	}
	return errorText(e), true
}

// IsAtomic reports whether the value is one of sync/atomic.
func (x Value) IsAtomic() bool { return isAtomic(x.v.Type()) }

// IsSecret reports whether the value shows itself by its LogValue only.
func (x Value) IsSecret() bool { return isSecret(x.v.Type()) }
