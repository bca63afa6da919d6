package goreal

import (
	"runtime/debug"
	"sync"
)

// lane runs jobs one after the other. It has a goroutine only while there is
// something to do.
type lane struct {
	limit int

	mu      sync.Mutex // guards all below
	jobs    []func()
	running bool
	closed  bool
}

// post adds a job; false if the lane is full or closed.
func (l *lane) post(job func()) bool { return l.postWithin(l.limit, job) }

// postWithin adds a job if fewer than limit wait.
func (l *lane) postWithin(limit int, job func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.jobs) >= limit {
		return false
	}
	l.jobs = append(l.jobs, job)
	if !l.running {
		l.running = true
		go l.run()
	}
	return true
}

// close drops what waits. What runs goes on to its end.
func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed, l.jobs = true, nil
}

func (l *lane) run() {
	// A value that was torn because nothing guards it is an error then, and not the end of the process.
	debug.SetPanicOnFault(true)
	growStack()
	for {
		l.mu.Lock()
		if len(l.jobs) == 0 {
			l.running, l.jobs = false, nil
			l.mu.Unlock()
			return
		}
		job := l.jobs[0]
		l.jobs[0] = nil
		l.jobs = l.jobs[1:]
		l.mu.Unlock()
		job()
	}
}

// stackRoom is about what the parser and the evaluator need of a stack for short input, in bytes.
const stackRoom = 12 << 10

// growStack makes room on the goroutine's stack at once, while there is nothing on
// it: parsers descend deep, and a stack that grows below one is copied several times.
//
//go:noinline
func growStack() {
	var room [stackRoom]byte
	keep(&room)
}

//go:noinline
func keep(*[stackRoom]byte) {}
