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

	"github.com/natscope/natscope/store/command"
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
	listener func(command.Event)
}

func newScript() *script { return &script{arrive: make(chan struct{})} }

func (c *script) Do(ctx context.Context, src subjects.SourceID, gen subjects.Generation, r realm.Request) (json.RawMessage, error) {
	answer, err := c.Start(ctx, src, gen, r)
	if err != nil {
		return nil, err
	}
	return answer()
}

func (c *script) Start(_ context.Context, src subjects.SourceID, _ subjects.Generation, r realm.Request) (command.Pending, error) {
	x := sent{src, r.Method, string(r.Params), *r.Session}
	c.mu.Lock()
	c.sent = append(c.sent, x)
	close(c.arrive)
	c.arrive = make(chan struct{})
	answer := c.answer
	c.mu.Unlock()
	return func() (json.RawMessage, error) {
		if answer == nil {
			return nil, nil
		}
		v, err := answer(x)
		if err != nil || v == nil {
			return nil, err
		}
		return json.Marshal(v)
	}, nil
}

func (c *script) Tell(src subjects.SourceID, _ subjects.Generation, r realm.Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = append(c.sent, sent{src, r.Method, string(r.Params), *r.Session})
	close(c.arrive)
	c.arrive = make(chan struct{})
	return nil
}

func (c *script) Listen(f func(command.Event)) (func(), error) {
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
