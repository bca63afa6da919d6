package proctree

import (
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/natscope/natscope/producer/treecap"
)

// defaultInterval is often enough for people and rare enough for the program.
const defaultInterval = 2 * time.Second

// started is close to when the process did.
var started = time.Now()

// Options configures a Process. The zero value works.
type Options struct {
	// Interval is the time between two readings while Watch is on. The default is 2 s.
	Interval time.Duration
}

// Process shows the running process. Its methods are safe for concurrent use.
type Process struct {
	interval time.Duration
	shown    *treecap.Component
	node     *treecap.Node
	watched  atomic.Bool

	// control guards all below, up to reading.
	control sync.Mutex
	closed  bool
	// asked is what Watch said, seen whether somebody has the process open in Elements.
	asked, seen bool
	// stop ends the watch; nil while there is none.
	stop chan struct{}
	// watches counts the goroutines of watches that did not end yet.
	watches sync.WaitGroup

	// reading is held while the process is read, and guards all below.
	reading    sync.Mutex
	memory     *memory
	goroutines *goroutines
}

// New shows the process as a child of parent, or of the tree's root when parent is
// nil, with what does not change. The rest appears with the first Refresh or
// Watch, or when somebody opens the process in Elements, and is kept up to date
// for as long as they look. People can switch Watch on and off themselves, too:
// "watched" can be edited.
func New(t *treecap.Tree, parent *treecap.Node, o Options) *Process {
	p := &Process{interval: o.Interval}
	if p.interval <= 0 {
		p.interval = defaultInterval
	}
	// Whoever opens the process at once waits until it is complete.
	p.control.Lock()
	defer p.control.Unlock()
	p.shown = t.Register(parent, "process", nil, treecap.Loc(""), treecap.Watched(p.look),
		treecap.Attr("pid", os.Getpid()), treecap.Attr("executable", executable()),
		treecap.Attr("started", started.Format(time.RFC3339)), treecap.Attr("go", runtime.Version()),
		treecap.Attr("platform", runtime.GOOS+"/"+runtime.GOARCH), treecap.Attr("cpus", runtime.NumCPU()),
		treecap.Attr("gomaxprocs", runtime.GOMAXPROCS(0)),
		treecap.Computed("watched", func() any { return p.watched.Load() }),
		treecap.Writable("watched", func(on bool) error { p.Watch(on); return nil }))
	p.node = p.shown.Node()
	t.Register(p.node, "build", readBuild(), treecap.Loc(""))
	return p
}

// executable is the name of the program's file; arguments may hold secrets.
func executable() string {
	path, err := os.Executable()
	if err != nil {
		return "unknown"
	}
	return filepath.Base(path)
}

// Node returns the node that shows the process.
func (p *Process) Node() *treecap.Node { return p.node }

// Watch says whether the process shall be read again and again even though nobody
// has it open in Elements. While it is, it is read at once and then at every
// interval; afterwards, what was read last stays. Watch returns at once, and to
// say the same twice changes nothing.
func (p *Process) Watch(on bool) {
	p.control.Lock()
	defer p.control.Unlock()
	p.asked = on
	p.settle()
}

// look takes that somebody opened the process in Elements, or that nobody looks any more.
func (p *Process) look(on bool) {
	p.control.Lock()
	defer p.control.Unlock()
	p.seen = on
	p.settle()
}

// settle begins or ends the watch; p.control is held.
func (p *Process) settle() {
	on := p.asked || p.seen
	if p.closed || on == (p.stop != nil) {
		return
	}
	p.watched.Store(on)
	p.shown.Update()
	if !on {
		close(p.stop)
		p.stop = nil
		return
	}
	stop := make(chan struct{})
	p.stop = stop
	p.watches.Go(func() { p.watch(stop) })
}

func (p *Process) watch(stop chan struct{}) {
	tick := time.NewTicker(p.interval)
	defer tick.Stop()
	for {
		p.Refresh()
		select {
		case <-stop:
			p.rest()
			return
		case <-tick.C:
		}
	}
}

// rest lets go of the buffers.
func (p *Process) rest() {
	p.reading.Lock()
	defer p.reading.Unlock()
	if p.goroutines != nil {
		p.goroutines.buf, p.goroutines.records = nil, nil
	}
}

// Refresh reads the process once. It takes some milliseconds in a program with
// many goroutines, of which the program stands still for about 3 at most.
func (p *Process) Refresh() {
	p.reading.Lock()
	defer p.reading.Unlock()
	if p.memory == nil {
		p.memory = newMemory(p.node)
		p.goroutines = newGoroutines(p.node)
	}
	p.node.Set("gomaxprocs", runtime.GOMAXPROCS(0))
	p.memory.refresh()
	p.goroutines.refresh()
}

// Close ends the watch and takes the process out of the tree. It is idempotent.
func (p *Process) Close() {
	p.control.Lock()
	p.closed = true
	if p.stop != nil {
		close(p.stop)
		p.stop = nil
	}
	p.control.Unlock()
	p.watches.Wait()
	p.node.Remove()
}
