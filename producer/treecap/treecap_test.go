package treecap_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/producer/treecap"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/tree"
)

const space = subjects.Space("test")

func TestMain(m *testing.M) {
	// The examples connect to the usual server; they must not appear in a natscope that runs on this machine.
	_ = os.Setenv("NATS_URL", "nats://127.0.0.1:1")
	goleak.VerifyTestMain(m)
}

type rig struct {
	t testing.TB
	s *natstest.Server
	p *producer.Producer
}

func newRig(t testing.TB, l subjects.Limits) *rig {
	t.Helper()
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{Memory: true})
	p, err := producer.Start(producer.Options{URL: s.URL(), Space: space, ID: "svc", Limits: l})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = p.Close(ctx)
	})
	return &rig{t, s, p}
}

// sync waits until the tree is stored.
func (r *rig) sync(tr *treecap.Tree) {
	r.t.Helper()
	tr.Flush()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := r.p.Flush(ctx); err != nil {
		r.t.Fatal(err)
	}
}

// tree folds the stream; ops counts the operations in it, snaps the snapshots.
func (r *rig) tree() (root *tree.Entry, ops, snaps int, src *fold.Source) {
	r.t.Helper()
	sp := fold.New(space, subjects.Limits{})
	for _, m := range r.s.Read(subjects.RecordStreamName(space)) {
		for _, c := range sp.Apply(m.Subject, subjects.StreamSeq(m.Seq), m.Header, m.Data) {
			if c.Kind == fold.FaultAdded {
				r.t.Errorf("fault: %s %s", c.Fault.Kind, c.Fault.Text)
			}
		}
		f, err := subjects.DecodeFrame(m.Header, m.Data)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, rec := range f.Records {
			switch rec.Topic {
			case tree.TopicOps:
				ops += strings.Count(string(rec.Data), `"op":`)
			case tree.TopicSnapshot, tree.TopicCommit:
				snaps++
			}
		}
	}
	if src = sp.Source("svc"); src == nil {
		return nil, ops, snaps, nil
	}
	return src.Tree.Root, ops, snaps, src
}

// show writes a tree as indented lines.
func show(e *tree.Entry) string {
	var b strings.Builder
	var walk func(*tree.Entry, int)
	walk = func(e *tree.Entry, depth int) {
		fmt.Fprintf(&b, "%s%s", strings.Repeat(" ", depth), e.Name)
		if e.Kind != "" {
			fmt.Fprintf(&b, ":%s", e.Kind)
		}
		for _, a := range e.Attrs {
			fmt.Fprintf(&b, " %s=%s", a.Name, a.Value)
		}
		if e.Text != "" {
			fmt.Fprintf(&b, " %q", e.Text)
		}
		b.WriteByte('\n')
		for _, c := range e.Children {
			walk(c, depth+1)
		}
	}
	walk(e, 0)
	return b.String()
}

func want(t testing.TB, e *tree.Entry, text string) {
	t.Helper()
	if got := show(e); got != strings.TrimPrefix(text, "\n") {
		t.Errorf("the tree is\n%swant%s", got, text)
	}
}

func TestSnapshotThenOperations(t *testing.T) {
	r := newRig(t, subjects.Limits{})
	tr := treecap.New(r.p, treecap.Options{RootName: "service", Interval: time.Hour})
	workers := tr.Root().Add("workers", treecap.Attr("n", 2))
	one := workers.Add("worker", treecap.Kind("worker"), treecap.Attr("state", "idle"), treecap.Text("one"))
	r.sync(tr)
	_, ops, snaps, _ := r.tree()
	if ops != 0 || snaps != 1 {
		t.Errorf("%d operations and %d snapshots before any change", ops, snaps)
	}

	one.Set("state", "busy")
	one.Set("state", "done")
	one.Set("jobs", 1)
	two := workers.Add("worker", treecap.Attr("d", 1500*time.Millisecond), treecap.Attr("err", errors.New("no")))
	two.Add("job").Add("part")
	workers.Add("never").Remove()
	tr.Root().Add("last", treecap.Here())
	r.sync(tr)
	root, ops, snaps, _ := r.tree()
	want(t, root, `
service
 workers n=2
  worker:worker state=done jobs=1 "one"
  worker d=1.5s err=no
   job
    part
 last
`)
	if ops != 3 || snaps != 1 {
		t.Errorf("%d operations and %d snapshots, want one update and two adds", ops, snaps)
	}
	if loc := root.Children[1].Loc; !strings.Contains(loc, "treecap_test.go:") {
		t.Errorf("loc %q", loc)
	}

	one.Remove()
	one.Set("state", "gone")
	one.Add("ghost").Set("x", 1)
	one.Remove()
	tr.Root().Remove()
	workers.Unset("n")
	two.SetText("2")
	two.Set("d", 1500*time.Millisecond)
	r.sync(tr)
	root, ops, _, _ = r.tree()
	want(t, root, `
service
 workers
  worker d=1.5s err=no "2"
   job
    part
 last
`)
	if ops != 6 {
		t.Errorf("%d operations, want one remove and two updates more", ops)
	}
}

func TestChangesAreSentByThemselves(t *testing.T) {
	r := newRig(t, subjects.Limits{})
	tr := treecap.New(r.p, treecap.Options{})
	n := tr.Root().Add("n")
	natstest.Until(t, "the snapshot is made", func() bool { return r.p.Stats().Snapshots == 1 })
	for i := range 1000 {
		n.Set("i", i)
	}
	natstest.Until(t, "the last value is stored", func() bool {
		root, _, _, _ := r.tree()
		return root != nil && len(root.Children) == 1 && len(root.Children[0].Attrs) == 1 && root.Children[0].Attrs[0].Value == "999"
	})
	if _, ops, _, _ := r.tree(); ops > 100 {
		t.Errorf("%d operations for 1000 changes", ops)
	}
	tr.Close()
	n.Set("i", -1)
	n.Add("late")
	n.Remove()
	tr.Close()
	// Not even a snapshot shows what came after the end.
	r.p.Resnapshot()
	r.sync(tr)
	root, _, snaps, _ := r.tree()
	want(t, root, "\napp\n n i=999\n")
	if snaps != 2 {
		t.Errorf("%d snapshots", snaps)
	}
}

func TestRandomChangesEqualTheModel(t *testing.T) {
	r := newRig(t, subjects.Limits{FrameBytes: 8 << 10})
	tr := treecap.New(r.p, treecap.Options{Interval: time.Millisecond})
	rnd := rand.New(rand.NewPCG(1, 2))
	type model struct {
		n        *treecap.Node
		parent   *model
		name     string
		value    int
		children []*model
	}
	root := &model{n: tr.Root(), name: "app", value: -1}
	all := []*model{root}
	var drop func(m *model)
	drop = func(m *model) {
		for _, c := range m.children {
			drop(c)
		}
		m.n = nil
	}
	for i := range 2000 {
		m := all[rnd.IntN(len(all))]
		if m.n == nil {
			continue
		}
		switch k := rnd.IntN(10); {
		case k < 5:
			c := &model{n: m.n.Add(fmt.Sprint("n", i)), parent: m, name: fmt.Sprint("n", i), value: -1}
			m.children = append(m.children, c)
			all = append(all, c)
		case k < 8:
			m.value = i
			m.n.Set("v", i)
		case m != root:
			m.n.Remove()
			p := m.parent
			for j, c := range p.children {
				if c == m {
					p.children = append(p.children[:j], p.children[j+1:]...)
					break
				}
			}
			drop(m)
		}
		if i%500 == 0 {
			tr.Flush()
		}
	}
	r.sync(tr)
	var b strings.Builder
	var walk func(*model, int)
	walk = func(m *model, depth int) {
		fmt.Fprintf(&b, "%s%s", strings.Repeat(" ", depth), m.name)
		if m.value >= 0 {
			fmt.Fprintf(&b, " v=%d", m.value)
		}
		b.WriteByte('\n')
		for _, c := range m.children {
			walk(c, depth+1)
		}
	}
	walk(root, 0)
	got, _, _, _ := r.tree()
	if show(got) != b.String() {
		t.Error("the folded tree differs from the model")
	}
}

func TestLargeTree(t *testing.T) {
	r := newRig(t, subjects.Limits{ComponentNodes: 9000, QueueRecords: 100})
	tr := treecap.New(r.p, treecap.Options{Interval: time.Hour})
	group := tr.Root()
	for i := range 6000 {
		if i%100 == 0 {
			group = tr.Root().Add("group", treecap.Attr("i", i))
		}
		group.Add("node", treecap.Attr("i", i))
	}
	r.sync(tr)
	root, _, snaps, src := r.tree()
	if snaps != 1 || src.Tree.Len() != 6061 || src.Tree.Truncated {
		t.Fatalf("%d snapshots, %d nodes, truncated %v", snaps, src.Tree.Len(), src.Tree.Truncated)
	}
	if n := len(root.Children[59].Children); n != 100 {
		t.Errorf("the last group has %d nodes", n)
	}
	// A large subtree that comes later, and the limit.
	late := tr.Root().Add("late")
	for i := range 5000 {
		late.Add("leaf", treecap.Attr("i", i))
	}
	r.sync(tr)
	_, _, _, src = r.tree()
	if src.Tree.Len() != 9000 || !src.Tree.Truncated {
		t.Errorf("%d nodes, truncated %v", src.Tree.Len(), src.Tree.Truncated)
	}
	late.Remove()
	r.sync(tr)
	_, _, _, src = r.tree()
	if src.Tree.Len() != 6061 || src.Tree.Truncated {
		t.Errorf("%d nodes, truncated %v after the removal", src.Tree.Len(), src.Tree.Truncated)
	}
}

func TestDepthLimit(t *testing.T) {
	r := newRig(t, subjects.Limits{TreeDepth: 5})
	tr := treecap.New(r.p, treecap.Options{})
	n := tr.Root()
	for range 10 {
		n = n.Add("deep")
	}
	n.Set("x", 1)
	r.sync(tr)
	root, _, _, src := r.tree()
	if src.Tree.Len() != 5 || !src.Tree.Truncated {
		t.Errorf("%d levels, truncated %v:\n%s", src.Tree.Len(), src.Tree.Truncated, show(root))
	}
}

func TestHostileTexts(t *testing.T) {
	r := newRig(t, subjects.Limits{})
	tr := treecap.New(r.p, treecap.Options{RootName: strings.Repeat("é", 1000)})
	n := tr.Root().Add("")
	n.Set("", "ignored")
	n.Set("bad\xff", "\xfe")
	n.Set("lines\n", "a\nb")
	n.Set("panics", panics{})
	n.Set("nil", (*panics)(nil))
	n.Set("map", map[string]int{"a": 1})
	for i := range 200 {
		n.Set(fmt.Sprint("attr", i), strings.Repeat("x", 5000))
	}
	n.SetText(strings.Repeat("<", 100000))
	r.sync(tr)
	root, _, _, src := r.tree()
	if src.Tree.Len() != 2 || root.Children[0].Name != "node" || len(root.Name) > 256 {
		t.Fatalf("%.2000s", show(root))
	}
	text := show(root)
	for _, s := range []string{"bad?=?", "lines=a\nb", "[threw: no]", "natscope-truncated", "xx… (5000 characters)"} {
		if !strings.Contains(text, s) {
			t.Errorf("%q is missing in %.3000s", s, text)
		}
	}
}

type panics struct{}

func (panics) String() string { panic("no") }

func TestManyGoroutines(t *testing.T) {
	r := newRig(t, subjects.Limits{QueueRecords: 200})
	tr := treecap.New(r.p, treecap.Options{Interval: time.Millisecond})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			n := tr.Root().Add("g", treecap.Attr("g", g))
			for i := range 300 {
				c := n.Add("c")
				c.Set("i", i)
				if i%3 != 0 {
					c.Remove()
				}
				if i%50 == 0 {
					r.p.Resnapshot()
				}
			}
		})
	}
	wg.Wait()
	r.sync(tr)
	_, _, _, src := r.tree()
	if got := src.Tree.Len(); got != 1+8+8*100 {
		t.Errorf("%d nodes", got)
	}
}

// BenchmarkSet is one change in a tree of 10 000 nodes, with its share of the flush.
func BenchmarkSet(b *testing.B) {
	for _, nodes := range []int{100, 10000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			r := newRig(b, subjects.Limits{})
			tr := treecap.New(r.p, treecap.Options{Interval: time.Hour})
			var last *treecap.Node
			for range nodes {
				last = tr.Root().Add("n", treecap.Attr("i", 0))
			}
			r.sync(tr)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				last.Set("i", i)
				tr.Flush()
			}
		})
	}
}
