package js

import (
	"errors"
	"fmt"
	"time"

	"github.com/dop251/goja"

	"github.com/natscope/natscope/producer/goreal/internal/mirror"
)

// consoleMethods are the methods of console that show their arguments, with CDP's names.
var consoleMethods = map[string]string{
	"log": "log", "info": "info", "warn": "warning", "error": "error", "debug": "debug", "dir": "dir", "dirxml": "dirxml", "table": "table",
	"trace": "trace", "group": "startGroup", "groupCollapsed": "startGroupCollapsed", "groupEnd": "endGroup", "clear": "clear",
}

const (
	// maxTimers is how many timers and labels of the console there are at a time.
	maxTimers = 1000
	// minInterval is the shortest interval.
	minInterval = 4 * time.Millisecond
	// timerRetry is when a timer is tried again that found no room.
	timerRetry = time.Second
)

func (e *Engine) initConsole() {
	c := e.vm.NewObject()
	for name, typ := range consoleMethods {
		hidden(c, name, e.native(name, 0, func(call goja.FunctionCall) goja.Value {
			e.emit(typ, call.Arguments)
			return goja.Undefined()
		}))
	}
	hidden(c, "assert", e.native("assert", 0, func(call goja.FunctionCall) goja.Value {
		if !call.Argument(0).ToBoolean() {
			args := call.Arguments
			if len(args) > 0 {
				args = args[1:]
			}
			if len(args) == 0 {
				args = []goja.Value{e.vm.ToValue("console.assert")}
			}
			e.emit("assert", args)
		}
		return goja.Undefined()
	}))
	e.initCounters(c)
	hidden(e.vm.GlobalObject(), "console", c)
	hidden(e.vm.GlobalObject(), "setTimeout", e.native("setTimeout", 2, func(call goja.FunctionCall) goja.Value { return e.timer(call, false) }))
	hidden(e.vm.GlobalObject(), "setInterval", e.native("setInterval", 2, func(call goja.FunctionCall) goja.Value { return e.timer(call, true) }))
	for _, name := range []string{"clearTimeout", "clearInterval"} {
		hidden(e.vm.GlobalObject(), name, e.native(name, 1, func(call goja.FunctionCall) goja.Value {
			e.clearTimer(int(call.Argument(0).ToInteger()))
			return goja.Undefined()
		}))
	}
	hidden(e.vm.GlobalObject(), "queueMicrotask", must(e.vm.RunString("(p=>function queueMicrotask(f){p.then(()=>f())})(Promise.resolve())")))
}

// label is the name of a counter or a stopwatch.
func label(c goja.FunctionCall) string {
	if a := c.Argument(0); !goja.IsUndefined(a) {
		return a.String()
	}
	return "default"
}

func (e *Engine) initCounters(c *goja.Object) {
	counts, times := make(map[string]int), make(map[string]time.Time)
	say := func(typ, text string) { e.emit(typ, []goja.Value{e.vm.ToValue(text)}) }
	def := func(name string, f func(l string, args []goja.Value)) {
		hidden(c, name, e.native(name, 0, func(call goja.FunctionCall) goja.Value {
			var rest []goja.Value
			if len(call.Arguments) > 1 {
				rest = call.Arguments[1:]
			}
			f(label(call), rest)
			return goja.Undefined()
		}))
	}
	def("count", func(l string, _ []goja.Value) {
		if len(counts) < maxTimers || counts[l] > 0 {
			counts[l]++
		}
		say("count", fmt.Sprintf("%s: %d", l, counts[l]))
	})
	def("countReset", func(l string, _ []goja.Value) { delete(counts, l) })
	def("time", func(l string, _ []goja.Value) {
		if len(times) < maxTimers {
			times[l] = time.Now()
		}
	})
	tell := func(typ, l string, rest []goja.Value) {
		t, ok := times[l]
		if !ok {
			say("warning", fmt.Sprintf("Timer '%s' does not exist", l))
			return
		}
		e.emit(typ, append([]goja.Value{e.vm.ToValue(fmt.Sprintf("%s: %v ms", l, float64(time.Since(t).Microseconds())/1000))}, rest...))
	}
	def("timeLog", func(l string, rest []goja.Value) { tell("log", l, rest) })
	def("timeEnd", func(l string, _ []goja.Value) { tell("timeEnd", l, nil); delete(times, l) })
}

// emit tells the host of a call of the console.
func (e *Engine) emit(typ string, args []goja.Value) {
	list := make([]mirror.Object, len(args))
	for i, a := range args {
		list[i] = e.object(a)
	}
	e.host.Console(typ, list, e.frames(e.vm.CaptureCallStack(20, nil)))
}

// timer starts a timer.
func (e *Engine) timer(call goja.FunctionCall, repeat bool) goja.Value {
	fn, ok := goja.AssertFunction(call.Argument(0))
	if !ok {
		panic(e.vm.NewTypeError("the callback is no function"))
	}
	if len(e.timers) >= maxTimers {
		panic(e.vm.NewGoError(errors.New("there are too many timers already; clear some")))
	}
	d := time.Duration(call.Argument(1).ToFloat() * float64(time.Millisecond))
	if repeat || d < 0 {
		d = max(d, minInterval)
	}
	var args []goja.Value
	if len(call.Arguments) > 2 {
		args = call.Arguments[2:]
	}
	e.timerID++
	id := e.timerID
	job := func() {
		if e.timers[id] == nil {
			return
		}
		if !repeat {
			delete(e.timers, id)
		}
		if err := e.protect(func() error { _, err := fn(goja.Undefined(), args...); return err }); err != nil {
			e.host.Uncaught(err)
		}
		if t := e.timers[id]; t != nil {
			t.Reset(d)
		}
	}
	var fire func()
	fire = func() {
		// Where there is no room, or nobody to see it, it comes later.
		if !e.host.Post(job) && !e.closed.Load() {
			time.AfterFunc(timerRetry, fire)
		}
	}
	e.timers[id] = time.AfterFunc(d, fire)
	return e.vm.ToValue(id)
}

func (e *Engine) clearTimer(id int) {
	if t := e.timers[id]; t != nil {
		t.Stop()
		delete(e.timers, id)
	}
}

// initCommandLine defines what only a console has.
func (e *Engine) initCommandLine() {
	g := e.vm.GlobalObject()
	getter := func(name string, get func() mirror.Object) {
		f := e.pureNative(name, 0, func(goja.FunctionCall) goja.Value {
			if o := get(); o != nil && e.Owned(o) {
				return e.value(o)
			}
			return goja.Undefined()
		})
		set := e.native(name, 1, func(c goja.FunctionCall) goja.Value {
			_ = g.DefineDataProperty(name, c.Argument(0), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
			return goja.Undefined()
		})
		_ = g.DefineAccessorProperty(name, f, set, goja.FLAG_TRUE, goja.FLAG_FALSE)
	}
	getter("$_", e.host.LastResult)
	for n := range 5 {
		getter("$"+itoa(n), func() mirror.Object {
			if o, ok := e.host.Inspected(n); ok {
				return o
			}
			return nil
		})
	}
	inspect := func(name, hints string) {
		hidden(g, name, e.native(name, 1, func(c goja.FunctionCall) goja.Value {
			e.host.Inspect(e.object(c.Argument(0)), hints)
			return goja.Undefined()
		}))
	}
	inspect("copy", `{"copyToClipboard":true}`)
	inspect("inspect", `{}`)
	inspect("queryObjects", `{"queryObjects":true}`)
	for _, name := range []string{"keys", "values"} {
		f := must(e.vm.RunString("(f=>function " + name + "(o){return f(o)})(Object." + name + ")"))
		hidden(g, name, f)
	}
	c := g.Get("console").(*goja.Object)
	for _, name := range []string{"dir", "dirxml", "table", "clear"} {
		hidden(g, name, c.Get(name))
	}
}
