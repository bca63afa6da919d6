package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// The times of progress: what is done soon is not worth a word.
const (
	progressAfter = time.Second
	progressEvery = 200 * time.Millisecond
)

// progress tells a person at a terminal how far long work is, on one line that
// is gone when the work is done. A nil progress tells nobody.
type progress struct {
	w            io.Writer
	after, every time.Duration

	mu          sync.Mutex // guards all below
	began, last time.Time
	shown       bool
}

// progressOn returns the progress of work whose messages go to w; nil unless w is a terminal.
func progressOn(w io.Writer) *progress {
	if file, ok := w.(*os.File); !ok || !term.IsTerminal(int(file.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return &progress{w: w, after: progressAfter, every: progressEvery, began: time.Now()}
}

// say shows how far the work is, unless it has just begun or was just shown.
func (p *progress) say(format string, args ...any) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.began) < p.after || now.Sub(p.last) < p.every {
		return
	}
	p.last, p.shown = now, true
	// It is for looks only; whoever is gone misses nothing.
	_, _ = fmt.Fprintf(p.w, "\r%s\x1b[K", fmt.Sprintf(format, args...))
}

// done takes the line away. What is said later counts as new work.
func (p *progress) done() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		_, _ = io.WriteString(p.w, "\r\x1b[K")
	}
	p.shown, p.began, p.last = false, time.Now(), time.Time{}
}

// during shows for how long something takes, until the function is called that it returns.
func (p *progress) during(what string) (stop func()) {
	if p == nil {
		return func() {}
	}
	p.done()
	began, over, ended := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(p.every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.say("%s … %d s", what, int(time.Since(began).Seconds()))
			case <-over:
				return
			}
		}
	}()
	return func() {
		close(over)
		<-ended
		p.done()
	}
}
