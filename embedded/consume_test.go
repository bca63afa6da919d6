package embedded

import (
	"bufio"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestConsumersOfYourOwn runs the examples that read the subjects themselves, in
// Go and in Node, beside a program that publishes under a topic of its own.
func TestConsumersOfYourOwn(t *testing.T) {
	q := startQueried(t)
	binary := filepath.Join(t.TempDir(), "consume")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../examples/consume").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	u, err := url.Parse(q.NATS())
	if err != nil {
		t.Fatal(err)
	}
	filter := "natscope.dev.rec.*.*.event.>"
	for name, args := range map[string][]string{
		"go":   {binary, q.NATS(), filter},
		"node": {"node", "../examples/consume/consume.mjs", u.Host, filter},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
			cmd.Stderr = os.Stderr
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
			lines := make(chan string, 1000)
			go func() {
				for s := bufio.NewScanner(stdout); s.Scan(); {
					lines <- s.Text()
				}
				close(lines)
			}()
			// It may not listen yet when the first are published.
			for end := time.After(20 * time.Second); ; {
				if err := q.program.Publish("cache.miss", map[string]any{"key": "kettle"}); err != nil {
					t.Fatal(err)
				}
				select {
				case line, ok := <-lines:
					if !ok || !strings.HasPrefix(line, "orders-1 event ") || !strings.HasSuffix(line, ` cache.miss {"key":"kettle"}`) {
						t.Errorf("it prints %q", line)
					}
					return
				case <-time.After(100 * time.Millisecond):
				case <-end:
					t.Fatal("it prints nothing")
				}
			}
		})
	}
}
