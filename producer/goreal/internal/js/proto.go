package js

import (
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/dop251/goja"

	"github.com/natscope/natscope/producer/goreal/internal/mirror"
)

func itoa(i int) string { return strconv.Itoa(i) }

// methodSet is the type whose methods a value has: those of its pointer if it has a place.
func methodSet(v reflect.Value) reflect.Type {
	t := v.Type()
	if t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface && v.CanAddr() {
		return reflect.PointerTo(t)
	}
	return t
}

var errorType = reflect.TypeFor[error]()

// mapType stands for the prototype that all maps have in common.
var mapType = reflect.TypeFor[map[any]any]()

// protoOf returns the prototype of a type: its methods, below that of what it resembles.
func (e *Engine) protoOf(x mirror.Value) *goja.Object {
	v := x.Reflect()
	t := methodSet(v)
	if p := e.protos[t]; p != nil {
		return p
	}
	parent := e.objectProto
	switch {
	case v.Type().Implements(errorType):
		parent = e.errorProto
	case x.Kind() == mirror.KindList:
		parent = e.arrayProto
	case v.Kind() == reflect.Map:
		parent = e.mapProto()
	}
	p := e.vm.CreateObject(parent)
	e.protos[t] = p
	name := mirror.TypeName(v.Type())
	e.constructor(p, name)
	for i := range t.NumMethod() {
		e.method(p, t, t.Method(i))
	}
	e.conversions(p, v.Type())
	return p
}

// constructor gives a prototype a constructor, by which DevTools knows its name.
func (e *Engine) constructor(p *goja.Object, name string) {
	c := e.vm.ToValue(func(goja.FunctionCall) goja.Value {
		panic(e.vm.NewTypeError("%s cannot be made here", name))
	}).(*goja.Object)
	_ = c.DefineDataProperty("name", e.vm.ToValue(name), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	_ = c.DefineDataProperty("prototype", p, goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_FALSE)
	hidden(p, "constructor", c)
	_ = p.DefineDataPropertySymbol(goja.SymToStringTag, e.vm.ToValue(name), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE)
}

// method puts one Go method onto a prototype.
func (e *Engine) method(p *goja.Object, t reflect.Type, m reflect.Method) {
	f := mirror.MethodOf(t, m)
	fn := e.native(m.Name, f.Arity(), func(c goja.FunctionCall) goja.Value {
		x := valueOf(c.This)
		if x == nil {
			panic(e.vm.NewTypeError("the Go method %s was called on something that is no %s", m.Name, mirror.TypeName(t)))
		}
		recv := receiver(x.Reflect())
		mv := recv.MethodByName(m.Name)
		if !mv.IsValid() {
			panic(e.vm.NewTypeError("%s has no method %s", mirror.TypeName(recv.Type()), m.Name))
		}
		return e.call(mirror.TypeName(recv.Type())+"."+m.Name, mv, c.Arguments, x.Guard())
	})
	e.describe(fn, &goFunc{info: f})
	if isPureMethod(t, m.Name) {
		e.pure[fn] = true
	}
	hidden(p, m.Name, fn)
}

// receiver is the value on which methods are called: its pointer if it has a place.
func receiver(v reflect.Value) reflect.Value {
	if v.Kind() != reflect.Pointer && v.CanAddr() {
		return v.Addr()
	}
	return v
}

// native makes a function with a name.
func (e *Engine) native(name string, arity int, f func(goja.FunctionCall) goja.Value) *goja.Object {
	fn := e.vm.ToValue(f).(*goja.Object)
	_ = fn.DefineDataProperty("name", e.vm.ToValue(name), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	_ = fn.DefineDataProperty("length", e.vm.ToValue(arity), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	return fn
}

// pureNative is native for functions that change nothing.
func (e *Engine) pureNative(name string, arity int, f func(goja.FunctionCall) goja.Value) *goja.Object {
	fn := e.native(name, arity, f)
	e.pure[fn] = true
	return fn
}

// goFunc is the Go function behind a JavaScript function.
type goFunc struct {
	info mirror.Func
	// x is the function itself, if it is a value and no method.
	x mirror.Value
}

// describe remembers the Go function behind a function.
func (e *Engine) describe(fn *goja.Object, f *goFunc) {
	_ = fn.DefineDataPropertySymbol(e.fnSym, e.vm.ToValue(f), goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_FALSE)
}

// described returns what describe remembered; nil for other functions.
func (e *Engine) described(fn *goja.Object) *goFunc {
	if v := fn.GetSymbol(e.fnSym); v != nil {
		if f, ok := v.Export().(*goFunc); ok {
			return f
		}
	}
	return nil
}

// isPureMethod reports whether a method of the standard library reads only.
func isPureMethod(t reflect.Type, name string) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.PkgPath() {
	case "time":
		return (t.Name() == "Time" || t.Name() == "Duration" || t.Name() == "Location" || t.Name() == "Month" || t.Name() == "Weekday") && !mutates(name)
	case "sync/atomic":
		return name == "Load"
	case "net/netip", "net/url":
		return !mutates(name)
	}
	return false
}

func mutates(name string) bool {
	for _, p := range []string{"Set", "Unmarshal", "Gob", "UnmarshalText", "Scan"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// conversions defines how values of a type become texts, numbers and JSON.
func (e *Engine) conversions(p *goja.Object, t reflect.Type) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if isNumberLike(t) {
		fn := e.pureNative("[Symbol.toPrimitive]", 1, func(c goja.FunctionCall) goja.Value {
			x := valueOf(c.This)
			if x == nil {
				return goja.Undefined()
			}
			return e.primitive(*x, c.Argument(0).String())
		})
		_ = p.DefineDataPropertySymbol(goja.SymToPrimitive, fn, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	}
	if t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
		// They are lists: what Array has is right for them.
		return
	}
	hidden(p, "toString", e.pureNative("toString", 0, func(c goja.FunctionCall) goja.Value {
		if x := valueOf(c.This); x != nil {
			return e.vm.ToValue(x.Text())
		}
		return e.vm.ToValue("[object Object]")
	}))
	hidden(p, "toJSON", e.pureNative("toJSON", 0, func(c goja.FunctionCall) goja.Value {
		if x := valueOf(c.This); x != nil {
			return e.toJSON(c.This.(*goja.Object), *x)
		}
		return goja.Undefined()
	}))
}

// isNumberLike reports whether a type has a value that can be reckoned with.
func isNumberLike(t reflect.Type) bool {
	return t == reflect.TypeFor[time.Time]() || t == reflect.TypeFor[big.Int]() || t.PkgPath() == "sync/atomic"
}

// primitive is what a value is in a sum or a comparison.
func (e *Engine) primitive(x mirror.Value, hint string) goja.Value {
	if t, ok := x.Time(); ok {
		if hint == "number" {
			return e.vm.ToValue(t.UnixMilli())
		}
		return e.vm.ToValue(t.Format(time.RFC3339Nano))
	}
	if b, ok := x.Big(); ok {
		return e.vm.ToValue(b)
	}
	if v, ok, err := x.Get("value"); ok && err == nil && v.IsScalar() {
		return e.wrap(v)
	}
	return e.vm.ToValue(x.Text())
}

// toJSON is what JSON.stringify writes of a value.
func (e *Engine) toJSON(o *goja.Object, x mirror.Value) goja.Value {
	if t, ok := x.Time(); ok {
		return e.vm.ToValue(t.Format(time.RFC3339Nano))
	}
	if msg, ok := x.ErrorText(); ok {
		return e.vm.ToValue(msg)
	}
	switch k := x.Reflect().Kind(); k {
	case reflect.Chan, reflect.UnsafePointer, reflect.Complex64, reflect.Complex128:
		return e.vm.ToValue(x.Text())
	}
	if v, ok, err := x.Get("value"); ok && err == nil && x.IsAtomic() {
		return e.wrap(v)
	}
	return o
}
