package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// ready is the line that natscope prints with --ready-json.
type ready struct {
	HTTP, DevTools, NATS, Space, Client, Demo string
}

// process is a running natscope.
type process struct {
	ready
	cmd    *exec.Cmd
	stderr *lockedBuffer
	done   chan error
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

// binary is natscope, built once for all tests by TestMain.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "natscope-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(dir, "natscope")
	build := exec.Command("go", "build", "-o", binary, "../../cmd/natscope")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build natscope: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// start runs natscope up with the given arguments until the test ends.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	return startPart(t, append([]string{"up", "--port", "0", "--nats-port", "0"}, args...)...)
}

// startPart runs a command of natscope that serves until the test ends.
func startPart(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{stderr: &lockedBuffer{}, done: make(chan error, 1)}
	p.cmd = exec.Command(binary, append(args, "--ready-json")...)
	p.cmd.Stderr = p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make(chan []byte, 1)
	go func() {
		r := bufio.NewReader(out)
		l, _ := r.ReadBytes('\n')
		line <- l
		p.done <- p.cmd.Wait()
	}()
	t.Cleanup(func() { p.stop(t) })
	select {
	case l := <-line:
		if err := json.Unmarshal(l, &p.ready); err != nil {
			t.Fatalf("the ready line %q is not JSON: %v; log:\n%s", l, err, p.stderr)
		}
	case <-time.After(60 * time.Second):
		t.Fatalf("natscope up was not ready within a minute; log:\n%s", p.stderr)
	}
	return p
}

// kill ends the process by force.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// stop ends the process as Ctrl+C does and checks that it ends well.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGINT)
	select {
	case err := <-p.done:
		if err != nil {
			t.Errorf("natscope ended with %v; log:\n%s", err, p.stderr)
		}
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
		t.Errorf("natscope did not stop within 20 s of SIGINT; log:\n%s", p.stderr)
	}
}
