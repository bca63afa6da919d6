package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/store/replica/replicatest"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/source"
	"github.com/natscope/natscope/subjects/tree"
	"github.com/natscope/natscope/subjects/value"
)

// memory is a State without NATS, with programs in it.
type memory struct{ *replicatest.State }

func newMemory(t testing.TB, limits subjects.Limits) *memory {
	m := &memory{replicatest.New(t, limits)}
	m.Unknown = replica.ErrNoBody
	return m
}

// origin is when the clocks of sources read zero.
const origin = replicatest.Origin

// program is a source of a test.
type program struct {
	*memory
	id  subjects.SourceID
	gen subjects.Generation
	t   float64
}

// open makes a connected source.
func (m *memory) open(id subjects.SourceID) *program {
	p := &program{memory: m, id: id, gen: "g1"}
	p.send(subjects.PlaneLife, source.TopicOpen, source.Descriptor{Name: "the " + string(id), Kind: source.KindHost, Realm: "r", Origin: origin})
	m.Presence(id, true)
	return p
}

func (p *program) send(plane subjects.Plane, topic string, payload any) {
	p.t++
	p.Publish(p.id, p.gen, plane, replicatest.Record(p.t, topic, payload))
}

func (p *program) log(kind string, args ...any) {
	m := console.Message{Type: kind}
	for _, a := range args {
		m.Args = append(m.Args, value.Encode(a))
	}
	p.send(subjects.PlaneConsole, console.TopicMessage, m)
}

// call records a request that ended, with a status, or failed for 0.
func (p *program) call(id, url string, status int) {
	rid := network.RequestID(id)
	p.send(subjects.PlaneNet, network.TopicStart, network.Start{ID: rid, URL: url, Method: "GET", Headers: []network.Header{{"Accept", "*/*"}}})
	if status == 0 {
		p.send(subjects.PlaneNet, network.TopicError, network.Error{ID: rid, Text: "connection refused"})
		return
	}
	p.send(subjects.PlaneNet, network.TopicResponse, network.Response{ID: rid, Status: status, MIMEType: "application/json", HasBody: true})
	p.send(subjects.PlaneNet, network.TopicEnd, network.End{ID: rid, Bytes: 10, Captured: 10})
}

// body gives a response a captured body.
func (p *program) body(id string, data []byte, end string) {
	s := subjects.BodySubject{Space: "dev", Source: p.id, Generation: p.gen, Request: network.RequestID(id), Direction: subjects.ResponseBody}
	p.AddBody(s, data, end)
}

// tree sends a tree whose root has n children with a value each.
func (p *program) tree(revision uint64, n int) {
	root := &tree.Node{ID: 1, Name: "app", Kind: "module"}
	for i := range n {
		root.Children = append(root.Children, tree.Node{
			ID: tree.NodeID(i + 2), Name: "Item", Kind: "item", Attrs: []tree.Attr{{Name: "n", Value: fmt.Sprint(i)}},
			Values: map[string]json.RawMessage{"count": value.Encode(i), "label": value.Encode(fmt.Sprint("item ", i))}, Writable: []string{"count"},
		})
	}
	p.send(subjects.PlaneTree, tree.TopicSnapshot, tree.Snapshot{Version: tree.SchemaVersion, Profile: tree.ProfileComponent, Revision: revision, Root: root})
}

// update changes the count of one node.
func (p *program) update(revision uint64, id tree.NodeID, count int) {
	p.send(subjects.PlaneTree, tree.TopicOps, tree.Ops{Revision: revision, Ops: []tree.Op{{Op: tree.OpUpdate, Node: &tree.Node{
		ID: id, Name: "Item", Kind: "item", Values: map[string]json.RawMessage{"count": value.Encode(count)},
	}}}})
}

func newEngine(t testing.TB, m *memory) *Engine {
	t.Helper()
	e, err := New(Options{State: m})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// must returns a verb's answer and fails the test on an error.
func must[Q, A any](t testing.TB, ask func(context.Context, Q) (A, error), q Q) A {
	t.Helper()
	a, err := ask(context.Background(), q)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	return a
}

var _ query.API = (*Engine)(nil)
