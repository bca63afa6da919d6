package trials

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a trial waits for what must come, where the promise names no time.
const patience = 30 * time.Second

// process is a running process of a trial: a role of the test binary, or natscope.
type process struct {
	t      testing.TB
	name   string
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan string
	log    lockedBuffer
	exited chan struct{}
	// err is what the process ended with, once exited is closed.
	err error
}

// lockedBuffer collects the log of a process.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// spawn starts the test binary in a role and waits until it is ready. What the
// role says of itself is decoded into ready, unless that is nil.
func spawn(t testing.TB, role string, config, ready any) *process {
	t.Helper()
	p := begin(t, role, config)
	p.ready(ready)
	return p
}

// begin is spawn without waiting.
func begin(t testing.TB, role string, config any) *process {
	t.Helper()
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVariable+"="+role, configVariable+"="+string(data))
	return launch(t, role, cmd)
}

// run starts the natscope command without waiting.
func run(t testing.TB, args ...string) *process {
	t.Helper()
	return launch(t, "natscope "+args[0], exec.Command(command(t), args...))
}

// launch starts a process that ends with the test at the latest.
func launch(t testing.TB, name string, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, name: name, cmd: cmd, lines: make(chan string, 1024), exited: make(chan struct{})}
	cmd.Stderr = &p.log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.exited)
		s := bufio.NewScanner(out)
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			p.lines <- s.Text()
		}
		close(p.lines)
		p.err = cmd.Wait()
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("log of %s:\n%s", name, tail(p.log.String(), 4000))
		}
	})
	return p
}

func tail(s string, n int) string {
	if len(s) > n {
		return "…" + s[len(s)-n:]
	}
	return s
}

// line returns the next line that the process prints.
func (p *process) line(within time.Duration) string {
	p.t.Helper()
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case l, ok := <-p.lines:
		if !ok {
			<-p.exited
			p.t.Fatalf("%s ended (%v) before it said anything more; log:\n%s", p.name, p.err, &p.log)
		}
		return l
	case <-t.C:
		p.t.Fatalf("%s said nothing for %v; log:\n%s", p.name, within, &p.log)
	}
	return ""
}

// ready waits for the line with which a process says that it is ready.
func (p *process) ready(v any) {
	p.t.Helper()
	l := p.line(patience)
	if v == nil {
		return
	}
	if err := json.Unmarshal([]byte(l), v); err != nil {
		p.t.Fatalf("%s said %q: %v", p.name, l, err)
	}
}

// ask sends one command and decodes the answer into v, unless that is nil.
func (p *process) ask(command string, v any) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, command+"\n"); err != nil {
		p.t.Fatalf("%s: %v; log:\n%s", p.name, err, &p.log)
	}
	p.ready(v)
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("signal %v to %s: %v; log:\n%s", s, p.name, err, &p.log)
	}
}

// freeze stops the process as a debugger or a full laptop bag does, thaw lets it go on.
func (p *process) freeze() { p.t.Helper(); p.signal(syscall.SIGSTOP) }
func (p *process) thaw()   { p.t.Helper(); p.signal(syscall.SIGCONT) }

// kill ends the process without a word, and waits for its end.
func (p *process) kill() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("kill %s: %v", p.name, err)
	}
	for {
		select {
		case <-p.exited:
			return
		case <-p.lines: // What nobody reads must not hold it up.
		}
	}
}

// terminate asks the process to end, and fails the test when it does not end well in time.
func (p *process) terminate(within time.Duration) {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	p.ends(within)
}

// ends waits for the end of the process.
func (p *process) ends(within time.Duration) {
	p.t.Helper()
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-p.exited:
		if p.err != nil {
			p.t.Errorf("%s ended with %v; log:\n%s", p.name, p.err, &p.log)
		}
	case <-t.C:
		p.t.Errorf("%s has not ended after %v; log:\n%s", p.name, within, &p.log)
	}
}

// until polls until ok holds, and fails the test when it does not in time.
func until(t testing.TB, within time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	return explained(t, within, func() (bool, string) { return ok(), what })
}

// explained is until for a condition that says what is missing. It returns how long it took.
func explained(t testing.TB, within time.Duration, ok func() (bool, string)) time.Duration {
	t.Helper()
	start := time.Now()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		done, missing := ok()
		took := time.Since(start)
		if done {
			return took
		}
		if took > within {
			t.Fatalf("not within %v: %s", within, missing)
		}
		<-tick.C
	}
}

// pass lets time pass, for trials whose point is that time passes. Nothing is assumed to be done after it.
func pass(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	<-t.C
}
