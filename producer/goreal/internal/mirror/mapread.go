package mirror

import (
	"fmt"
	"math"
	"reflect"
	"sort"
	"strconv"
)

// pair is one entry of a map as it was read.
type pair struct{ key, val slot }

// Pair is one entry of a map.
type Pair struct{ Key, Val Value }

// Readable reports whether a map may be read: something has to guard it.
func (x Value) Readable() bool { return x.g != nil || x.v.Kind() != reflect.Map }

// unguarded is the error of a map that nothing guards.
func (x Value) unguarded() error {
	return fmt.Errorf("%w: %s(%d) was not read, since a write at the same time would end the process. Expose the value it belongs to with a guard (Locked, OnExecutor, Snapshot), or give its struct the mutex that guards it", ErrUnguarded, typeName(x.v.Type()), x.Len())
}

// Len is the length of a list, map or channel; 0 if its guard does not let it be read.
func (x Value) Len() (n int) {
	if x.size >= 0 {
		return x.size
	}
	if !x.v.IsValid() {
		return 0
	}
	switch v := deref(x.v); v.Kind() {
	case reflect.Slice, reflect.Map:
		if x.v.Kind() == reflect.Slice {
			return x.v.Len()
		}
		_ = read(x.g, func() { n = v.Len() })
		return n
	case reflect.Array, reflect.Chan, reflect.String:
		return v.Len()
	}
	return 0
}

// pairs reads up to limit entries of a map in the order of their keys, and how many there are.
func (x Value) pairs(limit int) (out []pair, total int, err error) {
	if elem(x.v.Type()) == syncMapType {
		out, total = syncMapEntries(x.v, limit)
		return out, total, nil
	}
	if x.v.IsNil() {
		return nil, 0, nil
	}
	if !x.Readable() {
		return nil, 0, x.unguarded()
	}
	err = read(x.g, func() {
		total = x.v.Len()
		out = make([]pair, 0, min(total, limit))
		for it := x.v.MapRange(); len(out) < limit && it.Next(); {
			out = append(out, pair{take(it.Key()), take(it.Value())})
		}
	})
	sortPairs(out)
	return out, total, err
}

// Pairs reads up to limit entries in the order of their keys, and how many there are.
func (x Value) Pairs(limit int) ([]Pair, int, error) {
	ps, total, err := x.pairs(limit)
	out := make([]Pair, len(ps))
	for i, p := range ps {
		out[i] = Pair{p.key.under(x.g), p.val.under(x.g)}
	}
	return out, total, err
}

func sortPairs(ps []pair) {
	sort.SliceStable(ps, func(i, j int) bool { return lessKey(ps[i].key.v, ps[j].key.v) })
}

func lessKey(a, b reflect.Value) bool {
	if a.IsValid() && b.IsValid() && a.Kind() == b.Kind() {
		switch a.Kind() {
		case reflect.String:
			return a.String() < b.String()
		case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
			return a.Int() < b.Int()
		case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
			return a.Uint() < b.Uint()
		case reflect.Float32, reflect.Float64:
			return a.Float() < b.Float()
		}
	}
	return keyText(a) < keyText(b)
}

// keyText is the name under which an entry of a map is shown.
func keyText(k reflect.Value) string {
	k = enter(k)
	if !k.IsValid() {
		return "nil"
	}
	switch k.Kind() {
	case reflect.String:
		return k.String()
	case reflect.Bool:
		return strconv.FormatBool(k.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(k.Int(), 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return strconv.FormatUint(k.Uint(), 10)
	case reflect.Float32, reflect.Float64:
		return strconv.FormatFloat(k.Float(), 'g', -1, 64)
	case reflect.Pointer, reflect.Chan, reflect.UnsafePointer:
		return fmt.Sprintf("(%s)(0x%x)", typeName(k.Type()), k.Pointer())
	}
	return Value{v: k, size: -1}.brief(2)
}

// KeyText is the name under which an entry is shown whose key is the value.
func (x Value) KeyText() string { return keyText(x.v) }

// plainKeys reports whether keys of a type read well as names of properties.
func plainKeys(t reflect.Type) bool {
	return isScalar(t.Kind()) && t.Kind() != reflect.Float32 && t.Kind() != reflect.Float64
}

// PlainKeys reports whether the entries of the map are its properties.
func (x Value) PlainKeys() bool { return x.v.Kind() == reflect.Map && plainKeys(x.v.Type().Key()) }

// parseKey makes a key of a property's name; false if the map cannot have such a key.
func parseKey(t reflect.Type, name string) (reflect.Value, bool) {
	k := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.String:
		k.SetString(name)
		return k, true
	case reflect.Bool:
		k.SetBool(name == "true")
		return k, name == "true" || name == "false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		i, err := strconv.ParseInt(name, 10, 64)
		if err != nil || k.OverflowInt(i) {
			return k, false
		}
		k.SetInt(i)
		return k, true
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		u, err := strconv.ParseUint(name, 10, 64)
		if err != nil || k.OverflowUint(u) {
			return k, false
		}
		k.SetUint(u)
		return k, true
	case reflect.Float32, reflect.Float64:
		f, err := strconv.ParseFloat(name, 64)
		if err != nil || math.IsNaN(f) {
			return k, false
		}
		k.SetFloat(f)
		return k, true
	}
	return k, false
}

// Lookup reads the entry of a key; false if there is none.
func (x Value) Lookup(key reflect.Value) (Value, bool, error) {
	if !x.Readable() {
		return Value{}, false, x.unguarded()
	}
	if x.v.IsNil() || !hashable(key) {
		return Value{}, false, nil
	}
	var s slot
	found := false
	err := read(x.g, func() {
		if e := x.v.MapIndex(key); e.IsValid() {
			s, found = take(e), true
		}
	})
	return s.under(x.g), found && err == nil, err
}

// hashable reports whether a key can be looked up: one that holds a slice, say, cannot.
func hashable(k reflect.Value) bool { return k.IsValid() && k.Comparable() }

// KeyType is the type of the keys of a map.
func (x Value) KeyType() reflect.Type { return x.v.Type().Key() }
