package js

import (
	"fmt"
	"math/big"
	"reflect"
	"time"

	"github.com/dop251/goja"
)

// toGo makes a Go value of a JavaScript value. Objects that stand for Go values
// give the very value; nothing is rounded, cut or parsed from a text unasked.
func (e *Engine) toGo(val goja.Value, t reflect.Type) (reflect.Value, error) {
	if val == nil {
		val = goja.Undefined()
	}
	if x := valueOf(val); x != nil {
		return assignable(x.Reflect(), t)
	}
	if o, ok := val.(*goja.Object); ok {
		if f := e.described(o); f != nil && f.x.Reflect().IsValid() && f.x.Reflect().Type().AssignableTo(t) {
			return f.x.Reflect(), nil
		}
		if t.Kind() == reflect.Func {
			if fn, ok := goja.AssertFunction(o); ok {
				return e.callback(fn, t), nil
			}
		}
	}
	if goja.IsUndefined(val) || goja.IsNull(val) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan, reflect.Interface, reflect.UnsafePointer:
			return reflect.Zero(t), nil
		}
		return reflect.Value{}, fmt.Errorf("cannot use %s as %s", val, t)
	}
	if t.Kind() == reflect.Pointer && t.Elem().Kind() != reflect.Struct {
		v, err := e.toGo(val, t.Elem())
		if err != nil {
			return v, err
		}
		p := reflect.New(t.Elem())
		p.Elem().Set(v)
		return p, nil
	}
	if v, ok, err := fromText(val, t); ok {
		return v, err
	}
	if err := strict(val, t); err != nil {
		return reflect.Value{}, err
	}
	p := reflect.New(t)
	if err := e.vm.ExportTo(val, p.Interface()); err != nil {
		return reflect.Value{}, fmt.Errorf("cannot use %s as %s: %w", val, t, err)
	}
	return p.Elem(), nil
}

// assignable finds how a Go value can be used as a type: itself, its pointer or what it points to.
func assignable(v reflect.Value, t reflect.Type) (reflect.Value, error) {
	switch {
	case v.Type().AssignableTo(t):
		return v, nil
	case v.CanAddr() && v.Addr().Type().AssignableTo(t):
		return v.Addr(), nil
	case v.Kind() == reflect.Pointer && !v.IsNil() && v.Type().Elem().AssignableTo(t):
		return v.Elem(), nil
	}
	return reflect.Value{}, fmt.Errorf("cannot use %s as %s", v.Type(), t)
}

// fromText makes the types of a text that people write as texts.
func fromText(val goja.Value, t reflect.Type) (reflect.Value, bool, error) {
	s, ok := val.Export().(string)
	if !ok {
		return reflect.Value{}, false, nil
	}
	switch {
	case t == reflect.TypeFor[time.Duration]():
		d, err := time.ParseDuration(s)
		return reflect.ValueOf(d), true, err
	case t == reflect.TypeFor[time.Time]():
		d, err := time.Parse(time.RFC3339Nano, s)
		return reflect.ValueOf(d), true, err
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return reflect.ValueOf([]byte(s)).Convert(t), true, nil
	}
	return reflect.Value{}, false, nil
}

// strict refuses what the engine would convert without a word: "x" to 0, 1.5 to 1, 300 to an int8.
func strict(val goja.Value, t reflect.Type) error {
	z := reflect.New(t).Elem()
	switch {
	case z.CanInt() || z.CanUint():
		return strictInt(val, z)
	case z.CanFloat():
		switch val.Export().(type) {
		case int64, float64:
			return nil
		}
	case t.Kind() == reflect.String:
		if _, ok := val.Export().(string); ok {
			return nil
		}
	case t.Kind() == reflect.Bool:
		if _, ok := val.Export().(bool); ok {
			return nil
		}
	default:
		return nil
	}
	return fmt.Errorf("cannot use %s as %s", val, t)
}

func strictInt(val goja.Value, z reflect.Value) error {
	var n *big.Int
	switch x := val.Export().(type) {
	case int64:
		n = big.NewInt(x)
	case *big.Int:
		n = x
	default:
		return fmt.Errorf("cannot use %s as %s", val, z.Type())
	}
	if z.CanInt() && n.IsInt64() && !z.OverflowInt(n.Int64()) || z.CanUint() && n.IsUint64() && !z.OverflowUint(n.Uint64()) {
		return nil
	}
	return fmt.Errorf("%s overflows %s", n, z.Type())
}
