package goreal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

type status int

func (s status) String() string { return [...]string{"New", "Paid", "Shipped"}[s] }

type item struct {
	SKU   string
	Price float64
	Qty   int
}

type point struct{ X, Y int }

type order struct {
	ID       int
	Status   status
	Items    []item
	Labels   map[string]string
	Timeout  time.Duration
	Created  time.Time
	Next     *order
	Any      any
	Err      error
	Big      uint64
	internal string
	Hidden   string `natscope:"-"`
}

func (o *order) Total() float64 {
	t := 0.0
	for _, i := range o.Items {
		t += i.Price * float64(i.Qty)
	}
	return t
}

func (o *order) Crash()                         { panic("boom") }
func (o *order) Fail() error                    { return fmt.Errorf("pay: %w", errDeclined) }
func (o *order) Pair() (int, string)            { return 1, "a" }
func (o *order) Wait(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
func (o *order) Each(f func(i item) bool)       { each(o.Items, f) }
func (o *order) Later(f func(n int))            { go f(42) }
func (o *order) Sum(base int, more ...int) (sum int) {
	sum = base
	for _, n := range more {
		sum += n
	}
	return sum
}
func (o *order) Stamp(at time.Time, d time.Duration) string { return at.Add(d).Format(time.DateOnly) }
func each(items []item, f func(item) bool) {
	for _, i := range items {
		if !f(i) {
			return
		}
	}
}

var errDeclined = errors.New("card declined")

type store struct {
	// mu is taken by the realm, which finds it by reflection, and by len.
	mu     sync.RWMutex
	Orders map[int]*order
	Grid   map[point]string
	Queue  chan *order
	Hits   atomic.Int64
	Names  sync.Map
	Loose  *loose
}

// len uses the lock as a program would.
func (s *store) len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.Orders)
}

type loose struct{ M map[string]int }

func testStore() *store {
	s := &store{Orders: make(map[int]*order), Grid: map[point]string{{1, 2}: "a", {0, 1}: "b"}, Queue: make(chan *order, 8), Loose: &loose{map[string]int{"a": 1}}}
	for i := range 10 {
		s.Orders[i] = &order{ID: i, Status: status(i % 3), Items: []item{{"espresso", 1.5, 2}, {"mug", 4, 1}}, Labels: map[string]string{"tier": "gold"},
			Timeout: 1500 * time.Millisecond, Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Big: 1 << 63, internal: "dim", Hidden: "secret",
			Err: fmt.Errorf("load: %w", &fs.PathError{Op: "open", Path: "/x", Err: fs.ErrNotExist})}
	}
	s.Orders[7].Next = s.Orders[8]
	s.Hits.Store(42)
	s.Names.Store("k", 1)
	s.Queue <- s.Orders[1]
	if s.len() != 10 {
		panic("the store is not whole")
	}
	return s
}

// shopRealm is a realm with a store.
func shopRealm(t *testing.T, o Options) (*Realm, *client) {
	r := newRealm(nil, o)
	if err := r.Expose("store", testStore(), nil); err != nil {
		t.Fatal(err)
	}
	return r, dial(t, r)
}

func TestEvaluate(t *testing.T) {
	_, c := shopRealm(t, Options{})
	for _, x := range []struct{ in, want string }{
		{"1 + 1", "2"},
		{"store", "*goreal.store"},
		{"store.Orders[7].ID", "7"},
		{"store.Orders[7].Items.map(i => i.Price * i.Qty).join()", "3,4"},
		{"store.Orders[7].Total()", "7"},
		{"store.Orders[7].Next.ID", "8"},
		{"store.Orders[7].Next === store.Orders[8]", "true"},
		{"store.Orders[7].Status", "1"},
		{"store.Orders[7].Big", "9223372036854775808n"},
		{"store.Orders[7].Timeout / 1e6", "1500"},
		{"store.Orders[7].Created > new Date(0)", "true"},
		{"store.Orders[7].Labels.tier", "gold"},
		{"store.Orders[7].Hidden", "undefined"},
		{"store.Orders[7].internal", "dim"},
		{"store.Orders[77]", "undefined"},
		{"Object.keys(store.Orders).length", "10"},
		{"[...store.Grid].length", "2"},
		{"store.Grid.get({X: 1, Y: 2})", "a"},
		{"store.Hits + 0", "42"},
		{"store.Loose.M.a", "1"},
		{"store.Orders[7].Crash()", "!GoError: panic: boom"},
		{"store.Orders[7].Fail()", "!*fmt.wrapError: pay: card declined"},
		{"store.Orders[7].Fail", "Fail() { /* error realm_test.go:"},
		{"store.Orders[7].Pair().join()", "1,a"},
		{"store.Orders[7].Sum(1, 2, 3)", "6"},
		{"store.Orders[7].Sum('1')", "!TypeError: argument 1: cannot use 1 as int"},
		{"store.Orders[7].Sum()", "!TypeError: "},
		{"store.Orders[7].Stamp('2026-01-02T00:00:00Z', '48h')", "2026-01-04"},
		{"let n = 0; store.Orders[7].Each(i => (n += i.Qty, true)); n", "3"},
		{"store.Orders[7].ID = 9", "!TypeError: Go values are read-only here"},
		{"let x = 1", "undefined"},
		{"let x = 2; x", "2"},
		{"await new Promise(r => setTimeout(() => r(7), 5))", "7"},
		{"await Promise.reject(new Error('no'))", "!Error: no"},
		{"const {Items, ...rest} = store.Orders[7]; rest.ID", "7"},
		{"$_", "7"},
		{"throw new TypeError('x')", "!TypeError: x"},
		{"nope", "!ReferenceError: nope is not defined"},
		{"1 +", "!SyntaxError: Unexpected end of input"},
		{"(function f() { f() })()", "!RangeError: Maximum call stack size exceeded"},
		{"JSON.stringify(store.Orders[7].Items)", `[{"SKU":"espresso","Price":1.5,"Qty":2},{"SKU":"mug","Price":4,"Qty":1}]`},
		{"store.Orders[7].Err instanceof Error", "true"},
		{"store.Orders[7].Err.message", "load: open /x: file does not exist"},
		{"store.Orders[7].Err.cause.Op", "open"},
		{"goroutines.some(g => g.Stack.some(f => f.Func.includes('goreal')))", "true"},
		{"class A { #p = 3; get p() { return this.#p } }; new A().p", "3"},
		{"Object.groupBy([1, 2, 3], x => x % 2 ? 'odd' : 'even').odd.length", "2"},
		{"(1234567.5).toLocaleString()", "1,234,567.5"},
	} {
		if got := text(c.eval(x.in)); got != x.want && !(strings.HasSuffix(x.want, " ") || strings.HasSuffix(x.want, ":") || strings.HasSuffix(x.want, "here")) || !strings.HasPrefix(got, x.want) {
			t.Errorf("%s gives %s, want %s", x.in, got, x.want)
		}
	}
}

func TestExpand(t *testing.T) {
	_, c := shopRealm(t, Options{})
	o := c.eval("store.Orders[7]").Result
	if o.Description != "*goreal.order" || o.ObjectID == "" || o.Preview == nil || !o.Preview.Overflow {
		t.Fatalf("%+v", o)
	}
	p := c.props(o.ObjectID)
	for name, want := range map[string]string{
		"ID": "7", "Status": "1 (Paid)", "Items": "[]goreal.item(2)", "Labels": "map[string]string(1)", "Timeout": "1.5s", "Created": "2026-01-02T03:04:05Z",
		"Next": "*goreal.order", "Any": "nil", "Err": "*fmt.wrapError: load: open /x: file does not exist", "Big": "9223372036854775808n", "internal": "dim",
	} {
		x := find(p, name)
		if x == nil || objectText(x.Value) != want {
			t.Errorf("%s: %+v, want %s", name, x, want)
		}
	}
	if find(p, "Hidden") != nil || find(p, "internal").Enumerable || !find(p, "ID").Enumerable {
		t.Error("what is hidden is shown, or what is not exported is not dimmed")
	}
	if got := internalText(p, "[[Type]]"); got != "*github.com/natscope/natscope/producer/goreal.order" {
		t.Error(got)
	}
	items := c.props(find(p, "Items").Value.ObjectID)
	if listing(items) != "0: goreal.item\n1: goreal.item\n~length: 2\n" {
		t.Error(listing(items))
	}
	err := c.props(find(p, "Err").Value.ObjectID)
	if cause := find(err, "cause"); cause == nil || cause.Value.Subtype != "error" || !strings.HasPrefix(cause.Value.Description, "*fs.PathError: ") {
		t.Errorf("%s", listing(err))
	}
	s := c.props(c.eval("store").Result.ObjectID)
	if got := listing(s); !strings.Contains(got, "~mu: sync.RWMutex unlocked") || !strings.Contains(got, "Queue: chan *goreal.order (1/8)") || !strings.Contains(got, "Hits: atomic.Int64(42)") || !strings.Contains(got, "Names: sync.Map(1)") {
		t.Error(got)
	}
	grid := c.props(find(s, "Grid").Value.ObjectID)
	entries := grid.Internal[0]
	if entries.Name != "[[Entries]]" {
		t.Fatalf("%+v", grid.Internal)
	}
	first := c.props(entries.Value.ObjectID)
	if got := listing(first); got != "0: {point{X:0 Y:1} => \"b\"}\n1: {point{X:1 Y:2} => \"a\"}\n" {
		t.Error(got)
	}
}

func TestUnguardedMapIsNotRead(t *testing.T) {
	r, c := shopRealm(t, Options{})
	if err := r.Expose("loose", &loose{map[string]int{"a": 1}}, nil); err != nil {
		t.Fatal(err)
	}
	p := c.props(find(c.props(c.eval("loose").Result.ObjectID), "M").Value.ObjectID)
	if len(p.Result) != 1 || p.Result[0].Get == nil || !strings.Contains(internalText(p, "[[Unreadable]]"), "nothing guards") {
		t.Fatalf("%s%+v", listing(p), p.Internal)
	}
	if got := text(c.eval("loose.M.a")); !strings.HasPrefix(got, "!GoError: goreal: nothing guards this map") {
		t.Error(got)
	}
	var out evaluated
	c.must("runtime.callFunctionOn", m{"objectId": c.eval("loose").Result.ObjectID, "functionDeclaration": "function(g){return Reflect.apply(g,this,[])}", "arguments": []m{{"objectId": p.Result[0].Get.ObjectID}}}, &out)
	if got := text(out); !strings.Contains(got, "nothing guards") {
		t.Error(got)
	}
	if err := r.Expose("bound", &loose{map[string]int{"a": 1}}, Immutable); err != nil {
		t.Fatal(err)
	}
	if got := text(c.eval("bound.M.a")); got != "1" {
		t.Error(got)
	}
}

func TestLongLists(t *testing.T) {
	r, c := shopRealm(t, Options{})
	long := make([]*item, 1_000_000)
	for i := range long {
		long[i] = &item{Qty: i}
	}
	if err := r.Expose("long", long, Immutable); err != nil {
		t.Fatal(err)
	}
	id := c.eval("long").Result.ObjectID
	bucket := `function(fromIndex,toIndex,bucketThreshold,sparseIterationThreshold){function*doLoop(){} const ranges=[]; if(ArrayBuffer.isView(this)){} return {ranges}}`
	got := c.call(id, bucket, true, 0, 999999, 100, 250000)
	if !strings.HasPrefix(string(got.Result.Value), `{"ranges":[[0,9999,10000],[10000,19999,10000]`) {
		t.Errorf("%.100s", got.Result.Value)
	}
	fragment := `function(fromIndex,toIndex,sparseIterationThreshold){const result=Object.create(null);for(let i=fromIndex;i<=toIndex;++i){if(i in this)result[i]=this[i]}return result}`
	part := c.call(id, fragment, false, 500_000, 500_099, 250000)
	p := c.props(part.Result.ObjectID)
	if len(p.Result) != 100 || p.Result[0].Name != "500000" || p.Result[0].Value.Description != "*goreal.item" {
		t.Errorf("%d: %.200s", len(p.Result), listing(p))
	}
	if got := text(c.eval("long.slice(10, 13).map(x => x.Qty).join()")); got != "10,11,12" {
		t.Error(got)
	}
	if got := text(c.eval("long.slice(0, 2000).filter(x => x.Qty % 500 == 0).length")); got != "4" {
		t.Error(got)
	}
}

func TestHandles(t *testing.T) {
	r, c := shopRealm(t, Options{})
	a := c.eval("({})").Result.ObjectID
	if err := c.ask("runtime.getProperties", m{"objectId": a}, nil); err != nil {
		t.Error(err)
	}
	c.must("runtime.releaseObject", m{"objectId": a}, nil)
	if err := c.ask("runtime.getProperties", m{"objectId": a}, nil); err == nil || !strings.Contains(err.Error(), "no object") {
		t.Error(err)
	}
	b := c.eval("({})").Result.ObjectID
	if a == b {
		t.Error("a handle was used twice")
	}
	c.must("runtime.releaseObjectGroup", m{"objectGroup": "console"}, nil)
	if n := c.s.handles.len(); n != 0 {
		t.Errorf("%d handles are left", n)
	}
	first := c.eval("store").Result.ObjectID
	for range maxHandles + 10 {
		c.s.handles.bind(nil, "x")
	}
	if err := c.ask("runtime.getProperties", m{"objectId": first}, nil); err == nil || !strings.Contains(err.Error(), "because more than 10000") {
		t.Error(err)
	}
	other := dial(t, r)
	if err := other.ask("runtime.getProperties", m{"objectId": c.eval("store").Result.ObjectID}, nil); err == nil {
		t.Error("a handle of another session can be used")
	}
}
