package mirror

import (
	"reflect"
	"strconv"
)

// Kind says how a value behaves in JavaScript.
type Kind int

// The kinds of values.
const (
	// KindNull is null.
	KindNull Kind = iota
	// KindScalar is a string, number or boolean.
	KindScalar
	// KindList is a slice or an array, or a pointer to one.
	KindList
	// KindFunc is a function.
	KindFunc
	// KindObject is everything else.
	KindObject
)

// Kind returns how the value behaves in JavaScript.
func (x Value) Kind() Kind {
	if x.isNull() {
		return KindNull
	}
	switch k := x.v.Kind(); {
	case k == reflect.Func:
		return KindFunc
	case x.IsScalar():
		return KindScalar
	case isList(x.v.Type()):
		return KindList
	}
	return KindObject
}

func isList(t reflect.Type) bool {
	k := elem(t).Kind()
	return k == reflect.Slice || k == reflect.Array
}

// structOf returns the struct that a value is, or points to.
func (x Value) structOf() (reflect.Value, bool) {
	if !x.v.IsValid() {
		return reflect.Value{}, false
	}
	t := elem(x.v.Type())
	if t.Kind() != reflect.Struct || x.v.Kind() == reflect.Pointer && x.v.IsNil() {
		return reflect.Value{}, false
	}
	return deref(x.v), true
}

// errorParts are the properties that errors have in JavaScript.
func (x Value) errorPart(name string) (Value, bool) {
	if name != "message" && name != "cause" && name != "errors" {
		return Value{}, false
	}
	e, ok := asError(x.v)
	if !ok {
		return Value{}, false
	}
	if name == "message" {
		return Value{v: reflect.ValueOf(errorText(e)), size: -1}, true
	}
	causes, cause := unwrapped(e)
	switch {
	case name == "cause" && cause != nil:
		return x.child(reflect.ValueOf(cause), x.g), true
	case name == "errors" && causes != nil:
		return x.child(reflect.ValueOf(causes), x.g), true
	}
	return Value{}, false
}

// Get reads a property by its name: a field, an entry of a map, or one of the
// parts that special values have. false if there is no such property.
func (x Value) Get(name string) (Value, bool, error) {
	if x.IsNil() {
		return Value{}, false, nil
	}
	v := x.v
	t := v.Type()
	if p, ok := x.errorPart(name); ok {
		return p, true, nil
	}
	switch {
	case isAtomic(t):
		l, ok := atomicLoad(v)
		return x.child(l, x.g), ok && name == "value", nil
	case elem(t) == syncMapType:
		return x.syncMapGet(name)
	case isOpaque(t):
		return Value{}, false, nil
	case v.Kind() == reflect.Map:
		k, ok := parseKey(t.Key(), name)
		if !ok {
			return Value{}, false, nil
		}
		return x.Lookup(k)
	case v.Kind() == reflect.Chan && (name == "len" || name == "cap"):
		n := v.Len()
		if name == "cap" {
			n = v.Cap()
		}
		return Value{v: reflect.ValueOf(n), size: -1}, true, nil
	}
	if s, ok := x.structOf(); ok {
		return x.getField(s, name)
	}
	if v.Kind() == reflect.Pointer && name == "*" {
		var e slot
		err := read(x.g, func() { e = take(v.Elem()) })
		return e.under(x.g), err == nil, err
	}
	return Value{}, false, nil
}

// getField reads a field, or one that an embedded struct has.
func (x Value) getField(s reflect.Value, name string) (Value, bool, error) {
	g := guardOf(s, x.g, x.root)
	if i, ok := infoOf(s.Type()).byName[name]; ok {
		var e slot
		err := read(g, func() { e = take(s.Field(infoOf(s.Type()).fields[i].index)) })
		return e.under(g), err == nil, err
	}
	f, ok := s.Type().FieldByName(name)
	if !ok || f.Tag.Get("natscope") == "-" || len(f.Index) < 2 {
		return Value{}, false, nil
	}
	var e slot
	found := false
	err := read(g, func() {
		if fv, err := s.FieldByIndexErr(f.Index); err == nil {
			e, found = take(fv), true
		}
	})
	return e.under(g), found && err == nil, err
}

func (x Value) syncMapGet(name string) (Value, bool, error) {
	ps, _ := syncMapEntries(x.v, MaxProperties)
	for _, p := range ps {
		if keyText(p.key.v) == name {
			return p.val.under(nil), true, nil
		}
	}
	return Value{}, false, nil
}

// Names lists the properties that JavaScript enumerates, at most limit.
func (x Value) Names(limit int) ([]string, error) {
	t := x.v.Type()
	var out []string
	switch {
	case isAtomic(t):
		return []string{"value"}, nil
	case elem(t) == syncMapType || x.v.Kind() == reflect.Map:
		ps, _, err := x.pairs(limit)
		for _, p := range ps {
			out = append(out, keyText(p.key.v))
		}
		return out, err
	case isOpaque(t):
		return nil, nil
	case x.v.Kind() == reflect.Chan:
		return []string{"len", "cap"}, nil
	}
	for _, name := range []string{"message", "cause", "errors"} {
		if _, ok := x.errorPart(name); ok {
			out = append(out, name)
		}
	}
	if s, ok := x.structOf(); ok {
		for _, f := range infoOf(s.Type()).fields {
			if f.exported {
				out = append(out, f.name)
			}
		}
	} else if x.v.Kind() == reflect.Pointer {
		out = append(out, "*")
	}
	return out, nil
}

// list returns the slice or array that the value is, or points to.
func (x Value) list() reflect.Value { return deref(x.v) }

// At reads an element of a list; false beyond its end.
func (x Value) At(i int) (Value, bool, error) {
	var e slot
	found := false
	err := read(x.g, func() {
		if l := x.list(); i >= 0 && i < l.Len() {
			e, found = take(l.Index(i)), true
		}
	})
	return e.under(x.g), found && err == nil, err
}

// span reads the elements from..to of a list (to not included).
func (x Value) span(from, to int) (out []slot, err error) {
	err = read(x.g, func() {
		l := x.list()
		to = min(to, l.Len())
		for i := from; i < to; i++ {
			out = append(out, take(l.Index(i)))
		}
	})
	return out, err
}

// Set writes a field or an entry of a map under its guard.
func (x Value) Set(name string, to reflect.Value) error {
	if x.v.Kind() == reflect.Map {
		k, ok := parseKey(x.v.Type().Key(), name)
		if !ok || !x.Readable() {
			return x.unguarded()
		}
		return writeUnder(x.g, func() { x.v.SetMapIndex(k, to) })
	}
	place, g, err := x.place(name)
	if err != nil {
		return err
	}
	if g == nil {
		place.Set(to)
		return nil
	}
	return writeUnder(g, func() { place.Set(to) })
}

// place finds what an assignment writes to, and its guard.
func (x Value) place(name string) (reflect.Value, Guard, error) {
	if x.Kind() == KindList {
		i, err := strconv.Atoi(name)
		if l := x.list(); err == nil && i >= 0 && i < l.Len() && l.Index(i).CanSet() {
			return l.Index(i), x.g, nil
		}
		return reflect.Value{}, nil, ErrReadOnly
	}
	if s, ok := x.structOf(); ok {
		if f := s.FieldByName(name); f.IsValid() && f.CanSet() {
			return f, guardOf(s, x.g, x.root), nil
		}
	} else if x.v.Kind() == reflect.Pointer && name == "*" {
		return x.v.Elem(), x.g, nil
	}
	return reflect.Value{}, nil, ErrReadOnly
}

// PlaceType is the type that an assignment to a property takes; nil where there is nothing to assign to.
func (x Value) PlaceType(name string) reflect.Type {
	if x.v.Kind() == reflect.Map {
		return x.v.Type().Elem()
	}
	p, _, err := x.place(name)
	if err != nil {
		return nil
	}
	return p.Type()
}

// Delete takes an entry out of a map.
func (x Value) Delete(name string) error {
	if x.v.Kind() != reflect.Map || !x.Readable() {
		return ErrReadOnly
	}
	k, ok := parseKey(x.v.Type().Key(), name)
	if !ok {
		return nil
	}
	return writeUnder(x.g, func() { x.v.SetMapIndex(k, reflect.Value{}) })
}
