package js

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/dop251/goja"

	"github.com/natscope/natscope/producer/goreal/internal/mirror"
	"github.com/natscope/natscope/producer/goreal/internal/remote"
)

// Value is a JavaScript value of an engine: an object of it that is shown, or a
// primitive. Its methods run on the engine's goroutine.
type Value struct {
	e *Engine
	v goja.Value
}

// object returns a value as the mirror's: a Go value where it stands for one.
func (e *Engine) object(v goja.Value) mirror.Object {
	if x := valueOf(v); x != nil {
		return *x
	}
	return Value{e, v}
}

// value is the reverse of object, for everything that the mirror shows.
func (e *Engine) value(o mirror.Object) goja.Value {
	switch x := o.(type) {
	case nil:
		return goja.Undefined()
	case Value:
		if x.v == nil || x.e != e {
			return goja.Undefined()
		}
		return x.v
	case mirror.Value:
		return e.wrap(x)
	case mirror.Entry:
		p := e.vm.NewObject()
		_ = p.Set("key", e.wrap(x.Key))
		_ = p.Set("value", e.wrap(x.Val))
		return p
	case mirror.Fragment:
		p := e.vm.NewObject()
		for i := x.From; i <= x.To && i-x.From < mirror.MaxProperties; i++ {
			if v, ok, err := x.List.At(i); ok && err == nil {
				_ = p.Set(itoa(i), e.wrap(v))
			}
		}
		return p
	case mirror.Refusal:
		return e.pureNative("read", 0, func(goja.FunctionCall) goja.Value { panic(e.vm.NewGoError(errors.New(x.Why))) })
	case interface{ All() []mirror.Entry }:
		var list []any
		for _, en := range x.All() {
			list = append(list, e.value(en))
		}
		return e.vm.NewArray(list...)
	}
	return goja.Undefined()
}

// OfEngine reports whether a value belongs to an engine, so that it must be read on its goroutine.
func OfEngine(o mirror.Object) bool { _, ok := o.(Value); return ok }

// Owned reports whether a value can be used with the engine: values of another engine cannot.
func (e *Engine) Owned(o mirror.Object) bool {
	v, ok := o.(Value)
	return !ok || v.e == e
}

// FromJSON makes a value of JSON.
func (e *Engine) FromJSON(data []byte) (out mirror.Object, err error) {
	err = e.protect(func() error {
		v, err := e.parse(goja.Undefined(), e.vm.ToValue(string(data)))
		out = e.object(v)
		return err
	})
	return out, err
}

// FromUnserializable makes a value of what JSON cannot carry.
func (e *Engine) FromUnserializable(s string) (mirror.Object, error) {
	switch s {
	case "NaN":
		return Value{e, goja.NaN()}, nil
	case "Infinity":
		return Value{e, goja.PositiveInf()}, nil
	case "-Infinity":
		return Value{e, goja.NegativeInf()}, nil
	case "-0":
		return Value{e, must(e.vm.RunString("-0"))}, nil
	}
	if digits, ok := strings.CutSuffix(s, "n"); ok {
		if b, ok := new(big.Int).SetString(digits, 10); ok {
			return Value{e, e.vm.ToValue(b)}, nil
		}
	}
	return nil, fmt.Errorf("%q is no value that JSON cannot carry", s)
}

// ByValue returns a value with all that is in it, as JSON.
func (e *Engine) ByValue(o mirror.Object) (out remote.Object, err error) {
	v := e.value(o)
	if _, ok := v.(*goja.Object); !ok {
		return Value{e, v}.Remote(nil, false), nil
	}
	err = e.protect(func() error {
		s, err := e.stringify(goja.Undefined(), v)
		if err != nil {
			return err
		}
		out = remote.Object{Type: "object", Value: json.RawMessage("{}")}
		if !goja.IsUndefined(s) {
			out.Value = json.RawMessage(s.String())
		}
		if len(out.Value) > maxByValue {
			return fmt.Errorf("the value has %d bytes as JSON, at most %d are sent", len(out.Value), maxByValue)
		}
		if _, ok := goja.AssertFunction(v); ok {
			out.Type = "function"
		}
		return nil
	})
	return out, err
}

// maxByValue is how many bytes of JSON one value becomes.
const maxByValue = 32 << 20

// primitive is the remote object of a value that is no object; false for objects.
func primitive(v goja.Value) (remote.Object, bool) {
	switch {
	case v == nil || goja.IsUndefined(v):
		return remote.Undefined(), true
	case goja.IsNull(v):
		return remote.Null("null"), true
	}
	if _, ok := v.(*goja.Object); ok {
		return remote.Object{}, false
	}
	if _, ok := v.(*goja.Symbol); ok {
		return remote.Object{}, false
	}
	switch x := v.Export().(type) {
	case bool:
		return remote.Bool(x), true
	case string:
		return remote.String(x), true
	case int64:
		return remote.Int(x), true
	case float64:
		o := remote.Float(x)
		o.Description = v.String()
		if x == 0 && o.UnserializableValue == "-0" {
			o.Description = "-0"
		}
		return o, true
	case *big.Int:
		return remote.Big(x.String()), true
	}
	return remote.Object{Type: "object", Description: v.String()}, true
}

func symbolText(s *goja.Symbol) string {
	return "Symbol(" + strings.TrimSuffix(strings.TrimPrefix(s.String(), "Symbol("), ")") + ")"
}

// Remote returns the value as DevTools shows it.
func (x Value) Remote(l *mirror.Lens, preview bool) remote.Object {
	if o, ok := primitive(x.v); ok {
		return o
	}
	bound := ""
	if l != nil && l.Bind != nil {
		bound = l.Bind(x)
	}
	if s, ok := x.v.(*goja.Symbol); ok {
		return remote.Object{Type: "symbol", Description: symbolText(s), ObjectID: bound}
	}
	o := x.v.(*goja.Object)
	if text, ok := x.e.functionText(o); ok {
		return remote.Object{Type: "function", ClassName: "Function", Description: text, ObjectID: bound}
	}
	c := x.e.classify(o)
	out := remote.Object{Type: "object", Subtype: c.subtype, ClassName: c.name, Description: remote.Cut(c.text, 10<<10), ObjectID: bound}
	if preview && c.subtype != "error" && c.subtype != "date" && c.subtype != "regexp" {
		out.Preview = x.e.preview(o)
	}
	return out
}

// functionText describes a function; false for everything else.
func (e *Engine) functionText(o *goja.Object) (string, bool) {
	if _, ok := goja.AssertFunction(o); !ok {
		return "", false
	}
	if _, proxy := inner(o).(goja.Proxy); !proxy {
		if f := e.described(o); f != nil {
			return f.info.Text(), true
		}
	}
	s, err := e.fnSource(goja.Undefined(), o)
	if err != nil {
		return "function () { [native code] }", true
	}
	return remote.Cut(s.String(), 100<<10), true
}

// TypeOf returns the Go type whose prototype or constructor a value is.
func (e *Engine) TypeOf(o mirror.Object) (mirror.Type, bool) {
	v := e.value(o)
	for t, p := range e.protos {
		if t == mapType {
			continue
		}
		if v == goja.Value(p) || v == p.Get("constructor") {
			return t, true
		}
	}
	return nil, false
}

// List makes an array of Go values.
func (e *Engine) List(items []mirror.Value) mirror.Object {
	list := make([]any, len(items))
	for i, x := range items {
		list[i] = e.wrap(x)
	}
	return Value{e, e.vm.NewArray(list...)}
}
