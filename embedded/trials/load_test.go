package trials

import (
	"context"
	"encoding/json"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/treecap"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/value"
)

// numbered is the topic of the events that carry the numbers of a load, from 1.
const numbered = "n"

// line makes a console message of one value.
func line(v any) console.Message {
	return console.Message{Type: "log", Args: []json.RawMessage{value.Encode(v)}}
}

// load is a program that does everything at once and numbers what it does, so
// that readers can tell what is missing, doubled or out of order.
type load struct {
	p    *producer.Producer
	tree *treecap.Tree
	node *treecap.Node
	// n is the newest number. requests counts finished requests.
	n        atomic.Uint64
	requests atomic.Uint64
	// slowest is the longest that one call of the producer took, in nanoseconds.
	slowest atomic.Int64
	quit    chan struct{}
	once    sync.Once
	done    chan struct{}
}

// everyTick is how often a load does something.
const everyTick = 10 * time.Millisecond

// drive starts a load on a producer; with a tree it also keeps an attribute of one node at the newest number.
func drive(p *producer.Producer, tree *treecap.Tree, perSecond int) *load {
	l := &load{p: p, tree: tree, quit: make(chan struct{}), done: make(chan struct{})}
	if tree != nil {
		l.node = tree.Root().Add("counter", treecap.Attr("n", 0))
	}
	go l.run(perSecond)
	return l
}

func (l *load) run(perSecond int) {
	defer close(l.done)
	tick := time.NewTicker(everyTick)
	defer tick.Stop()
	owed := 0.0
	for {
		select {
		case <-l.quit:
			return
		case <-tick.C:
		}
		for owed += float64(perSecond) * everyTick.Seconds(); owed >= 1; owed-- {
			start := time.Now()
			l.act(l.n.Add(1))
			if took := int64(time.Since(start)); took > l.slowest.Load() {
				l.slowest.Store(took)
			}
		}
	}
}

// act does what belongs to one number: an event always, now and then a line, a request and a change of the tree.
func (l *load) act(n uint64) {
	_ = l.p.Publish(numbered, n) // A closed producer is the only error, and the end of the load.
	if n%2 == 0 {
		l.p.Record(subjects.PlaneConsole, console.TopicMessage, line(n))
	}
	if n%10 == 0 {
		id := network.RequestID("r" + strconv.FormatUint(n, 10))
		l.p.Record(subjects.PlaneNet, network.TopicStart, network.Start{ID: id, Method: "GET", URL: "http://example.test/" + string(id)})
		l.p.Record(subjects.PlaneNet, network.TopicResponse, network.Response{ID: id, Status: 200})
		l.p.Record(subjects.PlaneNet, network.TopicEnd, network.End{ID: id, Bytes: int64(n)})
		l.requests.Add(1)
	}
	if l.node != nil && n%5 == 0 {
		l.node.Set("n", n)
	}
}

// stop ends the load; the producer goes on.
func (l *load) stop() {
	l.once.Do(func() { close(l.quit) })
	<-l.done
}

// startLoad starts a producer with a load that ends with the test.
func startLoad(t testing.TB, url, name string, perSecond int, change ...func(*producer.Options)) *load {
	t.Helper()
	o := producer.Options{Service: name, Instance: "1", Name: name, URL: url, Limits: subjects.Limits{ReconnectMax: time.Second}}
	for _, f := range change {
		f(&o)
	}
	p, err := producer.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	l := drive(p, treecap.New(p, treecap.Options{RootName: name}), perSecond)
	t.Cleanup(func() {
		l.stop()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = p.Close(ctx) // The server may be gone by now.
	})
	return l
}

// finish ends the load and waits until everything that it recorded is acknowledged.
func (l *load) finish(t testing.TB) {
	t.Helper()
	l.stop()
	l.tree.Flush()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := l.p.Flush(ctx); err != nil {
		t.Fatalf("%s: %v; %+v", l.p.ID(), err, l.p.Stats())
	}
}

// cpuTime is the processor time of this process.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// liveHeap is the size of what is reachable, in bytes.
func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
