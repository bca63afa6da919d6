package cdpgw

import (
	"encoding/json"
	"testing"

	"github.com/natscope/natscope/store/replica/replicatest"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/source"
	"github.com/natscope/natscope/subjects/tree"
)

// memory is a State without NATS, with the records that the tests of this package need.
type memory struct {
	*replicatest.State
	t testing.TB
}

func newMemory(t testing.TB, limits subjects.Limits) *memory {
	return &memory{replicatest.New(t, limits), t}
}

// The generations that tests use, in their order.
const (
	gen1 subjects.Generation = "01h0000000000000000000000a"
	gen2 subjects.Generation = "01h0000000000000000000000b"
)

// origin is the wall-clock time at which the sources of tests started, in milliseconds.
const origin = replicatest.Origin

func record(t float64, topic string, v any) subjects.Record { return replicatest.Record(t, topic, v) }

// open makes a source appear, connected.
func (m *memory) open(id subjects.SourceID, gen subjects.Generation, d source.Descriptor) {
	m.t.Helper()
	if d.Realm == "" {
		d.Realm = source.RealmID(gen)
	}
	if d.Origin == 0 {
		d.Origin = origin
	}
	m.Publish(id, gen, subjects.PlaneLife, record(0, source.TopicOpen, d))
	m.Presence(id, true)
}

func (m *memory) snapshot(id subjects.SourceID, gen subjects.Generation, revision uint64, root *tree.Node) {
	m.t.Helper()
	m.Publish(id, gen, subjects.PlaneTree, record(1, tree.TopicSnapshot, tree.Snapshot{Version: tree.SchemaVersion, Profile: tree.ProfileComponent, Revision: revision, Root: root}))
}

func (m *memory) ops(id subjects.SourceID, gen subjects.Generation, revision uint64, ops ...tree.Op) {
	m.t.Helper()
	m.Publish(id, gen, subjects.PlaneTree, record(2, tree.TopicOps, tree.Ops{Revision: revision, Ops: ops}))
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
	m.Publish(id, gen, subjects.PlaneConsole, record(t, console.TopicMessage, msg))
}

func (m *memory) net(id subjects.SourceID, gen subjects.Generation, t float64, topic string, v any) {
	m.t.Helper()
	m.Publish(id, gen, subjects.PlaneNet, record(t, topic, v))
}

// get runs one request to its end.
func (m *memory) get(id subjects.SourceID, gen subjects.Generation, t float64, req network.RequestID, status int, body string) {
	m.t.Helper()
	m.net(id, gen, t, network.TopicStart, network.Start{ID: req, Method: "GET", URL: "http://api.test/" + string(req), Type: "fetch"})
	m.net(id, gen, t+1, network.TopicResponse, network.Response{ID: req, Status: status, StatusText: "OK", MIMEType: "text/plain", HasBody: body != ""})
	n := int64(len(body))
	if n > 0 {
		m.net(id, gen, t+2, network.TopicDataReceived, network.DataReceived{ID: req, Bytes: n})
		m.AddBody(subjects.BodySubject{Space: "dev", Source: id, Generation: gen, Request: req, Direction: subjects.ResponseBody}, []byte(body), subjects.BodyComplete)
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
