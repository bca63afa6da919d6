package embedded

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/natscope/natscope/cdpgw/access"
	"github.com/natscope/natscope/producer/httpcap"
	"github.com/natscope/natscope/producer/treecap"
	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/query/httpapi"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/value"
)

// get asks a path of the API and returns status and body.
func (q *queried) get(t *testing.T, path string) (int, []byte) {
	t.Helper()
	resp, err := http.Get(q.HTTP() + httpapi.Root + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, body
}

// populated is a program with something of everything, and the ids of a node and a request.
func populated(t *testing.T) (q *queried, node query.NodeID, request query.RequestID) {
	t.Helper()
	q = startQueried(t)
	worker := q.tree.Root().Add("worker", treecap.Kind("worker"), treecap.Attr("state", "idle"))
	until(t, q.client.FindNodes, query.FindRequest{Filter: "attrs.state == 'idle'"}, func(a query.FindAnswer) bool { return len(a.Nodes) == 1 })
	worker.Set("state", "stuck")
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"error":"the database is away"}`)
	}))
	defer backend.Close()
	resp, err := (&http.Client{Transport: httpcap.Transport(q.program, nil)}).Get(backend.URL + "/api/orders")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	q.program.Record(subjects.PlaneConsole, console.TopicMessage, console.Message{Type: "error", Args: []json.RawMessage{value.Encode("no database")}})
	if err := q.program.Publish("cache.miss", map[string]int{"n": 1}); err != nil {
		t.Fatal(err)
	}
	found := until(t, q.client.FindNodes, query.FindRequest{Filter: "attrs.state == 'stuck'"}, func(a query.FindAnswer) bool { return len(a.Nodes) == 1 })
	failed := until(t, q.client.Requests, query.RequestsRequest{Failed: true}, func(a query.RequestsAnswer) bool { return len(a.Requests) == 1 && a.Requests[0].State == "finished" })
	until(t, q.client.Console, query.ConsoleRequest{}, func(a query.ConsoleAnswer) bool { return len(a.Entries) == 1 })
	return q, found.Nodes[0].ID, failed.Requests[0].ID
}

// TestHTTPAnswersAreAsDescribed asks every verb over HTTP, and holds each answer
// to the description that is served with them.
func TestHTTPAnswersAreAsDescribed(t *testing.T) {
	q, node, request := populated(t)
	_, spec := q.get(t, "openapi.json")
	doc, err := openapi3.NewLoader().LoadFromData(spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatalf("the description is not valid: %v", err)
	}
	check := func(verb string, status int, body []byte, method string) {
		t.Helper()
		item := doc.Paths.Value("/" + verb)
		if item == nil {
			t.Fatalf("%s is not described", verb)
		}
		op := item.Get
		if method == http.MethodPost {
			op = item.Post
		}
		r := op.Responses.Status(status)
		if r == nil {
			r = op.Responses.Default()
		}
		var v any
		if err := json.Unmarshal(body, &v); err != nil {
			t.Fatalf("%s: %v\n%s", verb, err, body)
		}
		if err := r.Value.Content.Get("application/json").Schema.Value.VisitJSON(v); err != nil {
			t.Errorf("%s is not as described: %v\n%.2000s", verb, err, body)
		}
	}
	// The check itself must see what is missing.
	if doc.Paths.Value("/sources").Get.Responses.Status(200).Value.Content.Get("application/json").Schema.Value.VisitJSON(map[string]any{"space": "dev"}) == nil {
		t.Fatal("an answer without its fields passes")
	}
	id, rid := url.QueryEscape(string(node)), url.QueryEscape(string(request))
	asked := make(map[string]bool)
	for _, path := range []string{
		"sources", "tree?source=orders&values=true&depth=3", "find?text=stuck", "node?id=" + id, "values?id=" + id, "requests?failed=true&limit=1", "request?id=" + rid,
		"body?id=" + rid, "console?level=error&values=1&stack=1", "history?sources=orders-1&sources=o*", "faults", "search?text=database", "cordis", "watch?last=10",
	} {
		verb, _, _ := strings.Cut(path, "?")
		asked[verb] = true
		status, body := q.get(t, path)
		if status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, body)
		}
		check(verb, status, body, http.MethodGet)
	}
	for _, v := range query.Verbs() {
		// Nothing of this program can be highlighted; other tests ask for what changes something.
		if !asked[v.Name] && !v.Changes && v.Name != "highlight" {
			t.Errorf("%s is not asked here", v.Name)
		}
	}
	for path, want := range map[string]int{
		"tree?source=nobody": 404, "node?id=x": 400, "requests?filter=nonsense": 400, "sources?stat=x": 400, "console?limit=many": 400, "nothing": 404,
		"node?id=orders-1/n7": 410, "request?id=orders-1%2399": 404,
	} {
		status, body := q.get(t, path)
		if status != want {
			t.Errorf("%s: %d, want %d: %s", path, status, want, body)
		}
		if verb, _, ok := strings.Cut(path, "?"); ok {
			check(verb, status, body, http.MethodGet)
		}
	}
	resp, err := http.Post(q.HTTP()+httpapi.Root+"requests", "application/json", strings.NewReader(`{"failed":true,"unknown":1}`))
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	check("requests", resp.StatusCode, body, http.MethodPost)
	if resp.StatusCode != http.StatusOK || !strings.Contains(string(body), "503") {
		t.Errorf("POST: %s %s", resp.Status, body)
	}
}

// TestAPIIsGuarded: web pages of others, rebound names and forms reach nothing, on any route.
func TestAPIIsGuarded(t *testing.T) {
	q := startQueried(t)
	routes := []string{"openapi.json", "nothing"}
	for _, v := range query.Verbs() {
		routes = append(routes, v.Name)
	}
	for _, route := range routes {
		for name, change := range map[string]func(*http.Request){
			"foreign origin": func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
			"null origin":    func(r *http.Request) { r.Header.Set("Origin", "null") },
			"rebound host":   func(r *http.Request) { r.Host = "evil.example" },
		} {
			r, _ := http.NewRequest(http.MethodGet, q.HTTP()+httpapi.Root+route, nil)
			change(r)
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusForbidden || resp.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s, %s: %s", route, name, resp.Status)
			}
		}
	}
	for _, kind := range []string{"application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x", ""} {
		resp, err := http.Post(q.HTTP()+httpapi.Root+"sources", kind, strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("a post of %q: %s", kind, resp.Status)
		}
	}
}

// TestAPIShowsWhatTheTokenAllows: a token for some sources sees nothing of the others.
func TestAPIShowsWhatTheTokenAllows(t *testing.T) {
	q := startQueried(t)
	until(t, q.client.Sources, query.SourcesRequest{}, func(a query.SourcesAnswer) bool { return len(a.Sources) == 1 })
	for _, tt := range []struct {
		grant access.Grant
		want  int
	}{
		{access.Grant{Role: access.RoleView}, 1},
		{access.Grant{Role: access.RoleView, Sources: []string{"orders*"}}, 1},
		{access.Grant{Role: access.RoleView, Sources: []string{"mail*"}}, 0},
		{access.Grant{Role: access.RoleView, Spaces: []string{"other"}}, -1},
	} {
		door := access.Door{Grant: tt.grant}
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+httpapi.Root+"sources", nil)
		door.Middleware(q.queries).ServeHTTP(w, r)
		var a query.SourcesAnswer
		_ = json.Unmarshal(w.Body.Bytes(), &a)
		if tt.want < 0 && w.Code != http.StatusForbidden || tt.want >= 0 && (w.Code != http.StatusOK || len(a.Sources) != tt.want) {
			t.Errorf("%+v: %d, %d sources", tt.grant, w.Code, len(a.Sources))
		}
	}
}

// sseEvent is one event of a stream.
type sseEvent struct{ id, event, data string }

// readStream reads events until ok holds.
func readStream(t *testing.T, ctx context.Context, address, last string, ok func(sseEvent) bool) string {
	t.Helper()
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	r.Header.Set("Accept", "text/event-stream")
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s: %s", resp.Status, resp.Header.Get("Content-Type"))
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 4<<20)
	var e sseEvent
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			e.id, last = text, text
		case "event":
			e.event = text
		case "data":
			e.data = text
		case "":
			if e.data != "" && ok(e) {
				return last
			}
			e = sseEvent{}
		}
	}
	t.Fatalf("the stream ended: %v", lines.Err())
	return ""
}

// TestStreamResumes: a browser that was cut off comes back with its last id and misses nothing.
func TestStreamResumes(t *testing.T) {
	q := startQueried(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	address := q.HTTP() + httpapi.Root + "watch?kinds=console"
	until(t, q.client.Sources, query.SourcesRequest{}, func(a query.SourcesAnswer) bool { return len(a.Sources) == 1 })
	last := readStream(t, ctx, address, "", func(e sseEvent) bool { return e.event == query.EventReady })
	for range 3 {
		// What is logged while nobody reads comes first when the reader is back.
		q.program.Record(subjects.PlaneConsole, console.TopicMessage, console.Message{Type: "log", Logger: "away"})
		last = readStream(t, ctx, address, last, func(e sseEvent) bool {
			if e.event != query.EventConsole || !strings.Contains(e.data, `"away"`) || strings.Contains(e.data, `"snapshot"`) {
				t.Errorf("%+v", e)
			}
			return true
		})
	}
}
