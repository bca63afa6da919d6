package cdpgw

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/source"
	"github.com/natscope/natscope/subjects/tree"
)

// memory is a State without NATS: a real fold that takes real frames.
type memory struct {
	t testing.TB

	mu       sync.RWMutex
	space    *fold.Space
	seq      subjects.StreamSeq
	next     map[string]subjects.Seq
	watchers map[*replica.Watcher]bool

	bodyMu sync.Mutex
	bodies map[subjects.BodySubject]*memoryBody
}

type memoryBody struct {
	parts   []replica.BodyPart
	changed chan struct{}
	err     error
}

func newMemory(t testing.TB, limits subjects.Limits) *memory {
	return &memory{
		t: t, space: fold.New("dev", limits), next: make(map[string]subjects.Seq),
		watchers: make(map[*replica.Watcher]bool), bodies: make(map[subjects.BodySubject]*memoryBody),
	}
}

func (m *memory) View(f func(*fold.Space)) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	f(m.space)
}

func (m *memory) Watch(initial func(*fold.Space), w replica.Watcher) func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if initial != nil {
		initial(m.space)
	}
	p := &w
	m.watchers[p] = true
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.watchers, p)
	}
}

// tell passes changes on; the lock is held.
func (m *memory) tell(changes []fold.Change) {
	for _, w := range slices.Collect(maps.Keys(m.watchers)) {
		(*w).Changed(m.space, changes)
	}
}

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

// presence changes whether a source is connected.
func (m *memory) presence(id subjects.SourceID, connected bool) {
	m.t.Helper()
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

// replace swaps the whole state for an empty one.
func (m *memory) replace() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.space = fold.New("dev", m.space.Limits)
	m.tell([]fold.Change{})
}

func (m *memory) body(s subjects.BodySubject) *memoryBody {
	b := m.bodies[s]
	if b == nil {
		b = &memoryBody{changed: make(chan struct{})}
		m.bodies[s] = b
	}
	return b
}

// addBody appends a part to a body; end closes it.
func (m *memory) addBody(s subjects.BodySubject, data []byte, end string) {
	m.bodyMu.Lock()
	defer m.bodyMu.Unlock()
	b := m.body(s)
	off := int64(0)
	if n := len(b.parts); n > 0 {
		off = b.parts[n-1].Offset + int64(len(b.parts[n-1].Data))
	}
	b.parts = append(b.parts, replica.BodyPart{Offset: off, Data: data, End: end, Total: off + int64(len(data))})
	close(b.changed)
	b.changed = make(chan struct{})
}

// failBody makes reading a body fail.
func (m *memory) failBody(s subjects.BodySubject, err error) {
	m.bodyMu.Lock()
	defer m.bodyMu.Unlock()
	m.body(s).err = err
}

func (m *memory) Body(ctx context.Context, s subjects.BodySubject) (replica.Body, error) {
	var out replica.Body
	err := m.FollowBody(ctx, s, func(p replica.BodyPart) error {
		out.Data = append(out.Data, p.Data...)
		out.End, out.Total = p.End, p.Total
		return nil
	})
	return out, err
}

func (m *memory) FollowBody(ctx context.Context, s subjects.BodySubject, f func(replica.BodyPart) error) error {
	for i := 0; ; {
		m.bodyMu.Lock()
		b := m.body(s)
		parts, changed, err := b.parts, b.changed, b.err
		m.bodyMu.Unlock()
		if err != nil {
			return err
		}
		for ; i < len(parts); i++ {
			if err := f(parts[i]); err != nil {
				return err
			}
			if parts[i].End != "" {
				return nil
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// The generations that tests use, in their order.
const (
	gen1 subjects.Generation = "01h0000000000000000000000a"
	gen2 subjects.Generation = "01h0000000000000000000000b"
)

// origin is the wall-clock time at which the sources of tests started, in milliseconds.
const origin = 1_700_000_000_000

func record(t float64, topic string, v any) subjects.Record {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return subjects.Record{T: t, Topic: topic, Data: b}
}

// open makes a source appear, connected.
func (m *memory) open(id subjects.SourceID, gen subjects.Generation, d source.Descriptor) {
	m.t.Helper()
	if d.Realm == "" {
		d.Realm = source.RealmID(gen)
	}
	if d.Origin == 0 {
		d.Origin = origin
	}
	m.publish(id, gen, subjects.PlaneLife, record(0, source.TopicOpen, d))
	m.presence(id, true)
}

func (m *memory) snapshot(id subjects.SourceID, gen subjects.Generation, revision uint64, root *tree.Node) {
	m.t.Helper()
	m.publish(id, gen, subjects.PlaneTree, record(1, tree.TopicSnapshot, tree.Snapshot{Version: tree.SchemaVersion, Profile: tree.ProfileComponent, Revision: revision, Root: root}))
}

func (m *memory) ops(id subjects.SourceID, gen subjects.Generation, revision uint64, ops ...tree.Op) {
	m.t.Helper()
	m.publish(id, gen, subjects.PlaneTree, record(2, tree.TopicOps, tree.Ops{Revision: revision, Ops: ops}))
}

func (m *memory) log(id subjects.SourceID, gen subjects.Generation, t float64, args ...any) {
	m.t.Helper()
	msg := console.Message{Type: "log"}
	for _, a := range args {
		b, err := json.Marshal(a)
		if err != nil {
			m.t.Fatal(err)
		}
		msg.Args = append(msg.Args, b)
	}
	m.publish(id, gen, subjects.PlaneConsole, record(t, console.TopicMessage, msg))
}

func (m *memory) net(id subjects.SourceID, gen subjects.Generation, t float64, topic string, v any) {
	m.t.Helper()
	m.publish(id, gen, subjects.PlaneNet, record(t, topic, v))
}

// get runs one request to its end.
func (m *memory) get(id subjects.SourceID, gen subjects.Generation, t float64, req network.RequestID, status int, body string) {
	m.t.Helper()
	m.net(id, gen, t, network.TopicStart, network.Start{ID: req, Method: "GET", URL: "http://api.test/" + string(req), Type: "fetch"})
	m.net(id, gen, t+1, network.TopicResponse, network.Response{ID: req, Status: status, StatusText: "OK", MIMEType: "text/plain", HasBody: body != ""})
	n := int64(len(body))
	if n > 0 {
		m.net(id, gen, t+2, network.TopicDataReceived, network.DataReceived{ID: req, Bytes: n})
		m.addBody(subjects.BodySubject{Space: "dev", Source: id, Generation: gen, Request: req, Direction: subjects.ResponseBody}, []byte(body), subjects.BodyComplete)
	}
	m.net(id, gen, t+3, network.TopicEnd, network.End{ID: req, Bytes: n, Captured: n})
}

// shop is a state with two hosts and a page, as most tests need it.
func shop(t testing.TB) *memory {
	m := newMemory(t, subjects.Limits{})
	m.open("orders", gen1, source.Descriptor{Name: "orders", Kind: source.KindHost})
	m.open("billing", gen1, source.Descriptor{Name: "Billing Service", Kind: source.KindHost})
	m.open("page", gen1, source.Descriptor{Name: "shop", Kind: source.KindClient, URL: "http://shop.test/cart"})
	m.snapshot("orders", gen1, 1, &tree.Node{ID: 1, Name: "App", Children: []tree.Node{
		{ID: 2, Name: "Worker", Attrs: []tree.Attr{{Name: "queue", Value: "mail"}}, Text: "idle"},
		{ID: 3, Name: "Router", Children: []tree.Node{{ID: 4, Name: "Route", Attrs: []tree.Attr{{Name: "path", Value: "/cart"}}}}},
	}})
	m.snapshot("page", gen1, 1, &tree.Node{ID: 1, Name: "Page"})
	m.log("orders", gen1, 10, "ready", 1, map[string]any{"a": 1})
	m.get("orders", gen1, 20, "r1", 200, "hello")
	return m
}
