package treecap_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/producer/treecap"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/tree"
	"github.com/natscope/natscope/subjects/value"
)

type level int

func (l level) String() string { return [...]string{"low", "high"}[l] }

type secret string

func (secret) LogValue() slog.Value { return slog.StringValue("REDACTED") }

type password string

func (password) String() string { return "****" }

type point struct{ X, Y int }

type cache struct {
	sync.Mutex
	Name     string
	Level    level
	Size     int
	Ratio    float64
	On       bool
	Timeout  time.Duration
	Err      error
	None     *int
	Hits     atomic.Int64
	Newest   atomic.Pointer[point]
	At       point
	Other    *cache
	Tags     []string
	Entries  map[string]int
	Key      secret
	Pass     password
	Hidden   string `natscope:"-"`
	Guard    sync.RWMutex
	Callback func()
	private  int
}

func newCache() *cache {
	return &cache{Name: "users", Level: 1, Size: 3, Ratio: 0.5, On: true, Timeout: 1500 * time.Millisecond,
		Err: errors.New("no disk"), At: point{1, 2}, Other: &cache{}, Tags: []string{"a", "b"},
		Entries: map[string]int{"b": 2, "a": 1}, Key: "key-4711", Pass: "pass-4711", Hidden: "hidden-4711", private: 4711}
}

// node returns the first child of the root, whose values must be ones that readers take.
func (r *rig) node() *tree.Entry {
	r.t.Helper()
	root, _, _, _ := r.tree()
	if len(root.Children) == 0 {
		r.t.Fatalf("no component in\n%s", show(root))
	}
	e := root.Children[0]
	valid(r.t, e)
	return e
}

func valid(t testing.TB, e *tree.Entry) {
	t.Helper()
	for name, v := range e.Values {
		if _, err := value.Parse(v); err != nil {
			t.Errorf("value %q is %.200s: %v", name, v, err)
		}
		if e.ValueKinds[name] == "" {
			t.Errorf("value %q has no kind", name)
		}
	}
	for _, name := range e.Writable {
		if e.Values[name] == nil {
			t.Errorf("%q is writable and no value", name)
		}
	}
}

func attr(e *tree.Entry, name string) string {
	for _, a := range e.Attrs {
		if a.Name == name {
			return a.Value
		}
	}
	return ""
}

func wantValues(t testing.TB, e *tree.Entry, want map[string]string) {
	t.Helper()
	for name, w := range want {
		if got := string(e.Values[name]); got != w {
			t.Errorf("value %s is %s, want %s", name, got, w)
		}
	}
}

func TestRegisterShowsFields(t *testing.T) {
	r := newRig(t, subjects.Limits{})
	tr := treecap.New(r.p, treecap.Options{Interval: time.Hour})
	c := newCache()
	c.Hits.Store(7)
	c.Newest.Store(&point{})
	comp := tr.Register(nil, "cache", c, treecap.Locked(c), treecap.Kind("cache"), treecap.Attr("size", "mine"))
	comp.Add("part")
	r.sync(tr)
	e := r.node()
	wantValues(t, e, map[string]string{
		"Name": `"users"`, "Level": `1`, "Size": `3`, "Ratio": `0.5`, "On": `true`, "Timeout": `"1.5s"`, "None": `null`, "Hits": `7`,
		"Err":     `{"__natscope":"error","name":"*errors.errorString","message":"no disk"}`,
		"At":      `{"__natscope":"instance","name":"treecap_test.point","fields":{"X":1,"Y":2}}`,
		"Other":   `{"__natscope":"dehydrated","type":"object","preview":"*treecap_test.cache","size":0,"opaque":true}`,
		"Newest":  `{"__natscope":"dehydrated","type":"object","preview":"*treecap_test.point","size":0,"opaque":true}`,
		"Tags":    `["a","b"]`,
		"Entries": `{"a":1,"b":2}`,
		"Key":     `"REDACTED"`, "Pass": `"****"`, "Callback": `null`,
	})
	for name := range e.Values {
		if name == "Mutex" || name == "Guard" || name == "Hidden" || name == "private" {
			t.Errorf("value %s is shown", name)
		}
	}
	if all := fmt.Sprint(e.Node); strings.Contains(all, "4711") {
		t.Errorf("a secret is in %s", all)
	}
	if got := show(e); !strings.HasPrefix(got, `cache:cache size=mine Name=users Level=high Size=3 Ratio=0.5 On=true Timeout=1.5s Err=*errors.errorString: no disk Hits=7`+"\n part") {
		t.Errorf("shown is\n%s", got)
	}
	if !strings.Contains(e.Loc, "component_test.go:") {
		t.Errorf("loc %q", e.Loc)
	}
	_, _, _, src := r.tree()
	if e.Object == "" || src.Tree.Registry == "" {
		t.Errorf("object %q of registry %q", e.Object, src.Tree.Registry)
	}
	if v, ok := tr.Object(e.Object); !ok || v != any(c) {
		t.Errorf("object %v, %v", v, ok)
	}
}

func TestRegisterAnything(t *testing.T) {
	for name, c := range map[string]struct {
		v    any
		opts []treecap.ComponentOption
		want map[string]string
	}{
		"nothing":        {nil, nil, nil},
		"number":         {42, nil, map[string]string{"value": "42"}},
		"text":           {"x", nil, map[string]string{"value": `"x"`}},
		"time":           {time.UnixMilli(0), nil, map[string]string{"value": `{"__natscope":"date","iso":"1970-01-01T00:00:00.000Z"}`}},
		"nil pointer":    {(*cache)(nil), nil, map[string]string{"value": "null"}},
		"struct":         {point{1, 2}, nil, map[string]string{"X": "1", "Y": "2"}},
		"pointers":       {ptr(ptr(ptr(&point{1, 2}))), nil, map[string]string{"X": "1"}},
		"slice":          {[]any{1, "a", nil}, nil, map[string]string{"value": `[1,"a",null]`}},
		"bytes":          {[]byte("ab"), nil, map[string]string{"value": `{"__natscope":"dehydrated","type":"typedarray","preview":"[]byte(2) \"ab\"","size":2,"opaque":true}`}},
		"map":            {map[string]int{"a": 1}, nil, map[string]string{"value": `{"__natscope":"dehydrated","type":"map","preview":"map[string]int, read with treecap.Locked only","size":0,"opaque":true}`}},
		"locked map":     {map[int]any{10: "x", 9: map[string]int{"y": 1}}, []treecap.ComponentOption{treecap.Locked(new(sync.RWMutex))}, map[string]string{"10": `"x"`, "9": `{"y":1}`}},
		"snapshot":       {&point{}, []treecap.ComponentOption{treecap.Snapshot(func() any { return map[string]any{"n": 1, "m": map[point]int{{1, 2}: 3}} })}, map[string]string{"n": "1"}},
		"bad snapshot":   {nil, []treecap.ComponentOption{treecap.Snapshot(func() any { panic("no snapshot") })}, map[string]string{"value": `{"__natscope":"threw","message":"no snapshot"}`}},
		"log valuer":     {logged{}, nil, map[string]string{"a": "1", "in": `"x"`, "g": `{"b":true}`}},
		"bad log valuer": {badLogged{}, nil, nil},
		"computed":       {&point{}, []treecap.ComponentOption{treecap.Computed("sum", func() any { return 3 }), treecap.Computed("bad", func() any { panic(errors.New("no sum")) })}, map[string]string{"X": "0", "sum": "3", "bad": `{"__natscope":"threw","message":"no sum"}`}},
		"bad lock":       {&point{}, []treecap.ComponentOption{treecap.Locked((*sync.Mutex)(nil))}, map[string]string{}},
		"other lock":     {&point{3, 4}, []treecap.ComponentOption{treecap.Locked(new(sync.RWMutex).RLocker())}, map[string]string{"Y": "4"}},
		"circle":         {circular(), nil, nil},
		"odd enum":       {struct{ L level }{7}, nil, map[string]string{"L": "7"}},
		"channel":        {make(chan int, 3), nil, map[string]string{"value": `{"__natscope":"instance","name":"chan int","fields":{"len":0,"cap":3}}`}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, subjects.Limits{})
			tr := treecap.New(r.p, treecap.Options{Interval: time.Hour})
			tr.Register(nil, "c", c.v, c.opts...)
			r.sync(tr)
			wantValues(t, r.node(), c.want)
		})
	}
}

func ptr[T any](v T) *T { return &v }

type loop *loop

func circular() any {
	var l loop
	l = &l
	return l
}

type logged struct{}

func (logged) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("a", 1), slog.Group("", slog.String("in", "x")), slog.Group("g", slog.Bool("b", true)))
}

type badLogged struct{}

func (badLogged) LogValue() slog.Value { panic("no log value") }

func TestUpdateSendsWhatChanged(t *testing.T) {
	r := newRig(t, subjects.Limits{})
	tr := treecap.New(r.p, treecap.Options{Interval: time.Hour})
	v := &point{1, 2}
	c := tr.Register(nil, "point", v)
	r.sync(tr)
	for range 10 {
		c.Update()
	}
	r.sync(tr)
	if _, ops, _, _ := r.tree(); ops != 0 {
		t.Errorf("%d operations though nothing changed", ops)
	}
	v.X = 5
	c.Update()
	v.X = 6
	c.Update()
	r.sync(tr)
	if _, ops, _, _ := r.tree(); ops != 1 {
		t.Errorf("%d operations for one change", ops)
	}
	if e := r.node(); attr(e, "X") != "6" || string(e.Values["X"]) != "6" {
		t.Errorf("shown is %s", show(e))
	}
	c.Close()
	v.X = 7
	c.Update()
	c.Close()
	c.Add("ghost")
	r.sync(tr)
	if root, _, _, _ := r.tree(); len(root.Children) != 0 {
		t.Errorf("after Close:\n%s", show(root))
	}
}

// TestUpdateWithTheLockHeld is what an owner does without thinking: it must not hang, and the change must show.
func TestUpdateWithTheLockHeld(t *testing.T) {
	for name, mu := range map[string]sync.Locker{"mutex": new(sync.Mutex), "rwmutex": new(sync.RWMutex)} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, subjects.Limits{})
			tr := treecap.New(r.p, treecap.Options{Interval: time.Millisecond})
			v := &point{1, 2}
			mu.Lock()
			c := tr.Register(nil, "point", v, treecap.Locked(mu))
			v.X = 5
			c.Update()
			v.X = 6
			mu.Unlock()
			natstest.Until(t, "the change is shown", func() bool {
				root, _, _, _ := r.tree()
				return root != nil && len(root.Children) == 1 && attr(root.Children[0], "X") == "6"
			})
			tr.Close()
		})
	}
}

// TestOwnersRace has writers that hold the lock, and some that own an unguarded map, under the race detector.
func TestOwnersRace(t *testing.T) {
	r := newRig(t, subjects.Limits{})
	tr := treecap.New(r.p, treecap.Options{Interval: time.Millisecond})
	v := newCache()
	c := tr.Register(nil, "cache", v, treecap.Locked(v), treecap.Computed("n", func() any { return v.Hits.Load() }))
	unguarded := &cache{Entries: map[string]int{}, Other: &cache{}}
	u := tr.Register(nil, "unguarded", unguarded)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 500 {
				v.Lock()
				v.Size = g*1000 + i
				v.Entries[fmt.Sprint(i%10)] = i
				v.Other = &cache{Size: i}
				v.Unlock()
				v.Hits.Add(1)
				c.Update()
			}
		})
	}
	stop := make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				unguarded.Entries["x"] = i
				unguarded.Other.Size = i
				runtime.Gosched()
			}
		}
	})
	wg.Go(func() {
		for range 500 {
			u.Update()
		}
	})
	wg.Wait()
	close(stop)
	others.Wait()
	natstest.Until(t, "the last update is shown", func() bool {
		r.sync(tr)
		return attr(r.node(), "Hits") == "2000"
	})
	tr.Close()
}

func TestReentrantUpdate(t *testing.T) {
	r := newRig(t, subjects.Limits{})
	tr := treecap.New(r.p, treecap.Options{Interval: time.Hour})
	var c *treecap.Component
	calls := 0
	c = tr.Register(nil, "c", &point{}, treecap.Computed("again", func() any {
		if calls++; c != nil {
			c.Update()
		}
		return calls
	}))
	c.Update()
	if calls < 2 || calls > 10 {
		t.Errorf("%d readings", calls)
	}
	tr.Close()
}

func TestLargeComponents(t *testing.T) {
	r := newRig(t, subjects.Limits{})
	tr := treecap.New(r.p, treecap.Options{Interval: time.Hour})
	wide := map[string]any{}
	for i := range 300 {
		wide[fmt.Sprintf("k%03d", i)] = strings.Repeat("é", 5000)
	}
	wide["a bigint"] = strings.Repeat("1", 20000)
	wide["a list"] = make([]string, 5000)
	wide["a map"] = map[string]string{"x": strings.Repeat("<", 20000)}
	wide["a nested list"] = [][]int{make([]int, 1000)}
	wide["a wide map"] = map[string]map[int]int{"w": {}}
	for i := range 3000 {
		wide["a wide map"].(map[string]map[int]int)["w"][i] = i
	}
	edit := treecap.Writable("k000", func(string) error { return nil })
	tr.Register(nil, "wide", wide, treecap.Snapshot(func() any { return wide }), edit)
	r.sync(tr)
	e := r.node()
	data, err := json.Marshal(e.Node)
	if err != nil || len(data) > 80<<10 {
		t.Errorf("the node has %d bytes, %v", len(data), err)
	}
	if got := attr(e, "k000"); !strings.HasSuffix(got, "é… (5000 characters)") || len(got) > 200 {
		t.Errorf("k000=%.300s", got)
	}
	left := 305 - len(e.Values)
	if got := attr(e, "natscope-truncated"); got != fmt.Sprintf("%d more values do not fit", left) || left < 205 {
		t.Errorf("truncated %q, %d values", got, len(e.Values))
	}
	if len(e.Attrs) > 12 {
		t.Errorf("%d attributes", len(e.Attrs))
	}
	for name, v := range e.Values {
		if len(v) > 9<<10 {
			t.Errorf("value %s has %d bytes", name, len(v))
		}
	}
}

// Case C9: a map with 100 000 entries travels as its kind and size; whoever opens
// it gets the first entries, one level deep, marked as a part.
func TestLargeMap(t *testing.T) {
	r := newRig(t, subjects.Limits{})
	tr := treecap.New(r.p, treecap.Options{Interval: time.Hour})
	cache := struct{ Entries map[string]any }{map[string]any{}}
	for i := range 100_000 {
		cache.Entries[fmt.Sprintf("k%06d", i)] = map[string]any{"i": []int{i}}
	}
	c := tr.Register(nil, "cache", cache, treecap.Snapshot(func() any { return cache }))
	r.sync(tr)
	e := r.node()
	v, err := value.Parse(e.Values["Entries"])
	if err != nil || v.Kind != value.Dehydrated || v.Size != 100_000 || len(e.Values["Entries"]) > 1<<10 {
		t.Errorf("%s of %d entries, %v: %.300s", v.Kind, v.Size, err, e.Values["Entries"])
	}
	raw, err := tr.Inspect(t.Context(), e.ID, []realm.Step{{Name: "Entries"}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	v, err = value.Parse(raw)
	if err != nil || !v.Partial || v.Size != 100_000 || len(v.Fields) == 0 || len(v.Fields) > value.MaxEntries || len(raw) > 64<<10 {
		t.Errorf("opened: %s %v: %d of %d entries, partial %v, %d bytes", v.Kind, err, len(v.Fields), v.Size, v.Partial, len(raw))
	}
	for _, f := range v.Fields {
		if f.Value.Kind != value.Dehydrated {
			t.Errorf("%s is %s", f.Name, f.Value.Kind)
		}
	}
	// Reading it takes what is shown takes, not what it holds.
	if n := testing.AllocsPerRun(5, c.Update); n > 5000 {
		t.Errorf("an update makes %v allocations", n)
	}
	tr.Close()
}

func TestObjectsLiveWhileRegistered(t *testing.T) {
	r := newRig(t, subjects.Limits{ComponentNodes: 5})
	tr := treecap.New(r.p, treecap.Options{Interval: time.Hour})
	parent := tr.Register(nil, "parent", &point{1, 1})
	child := tr.Register(parent.Node(), "child", &point{2, 2})
	r.sync(tr)
	e := r.node()
	refs := []tree.ObjectRef{e.Object, e.Children[0].Object}
	for i, ref := range refs {
		if v, ok := tr.Object(ref); !ok || v.(*point).X != i+1 {
			t.Errorf("object %q is %v, %v", ref, v, ok)
		}
	}
	other := treecap.New(r.p, treecap.Options{})
	other.Register(nil, "x", &point{})
	for _, ref := range append(refs, "", "tree", "x.1", refs[0]+"0", tree.ObjectRef(strings.Replace(string(refs[0]), ".", ".0", 1)), tree.ObjectRef(strings.Replace(string(refs[0]), ".", ".+", 1))) {
		if v, ok := other.Object(ref); ok {
			t.Errorf("another tree has an object %q: %v", ref, v)
		}
	}
	if _, ok := tr.Object(refs[0] + "0"); ok {
		t.Error("an unknown reference has an object")
	}
	// The tree is full: what does not fit is not held.
	freed := make(chan struct{})
	func() {
		tr.Register(nil, "a", &point{})
		tr.Register(nil, "b", &point{})
		v := new([100]int)
		runtime.SetFinalizer(v, func(*[100]int) { close(freed) })
		tr.Register(nil, "beyond", v).Update()
	}()
	natstest.Until(t, "the value that did not fit is collected", func() bool {
		runtime.GC()
		select {
		case <-freed:
			return true
		default:
			return false
		}
	})
	parent.Close()
	for _, ref := range refs {
		if v, ok := tr.Object(ref); ok {
			t.Errorf("object %q is still there: %v", ref, v)
		}
	}
	child.Update()
	child.Close()
	tr.Close()
	other.Close()
}

func TestRegisterAfterClose(t *testing.T) {
	r := newRig(t, subjects.Limits{})
	tr := treecap.New(r.p, treecap.Options{})
	tr.Close()
	called := false
	c := tr.Register(nil, "late", nil, treecap.Snapshot(func() any { called = true; return 1 }))
	c.Update()
	c.Close()
	if called {
		t.Error("a component that nobody can see was read")
	}
}
