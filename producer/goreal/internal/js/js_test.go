package js

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/natscope/natscope/producer/goreal/internal/mirror"
	"github.com/natscope/natscope/producer/goreal/internal/remote"
)

// lone is a host without anybody: jobs run when the test runs them.
type lone struct {
	mu   sync.Mutex
	jobs []func()
	log  []string
}

func (l *lone) Post(job func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.jobs = append(l.jobs, job)
	return true
}

func (l *lone) Console(typ string, args []mirror.Object, _ []remote.Frame) {
	line := typ
	for _, a := range args {
		o := a.Remote(nil, false)
		line += " " + strings.Trim(string(o.Value), `"`) + o.Description
	}
	l.log = append(l.log, line)
}
func (l *lone) Uncaught(err error)                         { l.log = append(l.log, "uncaught "+err.Error()) }
func (l *lone) Inspect(mirror.Object, string)              {}
func (l *lone) Inspected(int) (mirror.Object, bool)        { return nil, false }
func (l *lone) LastResult() mirror.Object                  { return nil }
func (l *lone) Script(string) (id, url string, found bool) { return "", "", false }

type box struct {
	N     int
	Name  string
	List  []int
	M     map[string]int
	At    time.Time
	Addr  netip.Addr
	Calls *atomic.Int64
	Deep  *box
	Err   error
}

func (b *box) Touch() int     { return int(b.Calls.Add(1)) }
func (b *box) String() string { b.Calls.Add(1); return "box" }

func newEngine() (*Engine, *box, *lone) {
	l := &lone{}
	e := New(l, Options{})
	b := &box{N: 3, Name: "n", List: []int{3, 1, 2}, M: map[string]int{"a": 1}, At: time.Unix(0, 0), Addr: netip.MustParseAddr("10.0.0.1"), Calls: new(atomic.Int64), Err: errors.New("no")}
	b.Deep = &box{N: 4, Calls: b.Calls}
	e.Expose("b", mirror.Of(b, mirror.Immutable))
	return e, b, l
}

func show(o mirror.Object, err error) string {
	if err != nil {
		return "!" + err.Error()
	}
	r := o.Remote(nil, false)
	if r.Description != "" {
		return r.Description
	}
	if len(r.Value) > 0 {
		return strings.Trim(string(r.Value), `"`)
	}
	return r.Type
}

// What a console asks while somebody types must work where it changes nothing,
// and must not run where it could.
func TestPure(t *testing.T) {
	e, b, l := newEngine()
	for _, src := range []string{"var hits = 0, o = {get g() { hits++; return 1 }, m() { hits++ }, v: 1}", "var p = new Proxy({}, {get() { hits++; return 1 }, has() { hits++; return true }, ownKeys() { hits++; return [] }})",
		"var evil = {toString() { hits++; return 'x' }, valueOf() { hits++; return 1 }, toJSON() { hits++; return 1 }, [Symbol.iterator]() { hits++; return [][Symbol.iterator]() }}",
		"var arr = [1, 2, 3], map = new Map([['k', 1]]), set = new Set([1]), re = /a/g", "function user() { hits++; return 1 }", "class K { get x() { hits++; return 1 } toString() { hits++; return '' } }; var k = new K()",
		"class Sub extends Array { constructor(...a) { super(...a); hits++ } }; var sub = Sub.from([1]); hits = 0", "var nested = {a: {b: evil}}, listed = [evil]", "var spec = [1]; spec.constructor = {get [Symbol.species]() { hits++ }}"} {
		if _, _, err := e.Run("", src, false); err != nil {
			t.Fatal(src, err)
		}
	}
	for in, want := range map[string]string{
		"1 + 2 * 3": "7", "`a${1 + 1}b`": "a2b", "b.N": "3", "b.Deep.N": "4", "b.List.map(x => x * 2).join()": "6,2,4", "b.List.toSorted().join()": "1,2,3", "[...b.List].sort().join()": "1,2,3",
		"b.M.a": "1", "Object.keys(b.M)[0]": "a", "b?.nope?.x": "undefined", "b.Name.toUpperCase()": "N", "typeof nope": "undefined", "typeof b": "object", "o.v": "1", "'v' in o": "true",
		"arr.length": "3", "arr.filter(x => x > 1).length": "2", "arr.reduce((a, x) => a + x, 0)": "6", "Math.max(...arr)": "3", "[...map].length": "1", "map.get('k')": "1", "[...set][0]": "1",
		"Object.entries({a: 1, b: 2}).map(([k, v]) => k + v).join()": "a1,b2", "arr.map(x => { const y = x * 2; if (y > 4) return 'big'; return y }).join()": "2,4,big",
		"(({N, Deep: {N: d}}) => N + d)(b)": "7", "((a, ...r) => r.length)(1, 2, 3)": "2", "JSON.stringify({a: [1, {b: 2}]})": `{\"a\":[1,{\"b\":2}]}`, "JSON.stringify(b.List)": "[3,1,2]",
		"b.At.Year() >= 1969": "true", "b.Addr.Is4()": "true", "+b.At": "0", "b.Err instanceof Error": "true", "new Date(0).toISOString()": "1970-01-01T00:00:00.000Z", "new Map([[1, 2]]).size": "1",
		"Array.prototype.slice.call(arr, 1).length": "2", "Math.max.apply(null, arr)": "3", "'abc'.replace(/b/, x => x.toUpperCase())": "aBc", "x => x": "x => x", "(1, 2)": "2", "arr == null": "false", "1n + 2n": "3n",
		"b.Deep === b.Deep": "true", "void 0": "undefined", "!arr": "false", "-b.N": "-3", "b.M.size": "1", "[...b.M][0][0]": "a", "String(b)": "*js.box", "b.List + ''": "3,1,2", "`${[1, [2, 3]]}`": "1,2,3", "globalThis.arr.length": "3",
		"'é😀'.length": "3", "{}": "undefined",
	} {
		got := show(e.Pure(in))
		if in == "{}" {
			continue
		}
		if got != want {
			t.Errorf("%s gives %s, want %s", in, got, want)
		}
	}
	for _, in := range []string{
		"hits = 5", "hits++", "o.v = 2", "delete o.v", "o.g", "o.m()", "user()", "arr.map(user)", "p.x", "'x' in p", "Object.keys(p)", "{...p}", "({...p})", "b.Touch()", "b.String()", "arr.push(1)", "arr.sort()", "map.set(1, 2)", "set.clear()",
		"evil + ''", "`${evil}`", "String(evil)", "JSON.stringify(evil)", "JSON.stringify(nested)", "[...evil]", "listed.join()", "listed + ''", "1 + evil", "evil == 1", "arr.indexOf(evil) + [evil]", "k.x", "k + ''", "new K()", "sub.map(x => x)", "spec.map(x => x)",
		"re.test('a')", "'a'.match(re)", "eval('hits++')", "Function('hits++')()", "setTimeout(() => {}, 0)", "console.log(1)", "new Promise(() => {})", "fetch()", "let z = 1", "var z = 1", "function f() {}", "while (true) {}", "for (;;) {}", "(() => { while (true); })()",
		"(function f() { hits++ })()", "arr.forEach(x => hits = x)", "Reflect.apply(user, null, [])", "user.call(null)", "user.apply(null, [])", "user.bind(null)()", "Object.defineProperty(o, 'q', {})", "Object.assign(o, {q: 1})", "Object.freeze(o)", "Math.random()", "b.M.a = 2",
		"o?.m()", "o['m']()", "o[evil]", "({[evil]: 1})", "arr.at(evil)", "new Date(evil)", "new Map(evil)", "Array.from(evil)", "Array.from({length: 1, get 0() { hits++ }})", "tag`x`", "async () => 1, 0", "(async () => { hits++ })()", "await 1", "import('x')", "class Z {}", "throw 1", "10n ** 100000n", "Object.groupBy(arr, user)", "super.x", "new.target",
		"(f => f(f))(f => f(f))", "'x'.repeat(1e7) + 'x'.repeat(2e7)", "structuredClone(evil)", "$0 = 1", "Object.fromEntries(evil)", "Symbol.for(evil)", "Object.prototype.toString.call(p)", "[].concat(p)", "[p].flat()",
	} {
		_, err := e.Pure(in)
		hits, _, _ := e.Run("", "hits", false)
		if got := show(hits, nil); got != "0" {
			t.Fatalf("%s had an effect: %s", in, got)
		}
		if err == nil {
			t.Errorf("%s was evaluated", in)
		}
	}
	if b.Calls.Load() != 0 || len(l.log) != 0 {
		t.Errorf("methods were called %d times, and the console said %q", b.Calls.Load(), l.log)
	}
	// What is built in may have been replaced.
	for _, c := range [][2]string{{"Array.prototype.map = function() { hits++ }", "arr.map(x => x)"}, {"Array.prototype.toString = function() { hits++; return '' }", "[1] + ''"}, {"Object.prototype.toString = function() { hits++; return '' }", "({}) + ''"},
		{"Array.prototype[Symbol.iterator] = function() { hits++ }", "[...arr]"}, {"Object.defineProperty(Array, Symbol.species, {get() { hits++ }})", "arr.filter(x => x)"}, {"Object.defineProperty(Object.prototype, 'toJSON', {get() { hits++ }})", "JSON.stringify({})"}} {
		if _, _, err := e.Run("", c[0], false); err != nil {
			t.Fatal(err)
		}
		_, _ = e.Pure(c[1])
		if hits, _, _ := e.Run("", "hits", false); show(hits, nil) != "0" {
			t.Fatalf("after %s, %s had an effect", c[0], c[1])
		}
	}
}

func TestCallPure(t *testing.T) {
	e, b, _ := newEngine()
	x := mirror.Of(b, mirror.Immutable)
	if got := show(e.CallPure("function(k){return this[k]}", x, []mirror.Object{must(e.FromJSON([]byte(`"N"`)))})); got != "3" {
		t.Error(got)
	}
	if _, err := e.CallPure("function(){return this.Touch()}", x, nil); !errors.Is(err, ErrSideEffect) || b.Calls.Load() != 0 {
		t.Error(err)
	}
}

func FuzzPure(f *testing.F) {
	for _, s := range []string{"a.b.c", "[1,2].map(x => x + n)", "({...o}).x", "f()", "o.g", "`${o}`", "n++", "(([a, b = 1]) => a + b)([1])", "p[n]", "x?.y?.[z]", "new Date(n)", "typeof q", "1n << 2n", "o in p", "arr.sort()", "[...arr, ...s].join()", "s.replace(/./g, f)"} {
		f.Add(s)
	}
	const setup = "var n = 0, o = {get g() { n++; return 1 }, toString() { n++; return 'o' }, f() { n++ }}, arr = [3, 1, o], s = 'text', f = () => { n++ }, p = new Proxy({}, {get() { n++ }, has() { n++ }, ownKeys() { n++; return [] }, getPrototypeOf() { n++; return null }}); Object.freeze(o)"
	f.Fuzz(func(t *testing.T, src string) {
		e, b, l := newEngine()
		if _, _, err := e.Run("", setup, false); err != nil {
			t.Fatal(err)
		}
		before := fmt.Sprint(e.vm.GlobalObject().GetOwnPropertyNames())
		timer := time.AfterFunc(2*time.Second, func() { e.Interrupt("too long") })
		defer timer.Stop()
		_, _ = e.Pure(src)
		e.ClearInterrupt()
		hits, _, err := e.Run("", "n + '|' + arr.length + '|' + arr[0]", false)
		if err != nil || show(hits, nil) != "0|3|3" || b.Calls.Load() != 0 || len(l.log) != 0 {
			t.Fatalf("%q had an effect: %v, %v, %q", src, show(hits, err), b.Calls.Load(), l.log)
		}
		if after := fmt.Sprint(e.vm.GlobalObject().GetOwnPropertyNames()); after != before {
			t.Fatalf("%q changed the globals", src)
		}
	})
}

// The cache of wrappers must lose what is gone, however many go at once.
func TestWrappersSurviveBursts(t *testing.T) {
	e, _, _ := newEngine()
	base := e.wraps.len()
	list := make([]*box, 50_000)
	for i := range list {
		list[i] = &box{N: i}
	}
	e.Expose("burst", mirror.Of(list, mirror.Immutable))
	if _, _, err := e.Run("", "var kept = burst[7]; for (const x of burst) x.N; 0", false); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for e.wraps.len() > base+100 {
		if time.Now().After(deadline) {
			t.Fatalf("%d wrappers are left", e.wraps.len())
		}
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	if got := show(firstOf(e.Run("", "kept === burst[7]", false))); got != "true" {
		t.Error("an object that is still held was made anew")
	}
}

func firstOf(o mirror.Object, _ bool, err error) (mirror.Object, error) { return o, err }

// A function that Go was given runs where the engine runs, and ends quietly when it is too late.
func TestCallbacks(t *testing.T) {
	e, _, l := newEngine()
	var kept func(int) int
	e.Expose("now", mirror.Of(func(f func(int) int) int {
		out := make(chan int)
		go func() { out <- f(20) }()
		return <-out + f(1)
	}, nil))
	e.Expose("keep", mirror.Of(func(f func(int) int) { kept = f }, nil))
	e.Expose("failing", mirror.Of(func(f func() error) error { return f() }, nil))
	if got := show(firstOf(e.Run("", "now(x => x * 2)", false))); got != "42" {
		t.Error(got)
	}
	if got := show(firstOf(e.Run("", "now(x => { throw new Error('in a callback') })", false))); got != "0" || len(l.log) == 0 || !strings.Contains(l.log[0], "in a callback") {
		t.Error(got, l.log)
	}
	if got := show(firstOf(e.Run("", "failing(() => { throw new Error('passed on') })", false))); !strings.Contains(got, "passed on") {
		t.Error(got)
	}
	if _, _, err := e.Run("", "keep(x => x + 1)", false); err != nil {
		t.Fatal(err)
	}
	result := make(chan int)
	go func() { result <- kept(1) }()
	deadline := time.Now().Add(10 * time.Second)
	for {
		l.mu.Lock()
		n := len(l.jobs)
		l.mu.Unlock()
		if n > 0 || time.Now().After(deadline) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	for _, job := range l.jobs {
		job()
	}
	if got := <-result; got != 2 {
		t.Errorf("%d", got)
	}
	e.Close()
	if got := kept(1); got != 0 {
		t.Errorf("a callback ran in an engine that is closed: %d", got)
	}
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		New(&lone{}, Options{})
	}
}

func BenchmarkRead(b *testing.B) {
	e, _, _ := newEngine()
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := e.Run("", "b.Deep.N + 1", false); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPure(b *testing.B) {
	e, _, _ := newEngine()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Pure("b.List.map(x => x * 2).length"); err != nil {
			b.Fatal(err)
		}
	}
}
