package treecap_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/producer/treecap"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/tree"
)

// settings is what a program lets people change.
type settings struct {
	mu       sync.Mutex
	Interval time.Duration
	Limit    int
	Ratio    float64
	Debug    bool
	Name     string
	Tags     []string
	Raw      json.RawMessage
}

func (s *settings) writable() []treecap.ComponentOption {
	return []treecap.ComponentOption{
		treecap.Locked(&s.mu),
		treecap.Writable("Interval", set(s, &s.Interval)), treecap.Writable("Limit", func(n int) error {
			if n < 1 || n > 100 {
				return fmt.Errorf("%d is not between 1 and 100", n)
			}
			return set(s, &s.Limit)(n)
		}),
		treecap.Writable("Ratio", set(s, &s.Ratio)), treecap.Writable("Debug", set(s, &s.Debug)), treecap.Writable("Name", set(s, &s.Name)),
		treecap.Writable("Tags", set(s, &s.Tags)), treecap.Writable("Raw", set(s, &s.Raw)),
		treecap.Writable("password", func(string) error { return nil }),
		treecap.Writable("panics", func(any) error { panic("no way") }),
		treecap.Writable("exits", func(any) error { runtime.Goexit(); return nil }),
	}
}

func set[T any](s *settings, to *T) func(T) error {
	return func(v T) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		*to = v
		return nil
	}
}

func TestEdit(t *testing.T) {
	r := newRig(t, subjects.Limits{})
	tr := treecap.New(r.p, treecap.Options{Interval: time.Hour})
	s := &settings{}
	tr.Register(nil, "settings", s, s.writable()...)
	tr.Root().Add("plain")
	r.sync(tr)
	e := r.node()
	if got := strings.Join(e.Writable, " "); got != "Interval Limit Ratio Debug Name Tags Raw password panics exits" {
		t.Errorf("writable are %s", got)
	}
	for _, c := range []struct {
		name, value string
		want        string // the value, as it is shown
		err         error
		says        string
	}{
		{"Interval", `"250ms"`, `"250ms"`, nil, ""},
		{"Interval", `"soon"`, `"250ms"`, treecap.ErrRefused, "use one such as 1.5s"},
		{"Interval", `5`, `"250ms"`, treecap.ErrRefused, "no duration"},
		{"Limit", `7`, `7`, nil, ""},
		{"Limit", `"8"`, `8`, nil, ""},
		{"Limit", ` 9 `, `9`, nil, ""},
		{"Limit", `1.5`, `9`, treecap.ErrRefused, "1.5 is no int"},
		{"Limit", `null`, `9`, treecap.ErrRefused, "null is no int"},
		{"Limit", `"null"`, `9`, treecap.ErrRefused, "is no int"},
		{"Limit", `1000`, `9`, treecap.ErrRefused, "1000 is not between 1 and 100"},
		{"Limit", `{"a":`, `9`, treecap.ErrRefused, "not JSON"},
		{"Ratio", `"0.5"`, `0.5`, nil, ""},
		{"Debug", `"true"`, `true`, nil, ""},
		{"Debug", `0`, `true`, treecap.ErrRefused, "0 is no bool"},
		{"Name", `"x"`, `"x"`, nil, ""},
		{"Name", `42`, `"42"`, nil, ""},
		{"Name", `"42"`, `"42"`, nil, ""},
		{"Tags", `["a"]`, `["a"]`, nil, ""},
		{"Tags", `"[\"b\"]"`, `["b"]`, nil, ""},
		{"Tags", `null`, `null`, nil, ""},
		{"Raw", `{"a":1}`, `{"a":1}`, nil, ""},
		{"password", `"x"`, `{"__natscope":"undefined"}`, nil, ""},
		{"panics", `1`, `{"__natscope":"undefined"}`, treecap.ErrRefused, "panicked: no way"},
		{"exits", `1`, `{"__natscope":"undefined"}`, treecap.ErrRefused, "ended its goroutine"},
		{"mu", `1`, ``, treecap.ErrNotWritable, `it has "Interval", "Limit"`},
	} {
		err := tr.Edit(e.ID, c.name, json.RawMessage(c.value))
		if !errors.Is(err, c.err) || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s = %s: %v, want %v that says %q", c.name, c.value, err, c.err, c.says)
		}
		r.sync(tr)
		if got := string(r.node().Values[c.name]); got != c.want {
			t.Errorf("%s = %s: shown is %s, want %s", c.name, c.value, got, c.want)
		}
	}
	root, _, _, _ := r.tree()
	for _, id := range []tree.NodeID{0, root.ID, root.Children[1].ID, 999} {
		if err := tr.Edit(id, "Limit", json.RawMessage("1")); !errors.Is(err, treecap.ErrUnknownNode) {
			t.Errorf("node %d: %v", id, err)
		}
	}
	tr.Close()
	if err := tr.Edit(e.ID, "Limit", json.RawMessage("1")); !errors.Is(err, treecap.ErrUnknownNode) {
		t.Errorf("after Close: %v", err)
	}
}

func TestEditOfNothingWritable(t *testing.T) {
	r := newRig(t, subjects.Limits{})
	tr := treecap.New(r.p, treecap.Options{Interval: time.Hour})
	tr.Register(nil, "point", &point{})
	r.sync(tr)
	if err := tr.Edit(r.node().ID, "X", json.RawMessage("1")); !errors.Is(err, treecap.ErrNotWritable) || !strings.Contains(err.Error(), "nothing of this component") {
		t.Errorf("%v", err)
	}
}

// TestEditThatHangs has a setter that does not return: the edit ends, others of the component wait, others of the tree do not.
func TestEditThatHangs(t *testing.T) {
	r := newRig(t, subjects.Limits{Command: 20 * time.Millisecond})
	tr := treecap.New(r.p, treecap.Options{Interval: time.Hour})
	release := make(chan struct{})
	n := 0
	hang := tr.Register(nil, "c", &point{}, treecap.Writable("X", func(int) error { n++; <-release; return nil }))
	free := tr.Register(nil, "c", &point{}, treecap.Writable("X", func(int) error { return nil }))
	r.sync(tr)
	root, _, _, _ := r.tree()
	id, other := root.Children[0].ID, root.Children[1].ID
	if err := tr.Edit(id, "X", json.RawMessage("1")); !errors.Is(err, treecap.ErrTimeout) {
		t.Errorf("hanging: %v", err)
	}
	if err := tr.Edit(id, "X", json.RawMessage("2")); !errors.Is(err, treecap.ErrBusy) {
		t.Errorf("behind it: %v", err)
	}
	if err := tr.Edit(other, "X", json.RawMessage("3")); err != nil {
		t.Errorf("beside it: %v", err)
	}
	close(release)
	natstest.Until(t, "the component can be edited again", func() bool { return tr.Edit(id, "X", json.RawMessage("4")) == nil })
	if n != 2 {
		t.Errorf("the setter ran %d times", n)
	}
	hang.Close()
	free.Close()
	tr.Close()
}

// TestEditBehindOneThatHangs: whoever edits hears soon that the component is busy,
// however long commands may take.
func TestEditBehindOneThatHangs(t *testing.T) {
	r := newRig(t, subjects.Limits{Command: time.Hour})
	tr := treecap.New(r.p, treecap.Options{Interval: time.Hour})
	started, release := make(chan struct{}), make(chan struct{})
	tr.Register(nil, "c", &point{}, treecap.Writable("X", func(int) error { close(started); <-release; return nil }))
	r.sync(tr)
	id := r.node().ID
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- tr.Edit(id, "X", json.RawMessage("1")) }()
	<-started
	go func() { second <- tr.Edit(id, "X", json.RawMessage("2")) }()
	select {
	case err := <-second:
		if !errors.Is(err, treecap.ErrBusy) {
			t.Errorf("behind it: %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("an edit waits for one that hangs")
	}
	close(release)
	if err := <-first; err != nil {
		t.Errorf("what hung: %v", err)
	}
	tr.Close()
}

// TestManyEdits lets all setters of a tree hang at once: their number is bounded, and they all end.
func TestManyEdits(t *testing.T) {
	r := newRig(t, subjects.Limits{Command: 50 * time.Millisecond})
	tr := treecap.New(r.p, treecap.Options{Interval: time.Hour})
	release := make(chan struct{})
	for range 50 {
		tr.Register(nil, "c", &point{}, treecap.Writable("X", func(int) error { <-release; return nil }))
	}
	r.sync(tr)
	root, _, _, _ := r.tree()
	var mu sync.Mutex
	counts := map[error]int{}
	var wg sync.WaitGroup
	for _, e := range root.Children {
		wg.Go(func() {
			err := tr.Edit(e.ID, "X", json.RawMessage("1"))
			mu.Lock()
			defer mu.Unlock()
			for _, kind := range []error{treecap.ErrTimeout, treecap.ErrBusy} {
				if errors.Is(err, kind) {
					counts[kind]++
				}
			}
		})
	}
	wg.Wait()
	if counts[treecap.ErrTimeout] != 32 || counts[treecap.ErrBusy] != 18 {
		t.Errorf("%v", counts)
	}
	close(release)
	for _, e := range root.Children {
		natstest.Until(t, "it can be edited", func() bool { return tr.Edit(e.ID, "X", json.RawMessage("1")) == nil })
	}
}

// FuzzEdit gives setters of several types arbitrary text.
func FuzzEdit(f *testing.F) {
	for _, s := range []string{`1`, `"1s"`, `null`, `{"a":[1]}`, `"\"x\""`, `1e999`, `[`, ``, "\"\xff\"", ` true `} {
		f.Add(s)
	}
	r := newRig(f, subjects.Limits{})
	tr := treecap.New(r.p, treecap.Options{Interval: time.Hour})
	s := &settings{Limit: 1}
	tr.Register(nil, "settings", s, s.writable()...)
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range []string{"Interval", "Limit", "Ratio", "Debug", "Name", "Tags", "Raw"} {
			err := tr.Edit(2, name, json.RawMessage(text))
			if err != nil && !errors.Is(err, treecap.ErrRefused) {
				t.Fatalf("%s: %v", name, err)
			}
			if err == nil && !json.Valid([]byte(text)) {
				t.Fatalf("%s took %q, which is not JSON", name, text)
			}
		}
		if s.Limit < 1 || s.Limit > 100 {
			t.Fatalf("the limit is %d", s.Limit)
		}
	})
}
