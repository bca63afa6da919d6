package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/store/state"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/source"
	"github.com/natscope/natscope/subjects/tree"
	"github.com/natscope/natscope/subjects/value"
)

// memory is a State without NATS: a real fold that takes real frames.
type memory struct {
	t testing.TB

	mu       sync.RWMutex // guards everything below
	space    *fold.Space
	created  time.Time
	seq      subjects.StreamSeq
	next     map[string]subjects.Seq
	watchers map[int]replica.Watcher
	last     int
	bodies   map[subjects.BodySubject][]replica.BodyPart
}

func newMemory(t testing.TB, limits subjects.Limits) *memory {
	return &memory{
		t: t, space: fold.New("dev", limits), created: time.UnixMilli(1_700_000_000_000), next: make(map[string]subjects.Seq),
		watchers: make(map[int]replica.Watcher), bodies: make(map[subjects.BodySubject][]replica.BodyPart),
	}
}

// View implements State.
func (m *memory) View(f func(*fold.Space)) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	f(m.space)
}

// Watch implements State.
func (m *memory) Watch(initial func(*fold.Space), w replica.Watcher) func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	initial(m.space)
	m.last++
	id := m.last
	m.watchers[id] = w
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.watchers, id)
	}
}

// FollowBody implements State.
func (m *memory) FollowBody(ctx context.Context, s subjects.BodySubject, f func(replica.BodyPart) error) error {
	m.mu.RLock()
	parts := m.bodies[s]
	m.mu.RUnlock()
	for _, p := range parts {
		if err := f(p); err != nil || p.End != "" {
			return err
		}
	}
	if len(parts) == 0 {
		return replica.ErrNoBody
	}
	<-ctx.Done()
	return ctx.Err()
}

// Stream implements State.
func (m *memory) Stream() state.Stream {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return state.Stream{Name: "s", Created: m.created}
}

// Status implements State.
func (m *memory) Status() replica.Status { return replica.Status{} }

// publish folds one frame.
func (m *memory) publish(id subjects.SourceID, gen subjects.Generation, plane subjects.Plane, records ...subjects.Record) {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	var body []byte
	for _, r := range records {
		var err error
		if body, err = subjects.AppendRecord(body, r); err != nil {
			m.t.Fatal(err)
		}
	}
	subject := subjects.RecordSubject{Space: "dev", Source: id, Generation: gen, Plane: plane}.String()
	seq := m.next[subject] + 1
	m.next[subject] += subjects.Seq(len(records))
	m.seq++
	h, body := subjects.EncodeFrame(subjects.FrameInfo{Seq: seq, Count: len(records)}, body)
	m.tell(m.space.Apply(subject, m.seq, h, body))
}

// tell passes changes on; the lock is held.
func (m *memory) tell(changes []fold.Change) {
	for _, w := range m.watchers {
		w.Changed(m.space, changes)
	}
}

// presence changes whether a source is connected.
func (m *memory) presence(id subjects.SourceID, connected bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	src := m.space.Source(id)
	src.Connected = connected
	var changes []fold.Change
	if !connected {
		changes = src.Gone("the source is gone")
	}
	m.tell(append(changes, fold.Change{Kind: fold.PresenceChanged, Source: src}))
}

// remove evicts a source.
func (m *memory) remove(id subjects.SourceID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tell(m.space.Remove(id))
}

// renew makes the stream anew.
func (m *memory) renew() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.space, m.seq, m.next = fold.New("dev", m.space.Limits), 0, make(map[string]subjects.Seq)
	m.created = m.created.Add(time.Hour)
	m.tell(nil)
}

func record(t float64, topic string, payload any) subjects.Record {
	data, err := json.Marshal(payload)
	if err != nil {
		panic(err)
	}
	return subjects.Record{T: t, Topic: topic, Data: data}
}

// origin is when the clocks of sources read zero.
const origin = 1_700_000_000_000

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
	m.presence(id, true)
	return p
}

func (p *program) send(plane subjects.Plane, topic string, payload any) {
	p.t++
	p.publish(p.id, p.gen, plane, record(p.t, topic, payload))
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
	p.mu.Lock()
	defer p.mu.Unlock()
	s := subjects.BodySubject{Space: "dev", Source: p.id, Generation: p.gen, Request: network.RequestID(id), Direction: subjects.ResponseBody}
	p.bodies[s] = append(p.bodies[s], replica.BodyPart{Data: data, End: end, Total: int64(len(data))})
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
