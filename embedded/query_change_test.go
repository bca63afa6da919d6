package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dop251/goja"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natscope/natscope/cdpgw/access"
	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/treecap"
	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/query/httpapi"
	"github.com/natscope/natscope/query/service"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
)

// calculator is a realm with a JavaScript engine and nothing of the program in it but a number.
type calculator struct {
	open atomic.Int64
}

func newCalculator() *calculator { return new(calculator) }

// Capabilities implements producer.Realm.
func (c *calculator) Capabilities() []string { return []string{realm.GroupRuntime} }

// Open implements producer.Realm.
func (c *calculator) Open(context.Context, realm.Session, producer.SessionOut) (producer.RealmSession, error) {
	c.open.Add(1)
	vm := goja.New()
	return &calculation{c, vm}, vm.Set("answer", 42)
}

type calculation struct {
	c  *calculator
	vm *goja.Runtime
}

// Close implements producer.RealmSession.
func (c *calculation) Close(error) { c.c.open.Add(-1) }

// Do implements producer.RealmSession.
func (c *calculation) Do(_ context.Context, m realm.Method, params json.RawMessage, reply func(any, error)) {
	var p struct {
		Expression        string
		ReturnByValue     bool
		ThrowOnSideEffect bool
		Timeout           int
	}
	if err := json.Unmarshal(params, &p); err != nil || m != realm.MethodEvaluate {
		reply(nil, realm.ErrUnsupported)
		return
	}
	thrown := func(text string) {
		reply(map[string]any{"result": map[string]any{"type": "undefined"}, "exceptionDetails": map[string]any{"text": "Uncaught", "exception": map[string]any{"type": "object", "description": text}}}, nil)
	}
	if p.ThrowOnSideEffect && strings.Contains(p.Expression, " = ") {
		thrown("EvalError: Possible side-effect in debug-evaluate")
		return
	}
	if p.Timeout > 0 {
		timer := time.AfterFunc(time.Duration(p.Timeout)*time.Millisecond, func() { c.vm.Interrupt(fmt.Sprintf("it did not end in %d ms", p.Timeout)) })
		defer timer.Stop()
	}
	v, err := c.vm.RunString(p.Expression)
	if err != nil {
		thrown(err.Error())
		return
	}
	out := map[string]any{"type": v.ExportType().Kind().String(), "description": v.String(), "value": v.Export()}
	if _, ok := v.Export().(string); ok {
		out["type"] = "string"
	}
	reply(map[string]any{"result": out}, nil)
}

// pool is a value that people may change.
type pool struct {
	mu   sync.Mutex
	Size int
	Jobs map[string]int
}

func (p *pool) resize(n int) error {
	if n > 64 {
		return errors.New("at most 64")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Size = n
	return nil
}

// TestEvaluateAndEdit asks a real Go program to evaluate and to change a value,
// and finds both in the audit.
func TestEvaluateAndEdit(t *testing.T) {
	q := startQueried(t)
	workers := &pool{Size: 4, Jobs: map[string]int{"mail": 2}}
	q.tree.Register(nil, "pool", workers, treecap.Locked(&workers.mu), treecap.Writable("Size", workers.resize))
	r := newCalculator()
	q.program.Serve(r)
	until(t, q.client.Sources, query.SourcesRequest{}, func(a query.SourcesAnswer) bool {
		return len(a.Sources) == 1 && strings.Contains(strings.Join(a.Sources[0].Capabilities, " "), "runtime")
	})
	ctx := t.Context()
	for expression, want := range map[string]string{"answer + 1": "43", "'a' + answer": `"a42"`} {
		a, err := q.client.Evaluate(ctx, query.EvaluateRequest{Source: "orders", Expression: expression})
		if err != nil || a.Text != want || a.Exception != "" {
			t.Errorf("%s: %+v, %v", expression, a, err)
		}
	}
	if a, err := q.client.Evaluate(ctx, query.EvaluateRequest{Source: "orders", Expression: "[answer, 1]", ByValue: true}); err != nil || string(a.Value) != "[42,1]" {
		t.Errorf("by value: %+v, %v", a, err)
	}
	if a, err := q.client.Evaluate(ctx, query.EvaluateRequest{Source: "orders", Expression: "nothing.here"}); err != nil || !strings.Contains(a.Exception, "nothing") {
		t.Errorf("an exception: %+v, %v", a, err)
	}
	if a, err := q.client.Evaluate(ctx, query.EvaluateRequest{Source: "orders", Expression: "x = 1", Pure: true}); err != nil || !strings.Contains(a.Exception, "side-effect") {
		t.Errorf("a pure assignment: %+v, %v", a, err)
	}

	found := until(t, q.client.FindNodes, query.FindRequest{Text: "pool", Values: true}, func(a query.FindAnswer) bool { return len(a.Nodes) == 1 && len(a.Nodes[0].Values) > 0 })
	id := found.Nodes[0].ID
	if _, err := q.client.As("alice (a test)").Edit(ctx, query.EditRequest{ID: id, Name: "Size", Value: []byte("8")}); err != nil {
		t.Fatal(err)
	}
	until(t, q.client.Node, query.NodeRequest{ID: id}, func(a query.NodeAnswer) bool {
		for _, v := range a.Values {
			if v.Name == "Size" && v.Preview == "8" && v.Writable {
				return true
			}
		}
		return false
	})
	if _, err := q.client.Edit(ctx, query.EditRequest{ID: id, Name: "Size", Value: []byte("99")}); !errors.Is(err, query.ErrRefused) && !errors.Is(err, query.ErrFailed) || !strings.Contains(err.Error(), "at most 64") {
		t.Errorf("an edit that the program refuses: %v", err)
	}
	if a, err := q.client.Values(ctx, query.ValuesRequest{ID: id, Path: []any{"Jobs", "mail"}}); err != nil || len(a.Values) != 1 || a.Values[0].Preview != "2" {
		t.Errorf("inside of a value: %+v, %v", a, err)
	}
	if open := r.open.Load(); open != 0 {
		// They are closed without waiting.
		until(t, func(context.Context, int) (int64, error) { return r.open.Load(), nil }, 0, func(n int64) bool { return n == 0 })
	}
	audits := audited(t, q)
	for _, want := range []string{`"runtime.evaluate"`, "answer + 1", `"tree.edit"`, `"who":"a NATS client that says it is alice (a test)"`, `"who":"a NATS client"`} {
		if !strings.Contains(audits, want) {
			t.Errorf("the audit lacks %s:\n%s", want, audits)
		}
	}
	if strings.Contains(audits, "x = 1") {
		t.Error("what cannot change anything is in the audit")
	}
}

// audited returns all records of the audit.
func audited(t *testing.T, q *queried) string {
	t.Helper()
	js, err := jetstream.New(q.Conn())
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), subjects.AuditStreamName(q.Space()))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	info := stream.CachedInfo()
	for seq := info.State.FirstSeq; seq > 0 && seq <= info.State.LastSeq; seq++ {
		if m, err := stream.GetMsg(t.Context(), seq); err == nil {
			b.Write(append(m.Data, '\n'))
		}
	}
	return b.String()
}

// TestWhoMayOnlyLook: a view role changes nothing through any door, and GET never does.
func TestWhoMayOnlyLook(t *testing.T) {
	i := startTest(t, Options{Role: access.RoleView})
	p, err := producer.Start(producer.Options{Service: "orders", URL: i.NATS()})
	if err != nil {
		t.Fatal(err)
	}
	p.Serve(newCalculator())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = p.Close(ctx)
	})
	c := query.NewClient(i.Conn(), "")
	until(t, c.Sources, query.SourcesRequest{}, func(a query.SourcesAnswer) bool {
		return len(a.Sources) == 1 && strings.Contains(strings.Join(a.Sources[0].Capabilities, " "), "runtime")
	})
	if _, err := c.Evaluate(t.Context(), query.EvaluateRequest{Source: "orders*", Expression: "1"}); !errors.Is(err, query.ErrRefused) {
		t.Errorf("over NATS: %v", err)
	}
	if a, err := c.Evaluate(t.Context(), query.EvaluateRequest{Source: "orders*", Expression: "answer", Pure: true}); err != nil || a.Text != "42" {
		t.Errorf("looking: %+v, %v", a, err)
	}
	// A loop holds a program up, even one that changes nothing.
	if a, err := c.Evaluate(t.Context(), query.EvaluateRequest{Source: "orders*", Expression: "for (;;);", Pure: true, TimeoutMS: 30000}); err != nil || !strings.Contains(a.Exception, "not end in 500 ms") {
		t.Errorf("a loop: %+v, %v", a, err)
	}
	resp, err := http.Post(i.HTTP()+httpapi.Root+"evaluate", "application/json", strings.NewReader(`{"source":"orders*","expression":"1"}`))
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("over HTTP: %s %s", resp.Status, body)
	}
	tools, err := connectAgent(t, i).session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools.Tools {
		if tool.Name == "evaluate" || tool.Name == "edit_value" {
			t.Errorf("an agent that may only look is offered %s", tool.Name)
		}
	}
	for _, verb := range []string{"evaluate", "edit"} {
		door := access.Door{Grant: access.Grant{Role: access.RoleDebug}}
		w := httptest.NewRecorder()
		door.Middleware(i.queries).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+httpapi.Root+verb+"?source=orders&expression=1", nil))
		if w.Code != http.StatusMethodNotAllowed {
			t.Errorf("GET %s: %d", verb, w.Code)
		}
	}
}

// TestNATSUsersOfQueries: a viewer asks and cannot change; a debugger can do both, and neither anything else.
func TestNATSUsersOfQueries(t *testing.T) {
	s := securedServer(t, allUsers(t))
	for _, name := range []string{"store", "gateway"} {
		i, err := Start(t.Context(), Options{Space: "dev", Conn: s.connect(name), HTTPAddr: "127.0.0.1:0", Parts: Parts{Store: name == "store", Gateway: name == "gateway"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closeTest(t, i) })
	}
	for name, want := range map[string]error{"viewer": query.ErrRefused, "debugger": query.ErrNotFound} {
		c := query.NewClient(s.connect(name), "dev")
		until(t, c.Sources, query.SourcesRequest{}, func(a query.SourcesAnswer) bool { return true })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := c.Evaluate(ctx, query.EvaluateRequest{Source: "nobody", Expression: "1"})
		cancel()
		if !errors.Is(err, want) || name == "viewer" && !strings.Contains(err.Error(), "debugger") {
			t.Errorf("%s evaluates: %v, want %v", name, err, want)
		}
	}
	// The server tells of a refusal on its own time, which may be after nobody answered.
	becomes(t, "the server says that it refused the viewer", func() bool {
		return strings.Contains(strings.Join(s.refusals("viewer"), " "), "change.evaluate")
	})
	if got := s.refusals("gateway"); len(got) > 0 {
		t.Errorf("the gateway was refused: %v", got)
	}
}

// Who asks over NATS is told to the audit in words that promise no more than a message does.
func TestWhoAsksOverNATS(t *testing.T) {
	for want, a := range map[string]service.Asker{
		"a NATS client": {Inbox: "_INBOX"},
		"a NATS client that says it is alice@laptop":                         {Says: "alice@laptop", Inbox: "_INBOX"},
		"a NATS client that says it is alice@laptop, answered at _INBOX_bob": {Says: "alice@laptop", Inbox: "_INBOX_bob"},
	} {
		if got := whoOverNATS(a); got != want {
			t.Errorf("%+v: %q, want %q", a, got, want)
		}
	}
}
