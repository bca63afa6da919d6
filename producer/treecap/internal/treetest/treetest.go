// Package treetest shows a treecap tree as readers see it: what a real producer
// publishes to a real NATS server, folded.
//
// It must not know which package fills the tree. Everything ends with its test.
package treetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/treecap"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/tree"
)

const space = subjects.Space("test")

// Server is a NATS server of the test, as package natstest runs it.
type Server interface {
	URL() string
	Connect(...nats.Option) *nats.Conn
	Streams(subjects.Space, subjects.Storage, ...func(*jetstream.StreamConfig))
}

// Rig is a tree and what readers see of it.
type Rig struct {
	// Tree is the tree to fill. Its root is "app".
	Tree *treecap.Tree

	t  testing.TB
	p  *producer.Producer
	js jetstream.JetStream
}

// New starts a producer and a tree at a server.
func New(t testing.TB, s Server) *Rig {
	t.Helper()
	s.Streams(space, subjects.Storage{Memory: true})
	p, err := producer.Start(producer.Options{URL: s.URL(), Space: space, ID: "svc"})
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(s.Connect())
	if err != nil {
		t.Fatal(err)
	}
	tr := treecap.New(p, treecap.Options{})
	t.Cleanup(func() {
		tr.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = p.Close(ctx)
	})
	return &Rig{tr, t, p, js}
}

// Ask sends a command to the source, as a gateway does, and returns the answer.
func (r *Rig) Ask(request string) string {
	r.t.Helper()
	m, err := r.js.Conn().Request(subjects.Command(space, r.p.ID(), r.p.Generation()), []byte(request), 10*time.Second)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(m.Data)
}

// Root returns the tree as it is stored, once all changes so far are.
func (r *Rig) Root() *tree.Entry {
	r.t.Helper()
	r.Tree.Flush()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := r.p.Flush(ctx); err != nil {
		r.t.Fatal(err)
	}
	s, err := r.js.Stream(ctx, subjects.RecordStreamName(space))
	if err != nil {
		r.t.Fatal(err)
	}
	var state tree.State
	for seq := uint64(1); seq <= s.CachedInfo().State.LastSeq; seq++ {
		m, err := s.GetMsg(ctx, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			r.t.Fatal(err)
		}
		if strings.HasSuffix(m.Subject, "."+string(subjects.PlaneTree)) {
			r.apply(&state, m)
		}
	}
	return state.Root
}

// apply folds one message of the tree plane. Every reader would refuse what it fails for.
func (r *Rig) apply(state *tree.State, m *jetstream.RawStreamMsg) {
	r.t.Helper()
	f, err := subjects.DecodeFrame(subjects.Header(m.Header), m.Data)
	if err != nil {
		r.t.Fatal(err)
	}
	l := subjects.DefaultLimits()
	ids := tree.IDsOf(m.Sequence)
	for _, rec := range f.Records {
		if _, err := state.Apply(rec.Topic, rec.Data, ids, tree.Limits{Nodes: l.ComponentNodes, CordisNodes: l.CordisNodes, Depth: l.TreeDepth}, rec.T); err != nil {
			r.t.Errorf("record refused: %v", err)
		}
	}
}

// Show returns the tree as it is stored as indented lines.
func (r *Rig) Show() string {
	r.t.Helper()
	return Text(r.Root())
}

// Until polls until ok says yes of the text of the stored tree.
func (r *Rig) Until(what string, ok func(text string) bool) {
	r.t.Helper()
	text := ""
	defer func() {
		if r.t.Failed() {
			r.t.Logf("the tree was last\n%s", text)
		}
	}()
	deadline := time.Now().Add(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if text = r.Show(); ok(text) {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("gave up waiting until %s", what)
		}
		<-tick.C
	}
}

// Text writes a tree as indented lines: name, attributes, text.
func Text(e *tree.Entry) string {
	var b strings.Builder
	var walk func(*tree.Entry, int)
	walk = func(e *tree.Entry, depth int) {
		b.WriteString(strings.Repeat(" ", depth) + e.Name)
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

// Attr returns an attribute of an entry, empty if it has none.
func Attr(e *tree.Entry, name string) string {
	for _, a := range e.Attrs {
		if a.Name == name {
			return a.Value
		}
	}
	return ""
}
