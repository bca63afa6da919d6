package js

import (
	_ "embed"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"

	"github.com/natscope/natscope/producer/goreal/internal/mirror"
	"github.com/natscope/natscope/producer/goreal/internal/remote"
	"github.com/natscope/natscope/producer/goreal/internal/repl"
)

// Host is what an engine needs of its owner. Post may be called from any
// goroutine, the others are called on the engine's.
type Host interface {
	// Post runs a job on the engine's goroutine later; false if it never will.
	Post(job func()) bool
	// Console is called for each call of a console method. typ is CDP's name of it.
	Console(typ string, args []mirror.Object, stack []remote.Frame)
	// Uncaught is called for an exception that nobody waits for.
	Uncaught(err error)
	// Inspect shows a value to the session that evaluates; hints is CDP's object.
	Inspect(v mirror.Object, hints string)
	// Inspected returns the n-th node that was looked at last; false if there is none.
	Inspected(n int) (mirror.Object, bool)
	// LastResult returns what the session evaluated before; nil for nothing.
	LastResult() mirror.Object
	// Script returns the script of a file or of an evaluation.
	Script(name string) (id, url string, ok bool)
}

// Options bound an engine.
type Options struct {
	// Writable lets JavaScript assign to Go values.
	Writable bool
	// CallTimeout is how long a Go function may run before it is left alone.
	CallTimeout time.Duration
}

// Engine is one JavaScript runtime.
type Engine struct {
	vm   *goja.Runtime
	host Host
	o    Options
	intrinsics
	wraps  wrapCache
	protos map[reflect.Type]*goja.Object
	purity
	// lexical are the names that inputs declared with let, const and class, in order.
	lexical    []string
	known      map[string]bool
	timers     map[int]*time.Timer
	timerID    int
	exceptions int

	// abort is closed to leave a running Go call alone; guarded by abortMu.
	abortMu sync.Mutex
	abort   chan struct{}
	// calling is what waits for a Go function, as the engine sees it; callingNow the same for others.
	calling    *callbacks
	callingNow atomic.Pointer[callbacks]
	// closed says that late callbacks must not run, interrupted that what runs has to end.
	closed, interrupted atomic.Bool
}

// intrinsics are functions of the runtime, taken before anybody could replace them.
type intrinsics struct {
	ownKeys, descriptor, fnSource, mapEntries, setValues, brand, stringify, parse goja.Callable
	objectProto, arrayProto, errorProto                                           *goja.Object
	fnSym                                                                         *goja.Symbol
}

// maxCalls is how deep JavaScript functions may call one another.
const maxCalls = 2000

// New makes an engine. It takes a few milliseconds and about half a megabyte.
func New(host Host, o Options) *Engine {
	if o.CallTimeout <= 0 {
		o.CallTimeout = 10 * time.Second
	}
	e := &Engine{vm: goja.New(), host: host, o: o, protos: make(map[reflect.Type]*goja.Object),
		known: make(map[string]bool), timers: make(map[int]*time.Timer)}
	e.pure = make(map[*goja.Object]bool)
	e.wraps.init()
	e.vm.SetMaxCallStackSize(maxCalls)
	e.vm.SetParserOptions(parser.WithDisableSourceMaps)
	e.initIntrinsics()
	e.initConsole()
	e.initCommandLine()
	e.initPure()
	return e
}

// Close stops the timers; nothing of the engine runs after it.
func (e *Engine) Close() {
	e.closed.Store(true)
	for id := range e.timers {
		e.clearTimer(id)
	}
}

//go:embed prelude.js
var prelude string

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// function compiles a function of the engine's own.
func (e *Engine) function(src string) goja.Callable {
	f, ok := goja.AssertFunction(must(e.vm.RunScript("natscope:internal", "("+src+")")))
	if !ok {
		panic("js: not a function: " + src)
	}
	return f
}

func (e *Engine) initIntrinsics() {
	e.ownKeys = e.function("Reflect.ownKeys")
	e.descriptor = e.function("Reflect.getOwnPropertyDescriptor")
	e.fnSource = e.function("(f=>t=>f.call(t))(Function.prototype.toString)")
	e.mapEntries = e.function("((e,a)=>m=>a.call(Array,e.call(m)))(Map.prototype.entries,Array.from)")
	e.setValues = e.function("((e,a)=>m=>a.call(Array,e.call(m)))(Set.prototype.values,Array.from)")
	e.parse = e.function("JSON.parse")
	// By internal slots, so that a made-up Symbol.toStringTag deceives nobody.
	e.brand = e.function(`(()=>{
		const getter=(P,k)=>Object.getOwnPropertyDescriptor(P,k).get, call=Function.prototype.call.bind(Function.prototype.call);
		const checks=[['Map',getter(Map.prototype,'size')],['Set',getter(Set.prototype,'size')],['WeakMap',WeakMap.prototype.has],['WeakSet',WeakSet.prototype.has]];
		return o=>{for(const [n,f] of checks){try{call(f,o,{});return n}catch{}}return ''}})()`)
	object := func(src string) *goja.Object { return must(e.vm.RunString(src)).(*goja.Object) }
	e.objectProto, e.arrayProto, e.errorProto = object("Object.prototype"), object("Array.prototype"), object("Error.prototype")
	e.fnSym = goja.NewSymbol("natscope.func")
	setup := e.function(prelude)
	must(setup(goja.Undefined(), e.vm.ToValue(func(v goja.Value) bool { return valueOf(v) != nil }), e.vm.ToValue(e.checkSource)))
	e.stringify = e.function("JSON.stringify")
	e.fenceArrays()
}

// checkSource throws for a text that would be too deep for a parser.
func (e *Engine) checkSource(src string) {
	if err := repl.CheckDepth(src); err != nil {
		panic(e.rangeError(err.Error()))
	}
}

func (e *Engine) rangeError(message string) *goja.Object {
	o, err := e.vm.New(e.vm.Get("RangeError"), e.vm.ToValue(message))
	if err != nil {
		return e.vm.NewGoError(errors.New(message))
	}
	return o
}

// fenceArrays makes DevTools count the elements of Go lists, as it does those of
// typed arrays, instead of listing their keys.
func (e *Engine) fenceArrays() {
	ab := e.vm.Get("ArrayBuffer").ToObject(e.vm)
	isView, _ := goja.AssertFunction(ab.Get("isView"))
	hidden(ab, "isView", e.vm.ToValue(func(c goja.FunctionCall) goja.Value {
		if x := valueOf(c.Argument(0)); x != nil {
			return e.vm.ToValue(x.Kind() == mirror.KindList)
		}
		return must(isView(c.This, c.Arguments...))
	}))
}

// hidden defines a property that is not enumerated.
func hidden(o *goja.Object, name string, v goja.Value) {
	_ = o.DefineDataProperty(name, v, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
}

// Expose makes a Go value a global.
func (e *Engine) Expose(name string, v mirror.Value) {
	_ = e.vm.GlobalObject().DefineDataProperty(name, e.wrap(v), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
}

// ExposeFunc makes a global whose value a function tells each time anew. get must change nothing.
func (e *Engine) ExposeFunc(name string, get func() (mirror.Value, error)) {
	getter := e.vm.ToValue(func(goja.FunctionCall) goja.Value {
		v, err := get()
		if err != nil {
			panic(e.vm.NewGoError(err))
		}
		return e.wrap(v)
	}).(*goja.Object)
	e.pure[getter] = true
	// An assignment replaces it, as it does with every other global.
	setter := e.vm.ToValue(func(c goja.FunctionCall) goja.Value {
		_ = e.vm.GlobalObject().DefineDataProperty(name, c.Argument(0), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
		return goja.Undefined()
	})
	_ = e.vm.GlobalObject().DefineAccessorProperty(name, getter, setter, goja.FLAG_TRUE, goja.FLAG_TRUE)
}

// Interrupt ends what runs, as soon as JavaScript runs again.
func (e *Engine) Interrupt(reason string) {
	e.interrupted.Store(true)
	e.vm.Interrupt(reason)
	e.Abort()
}

// ClearInterrupt makes the engine ready again. Nobody may call Interrupt meanwhile.
func (e *Engine) ClearInterrupt() {
	e.interrupted.Store(false)
	e.vm.ClearInterrupt()
}

// Abort leaves the Go function alone that JavaScript waits for, if any.
func (e *Engine) Abort() {
	e.abortMu.Lock()
	defer e.abortMu.Unlock()
	if e.abort != nil {
		close(e.abort)
		e.abort = nil
	}
}

// Check parses console input. The error is a *repl.SyntaxError.
func (e *Engine) Check(src string) error { _, err := repl.Rewrite(src); return err }

// Run evaluates a source. name is that of its script. As console input it may
// declare names again and await; await tells that the result is what Await gives of out.
func (e *Engine) Run(name, src string, console bool) (out mirror.Object, await bool, err error) {
	s := repl.Source{Code: src}
	if console {
		if s, err = repl.Rewrite(src); err != nil {
			return nil, false, err
		}
	} else if err := repl.CheckDepth(src); err != nil {
		return nil, false, &repl.SyntaxError{Message: err.Error(), Line: 1, Column: 1}
	}
	var v goja.Value
	err = e.protect(func() (err error) {
		v, err = e.vm.RunScript(name, s.Code)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	for _, n := range s.Names {
		if !e.known[n] {
			e.known[n] = true
			e.lexical = append(e.lexical, n)
		}
	}
	return e.object(v), s.Await, nil
}

// Names lists what inputs declared with let, const and class.
func (e *Engine) Names() []string { return e.lexical }

// protect runs f and makes an error of every panic in it.
func (e *Engine) protect(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			switch x := p.(type) {
			case error:
				err = x
			case goja.Value:
				err = &thrown{value: x}
			default:
				err = fmt.Errorf("the engine failed: %v", p)
			}
		}
	}()
	if x := e.vm.Try(func() { err = f() }); x != nil {
		return x
	}
	return err
}

// Call calls a function given by its source.
func (e *Engine) Call(fn string, this mirror.Object, args []mirror.Object) (out mirror.Object, err error) {
	if err := repl.CheckDepth(fn); err != nil {
		return nil, &repl.SyntaxError{Message: err.Error(), Line: 1, Column: 1}
	}
	var v goja.Value
	err = e.protect(func() error {
		f, err := e.vm.RunScript("natscope:call", "("+fn+"\n)")
		if err != nil {
			return err
		}
		call, ok := goja.AssertFunction(f)
		if !ok {
			return errors.New("the given expression does not evaluate to a function")
		}
		in := make([]goja.Value, len(args))
		for i, a := range args {
			in[i] = e.value(a)
		}
		v, err = call(e.value(this), in...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return e.object(v), nil
}

// Await calls done with what a promise gives, at once if that is known, and with
// v itself if it is no promise.
func (e *Engine) Await(v mirror.Object, done func(mirror.Object, error)) {
	o, ok := e.value(v).(*goja.Object)
	p, isPromise := (*goja.Promise)(nil), false
	if ok {
		p, isPromise = inner(o).(*goja.Promise)
	}
	if !isPromise {
		done(v, nil)
		return
	}
	switch p.State() {
	case goja.PromiseStateFulfilled:
		done(e.object(p.Result()), nil)
		return
	case goja.PromiseStateRejected:
		done(nil, &thrown{value: p.Result(), promise: true})
		return
	}
	err := e.protect(func() error {
		then, ok := goja.AssertFunction(o.Get("then"))
		if !ok {
			return errors.New("the promise has no then")
		}
		_, err := then(o, e.vm.ToValue(func(c goja.FunctionCall) goja.Value {
			done(e.object(c.Argument(0)), nil)
			return goja.Undefined()
		}), e.vm.ToValue(func(c goja.FunctionCall) goja.Value {
			done(nil, &thrown{value: c.Argument(0), promise: true})
			return goja.Undefined()
		}))
		return err
	})
	if err != nil {
		done(nil, err)
	}
}

// Unbox returns the v of the object in which the result of input that awaits comes.
func (e *Engine) Unbox(v mirror.Object) mirror.Object {
	if o, ok := e.value(v).(*goja.Object); ok && valueOf(o) == nil {
		if x := o.Get("v"); x != nil {
			return e.object(x)
		}
	}
	return e.object(goja.Undefined())
}
