package v8

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/source"
	"github.com/natscope/natscope/subjects/tree"
	"github.com/natscope/natscope/subjects/value"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seen is what a test saw of one source.
type seen struct {
	id         subjects.SourceID
	life       source.State
	generation subjects.Generation
	// generations counts those that opened.
	generations int
	console     console.State
	net         network.State
	tree        tree.State
	messages    uint64
	bodies      map[string]string
	// started counts requests, and dropped the records of requests that were left out.
	started int
	dropped uint64
}

// world is a NATS server and what sources tell it.
type world struct {
	t    testing.TB
	nats *natstest.Server
	conn *nats.Conn

	mu      sync.Mutex
	sources map[subjects.SourceID]*seen
}

func newWorld(t testing.TB) *world {
	t.Helper()
	s := natstest.Start(t)
	s.Streams(subjects.DefaultSpace, subjects.Storage{Memory: true})
	w := &world{t: t, nats: s, conn: s.Connect(), sources: make(map[subjects.SourceID]*seen)}
	for _, subject := range []string{subjects.RecordsOf(subjects.DefaultSpace), subjects.BodiesOf(subjects.DefaultSpace)} {
		if _, err := w.conn.Subscribe(subject, w.take); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.conn.Flush(); err != nil {
		t.Fatal(err)
	}
	return w
}

// take folds one message.
func (w *world) take(m *nats.Msg) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b, err := subjects.ParseBody(m.Subject); err == nil {
		s := w.source(b.Source)
		s.bodies[string(b.Generation)+"."+string(b.Request)+"."+string(b.Direction)] += string(m.Data)
		return
	}
	r, err := subjects.ParseRecord(m.Subject)
	if err != nil {
		w.t.Errorf("%s: %v", m.Subject, err)
		return
	}
	f, err := subjects.DecodeFrame(subjects.Header(m.Header), m.Data)
	if err != nil {
		w.t.Errorf("%s: %v", m.Subject, err)
		return
	}
	s := w.source(r.Source)
	if r.Plane == subjects.PlaneNet {
		s.dropped += f.Dropped
	}
	for _, x := range f.Records {
		var err error
		switch r.Plane {
		case subjects.PlaneLife:
			if x.Topic == source.TopicOpen {
				s.generations++
				s.generation = r.Generation
			}
			err = s.life.Apply(x.T, x.Topic, x.Data)
		case subjects.PlaneConsole:
			_, err = s.console.Apply(string(r.Generation), x.T, s.life.Wall(x.T), x.Topic, x.Data, 100_000)
		case subjects.PlaneTree:
			s.messages++
			_, err = s.tree.Apply(x.Topic, x.Data, tree.IDsOf(s.messages), tree.Limits{}, x.T)
		case subjects.PlaneNet:
			if x.Topic == network.TopicStart {
				s.started++
			}
			_, err = s.net.Apply(string(r.Generation), x.T, x.Topic, x.Data, network.Keep{Requests: 1000})
		}
		if err != nil {
			w.t.Errorf("%s: %v", m.Subject, err)
		}
	}
}

func (w *world) source(id subjects.SourceID) *seen {
	s := w.sources[id]
	if s == nil {
		s = &seen{id: id, bodies: make(map[string]string)}
		w.sources[id] = s
	}
	return s
}

// until waits until f says so about what was seen.
func (w *world) until(what string, f func() bool) {
	w.t.Helper()
	defer func() {
		if w.t.Failed() {
			w.t.Logf("what was seen:\n%.4000s", w.dump())
		}
	}()
	natstest.Until(w.t, what, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return f()
	})
}

// patiently is until for what takes long on a busy machine.
func (w *world) patiently(what string, f func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		w.mu.Lock()
		ok := f()
		w.mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%s: not within two minutes\n%.4000s", what, w.dump())
		}
	}
}

// named finds a source by the name that people see; the caller holds mu.
func (w *world) named(name string) *seen {
	for _, s := range w.sources {
		if s.life.Opened && s.life.Descriptor.Name == name {
			return s
		}
	}
	return nil
}

// says reports whether the last message has a text; the caller holds mu.
func (s *seen) says(text string) bool {
	n := len(s.console.Entries)
	return n > 0 && s.console.Entries[n-1].Message != nil && strings.Contains(string(s.console.Entries[n-1].Message.Args[0]), text)
}

// log is the text of a source's console, a line for each message; the caller holds mu.
func (s *seen) log() string {
	var b strings.Builder
	for _, e := range s.console.Entries {
		switch {
		case e.Message != nil:
			b.WriteString(e.Message.Type)
			for _, a := range e.Message.Args {
				b.WriteString(" " + preview(a))
			}
		case e.Exception != nil:
			b.WriteString(e.Exception.Text + " " + preview(e.Exception.Value))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func preview(data json.RawMessage) string {
	v, err := value.Parse(data)
	if err != nil {
		return "malformed: " + err.Error()
	}
	return value.Preview(v)
}

// attach attaches to what o says, until the test ends.
func (w *world) attach(o Options) *Attacher {
	w.t.Helper()
	if o.Conn == nil {
		o.Conn = w.conn
	}
	if o.Instance == "" {
		o.Instance = "test"
	}
	if testing.Verbose() && o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	if o.Poll == 0 {
		o.Poll = 50 * time.Millisecond
	}
	a, err := Attach(o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := a.Close(ctx); err != nil {
			w.t.Error(err)
		}
	})
	return a
}

// program is a Node process with an inspector.
type program struct {
	t        testing.TB
	cmd      *exec.Cmd
	endpoint string
	dir      string
	lines    chan string
	stdin    interface{ Write([]byte) (int, error) }

	mu     sync.Mutex
	stderr strings.Builder
	done   chan struct{}
	code   int
}

// node runs a program in Node. Its inspector listens on port, 0 for any. Without
// a name, the script itself is the last argument.
func node(t testing.TB, port int, name, script string, args ...string) *program {
	t.Helper()
	bin, err := exec.LookPath("node")
	if err != nil {
		t.Fatal("these tests need Node: ", err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, name)
	if name == "" {
		file = script
	} else if err := os.WriteFile(file, []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	return launch(t, dir, bin, append(append([]string{"--inspect=127.0.0.1:" + strconv.Itoa(port)}, args...), file), nil)
}

// launch runs a program that says on standard error where its inspector listens,
// or, with an environment, one that does not.
func launch(t testing.TB, dir, bin string, args, env []string) *program {
	t.Helper()
	p := &program{t: t, cmd: exec.Command(bin, args...), dir: dir, lines: make(chan string, 1024), done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env = dir, env
	stdout, _ := p.cmd.StdoutPipe()
	stderr, _ := p.cmd.StderrPipe()
	p.stdin, _ = p.cmd.StdinPipe()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	listening := make(chan string, 1)
	var readers sync.WaitGroup
	readers.Go(func() {
		for s := bufio.NewScanner(stdout); s.Scan(); {
			select {
			case p.lines <- s.Text():
			default: // nobody reads
			}
		}
		_, _ = io.Copy(io.Discard, stdout) // A line that is too long ends the scanning.
	})
	readers.Go(func() {
		for s := bufio.NewScanner(stderr); s.Scan(); {
			if _, rest, ok := strings.Cut(s.Text(), "listening on ws://"); ok {
				host, _, _ := strings.Cut(rest, "/")
				select {
				case listening <- host:
				default:
				}
			}
			p.mu.Lock()
			p.stderr.WriteString(s.Text() + "\n")
			p.mu.Unlock()
		}
	})
	go func() {
		readers.Wait()
		_ = p.cmd.Wait()
		p.code = p.cmd.ProcessState.ExitCode()
		close(p.done)
	}()
	t.Cleanup(p.kill)
	if env != nil {
		return p
	}
	select {
	case p.endpoint = <-listening:
	case <-time.After(60 * time.Second):
		t.Fatalf("no inspector: %s", p.errors())
	}
	return p
}

func (p *program) errors() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

// kill ends the program and waits for its end.
func (p *program) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// exits waits for the end of the program and returns its exit code.
func (p *program) exits() int {
	p.t.Helper()
	select {
	case <-p.done:
		return p.code
	case <-time.After(15 * time.Second):
		p.t.Fatalf("the program does not end: %s", p.errors())
	}
	return -1
}

// tell writes a line to the program's standard input.
func (p *program) tell(line string) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.stdin, line); err != nil {
		p.t.Fatal(err)
	}
}

// port is the port of the inspector.
func (p *program) port() int {
	_, port, _ := strings.Cut(p.endpoint, ":")
	n, _ := strconv.Atoi(port)
	return n
}

// dump describes all sources.
func (w *world) dump() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var b strings.Builder
	for _, s := range w.sources {
		fmt.Fprintf(&b, "%s %q closed=%v %q\n%s\n", s.id, s.life.Descriptor.Name, s.life.Closed, s.life.Reason, s.log())
		for _, r := range s.net.Requests {
			fmt.Fprintf(&b, "  %s %s %s %.80s %s body %d, request body %d, response %t\n", r.Generation, r.ID(), r.Start.Value.Type, r.Start.Value.URL, r.Ending,
				len(s.bodies[r.Generation+"."+string(r.ID())+".res"]), len(s.bodies[r.Generation+"."+string(r.ID())+".req"]), r.Response != nil && r.Response.Value.Timing != nil)
		}
	}
	return b.String()
}
