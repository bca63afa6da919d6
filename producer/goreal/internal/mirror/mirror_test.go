package mirror

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"math/big"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/natscope/natscope/producer/goreal/internal/remote"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type color int

func (color) String() string { return "red" }

type secretText_ string

func (secretText_) LogValue() slog.Value { return slog.StringValue("hidden") }

type pair2[K comparable, V any] struct {
	Key K
	Val V
}

type plain struct{ A, b int }

func (plain) Method(n int, names ...string) (string, error) { return "", nil }

// TestLooks is the table of what every kind of value looks like.
func TestLooks(t *testing.T) {
	n := 5
	var nilPlain *plain
	ch := make(chan int, 8)
	ch <- 1
	var sm sync.Map
	sm.Store("a", 1)
	u, _ := url.Parse("http://a/b")
	for _, c := range []struct {
		v                  any
		typ, subtype, text string
		preview            string
	}{
		{nil, "object", "null", "nil", ""},
		{true, "boolean", "", "true", ""},
		{42, "number", "", "42", ""},
		{1.5, "number", "", "1.5", ""},
		{int64(1) << 60, "bigint", "", "1152921504606846976n", ""},
		{uint64(1) << 63, "bigint", "", "9223372036854775808n", ""},
		{color(2), "number", "", "2 (red)", ""},
		{1500 * time.Millisecond, "number", "", "1.5s", ""},
		{secretText_("pw"), "string", "", "", ""},
		{plain{1, 2}, "object", "", "mirror.plain", "A=1"},
		{&plain{1, 2}, "object", "", "*mirror.plain", "A=1"},
		{nilPlain, "object", "null", "(*mirror.plain)(nil)", ""},
		{pair2[string, *plain]{"k", nil}, "object", "", "mirror.pair2[string,*github.com/natscope/natscope/producer/goreal/internal/mirror.plain]", "Key=k Val=nil"},
		{[]int{1, 2}, "object", "array", "[]int(2)", "0=1 1=2"},
		{[]int(nil), "object", "array", "[]int(0) nil", ""},
		{[3]float64{1}, "object", "array", "[3\u2060]float64(3)", "0=1 1=0 2=0"},
		{&[]int{1}, "object", "array", "*[]int(1)", "0=1"},
		{[]byte("hi"), "object", "array", "[]byte(2)", "0=104 1=105"},
		{map[string]int{"b": 2, "a": 1}, "object", "map", "map[string]int(2)", "a=1 b=2"},
		{map[string]int(nil), "object", "null", "(map[string]int)(nil)", ""},
		{map[plain]any{{1, 2}: "x"}, "object", "map", "map[mirror.plain]any(1)", "plain{A:1 b:2}=>x"},
		{time.Unix(0, 5).UTC(), "object", "date", "1970-01-01T00:00:00.000000005Z", ""},
		{&fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}, "object", "error", "*fs.PathError: open x: file does not exist", ""},
		{ch, "object", "", "chan int (1/8)", "len=1 cap=8"},
		{&sync.Mutex{}, "object", "", "sync.Mutex unlocked", ""},
		{new(atomic.Int64), "object", "", "atomic.Int64(0)", "value=0"},
		{new(atomic.Pointer[plain]), "object", "", "atomic.Pointer[plain](nil)", "value=nil"},
		{&sm, "object", "map", "sync.Map(1)", "a=>1"},
		{complex(1, 2), "object", "", "(1+2i)", "real=1 imag=2"},
		{&n, "object", "", "*int", "*=5"},
		{big.NewInt(7), "object", "", "*big.Int 7", ""},
		{u, "object", "", "*url.URL http://a/b", "Scheme=http Opaque= User=nil Host=a Path=/b…"},
		{context.WithValue(context.Background(), color(1), 2), "object", "", "context.valueCtx", "Context=context.backgroundCtx"},
		{errors.Join(errors.New("a"), errors.New("b")), "object", "error", "*errors.joinError: a\nb", ""},
		{plain.Method, "function", "", "", ""},
	} {
		o := Of(c.v, Immutable).Remote(nil, true)
		if o.Type != c.typ || o.Subtype != c.subtype || c.text != "" && o.Description != c.text {
			t.Errorf("%T: %s %q %q, want %s %q %q", c.v, o.Type, o.Subtype, o.Description, c.typ, c.subtype, c.text)
		}
		if got := previewText_(o.Preview); got != c.preview {
			t.Errorf("%T: preview %q, want %q", c.v, got, c.preview)
		}
		// Every value can be expanded.
		_ = Of(c.v, Immutable).Properties(nil, Query{Preview: true})
		_ = Of(c.v, nil).Properties(nil, Query{Accessors: true})
	}
	if o := Of(secretText_("pw"), nil).Remote(nil, true); string(o.Value) != `"hidden"` {
		t.Errorf("%+v", o)
	}
	if o := Of(plain.Method, nil).Remote(nil, true); !strings.HasPrefix(o.Description, "mirror․plain․Method(") || !strings.Contains(o.Description, "(string, error) mirror_test.go:") {
		t.Error(o.Description)
	}
	m, _ := reflect.TypeFor[plain]().MethodByName("Method")
	if got := MethodOf(reflect.TypeFor[plain](), m).Text(); !strings.HasPrefix(got, "Method(n⠀int, ...names⠀string) { /* (string, error) mirror_test.go:") {
		t.Error(got)
	}
}

func previewText_(p *remote.Preview) string {
	if p == nil {
		return ""
	}
	var parts []string
	for _, x := range p.Properties {
		parts = append(parts, x.Name+"="+x.Value)
	}
	for _, e := range p.Entries {
		parts = append(parts, e.Key.Description+"=>"+e.Value.Description)
	}
	out := strings.Join(parts, " ")
	if p.Overflow {
		out += "…"
	}
	return out
}

type guarded struct {
	mu    sync.RWMutex
	N     int
	M     map[string]int
	Inner *inner
	Back  *guarded
}

type inner struct {
	mu sync.Mutex
	N  int
}

func intOf(v Value, ok bool, err error) (int64, error) {
	if err != nil || !ok {
		return -1, err
	}
	return v.Reflect().Int(), nil
}

func TestGuards(t *testing.T) {
	g := &guarded{N: 1, M: map[string]int{"a": 1}, Inner: &inner{N: 2}}
	g.Back = g
	var outer sync.Mutex
	jobs := make(chan func())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for f := range jobs {
			f()
		}
	}()
	plainLocked := struct{ sync.Locker }{&outer}
	for name, guard := range map[string]Guard{"none": nil, "its own": Locked(&g.mu), "another": Locked(&outer), "plain": Locked(plainLocked), "reading": Locked(g.mu.RLocker()), "executor": OnExecutor(func(f func()) { jobs <- f }), "immutable": Immutable} {
		x := Of(g, guard)
		if n, err := intOf(x.Get("N")); n != 1 || err != nil {
			t.Errorf("%s: %d, %v", name, n, err)
		}
		m, ok, err := x.Get("M")
		if err != nil || !ok || m.Len() != 1 {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
		if n, err := intOf(m.Get("a")); n != 1 || err != nil {
			t.Errorf("%s: %d, %v", name, n, err)
		}
		in, _, _ := x.Get("Inner")
		if n, err := intOf(in.Get("N")); n != 2 || err != nil {
			t.Errorf("%s: %d, %v", name, n, err)
		}
		back, _, _ := x.Get("Back")
		if n, err := intOf(back.Get("N")); n != 1 || err != nil {
			t.Errorf("%s: on a way back: %d, %v", name, n, err)
		}
	}
	close(jobs)
	<-done

	// A lock of a part keeps that part only from being read.
	g.Inner.mu.Lock()
	x := Of(g, nil)
	in, _, err := x.Get("Inner")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := intOf(in.Get("N")); !errors.Is(err, ErrBusy) {
		t.Errorf("%v", err)
	}
	g.Inner.mu.Unlock()
	g.mu.Lock()
	for name, guard := range map[string]Guard{"none": nil, "try": TryLocked(&g.mu, time.Millisecond), "plain": TryLocked(struct{ sync.Locker }{&g.mu}, time.Millisecond)} {
		if _, err := intOf(Of(g, guard).Get("N")); !errors.Is(err, ErrBusy) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := Of(g, nil).Properties(nil, Query{})
	if len(p.Internal) == 0 || p.Internal[0].Name != "[[Unreadable]]" {
		t.Errorf("%+v", p)
	}
	g.mu.Unlock()
	// An executor that runs nothing is asked a few times only.
	dead := OnExecutor(func(func()) {})
	for range maxWaiting + 1 {
		if err := dead.Do(func() { t.Error("it ran") }); !errors.Is(err, ErrBusy) {
			t.Error(err)
		}
	}
}

func TestUnguardedMaps(t *testing.T) {
	x := Of(&struct{ M map[string]int }{map[string]int{"a": 1}}, nil)
	m, _, _ := x.Get("M")
	if _, _, err := m.Get("a"); !errors.Is(err, ErrUnguarded) {
		t.Error(err)
	}
	if _, err := m.Names(10); !errors.Is(err, ErrUnguarded) {
		t.Error(err)
	}
	if _, _, err := m.Pairs(10); !errors.Is(err, ErrUnguarded) {
		t.Error(err)
	}
	if _, more := m.Edges(10); !more {
		t.Error("its entries were walked")
	}
	p := m.Properties(nil, Query{Accessors: true})
	if len(p.Result) != 1 || p.Result[0].Get == nil {
		t.Errorf("%+v", p)
	}
	if err := m.Set("a", reflect.ValueOf(2)); err == nil {
		t.Error("it was written to")
	}
}

func TestWrites(t *testing.T) {
	g := &guarded{M: map[string]int{"a": 1}}
	for _, guard := range []Guard{nil, Locked(&g.mu)} {
		x := Of(g, guard)
		if err := x.Set("N", reflect.ValueOf(7)); err != nil || g.N != 7 {
			t.Error(err)
		}
		m, _, _ := x.Get("M")
		if err := m.Set("b", reflect.ValueOf(2)); err != nil || g.M["b"] != 2 {
			t.Error(err)
		}
		if err := m.Delete("b"); err != nil || len(g.M) != 1 {
			t.Error(err)
		}
	}
	for _, guard := range []Guard{Immutable, Locked(g.mu.RLocker())} {
		if err := Of(g, guard).Set("N", reflect.ValueOf(9)); !errors.Is(err, ErrReadOnly) || g.N != 7 {
			t.Error(err)
		}
	}
}

func BenchmarkProperties(b *testing.B) {
	list := make([]*plain, 5000)
	for i := range list {
		list[i] = &plain{i, i}
	}
	x := Of(list, Immutable)
	l := &Lens{Bind: func(Object) string { return "1" }}
	b.ReportAllocs()
	for b.Loop() {
		if p := x.Properties(l, Query{Preview: true}); len(p.Result) < 5000 {
			b.Fatal(len(p.Result))
		}
	}
}

// BenchmarkFragment is the expansion of a hundred elements in the middle of a million.
func BenchmarkFragment(b *testing.B) {
	list := make([]*plain, 1_000_000)
	for i := range list {
		list[i] = &plain{i, i}
	}
	f := Fragment{List: Of(list, Immutable), From: 500_000, To: 500_099}
	l := &Lens{Bind: func(Object) string { return "1" }}
	b.ReportAllocs()
	for b.Loop() {
		if p := f.Properties(l, Query{Preview: true}); len(p.Result) != 100 {
			b.Fatal(len(p.Result))
		}
	}
}
