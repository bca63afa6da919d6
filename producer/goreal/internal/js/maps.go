package js

import (
	"reflect"

	"github.com/dop251/goja"

	"github.com/natscope/natscope/producer/goreal/internal/mirror"
)

// mapProto is the prototype of all Go maps: the reading methods of Map, so that
// maps of any key can be used and iterated.
func (e *Engine) mapProto() *goja.Object {
	if p := e.protos[mapType]; p != nil {
		return p
	}
	p := e.vm.CreateObject(e.objectProto)
	e.protos[mapType] = p
	def := func(name string, arity int, f func(x mirror.Value, c goja.FunctionCall) goja.Value) *goja.Object {
		fn := e.pureNative(name, arity, func(c goja.FunctionCall) goja.Value {
			if x := valueOf(c.This); x != nil && x.Reflect().Kind() == reflect.Map {
				return f(*x, c)
			}
			panic(e.vm.NewTypeError("%s was called on something that is no Go map", name))
		})
		hidden(p, name, fn)
		return fn
	}
	def("get", 1, func(x mirror.Value, c goja.FunctionCall) goja.Value {
		if v := e.lookup(x, c.Argument(0)); v != nil {
			return v
		}
		return goja.Undefined()
	})
	def("has", 1, func(x mirror.Value, c goja.FunctionCall) goja.Value {
		return e.vm.ToValue(e.lookup(x, c.Argument(0)) != nil)
	})
	key := func(p mirror.Pair) goja.Value { return e.wrap(p.Key) }
	val := func(p mirror.Pair) goja.Value { return e.wrap(p.Val) }
	both := func(p mirror.Pair) goja.Value { return e.vm.NewArray(key(p), val(p)) }
	def("keys", 0, func(x mirror.Value, _ goja.FunctionCall) goja.Value { return e.each(x, key) })
	def("values", 0, func(x mirror.Value, _ goja.FunctionCall) goja.Value { return e.each(x, val) })
	def("entries", 0, func(x mirror.Value, _ goja.FunctionCall) goja.Value { return e.each(x, both) })
	iterate := e.pureNative("[Symbol.iterator]", 0, func(c goja.FunctionCall) goja.Value {
		x := valueOf(c.This)
		if x == nil {
			panic(e.vm.NewTypeError("this is no Go map"))
		}
		list := e.each(*x, both).(*goja.Object)
		f, _ := goja.AssertFunction(list.GetSymbol(goja.SymIterator))
		return must(f(list))
	})
	_ = p.DefineDataPropertySymbol(goja.SymIterator, iterate, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	size := e.pureNative("size", 0, func(c goja.FunctionCall) goja.Value {
		if x := valueOf(c.This); x != nil {
			return e.vm.ToValue(x.Len())
		}
		return goja.Undefined()
	})
	_ = p.DefineAccessorProperty("size", size, nil, goja.FLAG_TRUE, goja.FLAG_FALSE)
	return p
}

// lookup reads the entry of a JavaScript key; nil if there is none.
func (e *Engine) lookup(x mirror.Value, key goja.Value) goja.Value {
	k, err := e.toGo(key, x.KeyType())
	if err != nil {
		return nil
	}
	return e.read(x.Lookup(k))
}

// each makes a list of something of all entries of a map.
func (e *Engine) each(x mirror.Value, f func(mirror.Pair) goja.Value) goja.Value {
	pairs, _, err := x.Pairs(maxKeys)
	if err != nil {
		panic(e.vm.NewGoError(err))
	}
	out := make([]any, len(pairs))
	for i, p := range pairs {
		out[i] = f(p)
	}
	return e.vm.NewArray(out...)
}
