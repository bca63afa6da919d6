package goreal

import (
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// nasty is a service with everything that can go wrong.
type nasty struct {
	mu     sync.Mutex
	served atomic.Int64

	Nil      *nasty
	NilMap   map[string]int
	NilSlice []int
	NilChan  chan int
	NilFunc  func()
	NilErr   error
	NilAny   any
	Closed   chan int
	Self     *nasty
	Cyclic   []any
	Panics   panicky
	Err      error
	Deep     any
	Locked   *locked

	// end ends what blocks for ever, so that the test leaves nothing behind.
	end chan struct{}
}

type panicky int

func (panicky) String() string { panic("in String") }

type panickyError struct{}

func (*panickyError) Error() string { panic("in Error") }

type slowError struct{ done chan struct{} }

func (e *slowError) Error() string { <-e.done; return "late" }

// locked is held for ever.
type locked struct {
	mu sync.Mutex
	N  int
	M  map[string]int
}

func (n *nasty) Block()              { <-n.end }
func (n *nasty) Goexit()             { runtime.Goexit() }
func (n *nasty) Recurse(f func(int)) { f(1) }

func newNasty() *nasty {
	n := &nasty{end: make(chan struct{}), Closed: make(chan int), Panics: 1, Err: errors.Join(&panickyError{}, errors.New("two")), Locked: &locked{N: 1, M: map[string]int{"a": 1}}}
	n.Self = n
	n.Cyclic = []any{nil, n}
	n.Cyclic[0] = n.Cyclic
	close(n.Closed)
	var deep any
	for range 10_000 {
		deep = []any{deep}
	}
	n.Deep = deep
	n.Locked.mu.Lock()
	return n
}

// serve is the service: it takes its lock and works, until stop. It returns the longest time that one turn took.
func (n *nasty) serve(stop *atomic.Bool, longest *atomic.Int64) {
	for !stop.Load() {
		from := time.Now()
		time.Sleep(time.Millisecond)
		n.mu.Lock()
		n.served.Add(1)
		n.mu.Unlock()
		if d := int64(time.Since(from)); d > longest.Load() {
			longest.Store(d)
		}
	}
}

// try is eval for what the realm may leave alone.
func (c *client) try(expression string) string {
	c.t.Helper()
	var out evaluated
	if err := c.ask("runtime.evaluate", m{"expression": expression, "objectGroup": "console", "replMode": true, "generatePreview": true, "awaitPromise": true}, &out); err != nil {
		return "!!" + strings.TrimPrefix(err.Error(), "realm: timeout: ")
	}
	return text(out)
}

// TestBadInput gives a realm everything that could hurt its program. The service
// goes on, and the session gets an answer each time.
func TestBadInput(t *testing.T) {
	r := newRealm(nil, Options{EvalTimeout: 700 * time.Millisecond, CallTimeout: 300 * time.Millisecond, MaxGrowth: 128 << 20, Logger: slog.New(slog.DiscardHandler)})
	n := newNasty()
	slow := &slowError{make(chan struct{})}
	defer close(slow.done)
	defer close(n.end)
	for name, v := range map[string]any{"n": n, "slow": slow, "nothing": nil, "typed": (*nasty)(nil)} {
		if err := r.Expose(name, v, nil); err != nil {
			t.Fatal(err)
		}
	}
	c := dial(t, r)
	var stop atomic.Bool
	var longest atomic.Int64
	var wg sync.WaitGroup
	wg.Go(func() { n.serve(&stop, &longest) })
	defer wg.Wait()
	defer stop.Store(true)

	// On a machine that is busy, time may run out before a fence is reached.
	for _, x := range []struct{ in, want string }{
		{"while (true) {}", "!Error: Execution was terminated"},
		{"for (;;) try { for (;;) {} } catch {} finally {}", "!Error: Execution was terminated"},
		{"new Promise(() => { while (true) {} })", "!Error: Execution was terminated"},
		{"(function f() { return f() + 1 })()", "!RangeError: Maximum call stack size exceeded"},
		{"const o = {get x() { return this.x }}; o.x", "!RangeError"},
		{"const t = {toJSON() { return {a: t} }}; JSON.stringify(t)", "!"},
		{"let a = []; for (let i = 0; i < 1e7; i++) a = [a]; String(a)", "!"},
		{"let d = []; for (let i = 0; i < 1e5; i++) d = [d]; JSON.stringify(d).length", "!"},
		{"let e = []; for (let i = 0; i < 1e5; i++) e = [e]; e.flat(Infinity).length", ""},
		{"new Array(1e9).fill(1)", "!RangeError"},
		{"Array(4e9)", "Array(4000000000)"},
		{"Array.from(Array(1e9).keys())", "!"},
		{"new Set(Array(1e9))", "!RangeError"},
		{"[...new Array(1e7)].length", ""},
		{"Object.assign({}, new Array(1e9))", ""},
		{"JSON.stringify(new Array(1e9))", "!RangeError"},
		{"Array.from({length: 1e9})", "!RangeError"},
		{"[].concat(new Array(1e9)).map(x => x)", "!"},
		{"'a'.repeat(1e9)", "!RangeError"},
		{"'a'.padEnd(1e9)", "!RangeError"},
		{"new Uint8Array(1e10)", "!RangeError"},
		{"let s = 'x'; for (;;) s += s", "!"},
		{"const all = []; for (;;) all.push({a: [1, 2, 3]})", "!Error: Execution was terminated"},
		{"const mm = new Map(); for (let i = 0; ; i++) mm.set(i, 'x' + i)", "!Error: Execution was terminated"},
		{"JSON.parse('['.repeat(1e6))", "!"},
		{"eval('('.repeat(1e6))", "!"},
		{"Function('return ' + '['.repeat(1e6))", "!"},
		{"(function(){}).constructor('(('.repeat(1e6))", "!"},
		{"(async function(){}).constructor('!'.repeat(1e6))", "!"},
		{"new RegExp('('.repeat(1e6))", "!RangeError"},
		{"RegExp('(?=a)' + '(a'.repeat(5e4))", "!RangeError"},
		{"/^(a+)+$/.test('a'.repeat(40) + 'b')", ""},
		{"'(?:'.repeat(10)", "(?:(?:(?:"},
		{strings.Repeat("(", 500_000), "!SyntaxError: the source is nested too deeply"},
		{strings.Repeat("[", 900) + strings.Repeat("]", 900), ""},
		{strings.Repeat("-", 100_001) + "1", "!SyntaxError"},
		{"n.Block()", "!GoError: "},
		{"n.Nil.Nil", "!TypeError"},
		{"n.Nil", "null"},
		{"n.NilMap", "null"},
		{"n.NilSlice", "[]int(0) nil"},
		{"n.NilSlice.length", "0"},
		{"n.NilChan", "null"},
		{"n.NilFunc", "null"},
		{"n.NilErr", "null"},
		{"n.NilAny", "null"},
		{"nothing", "null"},
		{"typed", "null"},
		{"n.Closed", "chan int (0/0)"},
		{"n.Self.Self.Self === n", "true"},
		{"JSON.stringify(n)", "!"},
		{"n.Cyclic[0][0][1].Panics", "1"},
		{"n.Err.errors[0].message", "<Error panicked: in Error>"},
		{"slow.message", "<Error did not return in 100ms>"},
		{"n.Locked.N", "!GoError: goreal: the value is locked by the program"},
		{"n.Deep[0][0][0].length", "1"},
		{"n.Recurse(() => { while (true) {} })", ""},
		{"n.Recurse(i => n.Recurse(j => n.Recurse(k => 1)))", "undefined"},
		{"n.Goexit()", "!GoError: panic: the function ended its goroutine"},
		{"Object.defineProperty(globalThis, 'console', {get() { throw 1 }}); 1", "1"},
		{"Array.prototype.push = null; Object.keys = null; Reflect.ownKeys = null; JSON.parse = null; 2", "2"},
		{"[1, 2]", "Array(2)"},
		{"new Proxy({}, {get() { throw 1 }, ownKeys() { throw 2 }, getPrototypeOf() { throw 3 }})", "Proxy(Object)"},
		{"Object.create(null)", "Object"},
		{"const err = new Error('x'); Object.defineProperty(err, 'stack', {get() { throw 1 }}); err", "Error: x"},
		{"10n ** 10n ** 5n > 0n", ""},
		{"while (true) { setTimeout(() => {}, 0) }", "!GoError"},
		{"1 + 1", "2"},
	} {
		longest.Store(0)
		before, from := n.served.Load(), time.Now()
		got := c.try(x.in)
		took := time.Since(from)
		// On a machine that is slow enough, what is refused may be ended by its time before.
		ended := strings.HasPrefix(got, "!Error: Execution was terminated") || strings.HasPrefix(got, "!!the evaluation could not be ended")
		if !strings.HasPrefix(got, x.want) && !(ended && strings.HasPrefix(x.want, "!")) {
			t.Errorf("%.80s gives %.200s, want %s", x.in, got, x.want)
		}
		if took > 500*time.Millisecond && n.served.Load() == before {
			t.Errorf("%.80s: the service stood still for %s", x.in, took)
		}
		t.Logf("%8s, service at most %8s: %.60s -> %.80s", took.Round(time.Microsecond), time.Duration(longest.Load()).Round(time.Microsecond), x.in, got)
	}
	p := listing(c.props(c.eval("n").Result.ObjectID))
	for _, want := range []string{"Nil: (*goreal.nasty)(nil)", "NilMap: (map[string]int)(nil)", "NilFunc: (func())(nil)", "NilAny: nil", "Panics: 1 (<String panicked: in String>)", "Err: *errors.joinError: <Error panicked: in Error>"} {
		if !strings.Contains(p, want) {
			t.Errorf("%s is missing in\n%s", want, p)
		}
	}
	l := c.props(c.eval("n.Locked").Result.ObjectID)
	if got := internalText(l, "[[Unreadable]]"); !strings.Contains(got, "locked by the program") {
		t.Errorf("%q", got)
	}
	for _, bad := range []m{{"expression": 7}, {"expression": nil}, {}} {
		_ = c.ask("runtime.evaluate", bad, nil)
	}
	for method := range methods {
		for _, bad := range []any{nil, m{}, []int{1}, m{"objectId": "x", "ref": -1, "id": -1, "scriptId": 7}, m{"objectId": strings.Repeat("9", 1000)}} {
			if strings.HasPrefix(string(method), "heap.take") || strings.HasPrefix(string(method), "profiler.") {
				continue
			}
			_ = c.ask(string(method), bad, nil)
		}
	}
	if got := text(c.eval("1 + 1")); got != "2" {
		t.Error(got)
	}
	// A native loop ends by itself, after a time that is the processor's; with the race detector it is long.
	stuck := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.stuck
	}
	for end := time.Now().Add(5 * time.Minute); stuck() > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d evaluations that were left alone do not end", stuck())
		}
	}
}
