package goreal

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/natscope/natscope/producer/goreal/internal/remote"
)

// busy is a store that is written to all the time.
type busy struct {
	mu     sync.RWMutex
	Byte   []byte
	Orders map[string]*busyOrder
	Grid   map[point]any
	List   []*busyOrder
	Name   string
	Err    error
	When   time.Time
	Any    any
	Hits   atomic.Int64
	Inner  struct{ A, B string }
	Queue  chan int
	Sync   sync.Map
	Parent *busy
	Cursor *busyCursor
}

// busyOrder has a lock of its own.
type busyOrder struct {
	mu    sync.Mutex
	ID    int
	Lines []string
	Meta  map[string]int
	Back  *busy
}

// busyCursor is guarded by the store around it.
type busyCursor struct {
	At   int
	Seen map[int]string
}

func newBusy() *busy {
	b := &busy{Orders: make(map[string]*busyOrder), Grid: make(map[point]any), Queue: make(chan int, 4), Cursor: &busyCursor{Seen: make(map[int]string)}}
	b.Parent = b
	for i := range 20 {
		b.Orders[fmt.Sprint(i)] = &busyOrder{ID: i, Meta: make(map[string]int), Back: b}
	}
	return b
}

// write changes everything, each under the lock that guards it.
func (b *busy) write(n int) {
	b.mu.Lock()
	b.Name = strings.Repeat("x", n%40)
	b.Err = fmt.Errorf("e%d: %w", n, context.Canceled)
	b.When = time.Unix(int64(n), 0)
	b.Any = []any{n, b.Name, point{n, n}}[n%3]
	b.Byte = append(b.Byte[:0:0], b.Name...)
	b.Inner.A, b.Inner.B = b.Name, fmt.Sprint(n)
	b.Grid[point{n % 50, 1}] = n
	delete(b.Grid, point{(n + 7) % 50, 1})
	b.Cursor.At = n
	b.Cursor.Seen[n%100] = b.Name
	o := &busyOrder{ID: n, Meta: make(map[string]int), Back: b}
	b.Orders[fmt.Sprint(n%30)] = o
	delete(b.Orders, fmt.Sprint((n+3)%30))
	b.List = append(b.List[max(0, len(b.List)-30):len(b.List):len(b.List)], o)
	list := b.List
	b.mu.Unlock()
	b.Hits.Add(1)
	b.Sync.Store(n%10, n)
	select {
	case b.Queue <- n:
	case <-b.Queue:
	}
	for _, o := range list[max(0, len(list)-3):] {
		o.mu.Lock()
		o.ID++
		o.Lines = append(o.Lines[max(0, len(o.Lines)-5):len(o.Lines):len(o.Lines)], b.String())
		o.Meta[fmt.Sprint(n%10)] = n
		o.mu.Unlock()
	}
}

func (b *busy) String() string { return "busy" }

// Len is a method that locks by itself.
func (b *busy) Len() int {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return len(b.Orders)
}

// loop owns values that only its goroutine touches.
type loop struct {
	jobs  chan func()
	State map[string][]int
	Turn  int
}

func (l *loop) run(ctx context.Context) {
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case f := <-l.jobs:
			f()
		default:
		}
		l.Turn = n
		l.State[fmt.Sprint(n%10)] = append(l.State[fmt.Sprint(n%10)][:0:0], n)
	}
}

// TestNoRaces walks everything, as a session of DevTools does, while two writers
// change it at full speed. The race detector is the judge.
func TestNoRaces(t *testing.T) {
	r := newRealm(nil, Options{Writable: true})
	b := newBusy()
	l := &loop{jobs: make(chan func()), State: make(map[string][]int)}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for range 2 {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				b.write(n)
			}
		})
	}
	wg.Go(func() { l.run(ctx) })
	for name, x := range map[string]struct {
		v any
		g Guard
	}{
		"auto": {b, nil}, "locked": {b, Locked(&b.mu)}, "patient": {b, TryLocked(&b.mu, time.Second)}, "plain": {b, Locked(plainLock{&b.mu})},
		"loop": {l, OnExecutor(func(f func()) {
			select {
			case l.jobs <- f:
			case <-ctx.Done():
				f()
			}
		})},
		"copied": {Snapshot(func() any {
			b.mu.RLock()
			defer b.mu.RUnlock()
			out := make(map[string]int)
			for k := range b.Orders {
				out[k] = len(k)
			}
			return out
		}), nil},
	} {
		if err := r.Expose(name, x.v, x.g); err != nil {
			t.Fatal(err)
		}
	}
	c := dial(t, r)
	read, unread := 0, 0
	{
		for _, root := range []string{"auto", "locked", "patient", "plain", "loop", "copied"} {
			w := walk{c: c, left: 60}
			w.object(c.eval(root).Result, 0)
			read, unread = read+w.read, unread+w.unread
			c.must("runtime.releaseObjectGroup", m{"objectGroup": "console"}, nil)
		}
		for _, in := range []string{
			"auto.Name + auto.Hits", "Object.keys(auto.Orders).length", "Object.values(auto.Orders).map(o => o.ID + o.Lines.length).length", "[...auto.Grid].length", "auto.Grid.get({X: 1, Y: 1})", "JSON.stringify(auto.List).length", "auto.Len()", "String(auto.Err)", "auto.When + ''",
			"auto.Any", "auto.List.map(o => o.Meta.size).length", "auto.Inner.A", "auto.Inner", "auto.Byte.length", "auto.Parent === auto", "loop.State", "loop.Turn", "Object.values(loop.State).flat().length", "Object.keys(copied)", "goroutines.length > 1", "auto.Cursor.Seen", "auto.Sync", "auto.Queue.len",
			"auto.Name = 'set'", "auto.Orders[1] = null", "delete auto.Orders[2]", "auto.Cursor.At = 1", "loop.Turn = 2", "auto.Inner.B = 'b'", "console.table(auto.List)", "console.log(auto, auto.Orders)",
		} {
			c.eval(in)
			c.pure(in)
		}
		c.must("heap.takeHeapSnapshot", m{}, nil)
		// A lock that is always taken may keep any single reading out.
		found := ""
		for n := 0; n < 50 && (found == "" || found == "Array(0)"); n++ {
			var q struct{ Objects remote.Object }
			if x := c.eval("Object.values(auto.Orders)[0].constructor"); x.Exception == nil {
				c.must("runtime.queryObjects", m{"prototypeObjectId": x.Result.ObjectID}, &q)
				found = q.Objects.Description
			}
		}
		if found == "" || found == "Array(0)" {
			t.Errorf("no orders were found: %s", found)
		}
	}
	t.Logf("%d objects were read, %d could not be, while %d writes were made", read, unread, b.Hits.Load())
	if unread > read {
		t.Error("most objects were not read")
	}
	if b.Hits.Load() < 10 {
		t.Error("the writers did not run")
	}
}

// plainLock is a lock that cannot be tried.
type plainLock struct{ *sync.RWMutex }

func (l plainLock) TryLock(never int) {}

// walk expands objects as far as it may.
type walk struct {
	c    *client
	left int
	// read and unread count the objects that could be read and those that could not.
	read, unread int
}

func (w *walk) object(o *remote.Object, depth int) {
	if o == nil || o.ObjectID == "" || w.left <= 0 || depth > 6 {
		return
	}
	w.left--
	var p remote.Properties
	w.c.must("runtime.getProperties", m{"objectId": o.ObjectID, "ownProperties": true, "generatePreview": true}, &p)
	if internalText(p, "[[Unreadable]]") == "<none>" {
		w.read++
	} else {
		w.unread++
	}
	for _, x := range p.Result {
		w.object(x.Value, depth+1)
	}
	for _, x := range p.Internal {
		w.object(x.Value, depth+1)
	}
}
