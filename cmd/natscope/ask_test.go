package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/natscope/natscope/embedded"
	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/httpcap"
	"github.com/natscope/natscope/producer/slogcap"
	"github.com/natscope/natscope/producer/treecap"
)

// asked is a natscope with a program that commands are run against.
type asked struct {
	t    *testing.T
	nats string
	log  *slog.Logger
	tree *treecap.Tree
	url  string
}

func startAsked(t *testing.T) *asked {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	i, err := embedded.Start(ctx, embedded.Options{HTTPAddr: "127.0.0.1:0", NATSAddr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := producer.Start(producer.Options{Service: "orders", Instance: "1", URL: i.NATS()})
	if err != nil {
		t.Fatal(err)
	}
	a := &asked{t: t, nats: i.NATS(), tree: treecap.New(p, treecap.Options{RootName: "orders"}), log: slog.New(slogcap.New(p, nil, slogcap.Options{}))}
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/fail" {
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = io.WriteString(w, `{"path":"`+r.URL.Path+`"}`)
	}))
	a.url = backend.URL
	t.Cleanup(func() {
		backend.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		a.tree.Close()
		_ = p.Close(ctx)
		_ = i.Close(ctx)
	})
	worker := a.tree.Root().Add("worker", treecap.Kind("worker"), treecap.Attr("state", "idle"))
	a.until("tree orders", func(out string) bool { return strings.Contains(out, "idle") })
	worker.Set("state", "stuck")
	a.log.Error("the queue is full", "queue", "mail", "evil", "\x1b[31mred\x1b[0m")
	client := &http.Client{Transport: httpcap.Transport(p, nil)}
	for _, path := range []string{"/ok", "/fail"} {
		resp, err := client.Get(a.url + path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	a.until("net -o json", func(out string) bool { return strings.Count(out, `"finished"`) == 2 })
	a.until("history", func(out string) bool { return strings.Contains(out, "stuck") })
	a.until("logs", func(out string) bool { return strings.Contains(out, "queue") })
	return a
}

// run runs one command line and returns its exit code and what it printed.
func (a *asked) run(line string) (int, string, string) {
	var out, errs bytes.Buffer
	code := run(a.t.Context(), append(strings.Fields(line), "--nats", a.nats), &out, &errs)
	return code, out.String(), errs.String()
}

// until runs a command line until its output is as wanted.
func (a *asked) until(line string, ok func(string) bool) {
	a.t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		_, out, errs := a.run(line)
		if ok(out) {
			return
		}
		if time.Now().After(end) {
			a.t.Fatalf("natscope %s:\n%s%s", line, out, errs)
		}
	}
}

func TestAskingCommands(t *testing.T) {
	a := startAsked(t)
	for _, tt := range []struct {
		line string
		code int
		want []string
	}{
		{"ls", 0, []string{"SOURCE", "orders-1", "connected"}},
		{"ls ord* --state connected", 0, []string{"orders-1"}},
		{"tree orders", 0, []string{"orders  orders-1/n", "  worker state=stuck"}},
		{"tree orders-1 --nodes 1", 0, []string{"… 1 more", "1 of 2 nodes"}},
		{"find stuck", 0, []string{"orders > worker"}},
		{"find nowhere", 3, nil},
		{"find", 2, []string{"say what to find"}},
		{"find --filter attrs.state==", 2, []string{"column"}},
		{"net", 0, []string{"orders-1#1", "500", "/fail"}},
		{"net --failed", 0, []string{"orders-1#2"}},
		{"request orders-1#2", 0, []string{"500 Internal Server Error", "Content-Type: application/json", "ask_test.go"}},
		{"request orders#2", 0, []string{"500 Internal Server Error"}},
		{"body orders#2", 0, []string{`{"path":"/fail"}`}},
		{"body nobody#2", 3, []string{"there are orders-1"}},
		{"request orders-1#99", 3, []string{"no number 99"}},
		{"body orders-1#2", 0, []string{`{"path":"/fail"}`}},
		{"body orders-1#2 --offset 2 --range-bytes 4", 0, []string{"path"}},
		{"logs", 0, []string{"error", `the queue is full {queue: "mail"`}},
		{"logs --level loud", 2, []string{"debug, info"}},
		{"history", 0, []string{"~ worker.state", `"idle" → "stuck"`}},
		{"faults", 0, nil},
		{"search queue", 0, []string{"console", "orders-1"}},
		{"search --filter what=='node'", 0, []string{"worker"}},
		{"search nowhere", 3, nil},
		{"tree nobody", 3, []string{"there are orders-1"}},
		{"ls --space elsewhere", 4, []string{"nobody answers"}},
		{"ls -o yaml", 2, []string{"table or json"}},
	} {
		code, out, errs := a.run(tt.line)
		if code != tt.code {
			t.Errorf("natscope %s: exit code %d, want %d\n%s%s", tt.line, code, tt.code, out, errs)
		}
		for _, w := range tt.want {
			if !strings.Contains(out+errs, w) {
				t.Errorf("natscope %s does not say %q:\n%s%s", tt.line, w, out, errs)
			}
		}
		if strings.Contains(out+errs, "\x1b") {
			t.Errorf("natscope %s prints control characters where nobody has a terminal:\n%q", tt.line, out)
		}
		if strings.Count(errs, "\n") > 1 {
			t.Errorf("natscope %s complains in more than a line:\n%s", tt.line, errs)
		}
	}
}

// TestColours: what programs wrote never reaches the terminal as control characters, whatever the colours.
func TestColours(t *testing.T) {
	a := startAsked(t)
	_, out, _ := a.run("logs --color always")
	if !strings.Contains(out, "\x1b[31m") || strings.Contains(out, "\x1b[31mred") || !strings.Contains(out, `[31mred`) {
		t.Errorf("%q", out)
	}
}

func TestAskingCommandsInJSON(t *testing.T) {
	a := startAsked(t)
	for _, line := range []string{"ls", "tree orders", "find stuck", "net", "request orders-1#1", "body orders-1#1", "logs", "history", "faults", "search queue"} {
		code, out, errs := a.run(line + " -o json")
		var v any
		if err := json.Unmarshal([]byte(out), &v); code != 0 || err != nil {
			t.Errorf("natscope %s -o json: exit code %d, %v\n%s%s", line, code, err, out, errs)
		}
	}
}

// stream is what a command that follows has printed so far.
type stream struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *stream) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// TestFollowing runs the commands that go on, and ends them as Ctrl+C does.
func TestFollowing(t *testing.T) {
	a := startAsked(t)
	worker := a.tree.Root().Add("second")
	for line, want := range map[string]string{
		"logs -f -n 1": "tick", "watch": "tick", "watch -o json --kind console": `"kind":"console"`, "history -f -n 1": "second.n", "ls --watch": "orders-1", "tree orders --watch": "n=",
	} {
		t.Run(line, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var out, errs stream
			done := make(chan int)
			go func() { done <- run(ctx, append(strings.Fields(line), "--nats", a.nats), &out, &errs) }()
			for end := time.Now().Add(10 * time.Second); !strings.Contains(out.String(), want); time.Sleep(20 * time.Millisecond) {
				a.log.Info("tick")
				worker.Set("n", time.Now().UnixNano())
				if time.Now().After(end) {
					t.Fatalf("it does not say %q:\n%s%s", want, &out, &errs)
				}
			}
			cancel()
			select {
			case code := <-done:
				if code != 0 || errs.String() != "" {
					t.Errorf("exit code %d: %s", code, &errs)
				}
			case <-time.After(10 * time.Second):
				t.Error("it does not end")
			}
		})
	}
}

func TestCompletionOfSources(t *testing.T) {
	a := startAsked(t)
	t.Setenv("NATS_URL", a.nats)
	var out bytes.Buffer
	if run(t.Context(), []string{"__complete", "logs", ""}, &out, io.Discard) != 0 || !strings.HasPrefix(out.String(), "orders-1\torders, connected\n") {
		t.Errorf("completed: %q", out.String())
	}
}

// pool is a value that people may change.
type pool struct {
	mu   sync.Mutex
	Size int
}

func (p *pool) resize(n int) error {
	if n > 64 {
		return errors.New("at most 64")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Size = n
	return nil
}

// TestEditAndEval changes a value of a running program, and hears why it cannot evaluate.
func TestEditAndEval(t *testing.T) {
	a := startAsked(t)
	workers := &pool{Size: 4}
	a.tree.Register(nil, "pool", workers, treecap.Locked(&workers.mu), treecap.Writable("Size", workers.resize))
	a.until("find pool", func(out string) bool { return strings.Contains(out, "Size=4") })
	_, out, _ := a.run("find pool")
	id, _, _ := strings.Cut(out, " ")
	for line, want := range map[string]struct {
		code int
		text string
	}{
		"edit " + id + " Size 8":  {0, "took it"},
		"edit " + id + " Size 99": {1, "at most 64"},
		"edit " + id + " None 1":  {1, "None"},
		"edit orders" + strings.TrimPrefix(id, "orders-1") + " Size 8": {0, "took it"}, // By the source's name.
		"edit orders-1/n1 Size 1":                                      {3, "read the tree again"},
		"eval orders-1 1 + 1":                                          {1, "does not answer runtime.evaluate; it answers: tree.edit"},
		"eval orders-1":                                                {2, "arg"},
	} {
		code, out, errs := a.run(line)
		if code != want.code || !strings.Contains(out+errs, want.text) {
			t.Errorf("natscope %s: exit code %d, want %d and %q\n%s%s", line, code, want.code, want.text, out, errs)
		}
	}
	a.until("history "+id, func(out string) bool { return strings.Contains(out, "4 → 8") })
	a.until("audit", func(out string) bool {
		return strings.Contains(out, "tree.edit") && strings.Contains(out, "(natscope edit)")
	})
}
