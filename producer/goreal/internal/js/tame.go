package js

import "github.com/dop251/goja"

// maxTame is how many objects are looked at before one is given to a built-in function.
const maxTame = 5000

// tame refuses a value that could make a built-in function run something else:
// by an accessor, a proxy, or conversions and iterators of its own.
func (w *walker) tame(v goja.Value) {
	seen := make(map[*goja.Object]bool)
	w.tameObject(v, true, seen)
}

func (w *walker) tameObject(v goja.Value, outer bool, seen map[*goja.Object]bool) {
	o, ok := v.(*goja.Object)
	if !ok || seen[o] {
		return
	}
	w.step()
	if seen[o] = true; len(seen) > maxTame {
		w.refuse()
	}
	if valueOf(o) != nil {
		// Go values convert themselves, unless somebody changed their prototype.
		w.tamePrototypes(o.Prototype(), false)
		return
	}
	if _, proxy := inner(o).(goja.Proxy); proxy && !w.e.pure[o] && !w.e.constructors[o] {
		w.refuse()
	}
	if isFunction(o) {
		// One inside of an object is only called by the names that are looked at there.
		if outer && w.closures[o] == nil && !w.e.pure[o] && !w.e.constructors[o] {
			w.refuse()
		}
		return
	}
	if o.Prototype() == w.e.regexpProto && !w.fresh[o] {
		// Searching with it moves its lastIndex.
		w.refuse()
	}
	list := o.ClassName() == "Array"
	w.tameOwn(o, list, seen)
	w.tamePrototypes(o.Prototype(), list)
}

// tameOwn looks at an object's own properties.
func (w *walker) tameOwn(o *goja.Object, list bool, seen map[*goja.Object]bool) {
	keys, err := w.e.ownKeys(goja.Undefined(), o)
	if err != nil {
		panic(err)
	}
	ks := keys.(*goja.Object)
	n := int(ks.Get("length").ToInteger())
	if n > maxListed {
		w.refuse()
	}
	for i := range n {
		w.step()
		key := ks.Get(itoa(i))
		d := w.e.descriptorOf(o, key)
		if d == nil {
			continue
		}
		if g, ok := d.Get("get").(*goja.Object); ok && !w.e.pure[g] {
			w.refuse()
		}
		v := d.Get("value")
		if f, ok := v.(*goja.Object); ok && isFunction(f) {
			if isConversion(key, list) && !w.e.pure[f] && w.closures[f] == nil {
				w.refuse()
			}
			continue
		}
		if key.String() == "constructor" && list {
			w.refuse()
		}
		w.tameObject(v, false, seen)
	}
}

// isConversion reports whether built-in functions call what stands under a key.
func isConversion(key goja.Value, list bool) bool {
	if _, ok := key.(*goja.Symbol); ok {
		return true
	}
	switch key.String() {
	case "toString", "valueOf", "toJSON", "join", "then", "exec", "flags", "next":
		return true
	case "constructor":
		return list
	}
	return false
}

// tamePrototypes looks at the prototypes of an object: built-in ones must be as
// they were, others must not convert.
func (w *walker) tamePrototypes(p *goja.Object, list bool) {
	for n := 0; p != nil && n < 1000; p, n = p.Prototype(), n+1 {
		w.step()
		if w.checked[p] {
			continue
		}
		if _, proxy := inner(p).(goja.Proxy); proxy {
			w.refuse()
		}
		if was, builtin := w.e.pristine[p]; builtin {
			for k, v := range w.e.conversionsOf(p) {
				if v != was[k] && (v == nil || was[k] == nil || !v.StrictEquals(was[k])) {
					w.refuse()
				}
			}
			w.checked[p] = true
			continue
		}
		w.tameOwn(p, list, map[*goja.Object]bool{})
		w.checked[p] = true
	}
}

// primitive converts a value as the language does, if that is built in.
func (w *walker) primitive(v goja.Value, hint string) goja.Value {
	o, ok := v.(*goja.Object)
	if !ok {
		return v
	}
	w.tame(v)
	if f, ok := w.find(o, v, goja.SymToPrimitive); ok && !isNullish(f) {
		return w.converted(w.invoke(f, v, []goja.Value{w.e.vm.ToValue(hint)}))
	}
	names := []string{"valueOf", "toString"}
	if hint == "string" {
		names = []string{"toString", "valueOf"}
	}
	for _, n := range names {
		if f, ok := w.find(o, v, w.e.vm.ToValue(n)); ok && isFunction(f) {
			if p := w.invoke(f, v, nil); !isObject(p) {
				return p
			}
		}
	}
	panic(w.e.vm.NewTypeError("Cannot convert object to primitive value"))
}

func isObject(v goja.Value) bool { _, ok := v.(*goja.Object); return ok }

func (w *walker) converted(v goja.Value) goja.Value {
	if isObject(v) {
		panic(w.e.vm.NewTypeError("Cannot convert object to primitive value"))
	}
	return v
}
