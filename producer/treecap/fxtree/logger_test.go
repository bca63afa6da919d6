package fxtree_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"
	"go.uber.org/goleak"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/producer/treecap"
	"github.com/natscope/natscope/producer/treecap/fxtree"
	"github.com/natscope/natscope/producer/treecap/internal/treetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type store struct{}

type server struct{}

type config struct{ Addr string }

func newStore(lc fx.Lifecycle) *store {
	lc.Append(fx.Hook{OnStart: openStore, OnStop: closeStore})
	return &store{}
}

func openStore(context.Context) error { return nil }

func closeStore(context.Context) error { return errors.New("the disk is busy") }

func newServer(*store, config) *server { return &server{} }

func newUnused() *int { return nil }

func newCounter(*server) int { return 1 }

func serve(*server, int) {}

// counter counts the events that the application's own logger gets.
type counter struct{ n int }

func (c *counter) LogEvent(fxevent.Event) { c.n++ }

// without takes out what differs from run to run.
func without(text string) string {
	return regexp.MustCompile(` took=\S+`).ReplaceAllString(text, "")
}

func TestApplication(t *testing.T) {
	r := treetest.New(t, natstest.Start(t))
	var next counter
	app := fx.New(
		fxtree.Option(r.Tree.Root(), &next),
		fx.Provide(newStore, newUnused),
		fx.Supply(config{"a"}),
		fx.Replace(config{"b"}),
		fx.Module("web",
			fx.Provide(newServer),
			fx.Provide(fx.Annotate(newCounter, fx.ParamTags(``)), fx.Private),
			fx.Decorate(func(s *server) *server { return s }),
			fx.Invoke(serve),
		),
	)
	if err := app.Err(); err != nil {
		t.Fatal(err)
	}
	if got, want := without(r.Show()), `
app
 fx state=new
  constructor function=fxtree_test.newStore types=*fxtree_test.store state=done
  constructor function=fxtree_test.newUnused types=*int state=unused
  value types=fxtree_test.config state=unused
  module name=web
   constructor function=fxtree_test.newServer types=*fxtree_test.server state=done
   constructor private=true function=fxtree_test.newCounter types=int state=done
   decorator function=fxtree_test.TestApplication.func1 types=*fxtree_test.server state=done
   invoke function=fxtree_test.serve state=done
  replacement types=fxtree_test.config state=done
`; got != want[1:] {
		t.Errorf("after the construction\n%s", got)
	}
	if loc := r.Root().Children[0].Children[0].Loc; !strings.Contains(loc, "logger_test.go:") {
		t.Errorf("loc %q", loc)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := app.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if got := without(r.Show()); !strings.Contains(got, " fx state=running\n") ||
		!strings.Contains(got, "  hook on=start function=fxtree_test.openStore caller=fxtree_test.newStore state=done\n") {
		t.Errorf("after the start\n%s", got)
	}
	if err := app.Stop(ctx); err == nil {
		t.Error("the stop did not fail")
	}
	if got := without(r.Show()); !strings.Contains(got, " fx state=failed to stop error=the disk is busy\n") ||
		!strings.Contains(got, "  hook on=stop function=fxtree_test.closeStore caller=fxtree_test.newStore state=failed error=the disk is busy\n") {
		t.Errorf("after the stop\n%s", got)
	}
	if next.n < 20 {
		t.Errorf("the application's logger got %d events", next.n)
	}
}

func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		options []fx.Option
		want    []string
	}{
		"a constructor": {
			[]fx.Option{fx.Provide(func() (*store, error) { return nil, errors.New("no disk") }), fx.Invoke(func(*store) {})},
			[]string{"constructor function=fxtree_test.TestFailures.func1 types=*fxtree_test.store state=failed", ": no disk\n", "invoke function=fxtree_test.TestFailures.func2 state=failed error="},
		},
		"a constructor that is none": {
			[]fx.Option{fx.Provide(42)},
			[]string{"constructor function=42 state=failed error="},
		},
		"an invocation": {
			[]fx.Option{fx.Invoke(func() error { return errors.New("no port") })},
			[]string{"state=failed error=no port"},
		},
		"a hook": {
			[]fx.Option{fx.Invoke(func(lc fx.Lifecycle) {
				for range 2 {
					lc.Append(fx.StopHook(func() {}))
				}
				lc.Append(fx.StartHook(func() error { return errors.New("no start") }))
			})},
			[]string{"fx state=failed to start error=no start", "hook on=start", "state=failed", "error=no start", "hook on=stop", "state=done"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := treetest.New(t, natstest.Start(t))
			app := fx.New(append(c.options, fxtree.Option(r.Tree.Root(), fxevent.NopLogger))...)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := app.Start(ctx); err == nil {
				t.Error("nothing failed")
			}
			got := r.Show()
			for _, w := range c.want {
				if !strings.Contains(got, w) {
					t.Errorf("%q is not in\n%s", w, got)
				}
			}
		})
	}
}

// An application shows itself with one option.
func Example() {
	p, err := producer.Start(producer.Options{Service: "orders"})
	if err != nil {
		fmt.Println(err)
		return
	}
	t := treecap.New(p, treecap.Options{RootName: "orders"})
	defer func() {
		t.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		_ = p.Close(ctx)
	}()

	app := fx.New(
		fxtree.Option(t.Root(), fxevent.NopLogger),
		fx.Provide(newStore),
		fx.Invoke(func(*store) { fmt.Println("ready") }),
	)
	fmt.Println(app.Err())
	// In Elements:
	// <fx state="new">
	//   <constructor function="main.newStore" types="*main.store" state="done" took="20µs">
	//   <invoke function="main.main.func1" state="done">
	// Output:
	// ready
	// <nil>
}
