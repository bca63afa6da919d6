package goreal

import (
	"errors"
	"fmt"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/natscope/natscope/producer/goreal/internal/js"
	"github.com/natscope/natscope/producer/goreal/internal/mirror"
	"github.com/natscope/natscope/producer/goreal/internal/remote"
	"github.com/natscope/natscope/subjects/realm"
)

const (
	// maxJobs is how many evaluations wait for one another.
	maxJobs = 256
	// grace is how long an evaluation that was told to end may take to do it.
	grace = 2 * time.Second
	// watchAfter is how long an evaluation runs before its memory is watched, watchEvery how often.
	watchAfter, watchEvery = 10 * time.Millisecond, 10 * time.Millisecond
	// maxStuck is how many evaluations that nothing could end are left behind.
	maxStuck = 3
)

var errStuck = errors.New("the evaluation could not be ended and was left alone; the Console began anew, its variables are gone")

// world is one JavaScript engine with the lane that runs it. A realm has one at
// a time. When it cannot be stopped any more it is left behind for another.
type world struct {
	r    *Realm
	lane lane
	// eng is made by the first job and used by jobs only.
	eng engine
	// asker is the session whose job runs; for the engine's calls of the host.
	asker *session

	mu      sync.Mutex // guards all below
	current *job
	dead    bool
}

// job is one thing that the engine does.
type job struct {
	s *session
	// limit is how long it may run.
	limit time.Duration
	run   func(e engine)
	// fail is called instead of run, or while run is stuck; it may be nil.
	fail func(err error)
}

func newWorld(r *Realm) *world { return &world{r: r, lane: lane{limit: maxJobs}} }

// do queues a job.
func (w *world) do(j *job) {
	if !w.lane.post(func() { w.run(j) }) && j.fail != nil {
		j.fail(fmt.Errorf("%w: %d evaluations wait already; stop the one that runs", realm.ErrBusy, maxJobs))
	}
}

// run carries out a job. It is the only one that touches the engine.
func (w *world) run(j *job) {
	w.mu.Lock()
	if w.dead {
		w.mu.Unlock()
		if j.fail != nil {
			j.fail(fmt.Errorf("%w: %w", realm.ErrFailed, errStuck))
		}
		return
	}
	w.current = j
	w.mu.Unlock()
	w.asker = j.s
	if w.eng == nil {
		w.eng = js.New((*host)(w), js.Options{Writable: w.r.o.Writable, CallTimeout: w.r.o.CallTimeout})
		w.r.populate(w.eng)
	}
	over := w.watch(j)
	defer func() {
		over()
		w.asker = nil
		w.mu.Lock()
		w.current = nil
		dead := w.dead
		if !dead {
			w.eng.ClearInterrupt()
		}
		w.mu.Unlock()
		if dead {
			w.eng.Close()
			w.r.returned()
		}
		if p := recover(); p != nil {
			w.r.o.Logger.Error("goreal: an evaluation failed inside of the realm", "panic", p)
			if j.fail != nil {
				j.fail(fmt.Errorf("%w: the realm failed: %v", realm.ErrFailed, p))
			}
		}
	}()
	j.run(w.eng)
}

// interrupt ends a job if it still runs.
func (w *world) interrupt(j *job, reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current == j && !w.dead && w.eng != nil {
		w.eng.Interrupt(reason)
	}
}

// terminate ends whatever runs.
func (w *world) terminate(reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j := w.current; j != nil && w.eng != nil {
		w.eng.Interrupt(reason)
		time.AfterFunc(grace, func() { w.giveUp(j) })
	}
}

// giveUp leaves the world behind if a job still runs that was told to end.
func (w *world) giveUp(j *job) {
	w.mu.Lock()
	stuck := w.current == j && !w.dead
	w.dead = w.dead || stuck
	w.mu.Unlock()
	if !stuck {
		return
	}
	w.r.abandon(w)
	if j.fail != nil {
		j.fail(fmt.Errorf("%w: %w", realm.ErrTimeout, errStuck))
	}
	// What waits is answered by nobody else: the lane's goroutine is inside of the engine.
	w.lane.mu.Lock()
	waiting := w.lane.jobs
	w.lane.jobs = nil
	w.lane.mu.Unlock()
	for _, f := range waiting {
		f()
	}
}

// watch ends a job that takes too long or too much, until the function it returns is called.
func (w *world) watch(j *job) (over func()) {
	limit := j.limit
	if limit <= 0 || limit > w.r.o.EvalTimeout {
		limit = w.r.o.EvalTimeout
	}
	t := time.AfterFunc(limit, func() {
		w.interrupt(j, "Execution was terminated: it did not end in "+limit.String())
		time.AfterFunc(grace, func() { w.giveUp(j) })
	})
	done := make(chan struct{})
	m := time.AfterFunc(watchAfter, func() { w.watchMemory(j, done) })
	return func() { t.Stop(); m.Stop(); close(done) }
}

// maxStack is by how much stacks may grow: a Go program ends at a gigabyte.
const maxStack = 64 << 20

// watchMemory ends a job while which the process grows too much.
func (w *world) watchMemory(j *job, done <-chan struct{}) {
	heap, stacks := memory()
	t := time.NewTicker(watchEvery)
	defer t.Stop()
	for {
		select {
		case <-done:
			return
		case <-t.C:
		}
		h, s := memory()
		switch {
		case h > heap+w.r.o.MaxGrowth:
			w.interrupt(j, fmt.Sprintf("Execution was terminated: the program grew by %d MiB meanwhile", (h-heap)>>20))
		case s > stacks+maxStack:
			w.interrupt(j, "Execution was terminated: Maximum call stack size exceeded")
		}
	}
}

// memory returns the bytes of live and unswept objects, and of stacks.
func memory() (heap, stacks uint64) {
	s := [2]metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(s[:])
	return s[0].Value.Uint64(), s[1].Value.Uint64()
}

// close ends the world.
func (w *world) close() {
	w.lane.post(func() {
		if w.eng != nil {
			w.eng.Close()
		}
		w.lane.close()
	})
}

// host is what the engine sees of its world.
type host world

// Post runs a job of the engine's own: a timer, a callback.
func (h *host) Post(run func()) bool {
	w := (*world)(h)
	if !w.r.inUse() {
		return false
	}
	// Timers leave room for what people ask.
	return w.lane.postWithin(maxJobs/4, func() { w.run(&job{limit: 5 * time.Second, run: func(engine) { run() }}) })
}

// Console shows a call of the console.
func (h *host) Console(typ string, args []mirror.Object, stack []remote.Frame) {
	h.r.console(typ, args, stack)
}

// Uncaught shows an exception that nobody waits for.
func (h *host) Uncaught(err error) {
	if h.eng != nil {
		h.r.uncaught(h.eng.Details(err, nil))
	}
}

// Inspect asks the session that evaluates to show a value.
func (h *host) Inspect(v mirror.Object, hints string) {
	if s := h.asker; s != nil {
		s.inspect(v, hints)
	}
}

// Inspected returns $0 to $4 of the session that evaluates.
func (h *host) Inspected(n int) (mirror.Object, bool) {
	if s := h.asker; s != nil {
		return s.inspectedNode(n)
	}
	return nil, false
}

// LastResult returns $_ of the session that evaluates.
func (h *host) LastResult() mirror.Object {
	if s := h.asker; s != nil {
		return s.last
	}
	return nil
}

// Script finds the script of a file or an evaluation.
func (h *host) Script(name string) (id, url string, ok bool) { return h.r.scripts.find(name) }
