package mirror

import (
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"github.com/natscope/natscope/producer/goreal/internal/remote"
)

// Shape is what a value is as a node of a graph.
type Shape int

// The shapes of nodes.
const (
	ShapeObject Shape = iota
	ShapeArray
	ShapeString
	ShapeClosure
)

// Edge leads from a value to one that it holds.
type Edge struct {
	// Name is the field or key; Index is the place in a list, when Name is empty.
	Name  string
	Index int
	To    Value
	// Key says that To is the key of an entry.
	Key bool
}

// Place returns the identity of a value that has a place of its own in the heap:
// false for what lies inside of another value, and for nil.
func (x Value) Place() (Key, bool) {
	if !x.v.IsValid() {
		return Key{}, false
	}
	switch x.v.Kind() {
	case reflect.String:
		if x.v.Len() == 0 {
			return Key{}, false
		}
		return Key{t: x.v.Type(), p: uintptr(unsafe.Pointer(unsafe.StringData(x.v.String()))), n: x.v.Len()}, true
	case reflect.Pointer, reflect.Map, reflect.Chan, reflect.Slice, reflect.Func:
		if x.v.IsNil() {
			return Key{}, false
		}
		k, ok := x.Key()
		// A value is one object, whatever guards it on the way on which it was found.
		k.g = nil
		return k, ok
	}
	return Key{}, false
}

// Node describes a value that has a Place: its shape, name and size in bytes.
func (x Value) Node() (s Shape, name string, size int) {
	t := x.v.Type()
	switch x.v.Kind() {
	case reflect.String:
		if x.IsSecret() {
			return ShapeString, x.String(), x.v.Len()
		}
		return ShapeString, remote.Cut(strings.ToValidUTF8(x.v.String(), "\ufffd"), 100), x.v.Len()
	case reflect.Pointer:
		return ShapeObject, typeName(t.Elem()), int(t.Elem().Size())
	case reflect.Slice:
		return ShapeArray, typeName(t), x.v.Cap() * int(t.Elem().Size())
	case reflect.Map:
		return ShapeObject, typeName(t), 48 + x.Len()*(int(t.Key().Size()+t.Elem().Size())+1)*8/7
	case reflect.Chan:
		return ShapeObject, typeName(t), 96 + x.v.Cap()*int(t.Elem().Size())
	}
	name = typeName(t)
	if f := runtime.FuncForPC(x.v.Pointer()); f != nil {
		name = shortFunc(f.Name())
	}
	return ShapeClosure, name, 16
}

// maxInline is how deep values inside of one another are searched for edges.
const maxInline = 6

// Edges lists what a value holds that has a place, at most limit. more says that
// there is more, or that its guard did not let it be read.
func (x Value) Edges(limit int) (out []Edge, more bool) {
	w := &edges{limit: limit}
	switch x.v.Kind() {
	case reflect.Pointer:
		if s, ok := x.structOf(); ok {
			g := guardOf(s, x.g, x.root)
			if read(g, func() { w.inline("", s, 0) }) != nil {
				return nil, true
			}
			w.guard(g)
			return w.out, w.more
		}
		if read(x.g, func() { w.part("*", -1, take(x.v.Elem()), 0) }) != nil {
			return nil, true
		}
	case reflect.Slice:
		if isFlat(x.v.Type().Elem()) {
			return nil, false
		}
		if read(x.g, func() { w.elements(x.v) }) != nil {
			return nil, true
		}
	case reflect.Map:
		ps, total, err := x.pairs(limit)
		if err != nil {
			return nil, true
		}
		w.more = total > len(ps)
		for _, p := range ps {
			name := keyText(p.key.v)
			w.part(name, -1, p.val, 0)
			if k := p.key.under(nil); p.key.v.Kind() != reflect.String {
				if _, ok := k.Place(); ok {
					w.out = append(w.out, Edge{Name: "key " + name, To: k, Key: true})
				}
			}
		}
	}
	w.guard(x.g)
	return w.out, w.more
}

// isFlat reports whether values of a type hold nothing with a place.
func isFlat(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return isFlat(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if !isFlat(t.Field(i).Type) {
				return false
			}
		}
		return true
	}
	return isScalar(t.Kind()) && t.Kind() != reflect.String || t.Kind() == reflect.Complex64 || t.Kind() == reflect.Complex128
}

type edges struct {
	limit int
	out   []Edge
	more  bool
}

// guard sets the guard of all edges.
func (w *edges) guard(g Guard) {
	for i := range w.out {
		w.out[i].To.g = inherited(g, w.out[i].To.v)
	}
}

func (w *edges) part(name string, index int, s slot, depth int) {
	v := Value{v: s.v, size: s.size}
	if !s.v.IsValid() {
		return
	}
	if _, ok := v.Place(); ok {
		if len(w.out) >= w.limit {
			w.more = true
			return
		}
		w.out = append(w.out, Edge{Name: name, Index: index, To: v})
		return
	}
	if name == "" {
		name = "[" + strconv.Itoa(index) + "]"
	}
	w.inline(name, s.v, depth+1)
}

// inline finds what a value holds that lies inside of another one. It runs under the guard.
func (w *edges) inline(prefix string, v reflect.Value, depth int) {
	if depth > maxInline || w.more {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		if isOpaque(v.Type()) || isAtomic(v.Type()) {
			return
		}
		for _, f := range infoOf(v.Type()).fields {
			name := f.name
			if prefix != "" {
				name = prefix + "." + name
			}
			w.part(name, -1, take(v.Field(f.index)), depth)
		}
	case reflect.Array:
		if isFlat(v.Type().Elem()) {
			return
		}
		for i := range v.Len() {
			w.part(prefix+"["+strconv.Itoa(i)+"]", -1, take(v.Index(i)), depth)
		}
	}
}

func (w *edges) elements(l reflect.Value) {
	for i := range l.Len() {
		if w.more {
			return
		}
		w.part("", i, take(l.Index(i)), 0)
	}
}
