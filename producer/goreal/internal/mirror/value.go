package mirror

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/natscope/natscope/producer/goreal/internal/remote"
)

// Value is a live Go value together with what guards it. The zero Value is nil.
type Value struct {
	v reflect.Value
	g Guard
	// root says that g was given for this very value.
	root bool
	// size is the length of a map or channel when it was read; -1 if it was not.
	size int
}

// Of is a value that a program exposes. g may be nil: the value is then read
// under the locks inside of it, if it has any, and else without any.
func Of(v any, g Guard) Value {
	x := enter(reflect.ValueOf(v))
	return Value{v: x, g: comparableGuard(g), root: true, size: -1}
}

// OfReflect is Of for a value that a program returned.
func OfReflect(v reflect.Value, g Guard) Value {
	return Value{v: enter(load(v)), g: g, size: -1}
}

// Reflect returns the value for the engine's own conversions; it is invalid for nil.
func (x Value) Reflect() reflect.Value { return x.v }

// Guard returns what guards the value, nil for nothing.
func (x Value) Guard() Guard { return x.g }

// Under returns the value under a guard of its surroundings.
func (x Value) Under(g Guard) Value { return Value{v: x.v, g: g, size: x.size} }

// IsNil reports whether there is no value, typed or not.
func (x Value) IsNil() bool {
	if !x.v.IsValid() {
		return true
	}
	switch x.v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		return x.v.IsNil()
	}
	return false
}

// enter goes through interfaces to what they hold.
func enter(v reflect.Value) reflect.Value {
	for v.IsValid() && v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	return v
}

// child is a part of x, read under g.
func (x Value) child(v reflect.Value, g Guard) Value {
	v = enter(v)
	return Value{v: v, g: inherited(g, v), size: -1}
}

// Key identifies a value that can be reached on several ways: two equal Keys
// are the same object. false for a value that has no place in memory.
type Key struct {
	t    reflect.Type
	p    uintptr
	n, c int
	g    Guard
}

// Key returns the identity of the value.
func (x Value) Key() (Key, bool) {
	k := Key{g: x.g}
	if !x.v.IsValid() {
		return k, false
	}
	k.t = x.v.Type()
	if s, ok := x.structOf(); ok {
		// A struct with locks is the same object on whatever way it was reached.
		k.g = guardOf(s, x.g, x.root)
	}
	switch x.v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		k.p = x.v.Pointer()
	case reflect.Slice:
		if x.v.IsNil() || x.v.Cap() == 0 {
			return k, false
		}
		k.p, k.n, k.c = x.v.Pointer(), x.v.Len(), x.v.Cap()
	case reflect.Struct, reflect.Array:
		if !x.v.CanAddr() {
			return k, false
		}
		k.p, k.n = x.v.UnsafeAddr(), -1
	default:
		return k, false
	}
	return k, true
}

// open gives access to an unexported field for reading.
func open(v reflect.Value) reflect.Value {
	if v.CanInterface() || !v.CanAddr() {
		return v
	}
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
}

// load copies the header of v, so that later use does not read a place again
// that the program may be writing to. Structs and arrays stay where they are:
// they are read part by part, save for times, which are made to be copied.
func load(v reflect.Value) reflect.Value {
	v = open(v)
	if !v.IsValid() || !v.CanInterface() {
		return v
	}
	if k := v.Kind(); (k == reflect.Struct && v.Type() != timeType || k == reflect.Array) && v.CanAddr() {
		return v
	}
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	return c
}

// slot is what a guarded read copied of one part.
type slot struct {
	v    reflect.Value
	size int
}

// take copies a part, with the length of a map: to ask for it later would be a race.
func take(v reflect.Value) slot {
	s := slot{v: enter(load(v)), size: -1}
	if s.v.IsValid() && s.v.Kind() == reflect.Map {
		s.size = s.v.Len()
	}
	return s
}

func (s slot) under(g Guard) Value { return Value{v: s.v, g: inherited(g, s.v), size: s.size} }

// read runs f under a guard, which may be nil. A fault, from a value that was
// torn because nothing guards it, becomes an error where the goroutine has SetPanicOnFault.
func read(g Guard, f func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("goreal: reading the value failed: %v", p)
		}
	}()
	if g == nil {
		f()
		return nil
	}
	return g.Do(f)
}

// pointer returns a pointer to v as an interface, for values that must not be
// copied; nil when v has no address.
func pointer(v reflect.Value) any {
	switch {
	case !v.IsValid():
		return nil
	case v.Kind() == reflect.Pointer:
		return iface(v)
	case v.CanAddr():
		return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Interface()
	}
	return nil
}

// iface returns v for calls of its methods; nil when that is impossible. A
// struct or array with an address is given by its pointer, which has the same methods.
func iface(v reflect.Value) any {
	if !v.IsValid() {
		return nil
	}
	v = open(v)
	switch k := v.Kind(); {
	case v.CanAddr() && (k == reflect.Struct || k == reflect.Array):
		return v.Addr().Interface()
	case v.CanInterface():
		return v.Interface()
	}
	return nil
}

// deref follows one pointer.
func deref(v reflect.Value) reflect.Value {
	if v.Kind() == reflect.Pointer {
		return v.Elem()
	}
	return v
}

// elem is what a type points to, or the type itself.
func elem(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// Lens is what a listing needs of the one who asks. All fields may be nil.
type Lens struct {
	// Bind returns the handle under which an object can be asked for again.
	Bind func(Object) string
	// Script returns the script of a Go file, by the name that the compiler gave it.
	Script func(file string) (id, url string, ok bool)
	// Node reports whether a pointer is the live object of a node of the component tree.
	Node func(pointer any) bool
	// Writable says that fields can be assigned to.
	Writable bool
}

func (l *Lens) bind(o Object) string {
	if l == nil || l.Bind == nil {
		return ""
	}
	return l.Bind(o)
}

// Object is what the mirror shows: a Value, or a part of one that has no Go value of its own.
type Object interface {
	// Remote returns the object as DevTools shows it before it is expanded.
	Remote(l *Lens, preview bool) remote.Object
	// Properties returns what its expansion shows.
	Properties(l *Lens, q Query) remote.Properties
}

// Query says which properties are wanted.
type Query struct {
	// Inherited wants those of the prototypes, too.
	Inherited bool
	// Accessors wants those only that are read by a function.
	Accessors bool
	// NonIndexed leaves out the elements of lists.
	NonIndexed bool
	// Preview wants previews of the values.
	Preview bool
}

// MaxProperties is how many properties of one object are listed.
const MaxProperties = 5000

// Pointer returns the pointer that the value is; false for everything else.
func (x Value) Pointer() (any, bool) {
	if !x.v.IsValid() || x.v.Kind() != reflect.Pointer || x.v.IsNil() {
		return nil, false
	}
	p := iface(x.v)
	return p, p != nil
}

// Type is a Go type.
type Type = reflect.Type
