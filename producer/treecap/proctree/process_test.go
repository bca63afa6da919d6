package proctree

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/producer/treecap/internal/treetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// park starts n goroutines that wait until leave is closed, and returns when all wait.
func park(t testing.TB, n int) (leave func()) {
	t.Helper()
	c := make(chan struct{})
	var wg sync.WaitGroup
	for range n {
		wg.Add(1)
		go parked(c, &wg)
	}
	var once sync.Once
	leave = func() { once.Do(func() { close(c); wg.Wait() }) }
	t.Cleanup(leave)
	natstest.Until(t, "they wait", func() bool {
		buf := make([]byte, 4<<20)
		return strings.Count(string(buf[:runtime.Stack(buf, true)]), "[chan receive]:\ngithub.com/natscope/natscope/producer/treecap/proctree.parked(") == n
	})
	return leave
}

func parked(c chan struct{}, wg *sync.WaitGroup) {
	defer wg.Done()
	<-c
}

func TestProcess(t *testing.T) {
	r := treetest.New(t, natstest.Start(t))
	p := New(r.Tree, nil, Options{})
	got := r.Show()
	if want := fmt.Sprintf(" process pid=%d executable=proctree.test started=", os.Getpid()); !strings.Contains(got, want) || !strings.Contains(got, "go="+runtime.Version()) || !strings.Contains(got, "watched=false") {
		t.Errorf("at first\n%s", got)
	}
	if !strings.Contains(got, "  build module=github.com/natscope/natscope") || strings.Contains(got, "memory") || strings.Contains(got, "group") {
		t.Errorf("at first\n%s", got)
	}
	if values := r.Root().Children[0].Children[0].Values; values["module"] == nil || values["dependencies"] == nil {
		t.Errorf("the build is %s", values)
	}
	leave := park(t, 40)
	p.Refresh()
	const group = "group createdBy=github.com/natscope/natscope/producer/treecap/proctree.park state=chan receive count=40 at=github.com/natscope/natscope/producer/treecap/proctree.parked\n"
	if got := r.Show(); !strings.Contains(got, group) || !strings.Contains(got, "  memory heap=") || !strings.Contains(got, " limit=off") {
		t.Errorf("after the first reading\n%s", got)
	}
	found := false
	for _, e := range r.Root().Children[0].Children[2].Children {
		found = found || treetest.Attr(e, "count") == "40" && strings.Contains(e.Loc, "process_test.go:")
	}
	if !found {
		t.Error("the group does not say where it was created")
	}
	leave()
	r.Until("their group is gone", func(string) bool {
		p.Refresh()
		return !strings.Contains(r.Show(), "proctree.park ")
	})
	p.Close()
	p.Close()
	if got := r.Show(); got != "app\n" {
		t.Errorf("after Close\n%s", got)
	}
}

// TestManyGoroutines goes beyond what is read by stopping the program, and back.
func TestManyGoroutines(t *testing.T) {
	r := treetest.New(t, natstest.Start(t))
	p := New(r.Tree, nil, Options{})
	leave := park(t, maxTraced+100)
	p.Refresh()
	if got := r.Show(); !strings.Contains(got, "group startedIn=github.com/natscope/natscope/producer/treecap/proctree.parked state=chan receive count=600 at=github.com/natscope/natscope/producer/treecap/proctree.parked\n") || strings.Contains(got, "createdBy") {
		t.Errorf("many\n%s", got)
	}
	leave()
	natstest.Until(t, "they are gone", func() bool { return runtime.NumGoroutine() < maxTraced })
	p.Refresh()
	if got := r.Show(); strings.Contains(got, "startedIn") || !strings.Contains(got, "createdBy") {
		t.Errorf("few\n%s", got)
	}
	p.Close()
}

// TestBothWaysAgree compares what traces and profiles say of the same goroutines.
func TestBothWaysAgree(t *testing.T) {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	mu.Lock()
	cond := sync.NewCond(new(sync.Mutex))
	sink, never := make(chan int), make(chan int)
	woken := false
	for _, f := range []func(){
		func() { <-stop },
		func() {
			select {
			case <-stop:
			case <-never:
			}
		},
		func() { mu.Lock(); defer mu.Unlock() },
		func() {
			cond.L.Lock()
			for !woken {
				cond.Wait()
			}
			cond.L.Unlock()
		},
		func() {
			select {
			case sink <- 1:
			case <-stop:
			}
		},
	} {
		wg.Go(f)
	}
	defer func() {
		close(stop)
		mu.Unlock()
		cond.L.Lock()
		woken = true
		cond.L.Unlock()
		cond.Broadcast()
		wg.Wait()
	}()
	g := &goroutines{}
	states := func(c *census) string {
		n := map[string]int{}
		for k, s := range c.groups {
			if strings.Contains(s.where(), "TestBothWaysAgree.func") {
				n[strings.Replace(k.state, "sync.Mutex.Lock", "semacquire", 1)] += s.count
			}
		}
		return fmt.Sprint(n)
	}
	const want = "map[chan receive:1 select:2 semacquire:1 sync.Cond.Wait:1]"
	for name, read := range map[string]func(*census, int) bool{"trace": g.trace, "profile": g.profile} {
		got := ""
		natstest.Until(t, "all wait, by "+name, func() bool {
			c := newCensus()
			if !read(c, runtime.NumGoroutine()) {
				t.Fatal("not read")
			}
			if now := states(c); now != got {
				got = now
				t.Log(name, got)
			}
			return got == want
		})
	}
}

func TestWatch(t *testing.T) {
	r := treetest.New(t, natstest.Start(t))
	p := New(r.Tree, r.Tree.Root().Add("service"), Options{Interval: time.Millisecond})
	if p.interval != time.Millisecond || New(r.Tree, nil, Options{Interval: -1}).interval != defaultInterval {
		t.Error("the interval is wrong")
	}
	p.Watch(false)
	p.Watch(true)
	p.Watch(true)
	r.Until("the process is read", func(text string) bool {
		return strings.Contains(text, "watched=true") && strings.Contains(text, "createdBy=")
	})
	leave := park(t, 3)
	r.Until("it is read again", func(text string) bool { return strings.Contains(text, "proctree.park state=chan receive count=3") })
	p.Watch(false)
	p.Watch(false)
	p.watches.Wait()
	if p.goroutines.buf != nil {
		t.Error("the buffer is kept")
	}
	leave()
	if got := r.Show(); !strings.Contains(got, "watched=false") || !strings.Contains(got, "proctree.park state=chan receive count=3") {
		t.Errorf("after the watch\n%s", got)
	}
	p.Watch(true)
	p.Close()
	p.Watch(true)
	if p.stop != nil {
		t.Error("a closed process is watched")
	}
}

// TestConcurrentUse has everybody look, look away and refresh at once.
func TestConcurrentUse(t *testing.T) {
	r := treetest.New(t, natstest.Start(t))
	p := New(r.Tree, nil, Options{Interval: time.Millisecond})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 20 {
				p.Watch(i%2 == 0)
				p.Refresh()
			}
		})
	}
	wg.Wait()
	p.Close()
}

func TestTooMany(t *testing.T) {
	r := treetest.New(t, natstest.Start(t))
	g := newGoroutines(r.Tree.Root())
	c := newCensus()
	for i := range mostGroups + 500 {
		c.add(group{site: fmt.Sprintf("f%04d", i), state: "select"}, 1+i%2, fmt.Sprint(i), 0)
	}
	for i := range 100 {
		c.add(group{site: "f0000", state: "select"}, 1, fmt.Sprint("at", i), 5*time.Minute)
	}
	g.show(c, "createdBy")
	got := r.Show()
	if n := strings.Count(got, "group "); n != maxShown {
		t.Errorf("%d groups are shown", n)
	}
	// 1500 groups with 1.5 goroutines each, of which 199 with 2, and one with 101, are shown.
	if !strings.Contains(got, fmt.Sprintf("more=%d goroutines of other groups", 2250-199*2-1)) || !strings.Contains(got, "createdBy=f0000 state=select count=101 at=0 longest=5m0s\n") {
		t.Errorf("%.500s", got)
	}
	g.show(newCensus(), "createdBy")
	if got := r.Show(); got != "app\n goroutines\n" {
		t.Errorf("%.500s", got)
	}
}

func TestBuild(t *testing.T) {
	b := newBuild(&debug.BuildInfo{
		Path: "example.com/cmd", Main: debug.Module{Path: "example.com", Version: "v1.2.3"},
		Deps:     []*debug.Module{{Path: "a", Version: "v1"}, {Path: "b", Version: "v2", Replace: &debug.Module{Path: "c", Version: "v3"}}},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026"}, {Key: "vcs.modified", Value: "true"}, {Key: "-tags", Value: "x"}},
	})
	if got, want := b.LogValue().String(), "[module=example.com version=v1.2.3 revision=abc time=2026 modified=true dependencies=map[a:v1 b:v2 => c v3]]"; got != want {
		t.Errorf("%s", got)
	}
	if got := newBuild(&debug.BuildInfo{Path: "command-line-arguments"}).LogValue().String(); got != "[module=command-line-arguments dependencies=map[]]" {
		t.Errorf("%s", got)
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 B", 999: "999 B", 1000: "0.98 KiB", 1 << 20: "1.00 MiB", 123 << 20: "123 MiB", 12345678: "11.8 MiB", 1<<64 - 1: "16.0 EiB"} {
		if got := size(n); got != want {
			t.Errorf("size(%d) is %s, want %s", n, got, want)
		}
	}
}

// BenchmarkRefresh is one reading of a program with so many goroutines.
func BenchmarkRefresh(b *testing.B) {
	for _, n := range []int{50, 450, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := treetest.New(b, natstest.Start(b))
			p := New(r.Tree, nil, Options{})
			c := make(chan struct{})
			var wg sync.WaitGroup
			for range n {
				wg.Add(1)
				go parked(c, &wg)
			}
			b.ReportAllocs()
			for b.Loop() {
				p.Refresh()
			}
			close(c)
			wg.Wait()
			p.Close()
		})
	}
}

// TestLook opens the process in Elements: it is read for as long as somebody looks.
func TestLook(t *testing.T) {
	r := treetest.New(t, natstest.Start(t))
	p := New(r.Tree, nil, Options{Interval: time.Millisecond})
	node := r.Root().Children[0]
	if !node.Watched() {
		t.Error("the node does not ask to be watched")
	}
	ask := func(active bool) {
		t.Helper()
		request := fmt.Sprintf(`{"method":"tree.watch","session":{"gateway":"gw","id":"s1"},"params":{"id":%d,"active":%v}}`, node.ID, active)
		if answer := r.Ask(request); !strings.Contains(answer, `"ok":true`) {
			t.Fatal(answer)
		}
	}
	ask(true)
	r.Until("the process is read", func(text string) bool {
		return strings.Contains(text, "watched=true") && strings.Contains(text, "createdBy=")
	})
	// The answer comes before the process hears of who looks.
	heard := func(active bool) {
		t.Helper()
		ask(active)
		r.Until(fmt.Sprintf("the process hears %v", active), func(string) bool {
			p.control.Lock()
			defer p.control.Unlock()
			return p.seen == active
		})
	}
	// Who switched it on by hand keeps it when the last viewer goes.
	p.Watch(true)
	heard(false)
	if !p.watched.Load() {
		t.Error("the last viewer took what was asked for by hand along")
	}
	heard(true)
	p.Watch(false)
	if !p.watched.Load() {
		t.Error("it is not watched though somebody looks")
	}
	ask(false)
	r.Until("nobody looks", func(text string) bool { return strings.Contains(text, "watched=false") })
	p.watches.Wait()
	p.Close()
}
