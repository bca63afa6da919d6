package js

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/dop251/goja"

	"github.com/natscope/natscope/producer/goreal/internal/mirror"
)

var contextType = reflect.TypeFor[context.Context]()

// wrapFunc makes a JavaScript function of a Go function.
func (e *Engine) wrapFunc(x mirror.Value) goja.Value {
	key, cached := x.Key()
	if cached {
		if o := e.wraps.get(key); o != nil {
			return o
		}
	}
	f := mirror.FuncOf(x.Reflect())
	fn := e.native(f.Name, f.Arity(), func(c goja.FunctionCall) goja.Value {
		return e.call(f.Name, x.Reflect(), c.Arguments, x.Guard())
	})
	e.describe(fn, &goFunc{f, x})
	if cached {
		e.wraps.put(key, fn)
	}
	return fn
}

// outcome is how a Go function ended.
type outcome struct {
	out []reflect.Value
	// panicked is what it panicked with, and stack where.
	panicked any
	stack    string
}

// callbackJob is a JavaScript function that Go called while JavaScript waits for Go.
type callbackJob struct {
	run  func()
	done chan struct{}
}

// call calls a Go function and waits for it: on a goroutine of its own, so that
// one that does not return can be left alone. A context that is missing is
// supplied, and ends with the call. Panics become exceptions.
func (e *Engine) call(name string, fn reflect.Value, args []goja.Value, g mirror.Guard) goja.Value {
	ctx, cancel := context.WithTimeout(context.Background(), e.o.CallTimeout)
	defer cancel()
	in, err := e.arguments(ctx, name, fn.Type(), args)
	if err != nil {
		panic(e.vm.NewTypeError("%s", err.Error()))
	}
	abort := make(chan struct{})
	e.abortMu.Lock()
	e.abort = abort
	e.abortMu.Unlock()
	c := &callbacks{jobs: make(chan callbackJob), over: make(chan struct{})}
	outer := e.calling
	e.calling = c
	defer func() {
		close(c.over)
		e.calling = outer
		e.abortMu.Lock()
		if e.abort == abort {
			e.abort = nil
		}
		e.abortMu.Unlock()
	}()
	e.callingNow.Store(c)
	defer e.callingNow.Store(outer)
	done := make(chan outcome, 1)
	go invoke(fn, in, done)
	for {
		select {
		case o := <-done:
			return e.results(fn.Type(), o, g)
		case j := <-c.jobs:
			j.run()
			close(j.done)
		case <-abort:
			panic(e.vm.NewGoError(fmt.Errorf("the call of %s was left alone: it may still run", name)))
		case <-ctx.Done():
			panic(e.vm.NewGoError(fmt.Errorf("%s did not return in %s and was left alone: it may still run", name, e.o.CallTimeout)))
		}
	}
}

// invoke runs a Go function and tells how it ended, also when it ends its goroutine.
func invoke(fn reflect.Value, in []reflect.Value, done chan<- outcome) {
	debug.SetPanicOnFault(true)
	var o outcome
	returned := false
	defer func() {
		if !returned {
			if o.panicked = recover(); o.panicked == nil {
				o.panicked = "the function ended its goroutine"
			}
			buf := make([]byte, 16<<10)
			o.stack = string(buf[:runtime.Stack(buf, false)])
		}
		done <- o
	}()
	o.out = fn.Call(in)
	returned = true
}

// arguments makes the arguments of a call.
func (e *Engine) arguments(ctx context.Context, name string, t reflect.Type, args []goja.Value) (in []reflect.Value, err error) {
	next := 0
	for i := range t.NumIn() {
		p := t.In(i)
		if t.IsVariadic() && i == t.NumIn()-1 {
			for ; next < len(args); next++ {
				v, err := e.toGo(args[next], p.Elem())
				if err != nil {
					return nil, fmt.Errorf("argument %d: %w", next+1, err)
				}
				in = append(in, v)
			}
			break
		}
		if p == contextType && !e.isContext(args, next) {
			if next < len(args) && (goja.IsUndefined(args[next]) || goja.IsNull(args[next])) {
				next++
			}
			in = append(in, reflect.ValueOf(ctx))
			continue
		}
		if next >= len(args) {
			return nil, fmt.Errorf("%s takes more arguments: it is a %s", name, t)
		}
		v, err := e.toGo(args[next], p)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", next+1, err)
		}
		in = append(in, v)
		next++
	}
	return in, nil
}

// isContext reports whether an argument is a context of the program.
func (e *Engine) isContext(args []goja.Value, i int) bool {
	if i >= len(args) {
		return false
	}
	x := valueOf(args[i])
	return x != nil && x.Reflect().Type().Implements(contextType)
}

// results makes a JavaScript value of what a Go function returned: a last error
// that is not nil is thrown, several results are an array.
func (e *Engine) results(t reflect.Type, o outcome, g mirror.Guard) goja.Value {
	if o.panicked != nil {
		x := e.vm.NewGoError(fmt.Errorf("panic: %v", o.panicked))
		_ = x.Set("goStack", o.stack)
		panic(x)
	}
	out := o.out
	if n := len(out); n > 0 && t.Out(n-1) == errorType {
		if !out[n-1].IsNil() {
			panic(e.wrap(mirror.OfReflect(out[n-1], nil)))
		}
		out = out[:n-1]
	}
	switch len(out) {
	case 0:
		return goja.Undefined()
	case 1:
		return e.wrap(mirror.OfReflect(out[0], g))
	}
	list := make([]any, len(out))
	for i, v := range out {
		list[i] = e.wrap(mirror.OfReflect(v, g))
	}
	return e.vm.NewArray(list...)
}

// callbacks brings JavaScript functions that Go calls to the engine's goroutine
// while that waits for Go.
type callbacks struct {
	jobs chan callbackJob
	// over is closed when nobody waits any more.
	over chan struct{}
}

var errLate = errors.New("a JavaScript function was called after its engine was gone")

// callback makes a Go function of a JavaScript function. Go may call it from any
// goroutine, and later too: it always runs where the engine runs. It gives zero
// values when it throws, since a panic could end the program; the exception is shown.
func (e *Engine) callback(fn goja.Callable, t reflect.Type) reflect.Value {
	return reflect.MakeFunc(t, func(args []reflect.Value) []reflect.Value {
		out := make([]reflect.Value, t.NumOut())
		for i := range out {
			out[i] = reflect.Zero(t.Out(i))
		}
		err := e.onEngine(func() error { return e.protect(func() error { return e.runCallback(fn, t, args, out) }) })
		if n := len(out); err != nil && n > 0 && t.Out(n-1) == errorType {
			out[n-1] = reflect.ValueOf(&err).Elem()
		}
		return out
	})
}

// runCallback runs a callback on the engine's goroutine.
func (e *Engine) runCallback(fn goja.Callable, t reflect.Type, args, out []reflect.Value) error {
	in := make([]goja.Value, 0, len(args))
	for i, a := range args {
		if t.IsVariadic() && i == len(args)-1 {
			for j := range a.Len() {
				in = append(in, e.wrap(mirror.OfReflect(a.Index(j), nil)))
			}
			break
		}
		in = append(in, e.wrap(mirror.OfReflect(a, nil)))
	}
	v, err := fn(goja.Undefined(), in...)
	if err != nil {
		e.host.Uncaught(err)
		return err
	}
	if len(out) > 0 && t.Out(0) != errorType {
		r, err := e.toGo(v, t.Out(0))
		if err != nil {
			return fmt.Errorf("the function's result: %w", err)
		}
		out[0] = r
	}
	return nil
}

// callbackPatience is how long a function of the program waits for the engine.
const callbackPatience = 5 * time.Second

// onEngine runs f where the engine runs and waits for it.
func (e *Engine) onEngine(f func() error) error {
	if e.closed.Load() {
		return errLate
	}
	result := make(chan error, 1)
	run := func() { result <- f() }
	if c := e.callingNow.Load(); c != nil {
		j := callbackJob{run, make(chan struct{})}
		select {
		case c.jobs <- j:
			<-j.done
			return <-result
		case <-c.over:
		}
	}
	if !e.host.Post(run) {
		return errLate
	}
	t := time.NewTimer(callbackPatience)
	defer t.Stop()
	select {
	case err := <-result:
		return err
	case <-t.C:
		return fmt.Errorf("the console was busy for %s", callbackPatience)
	}
}
