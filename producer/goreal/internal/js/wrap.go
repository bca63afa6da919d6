package js

import (
	"errors"
	"math/big"
	"reflect"
	"runtime"
	"sync"
	"weak"

	"github.com/dop251/goja"

	"github.com/natscope/natscope/producer/goreal/internal/mirror"
	"github.com/natscope/natscope/producer/goreal/internal/remote"
)

// goObject is what stands behind the object of a struct, map, pointer or channel.
type goObject struct {
	e *Engine
	x mirror.Value
}

// goList is what stands behind the object of a slice or an array.
type goList struct {
	e *Engine
	x mirror.Value
}

var (
	objectType  = reflect.TypeFor[*goObject]()
	listType    = reflect.TypeFor[*goList]()
	promiseType = reflect.TypeFor[*goja.Promise]()
	proxyType   = reflect.TypeFor[goja.Proxy]()
	bufferType  = reflect.TypeFor[goja.ArrayBuffer]()
	gojaValue   = reflect.TypeFor[goja.Value]()
)

// valueOf returns the Go value that an object stands for; nil for JavaScript's
// own. Asking for the type first matters: to export a plain object would copy it
// and run its getters.
func valueOf(v goja.Value) *mirror.Value {
	o, ok := v.(*goja.Object)
	if !ok {
		return nil
	}
	switch o.ExportType() {
	case objectType:
		return &o.Export().(*goObject).x
	case listType:
		return &o.Export().(*goList).x
	}
	return nil
}

// inner is what the engine itself keeps in an object: a promise, a proxy or a buffer; nil for others.
func inner(o *goja.Object) any {
	switch o.ExportType() {
	case promiseType, proxyType, bufferType:
		return o.Export()
	}
	return nil
}

// wrap makes a JavaScript value of a Go value: scalars by value, everything else live.
func (e *Engine) wrap(x mirror.Value) goja.Value {
	switch x.Kind() {
	case mirror.KindNull:
		return goja.Null()
	case mirror.KindScalar:
		return e.scalar(x)
	case mirror.KindFunc:
		return e.wrapFunc(x)
	}
	if v := x.Reflect(); v.CanInterface() && v.Type().Implements(gojaValue) {
		// A JavaScript value that Go kept.
		return v.Interface().(goja.Value)
	}
	key, cached := x.Key()
	if cached {
		if o := e.wraps.get(key); o != nil {
			return o
		}
	}
	var o *goja.Object
	if x.Kind() == mirror.KindList {
		o = e.vm.NewDynamicArray(&goList{e, x})
	} else {
		o = e.vm.NewDynamicObject(&goObject{e, x})
	}
	_ = o.SetPrototype(e.protoOf(x))
	if cached {
		e.wraps.put(key, o)
	}
	return o
}

// scalar is a Go string, number or boolean in JavaScript.
func (e *Engine) scalar(x mirror.Value) goja.Value {
	v := x.Reflect()
	switch k := v.Kind(); {
	case x.IsSecret():
		return e.vm.ToValue(x.String())
	case k == reflect.Bool:
		return e.vm.ToValue(v.Bool())
	case k == reflect.String:
		return e.vm.ToValue(x.String())
	case v.CanInt():
		if i := v.Int(); i > remote.MaxSafe || i < -remote.MaxSafe {
			return e.vm.ToValue(big.NewInt(i))
		}
		return e.vm.ToValue(v.Int())
	case v.CanUint():
		if u := v.Uint(); u > remote.MaxSafe {
			return e.vm.ToValue(new(big.Int).SetUint64(u))
		}
		return e.vm.ToValue(int64(v.Uint()))
	}
	return e.vm.ToValue(v.Float())
}

// wrapCache finds the object of a Go value again, so that a.b === a.b. It holds
// objects weakly. Entries are removed by the garbage collector's own goroutine.
type wrapCache struct {
	mu sync.Mutex // guards m
	m  map[mirror.Key]weak.Pointer[goja.Object]
}

func (c *wrapCache) init() { c.m = make(map[mirror.Key]weak.Pointer[goja.Object]) }

func (c *wrapCache) get(k mirror.Key) *goja.Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.m[k].Value()
}

func (c *wrapCache) put(k mirror.Key, o *goja.Object) {
	p := weak.Make(o)
	c.mu.Lock()
	c.m[k] = p
	c.mu.Unlock()
	runtime.AddCleanup(o, c.drop, dropped{k, p})
}

type dropped struct {
	k mirror.Key
	p weak.Pointer[goja.Object]
}

// drop removes an entry unless another object took its place.
func (c *wrapCache) drop(d dropped) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m[d.k] == d.p {
		delete(c.m, d.k)
	}
}

func (c *wrapCache) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.m)
}

var errInterrupted = errors.New("the evaluation was told to end")

// goOn ends an evaluation that was told to end.
func (e *Engine) goOn() {
	if e.interrupted.Load() {
		panic(e.vm.NewGoError(errInterrupted))
	}
}

// read makes an exception of an error. Built-in functions look at no interrupt,
// but the values that they read do: each may wait for a lock.
func (e *Engine) read(v mirror.Value, ok bool, err error) goja.Value {
	e.goOn()
	if err != nil {
		panic(e.vm.NewGoError(err))
	}
	if !ok {
		return nil
	}
	return e.wrap(v)
}

// Get reads a property.
func (g *goObject) Get(key string) goja.Value { return g.e.read(g.x.Get(key)) }

// Set writes a property where that is allowed.
func (g *goObject) Set(key string, val goja.Value) bool { return g.e.assign(g.x, key, val) }

// Has reports whether there is a property.
func (g *goObject) Has(key string) bool {
	g.e.goOn()
	_, ok, err := g.x.Get(key)
	return ok || err != nil && g.x.Readable()
}

// Delete removes an entry of a map where that is allowed.
func (g *goObject) Delete(key string) bool {
	if !g.Has(key) {
		return true
	}
	g.e.mayWrite(g.x, key)
	if err := g.x.Delete(key); err != nil {
		panic(g.e.vm.NewGoError(err))
	}
	return true
}

// maxKeys is how many keys of one object JavaScript sees.
const maxKeys = 100_000

// Keys lists the properties.
func (g *goObject) Keys() []string {
	g.e.goOn()
	ks, err := g.x.Names(maxKeys)
	if err != nil {
		panic(g.e.vm.NewGoError(err))
	}
	return ks
}

// Len is the length of the list.
func (g *goList) Len() int {
	g.e.goOn()
	return g.x.Len()
}

// Get reads an element.
func (g *goList) Get(i int) goja.Value {
	if v := g.e.read(g.x.At(i)); v != nil {
		return v
	}
	return goja.Undefined()
}

// Set writes an element where that is allowed.
func (g *goList) Set(i int, val goja.Value) bool { return g.e.assign(g.x, itoa(i), val) }

// SetLen refuses: Go lists do not grow from here.
func (g *goList) SetLen(int) bool { return false }

// mayWrite throws where nothing may be written.
func (e *Engine) mayWrite(x mirror.Value, key string) {
	if !e.o.Writable {
		panic(e.vm.NewTypeError("Go values are read-only here: the program did not set Writable in the options of its realm (%s.%s)", mirror.TypeName(x.Reflect().Type()), key))
	}
}

// assign writes a JavaScript value to a part of a Go value.
func (e *Engine) assign(x mirror.Value, key string, val goja.Value) bool {
	e.mayWrite(x, key)
	t := x.PlaceType(key)
	if t == nil {
		return false
	}
	v, err := e.toGo(val, t)
	if err == nil {
		err = x.Set(key, v)
	}
	if err != nil {
		panic(e.vm.NewGoError(err))
	}
	return true
}
