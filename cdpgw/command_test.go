package cdpgw

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/source"
	"github.com/natscope/natscope/subjects/tree"
)

// sent is a command that a script was asked to carry out.
type sent struct {
	source  subjects.SourceID
	method  realm.Method
	params  string
	session realm.Session
}

// script is a Commander that answers as it is told.
type script struct {
	mu      sync.Mutex
	sent    []sent
	audited []realm.Audit
	arrive  chan struct{}
	// answer carries out a command; nil answers nothing.
	answer func(sent) (any, error)
	// auditErr is what the audit says.
	auditErr error
	listener func(subjects.SourceID, subjects.SessionID, realm.Event)
}

func newScript() *script { return &script{arrive: make(chan struct{})} }

func (c *script) Do(ctx context.Context, src subjects.SourceID, _ subjects.Generation, r realm.Request) (json.RawMessage, error) {
	x := sent{src, r.Method, string(r.Params), *r.Session}
	c.mu.Lock()
	c.sent = append(c.sent, x)
	close(c.arrive)
	c.arrive = make(chan struct{})
	answer := c.answer
	c.mu.Unlock()
	if answer == nil {
		return nil, nil
	}
	v, err := answer(x)
	if err != nil || v == nil {
		return nil, err
	}
	return json.Marshal(v)
}

func (c *script) Listen(f func(subjects.SourceID, subjects.SessionID, realm.Event)) (func(), error) {
	c.listener = f
	return func() {}, nil
}

func (c *script) Audit(_ context.Context, a realm.Audit) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.audited = append(c.audited, a)
	return c.auditErr
}

// until waits until the commands so far are as wanted.
func (c *script) until(t *testing.T, what string, f func([]sent) bool) []sent {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		c.mu.Lock()
		all, arrive := slices.Clone(c.sent), c.arrive
		c.mu.Unlock()
		if f(all) {
			return all
		}
		select {
		case <-arrive:
		case <-deadline.C:
			t.Fatalf("%s: the commands so far are %+v", what, all)
		}
	}
}

func (c *script) set(answer func(sent) (any, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = answer
}

// everything is what the sources of these tests can do.
var everything = []string{"tree"}

// editableShop is a shop with a page whose cart can be edited and pointed at.
func editableShop(t testing.TB) *memory {
	m := shop(t)
	m.open("page", gen2, source.Descriptor{Name: "shop", Kind: source.KindClient, URL: "http://shop.test/cart", Capabilities: everything})
	m.snapshot("page", gen2, 1, cart("2", `"2"`, "{}"))
	return m
}

// cart is the tree of the page.
func cart(shown, label, more string) *tree.Node {
	return &tree.Node{ID: 1, Name: "App", Children: []tree.Node{{
		ID: 2, Name: "Cart", Text: "two things", Loc: "/src/Cart.js:12:5",
		Attrs: []tree.Attr{{Name: "count", Value: shown}, {Name: "label", Value: "2"}, {Name: "fixed", Value: "1"}, {Name: "on", Value: "true"}, {Name: "a_b", Value: "x"}},
		Values: map[string]json.RawMessage{
			"count": json.RawMessage(shown), "label": json.RawMessage(label), "fixed": json.RawMessage("1"), "on": json.RawMessage("true"), "text": json.RawMessage(`"two things"`),
			"a b": json.RawMessage(`"x"`), "items": json.RawMessage(`{"first":{"__natscope":"dehydrated","type":"array","preview":"Array(1) [1]","size":1},"n":` + "1" + `}`), "more": json.RawMessage(more),
		},
		ValueKinds: map[string]string{"count": "state", "items": "prop"},
		Writable:   []string{"count", "label", "on", "text", "a b", "items"},
	}}}
}

// scripted serves a state with a scripted Commander.
func scripted(t *testing.T, m *memory) (*script, *httptest.Server) {
	t.Helper()
	c := newScript()
	_, server := serve(t, m, func(o *Options) { o.Commander = c; o.Gateway = "gw" })
	return c, server
}

// natsRig is a real broker with a JetStream in memory.
func natsRig(t *testing.T) *nats.Conn {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server does not start")
	}
	nc, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		nc.Close()
		s.Shutdown()
		s.WaitForShutdown()
	})
	return nc
}

func TestCommandsOverNATS(t *testing.T) {
	nc := natsRig(t)
	c := &natsCommander{nc: nc, space: "dev", gateway: "gw"}
	ask := func(wait time.Duration) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		defer cancel()
		result, err := c.Do(ctx, "orders", gen1, realm.Request{Method: realm.MethodEdit, Params: json.RawMessage(`{"id":1}`), Session: &realm.Session{Gateway: "gw", ID: "s1"}})
		return string(result), err
	}
	start := time.Now()
	if _, err := ask(patience); !errors.Is(err, realm.ErrGone) || time.Since(start) > patience/2 {
		t.Errorf("nobody is there: %v after %v", err, time.Since(start))
	}
	sub, err := nc.Subscribe(subjects.Command("dev", "orders", gen1), func(m *nats.Msg) {
		if r, err := realm.ParseRequest(m.Data); err != nil || r.DeadlineMS <= 0 || r.Session.ID != "s1" {
			t.Errorf("%s: %v", m.Data, err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ask(50 * time.Millisecond); !errors.Is(err, realm.ErrTimeout) {
		t.Errorf("no answer: %v", err)
	}
	for text, want := range map[string]error{
		`{"ok":true,"result":{"a":1}}`: nil, `{"ok":false,"error":{"code":"refused","message":"no"}}`: realm.ErrRefused, `rubbish`: realm.ErrMalformed,
	} {
		if err := sub.Unsubscribe(); err != nil {
			t.Fatal(err)
		}
		if sub, err = nc.Subscribe(subjects.Command("dev", "orders", gen1), func(m *nats.Msg) { _ = m.Respond([]byte(text)) }); err != nil {
			t.Fatal(err)
		}
		got, err := ask(patience)
		if !errors.Is(err, want) || want == nil && got != `{"a":1}` {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
	if err := c.Audit(t.Context(), realm.Audit{Method: realm.MethodEdit}); err == nil {
		t.Error("an audit without a stream succeeds")
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.CreateStream(t.Context(), subjects.AuditStream("dev", subjects.Storage{Memory: true}))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Audit(t.Context(), realm.Audit{Time: 5, Gateway: "gw", Method: realm.MethodEdit, Params: json.RawMessage(`{"id":1}`)}); err != nil {
		t.Fatal(err)
	}
	m, err := stream.GetLastMsgForSubject(t.Context(), subjects.Audit("dev", "gw"))
	if err != nil || !strings.Contains(string(m.Data), `"method":"tree.edit","params":{"id":1}`) {
		t.Errorf("%v, %v", m, err)
	}
	events := make(chan string, 3)
	stop, err := c.Listen(func(src subjects.SourceID, s subjects.SessionID, e realm.Event) {
		events <- string(src) + " " + string(s) + " " + e.Event
	})
	if err != nil {
		t.Fatal(err)
	}
	for subject, data := range map[string]string{
		subjects.Event("dev", "orders", "other", "s1"): `{"event":"elsewhere"}`, subjects.Event("dev", "orders", "gw", "s1"): `{"event":"picked"}`,
	} {
		for _, d := range []string{"rubbish", data} {
			if err := nc.Publish(subject, []byte(d)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := <-events; got != "orders s1 picked" {
		t.Error(got)
	}
	stop()
	nc.Close()
	if _, err := ask(patience); !errors.Is(err, realm.ErrFailed) {
		t.Errorf("without a connection: %v", err)
	}
}

// Every edit is in the audit before it is sent, and what is not is not sent.
func TestAudit(t *testing.T) {
	m := editableShop(t)
	s, server := scripted(t, m)
	c := dial(t, server, "dev")
	id := c.node("Cart")
	c.call("DOM.setAttributeValue", map[string]any{"nodeId": id, "name": "count", "value": "3"}, nil)
	s.mu.Lock()
	audited := slices.Clone(s.audited)
	s.auditErr = errors.New("no stream")
	s.mu.Unlock()
	if len(audited) != 1 {
		t.Fatalf("%+v", audited)
	}
	a := audited[0]
	if a.Gateway != "gw" || a.Session == "" || !strings.HasPrefix(a.Who, "127.0.0.1:") || a.Source != "page" || a.Generation != string(gen2) ||
		a.Method != realm.MethodEdit || string(a.Params) != `{"id":2,"symbol":"count","value":3}` || time.Since(time.UnixMilli(int64(a.Time))) > time.Minute {
		t.Errorf("%+v", a)
	}
	before := len(s.until(t, "the edit", func(all []sent) bool { return len(all) > 0 }))
	if e := c.fails("DOM.setAttributeValue", map[string]any{"nodeId": id, "name": "count", "value": "4"}, codeServer); !strings.Contains(e.Message, "audit") {
		t.Error(e.Message)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sent) != before {
		t.Errorf("it was sent all the same: %+v", s.sent[before:])
	}
}

// node asks for the whole document and returns the id of the first element with a name.
func (c *client) node(name string) NodeID {
	c.t.Helper()
	var doc documentResult
	c.call("DOM.getDocument", map[string]int{"depth": -1}, &doc)
	n := byName(doc.Root, name)
	if n == nil {
		c.t.Fatalf("there is no <%s>", name)
	}
	return n.NodeID
}

// childless returns a node as updates carry it.
func childless(n tree.Node) *tree.Node {
	n.Children = nil
	return &n
}
