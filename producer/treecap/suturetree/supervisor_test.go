package suturetree_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/thejerf/suture/v4"
	"go.uber.org/goleak"

	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/producer/treecap/internal/treetest"
	"github.com/natscope/natscope/producer/treecap/suturetree"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// worker is a service whose runs a test ends one by one.
type worker struct {
	name string
	ends chan error
}

func newWorker(name string) *worker { return &worker{name, make(chan error)} }

func (w *worker) String() string { return w.name }

func (w *worker) Serve(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-w.ends:
		if err != nil && err.Error() == "panic" {
			panic("it broke")
		}
		return err
	}
}

// nameless is a service without a name of its own.
type nameless struct{ N int }

func (n nameless) Serve(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

// events collects what a hook is told.
type events struct {
	mu  sync.Mutex
	all []suture.Event
}

func (e *events) hook(x suture.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, x)
}

func (e *events) text() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var b strings.Builder
	for _, x := range e.all {
		switch x := x.(type) {
		case suture.EventServicePanic:
			fmt.Fprintf(&b, "panic %T %s\n", x.Service, x.ServiceName)
			if !strings.Contains(x.Stacktrace, "worker).Serve") {
				b.WriteString("the stack is lost\n")
			}
		case suture.EventServiceTerminate:
			fmt.Fprintf(&b, "terminate %T %s\n", x.Service, x.ServiceName)
		default:
			fmt.Fprintf(&b, "%T %s\n", x, x.Map()["supervisor_name"])
		}
	}
	return b.String()
}

func (e *events) spec() suture.Spec {
	return suture.Spec{EventHook: e.hook, FailureThreshold: 2, FailureBackoff: 20 * time.Millisecond, BackoffJitter: suture.NoJitter{}, Timeout: 5 * time.Second}
}

// run starts a supervisor that ends with the test.
func run(t *testing.T, s *suturetree.Supervisor) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := s.ServeBackground(ctx)
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			<-done
		})
	}
	t.Cleanup(stop)
	return stop
}

func has(lines ...string) func(string) bool {
	return func(text string) bool {
		for _, l := range lines {
			if !strings.Contains(text, l) {
				return false
			}
		}
		return true
	}
}

func TestServices(t *testing.T) {
	r := treetest.New(t, natstest.Start(t))
	var e events
	s := suturetree.New(r.Tree.Root(), "root", e.spec())
	a, b := newWorker("a"), newWorker("b")
	s.Add(a)
	s.Add(b)
	s.Add(nameless{3})
	if got, want := r.Show(), `
app
 supervisor name=root state=new
  service name=a state=waiting
  service name=b state=waiting
  service name=suturetree_test.nameless state=waiting
`; got != want[1:] {
		t.Errorf("before the start\n%s", got)
	}
	for _, c := range r.Root().Children[0].Children {
		if !strings.Contains(c.Loc, "supervisor_test.go:") {
			t.Errorf("service %s is at %q", treetest.Attr(c, "name"), c.Loc)
		}
	}
	stop := run(t, s)
	r.Until("all run", has("name=root state=running", "name=a state=running starts=1", "name=b state=running starts=1", "nameless state=running starts=1"))
	a.ends <- errors.New("no disk")
	r.Until("a runs again", has("name=root state=running failures=1", "name=a state=running starts=2 error=no disk"))
	b.ends <- errors.New("panic")
	r.Until("b runs again", has("name=b state=running starts=2 error=panic: it broke"))
	a.ends <- errors.New("no disk either")
	r.Until("the supervisor waited, and a runs again", has("name=root state=running", "name=a state=running starts=3 error=no disk either"))
	b.ends <- suture.ErrDoNotRestart
	r.Until("b is done", has("name=b state=done"))
	if got := s.Services(); len(got) != 2 || got[0] != suture.Service(a) && got[1] != suture.Service(a) {
		t.Errorf("services %v", got)
	}
	stop()
	r.Until("all stopped", has("name=root state=stopped", "name=a state=stopped", "nameless state=stopped", "name=b state=done"))
	if got, want := e.text(), `
terminate *suturetree_test.worker a
panic *suturetree_test.worker b
suture.EventBackoff root
terminate *suturetree_test.worker a
suture.EventResume root
`; got != want[1:] {
		t.Errorf("the hook was told\n%s", got)
	}
	if token := s.Add(newWorker("late")); token != (suture.ServiceToken{}) || strings.Contains(r.Show(), "late") {
		t.Errorf("a stopped supervisor took a service:\n%s", r.Show())
	}
}

// TestBackoff stays in the state that the test above only passes through.
func TestBackoff(t *testing.T) {
	r := treetest.New(t, natstest.Start(t))
	var e events
	spec := e.spec()
	spec.FailureThreshold, spec.FailureBackoff = 0.5, time.Hour
	s := suturetree.New(r.Tree.Root(), "root", spec)
	a := newWorker("a")
	token := s.Add(a)
	stop := run(t, s)
	a.ends <- nil
	r.Until("the supervisor waits", has("name=root state=backoff failures=1", "name=a state=backoff starts=1"))
	if err := s.Remove(token); err != nil {
		t.Error(err)
	}
	r.Until("the waiting service is gone", func(text string) bool { return !strings.Contains(text, "service") })
	stop()
}

func TestRemove(t *testing.T) {
	r := treetest.New(t, natstest.Start(t))
	var e events
	s := suturetree.New(r.Tree.Root(), "root", e.spec())
	early := s.Add(newWorker("early"))
	if err := s.Remove(early); err == nil {
		t.Error("a supervisor that was not started removes a service")
	}
	run(t, s)
	now := s.Add(newWorker("now"))
	r.Until("both run", has("name=early state=running", "name=now state=running"))
	if err := s.Remove(early); err != nil {
		t.Error(err)
	}
	if err := s.RemoveAndWait(now, 10*time.Second); err != nil {
		t.Error(err)
	}
	r.Until("both are gone", func(text string) bool { return !strings.Contains(text, "service") })
	if err := s.Remove(suture.ServiceToken{}); err != suture.ErrWrongSupervisor {
		t.Errorf("an unknown token: %v", err)
	}
}

// team is a service that has a supervisor.
type team struct{ *suturetree.Supervisor }

func TestNested(t *testing.T) {
	r := treetest.New(t, natstest.Start(t))
	var e events
	root := suturetree.New(r.Tree.Root(), "root", e.spec())
	inner := suturetree.New(root.Node(), "inner", e.spec())
	deep := team{suturetree.New(inner.Node(), "deep", e.spec())}
	a := newWorker("a")
	deep.Add(a)
	inner.Add(deep)
	root.Add(inner)
	plain := suture.New("plain", e.spec())
	p := newWorker("p")
	plain.Add(p)
	root.Add(plain)
	stop := run(t, root)
	r.Until("all run", has(`
 supervisor name=root state=running
  supervisor name=inner state=running starts=1
   supervisor name=deep state=running starts=1
    service name=a state=running starts=1
  supervisor name=plain state=running starts=1`))
	for range 3 {
		a.ends <- errors.New("no")
		p.ends <- errors.New("no")
	}
	r.Until("the failures show where they are", func(text string) bool {
		return has("name=a state=running starts=4 error=no")(text) && strings.Contains(e.text(), "EventResume deep") && strings.Contains(e.text(), "EventResume plain") &&
			has("name=deep state=running starts=1 failures=3", "name=plain state=running starts=1")(text)
	})
	stop()
	r.Until("all stopped", has("name=root state=stopped", "name=inner state=stopped", "name=deep state=stopped", "name=a state=stopped", "name=plain state=stopped"))
}

func TestTermination(t *testing.T) {
	r := treetest.New(t, natstest.Start(t))
	var e events
	s := suturetree.New(r.Tree.Root(), "root", e.spec())
	a := newWorker("a")
	s.Add(a)
	done := make(chan error, 1)
	go func() { done <- s.Serve(context.Background()) }()
	a.ends <- fmt.Errorf("all is lost: %w", suture.ErrTerminateSupervisorTree)
	if err := <-done; !errors.Is(err, suture.ErrTerminateSupervisorTree) {
		t.Errorf("Serve returns %v", err)
	}
	r.Until("the reason shows", has("name=root state=stopped", "name=a state=terminated", "error=all is lost"))
}

// stubborn does not stop when it is told to.
type stubborn struct{ leave chan struct{} }

func (s stubborn) String() string              { return "stubborn" }
func (s stubborn) Serve(context.Context) error { <-s.leave; return nil }

func TestStopTimeout(t *testing.T) {
	r := treetest.New(t, natstest.Start(t))
	var e events
	spec := e.spec()
	spec.Timeout = 10 * time.Millisecond
	s := suturetree.New(r.Tree.Root(), "root", spec)
	x := stubborn{make(chan struct{})}
	s.Add(x)
	stop := run(t, s)
	r.Until("it runs", has("name=stubborn state=running"))
	stop()
	r.Until("it shows", has("name=root state=stopped", "name=stubborn state=does not stop"))
	if !strings.Contains(e.text(), "EventStopTimeout root") {
		t.Errorf("the hook was told\n%s", e.text())
	}
	close(x.leave)
	r.Until("it stops at last", has("name=stubborn state=stopped"))
}

// TestManyThatEnd adds services that end for good: only the newest stay.
func TestManyThatEnd(t *testing.T) {
	r := treetest.New(t, natstest.Start(t))
	var e events
	s := suturetree.New(r.Tree.Root(), "root", e.spec())
	run(t, s)
	for range 100 {
		w := newWorker("w")
		s.Add(w)
		w.ends <- suture.ErrDoNotRestart
	}
	r.Until("few are left", func(text string) bool {
		return strings.Count(text, "state=done") == 20 && strings.Count(text, "service") == 20
	})
}
