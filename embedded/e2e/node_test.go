package e2e

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// nodeFile writes a program for Node.
func nodeFile(t *testing.T, name, script string) string {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Fatal("these tests need Node: ", err)
	}
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// natscope runs a command line to its end.
func natscope(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	c := exec.Command(binary, args...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr, c.Stdin = &out, &errs, strings.NewReader(stdin)
	err := c.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

// TestRunShowsNodeAndItsChildren runs a program that starts another one, both of
// which end soon, the second by an exception: nothing of either is missed.
func TestRunShowsNodeAndItsChildren(t *testing.T) {
	p := start(t)
	child := nodeFile(t, "child.js", `console.log('child says', {from: process.argv[2]}); null.boom`)
	parent := nodeFile(t, "parent.js", `
		console.log('parent says', process.argv.slice(2).join());
		process.stdin.on('data', (d) => process.stdout.write('echo ' + d)).on('end', () => {
			require('node:child_process').spawn(process.execPath, ['`+child+`', 'parent'], {stdio: 'inherit'}).on('exit', (code) => process.exit(40 + code));
		});`)
	stdout, stderr, code := natscope(t, "input\n", "run", "--nats", p.NATS, "--", "node", parent, "--nats", "x")
	if code != 41 || stdout != "parent says --nats,x\necho input\nchild says { from: 'parent' }\n" || !strings.Contains(stderr, "TypeError") {
		t.Errorf("exit code %d\n%s\n%s", code, stdout, stderr)
	}
	var logs string
	for deadline := time.Now().Add(20 * time.Second); ; {
		logs, _, _ = natscope(t, "", "logs", "--nats", p.NATS)
		if strings.Contains(logs, "parent says") && strings.Contains(logs, "child says") && strings.Contains(logs, "boom") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the log is\n%s", logs)
		}
	}
}

// TestRunForwardsSignals ends a program by a signal to natscope.
func TestRunForwardsSignals(t *testing.T) {
	p := start(t)
	file := nodeFile(t, "wait.js", `process.on('SIGTERM', () => { console.log('told'); process.exit(9) }); setInterval(() => {}, 1000); console.log('ready')`)
	for _, c := range []struct {
		signal syscall.Signal
		out    string
		code   int
	}{{syscall.SIGTERM, "ready\ntold\n", 9}, {syscall.SIGHUP, "ready\n", 129}} {
		cmd := exec.Command(binary, "run", "--nats", p.NATS, "--", "node", file)
		out := &lockedBuffer{}
		cmd.Stdout = out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(20 * time.Second); out.String() != "ready\n"; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the program does not start")
			}
		}
		_ = cmd.Process.Signal(c.signal)
		_ = cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != c.code || out.String() != c.out {
			t.Errorf("%v: exit code %d, %q", c.signal, got, out.String())
		}
	}
}

// TestRunNeedsNoNATS sees that a program runs as ever when there is no server, and what cannot run says so.
func TestRunNeedsNoNATS(t *testing.T) {
	file := nodeFile(t, "alone.js", `console.log('alone'); process.exitCode = 3`)
	stdout, stderr, code := natscope(t, "", "run", "--nats", "nats://127.0.0.1:1", "--", "node", file)
	if code != 3 || stdout != "alone\n" || !strings.Contains(stderr, "NATS does not answer") {
		t.Errorf("exit code %d\n%s\n%s", code, stdout, stderr)
	}
	if _, stderr, code := natscope(t, "", "run", "--nats", "nats://127.0.0.1:1", "--", "/no/such/program"); code != 1 || !strings.Contains(stderr, "/no/such/program") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if _, stderr, code := natscope(t, "", "attach"); code != 2 || !strings.Contains(stderr, "--v8") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if _, stderr, code := natscope(t, "", "attach", "--v8", "host:port"); code != 2 || !strings.Contains(stderr, "HOST:PORT") && !strings.Contains(stderr, "ports are numbers") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
