package treecap_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/natscope/natscope/producer/treecap"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/tree"
)

// credential says of itself only what may be seen.
type credential struct{ Clear string }

func (credential) LogValue() slog.Value { return slog.GroupValue(slog.String("set", "yes")) }

type line struct {
	SKU   string
	Tags  []string
	Notes map[int]string
}

type accounts struct {
	mu       sync.RWMutex
	Lines    []line
	ByKey    map[string]*line
	Prices   map[string]int
	Any      any
	Raw      json.RawMessage
	Password credential
	Hidden   []int `natscope:"-"`
	Count    atomic.Pointer[line]
	Next     *accounts
	Bytes    []byte
}

func newLedger() *accounts {
	l := &accounts{
		Prices: map[string]int{"tea": 3}, ByKey: map[string]*line{"x": {SKU: "behind a pointer"}},
		Any: []any{map[string]any{"deep": []int{7}}}, Raw: json.RawMessage(`{"a":{"b":[1,2]}}`), Password: credential{"secret"},
		Hidden: []int{1}, Next: &accounts{}, Bytes: []byte("abc"),
	}
	l.Count.Store(&line{SKU: "atomic"})
	for i := range 150 {
		l.Lines = append(l.Lines, line{SKU: fmt.Sprint("s", i), Tags: []string{"a", "b"}, Notes: map[int]string{2: "two", 1: "one"}})
	}
	return l
}

// inspect asks a tree as a gateway does, through what travels.
func inspect(t *testing.T, tr *treecap.Tree, id tree.NodeID, path string, limit int) (string, error) {
	t.Helper()
	var steps []realm.Step
	if err := json.Unmarshal([]byte(path), &steps); err != nil {
		t.Fatal(err)
	}
	raw, err := tr.Inspect(t.Context(), id, steps, limit)
	return string(raw), err
}

// Values are opened as deep as they are safe to read, and what hides stays hidden.
func TestInspect(t *testing.T) {
	r := newRig(t, subjects.Limits{})
	tr := treecap.New(r.p, treecap.Options{Interval: time.Hour})
	l := newLedger()
	id := tree.NodeID(2)
	tr.Register(nil, "accounts", l, treecap.Locked(&l.mu), treecap.Computed("total", func() any { return []int{1, 2} }), treecap.Computed("broken", func() any { panic("oh") }))
	for path, want := range map[string]string{
		`["Lines",149,"SKU"]`: `"s149"`, `["Lines",0,"Tags"]`: `["a","b"]`, `["Lines",0,"Notes",1]`: `"two"`, `["Prices","tea"]`: "3",
		`["Any",0,"deep",0]`: "7", `["Raw","a","b"]`: "[1,2]", `["Password","set"]`: `"yes"`, `["total",1]`: "2",
		`["Password"]`: `{"set":"yes"}`,
		// Nothing is there, or nobody may see it.
		`["Password","Clear"]`: "", `["Hidden"]`: "", `["Lines",150]`: "", `["Lines","SKU"]`: "", `["Lines",0,3]`: "", `["Prices","milk"]`: "", `["Prices",0]`: "",
		`["ByKey","x","SKU"]`: "", `["Next","Lines"]`: "", `["mu"]`: "", `["Nothing"]`: "", `["Bytes",0]`: "", `["Raw","a","b",9]`: "", `["Count","SKU"]`: "",
	} {
		if got, err := inspect(t, tr, id, path, 0); got != want || err != nil {
			t.Errorf("%s: %s %v, want %s", path, got, err, want)
		}
	}
	if got, _ := inspect(t, tr, id, `["broken"]`, 0); !strings.Contains(got, "threw") || !strings.Contains(got, "oh") {
		t.Errorf("a function that panics: %s", got)
	}
	all, _ := inspect(t, tr, id, `["Lines"]`, 2000)
	some, _ := inspect(t, tr, id, `["Lines"]`, 0)
	if strings.Count(all, `"type":"object"`) != 150 || strings.Count(some, `"type":"object"`) != 100 || !strings.Contains(some, `"partial"`) {
		t.Errorf("with a limit of 2000: %d lines; without: %d", strings.Count(all, `"type":"object"`), strings.Count(some, `"type":"object"`))
	}
	if got, err := inspect(t, tr, 999, `["Lines"]`, 0); got != "" || err != nil {
		t.Errorf("an unknown node: %s %v", got, err)
	}

	// The lock is waited for a little, and never broken.
	l.mu.Lock()
	if _, err := inspect(t, tr, id, `["Prices"]`, 0); !errors.Is(err, realm.ErrBusy) {
		t.Errorf("while the lock is taken: %v", err)
	}
	l.mu.Unlock()
}

// A value without a lock belongs to the goroutine that updates it: nobody else
// reads it, and readers have what they were sent.
func TestInspectWithoutLock(t *testing.T) {
	r := newRig(t, subjects.Limits{})
	tr := treecap.New(r.p, treecap.Options{Interval: time.Hour})
	v := &line{SKU: "a", Tags: []string{"x"}}
	c := tr.Register(nil, "line", v)
	v.SKU = "changed and not told"
	if got, err := inspect(t, tr, 2, `["SKU"]`, 0); got != `"a"` || err != nil {
		t.Errorf("%s %v", got, err)
	}
	if _, err := inspect(t, tr, 2, `["Tags",0]`, 0); !errors.Is(err, realm.ErrRefused) || !strings.Contains(err.Error(), "treecap.Locked") {
		t.Errorf("the inside of a value without a lock: %v", err)
	}
	tr.Register(nil, "copy", v, treecap.Snapshot(func() any { return map[string]any{"now": map[string]int{"n": 5}} }))
	if got, err := inspect(t, tr, 3, `["now","n"]`, 0); got != "5" || err != nil {
		t.Errorf("%s %v", got, err)
	}
	tr.Register(nil, "logged", credential{"secret"})
	if got, err := inspect(t, tr, 4, `["Clear"]`, 0); got != "" || err != nil {
		t.Errorf("%s %v", got, err)
	}
	c.Close()
	if got, err := inspect(t, tr, 2, `["SKU"]`, 0); got != "" || err != nil {
		t.Errorf("a closed component: %s %v", got, err)
	}
}

// An answer stays small enough to travel, and says what it left out.
func TestInspectIsBounded(t *testing.T) {
	r := newRig(t, subjects.Limits{})
	tr := treecap.New(r.p, treecap.Options{Interval: time.Hour})
	var mu sync.Mutex
	wide := struct{ Texts []string }{}
	for range 1900 {
		wide.Texts = append(wide.Texts, strings.Repeat("x", 5000))
	}
	tr.Register(nil, "wide", &wide, treecap.Locked(&mu))
	got, err := inspect(t, tr, 2, `["Texts"]`, 100_000)
	if err != nil || len(got) > 600<<10 || !strings.Contains(got, `"size":1900`) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestInspectCommand asks over NATS.
func TestInspectCommand(t *testing.T) {
	r := newRig(t, subjects.Limits{})
	tr := treecap.New(r.p, treecap.Options{Interval: time.Hour})
	l := newLedger()
	tr.Register(nil, "accounts", l, treecap.Locked(&l.mu))
	r.sync(tr)
	if _, _, _, src := r.tree(); !realm.Supports(src.Life.Descriptor.Capabilities, realm.MethodInspect) {
		t.Fatal("the source does not say that it can be inspected")
	}
	m, err := r.s.Connect().Request(subjects.Command(space, r.p.ID(), r.p.Generation()), []byte(`{"method":"tree.inspect","params":{"id":2,"path":["Lines",3,"SKU"]}}`), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := realm.ParseAnswer(m.Data)
	if err != nil || string(raw) != `{"value":"s3"}` {
		t.Errorf("%s %v", raw, err)
	}
	tr.Close()
}
