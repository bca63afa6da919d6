package embedded

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/natscope/natscope/examples/shop"
	"github.com/natscope/natscope/query"
)

// scripted is an agent that follows a script.
type scripted struct {
	t       *testing.T
	session *mcp.ClientSession
}

// connect begins a session with the gateway's tools.
func connectAgent(t *testing.T, i *Instance) *scripted {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "script", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: i.HTTP() + "/mcp", DisableStandaloneSSE: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return &scripted{t, session}
}

// call calls a tool and returns its text, and whether it is an error.
func (a *scripted) call(name string, arguments map[string]any) (string, bool) {
	a.t.Helper()
	r, err := a.session.CallTool(a.t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		a.t.Fatalf("%s: %v", name, err)
	}
	text, ok := r.Content[0].(*mcp.TextContent)
	if !ok || len(r.Content) != 1 {
		a.t.Fatalf("%s answers %T", name, r.Content[0])
	}
	return text.Text, r.IsError
}

// read calls a tool and reads its answer.
func read[A any](a *scripted, name string, arguments map[string]any) A {
	a.t.Helper()
	text, failed := a.call(name, arguments)
	var out A
	if err := json.Unmarshal([]byte(text), &out); failed || err != nil {
		a.t.Fatalf("%s %v: %s", name, arguments, text)
	}
	return out
}

// TestAgentFindsWhyAnEndpointFails is a real debugging task with nothing but the
// tools: something in the demo shop answers 500; which endpoint, who asks for
// it, and why? Every step uses only what the steps before it answered.
func TestAgentFindsWhyAnEndpointFails(t *testing.T) {
	i := startTest(t, Options{})
	s, err := shop.Start(t.Context(), shop.Options{NATS: i.NATS(), Space: i.Space(), Interval: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = s.Close(ctx)
	}()
	a := connectAgent(t, i)
	tools, err := a.session.ListTools(t.Context(), nil)
	if err != nil || len(tools.Tools) < 12 {
		t.Fatalf("%d tools, %v", len(tools.Tools), err)
	}
	if !strings.Contains(a.session.InitializeResult().Instructions, "list_sources") {
		t.Error("the instructions do not say where to begin")
	}

	// Who is there?
	var source query.Source
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if all := read[query.SourcesAnswer](a, "list_sources", nil); len(all.Sources) == 1 && all.Sources[0].Failed > 2 && all.Sources[0].Errors > 0 {
			source = all.Sources[0]
			break
		}
		if time.Now().After(end) {
			t.Fatal("nothing fails in the shop")
		}
	}
	// What fails there? The server's own failures, not those of its clients.
	failed := read[query.RequestsAnswer](a, "list_requests", map[string]any{"sources": []any{source.ID}, "filter": "status >= 500 && direction == 'in'"})
	if len(failed.Requests) == 0 {
		t.Fatal("no served request failed")
	}
	bad := failed.Requests[0]
	// What did it answer?
	detail := read[query.RequestAnswer](a, "inspect_request", map[string]any{"id": bad.ID})
	if detail.ResponseBody.Captured == 0 || detail.Status != http.StatusInternalServerError {
		t.Fatalf("the request: %+v", detail)
	}
	body := read[query.BodyAnswer](a, "read_body", map[string]any{"id": bad.ID})
	var answer struct {
		Error string `json:"error"`
	}
	if err := json.Unmarshal([]byte(body.Text), &answer); err != nil || answer.Error == "" {
		t.Fatalf("the body: %+v", body)
	}
	// Who asks for it? The request that was made for the same address has a stack.
	made := read[query.RequestsAnswer](a, "list_requests", map[string]any{"filter": `status >= 500 && direction == 'out' && path == "` + pathOf(bad.URL) + `"`})
	if len(made.Requests) == 0 {
		t.Fatal("nobody made the request")
	}
	caller := read[query.RequestAnswer](a, "inspect_request", map[string]any{"id": made.Requests[0].ID})
	// What did that part of the program say about it?
	logs := read[query.ConsoleAnswer](a, "read_console", map[string]any{"level": "error", "text": pathOf(bad.URL)})
	if len(logs.Entries) == 0 {
		t.Fatal("no log line tells of it")
	}
	// And what state is that part in?
	found := read[query.FindAnswer](a, "find_nodes", map[string]any{"filter": "int(attrs.failures) > 0"})
	if len(found.Nodes) != 1 {
		t.Fatalf("parts with failures: %+v", found.Nodes)
	}
	node := read[query.NodeAnswer](a, "inspect_node", map[string]any{"id": found.Nodes[0].ID})

	conclusion := strings.Join([]string{bad.Method, pathOf(bad.URL), answer.Error, strings.Join(caller.Stack, " "), logs.Entries[0].Text, node.Path}, "\n")
	for _, want := range []string{"GET", "/api/fail", "payment provider is down", "workers.go", `worker: "payments"`, "workers > worker"} {
		if !strings.Contains(conclusion, want) {
			t.Errorf("the conclusion lacks %q:\n%s", want, conclusion)
		}
	}
	if outline, failed := a.call("read_tree", map[string]any{"source": source.ID, "depth": 2}); failed || !strings.Contains(outline, "routes") || !strings.Contains(outline, "[") {
		t.Errorf("the tree: %s", outline)
	}
}

func pathOf(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	_, path, _ := strings.Cut(rest, "/")
	path, _, _ = strings.Cut(path, "?")
	return "/" + path
}

// TestAgentIsToldWhatToDo: each error of a tool says the next step.
func TestAgentIsToldWhatToDo(t *testing.T) {
	q, node, _ := populated(t)
	a := connectAgent(t, q.Instance)
	for _, tt := range []struct {
		tool      string
		arguments map[string]any
		want      string
	}{
		{"read_tree", nil, "give source"},
		{"read_tree", map[string]any{"source": "nobody"}, "there are orders-1"},
		{"read_tree", map[string]any{"sauce": "x"}, "it has source"},
		{"inspect_node", nil, "needs the argument id"},
		{"inspect_node", map[string]any{"id": "n1"}, "take one from"},
		{"inspect_node", map[string]any{"id": strings.Split(string(node), "/")[0] + "/n12345678"}, "read the tree again"},
		{"list_requests", map[string]any{"filter": "stat = 3"}, "column"},
		{"list_requests", map[string]any{"limit": "many"}, "limit"},
		{"search", nil, "text, or filter"},
		{"read_console", map[string]any{"after": "nonsense"}, "oldest"},
	} {
		text, failed := a.call(tt.tool, tt.arguments)
		if !failed || !strings.Contains(text, tt.want) {
			t.Errorf("%s %v: %v, want %q in: %s", tt.tool, tt.arguments, failed, tt.want, text)
		}
	}
}

// TestAgentsDoorIsGuarded: no foreign web page reaches the tools.
func TestAgentsDoorIsGuarded(t *testing.T) {
	i := startTest(t, Options{})
	for name, change := range map[string]func(*http.Request){
		"foreign origin": func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		"rebound host":   func(r *http.Request) { r.Host = "evil.example" },
	} {
		r, _ := http.NewRequest(http.MethodPost, i.HTTP()+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		change(r)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s", name, resp.Status)
		}
	}
}
