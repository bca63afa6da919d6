package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// refused runs natscope to its end and returns the exit code and what it printed.
func refused(t *testing.T, args ...string) (int, string, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Fatalf("natscope %q is still running; log:\n%s", args, &stderr)
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// oneLine fails the test unless s is a single line that contains all of want.
func oneLine(t *testing.T, s string, want ...string) {
	t.Helper()
	if strings.Count(s, "\n") != 1 || !strings.HasPrefix(s, "natscope: ") {
		t.Errorf("wanted one line that begins with natscope:, got:\n%s", s)
	}
	for _, w := range want {
		if !strings.Contains(s, w) {
			t.Errorf("the message does not say %q:\n%s", w, s)
		}
	}
}

func TestWrongCommandLines(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"unknown flag", []string{"up", "--nonsense"}, "--nonsense"},
		{"unknown command", []string{"upp"}, "upp"},
		{"argument", []string{"up", "here"}, "here"},
		{"port out of range", []string{"up", "--port", "70000"}, "70000"},
		{"memory and data", []string{"up", "--memory", "--data", "x"}, "exclude"},
		{"space", []string{"up", "--space", "My Space"}, "My Space"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, stdout, stderr := refused(t, c.args...)
			if code != 2 || stdout != "" {
				t.Errorf("exit code %d with %q on standard output, wanted 2 and nothing", code, stdout)
			}
			oneLine(t, stderr, c.want)
		})
	}
}

func TestUnusableDataDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := refused(t, "up", "--port", "0", "--nats-port", "0", "--data", filepath.Join(file, "data"))
	if code != 1 {
		t.Errorf("exit code %d, wanted 1", code)
	}
	oneLine(t, stderr, "data directory", "--data")
}

func TestSecondInstanceOnOneDirectory(t *testing.T) {
	dir := t.TempDir()
	start(t, "--data", dir)
	code, _, stderr := refused(t, "up", "--port", "0", "--nats-port", "0", "--data", dir)
	if code != 1 {
		t.Errorf("exit code %d, wanted 1", code)
	}
	oneLine(t, stderr, "another natscope", dir)
}

func TestUnreachableNATS(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	code, _, stderr := refused(t, "up", "--port", "0", "--nats", "nats://"+addr)
	if code != 1 {
		t.Errorf("exit code %d, wanted 1", code)
	}
	oneLine(t, stderr, addr, "--nats")
}

func TestOccupiedPortAdvances(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().(*net.TCPAddr).Port
	p := start(t, "--port", strconv.Itoa(taken))
	u, err := url.Parse(p.HTTP)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := strconv.Atoi(u.Port())
	if got <= taken || got > taken+100 {
		t.Errorf("the gateway is at %s, wanted a port just above %d", p.HTTP, taken)
	}
	if !strings.Contains(p.stderr.String(), strconv.Itoa(taken)) {
		t.Errorf("the log does not say that port %d is taken:\n%s", taken, p.stderr)
	}
}

// TestDataSurvivesARestart checks that --data keeps what was there, and $NATSCOPE_TOKEN the line of pages.
func TestDataSurvivesARestart(t *testing.T) {
	t.Setenv("NATSCOPE_TOKEN", "pages")
	dir := t.TempDir()
	first := start(t, "--data", dir, "--demo")
	waitTarget(t, first, "shop")
	first.stop(t)
	second := start(t, "--data", dir)
	waitTarget(t, second, "shop")
	for _, p := range []*process{first, second} {
		if !strings.HasSuffix(p.Client, "/client.js?token=pages") {
			t.Errorf("the pages' line is %s", p.Client)
		}
	}
}

// waitTarget waits until /json/list names a source.
func waitTarget(t *testing.T, p *process, name string) {
	t.Helper()
	poll(t, "a target named "+name, func() (bool, string) {
		body := fetch(t, p.HTTP+"/json/list")
		var list []struct{ Title, ID string }
		if err := json.Unmarshal(body, &list); err != nil {
			return false, err.Error()
		}
		for _, e := range list {
			if strings.Contains(e.Title, name) {
				return true, ""
			}
		}
		return false, string(body)
	})
}

func fetch(t *testing.T, url string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// TestOddRequestsHarmNobody sends what no client should, and then looks whether everything still answers.
func TestOddRequestsHarmNobody(t *testing.T) {
	p := start(t, "--demo")
	waitTarget(t, p, "shop")
	addr := strings.TrimPrefix(p.HTTP, "http://")
	for name, raw := range map[string]string{
		"double slash":      "GET // HTTP/1.1\r\nHost: " + addr + "\r\nConnection: close\r\n\r\n",
		"huge header":       "GET /json HTTP/1.1\r\nHost: " + addr + "\r\nX-Big: " + strings.Repeat("a", 1<<20) + "\r\n\r\n",
		"half a handshake":  "GET /devtools/page/dev HTTP/1.1\r\nHost: " + addr + "\r\nUpgrade: websocket\r\n",
		"no HTTP":           "\x00\x01\x02\x03\r\n\r\n",
		"bad upgrade":       "GET /devtools/page/dev HTTP/1.1\r\nHost: " + addr + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 1\r\n\r\n",
		"unknown target":    "GET /devtools/page/no%2Fsuch HTTP/1.1\r\nHost: " + addr + "\r\nConnection: close\r\n\r\n",
		"path with escapes": "GET /..%2f..%2fetc/passwd HTTP/1.1\r\nHost: " + addr + "\r\nConnection: close\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			_ = c.SetDeadline(time.Now().Add(2 * time.Second))
			// The server may close before it has read everything.
			_, _ = io.WriteString(c, raw)
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
			waitTarget(t, p, "shop")
		})
	}
}

func TestForeignHostIsRefused(t *testing.T) {
	p := start(t)
	req, err := http.NewRequest(http.MethodGet, p.HTTP+"/json/list", nil)
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{"evil.test": 0, "localhost:9230": 200, "127.0.0.1": 200, "127.0.0.1.evil.test": 0} {
		req.Host = host
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if want == 200 && res.StatusCode != 200 || want == 0 && res.StatusCode < 400 {
			t.Errorf("Host %s: status %d", host, res.StatusCode)
		}
	}
}
