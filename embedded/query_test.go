package embedded

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/httpcap"
	"github.com/natscope/natscope/producer/treecap"
	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/query/service"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
)

// queried is an instance with a program, and a client that asks about it.
type queried struct {
	*Instance
	program *producer.Producer
	tree    *treecap.Tree
	client  *query.Client
}

func startQueried(t *testing.T) *queried {
	t.Helper()
	q := &queried{Instance: startTest(t, Options{})}
	var err error
	q.program, err = producer.Start(producer.Options{Service: "orders", Instance: "1", URL: q.NATS()})
	if err != nil {
		t.Fatal(err)
	}
	q.tree = treecap.New(q.program, treecap.Options{RootName: "orders"})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		q.tree.Close()
		_ = q.program.Close(ctx)
	})
	nc, err := nats.Connect(q.NATS())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	q.client = query.NewClient(nc, "")
	return q
}

// until asks until ok holds.
func until[Q, A any](t *testing.T, ask func(context.Context, Q) (A, error), q Q, ok func(A) bool) A {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		a, err := ask(t.Context(), q)
		if err == nil && ok(a) {
			return a
		}
		if time.Now().After(end) {
			t.Fatalf("%+v gives %.2000s, %v", q, fmt.Sprintf("%+v", a), err)
		}
	}
}

// TestQueryOverNATS asks every kind of question about a real program.
func TestQueryOverNATS(t *testing.T) {
	q := startQueried(t)
	worker := q.tree.Root().Add("worker", treecap.Kind("worker"), treecap.Attr("state", "idle"))
	sources := until(t, q.client.Sources, query.SourcesRequest{}, func(a query.SourcesAnswer) bool {
		return len(a.Sources) == 1 && a.Sources[0].State == query.StateConnected && a.Sources[0].Nodes == 2
	})
	id := string(sources.Sources[0].ID)
	worker.Set("state", "stuck")
	found := until(t, q.client.FindNodes, query.FindRequest{Filter: "attrs.state == 'stuck'"}, func(a query.FindAnswer) bool { return len(a.Nodes) == 1 })
	h := until(t, q.client.History, query.HistoryRequest{Node: found.Nodes[0].ID}, func(a query.HistoryAnswer) bool { return len(a.Commits) > 0 })
	if c := h.Commits[len(h.Commits)-1].Changes[0]; c.Symbol != "state" || string(c.From) != `"idle"` || string(c.To) != `"stuck"` {
		t.Errorf("history: %+v", c)
	}

	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"error":"the database is away"}`)
	}))
	defer backend.Close()
	client := &http.Client{Transport: httpcap.Transport(q.program, nil)}
	resp, err := client.Post(backend.URL+"/api/orders", "text/plain", strings.NewReader("two coffees"))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	failed := until(t, q.client.Requests, query.RequestsRequest{Failed: true, Page: query.Page{Sources: []string{"ord*"}}}, func(a query.RequestsAnswer) bool {
		return len(a.Requests) == 1 && a.Requests[0].State == "finished"
	})
	r := failed.Requests[0]
	if r.Status != 503 || r.Method != "POST" || string(r.Source) != id {
		t.Errorf("request: %+v", r)
	}
	body := until(t, q.client.Body, query.BodyRequest{ID: r.ID, Wait: true}, func(a query.BodyAnswer) bool { return a.Text != "" })
	if body.Text != `{"error":"the database is away"}` || body.Truncated || body.More {
		t.Errorf("body: %+v", body)
	}
	sent := until(t, q.client.Body, query.BodyRequest{ID: r.ID, Direction: "request"}, func(a query.BodyAnswer) bool { return true })
	if sent.Text != "two coffees" {
		t.Errorf("request body: %+v", sent)
	}
	q.program.Record(subjects.PlaneConsole, console.TopicMessage, console.Message{Type: "error"})
	until(t, q.client.Console, query.ConsoleRequest{Level: "error"}, func(a query.ConsoleAnswer) bool { return len(a.Entries) == 1 })
	if _, err := q.client.Tree(t.Context(), query.TreeRequest{Source: "none"}); !errors.Is(err, query.ErrNotFound) || !strings.Contains(err.Error(), id) {
		t.Errorf("an unknown source: %v", err)
	}
}

// Case F19: whoever asks in parts gets all of a body, and knows where it ends.
func TestBodiesComeInRanges(t *testing.T) {
	q := startQueried(t)
	text := `{"list":["` + strings.Repeat("ä€x", 18_000) + `"]}` // 108 kB, and characters across every boundary
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, text)
	}))
	defer backend.Close()
	resp, err := (&http.Client{Transport: httpcap.Transport(q.program, nil)}).Get(backend.URL)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	r := until(t, q.client.Requests, query.RequestsRequest{}, func(a query.RequestsAnswer) bool {
		return len(a.Requests) == 1 && a.Requests[0].State == "finished"
	}).Requests[0]
	var got strings.Builder
	for parts := 0; ; parts++ {
		a, err := q.client.Body(t.Context(), query.BodyRequest{ID: r.ID, Wait: true, Offset: int64(got.Len()), Limit: 10_000})
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString(a.Text)
		if a.Total != int64(len(text)) || a.Size != a.Total || a.Truncated || a.Length > 10_000 || a.Base64 != "" || a.More != (got.Len() < len(text)) {
			t.Fatalf("part %d: offset %d, length %d of %d, size %d, truncated %t, more %t, %d of base64", parts, a.Offset, a.Length, a.Total, a.Size, a.Truncated, a.More, len(a.Base64))
		}
		if !a.More {
			break
		}
		if parts > 20 {
			t.Fatal("it does not end")
		}
	}
	if got.String() != text {
		t.Errorf("%d bytes of %d", got.Len(), len(text))
	}
}

// TestLargeAnswersComeInParts reads a tree that is larger than a message.
func TestLargeAnswersComeInParts(t *testing.T) {
	q := startQueried(t)
	const n = 4000
	for i := range n {
		q.tree.Root().Add("item", treecap.Attr("text", strings.Repeat("x", 400)), treecap.Attr("n", i))
	}
	until(t, q.client.Sources, query.SourcesRequest{}, func(a query.SourcesAnswer) bool { return len(a.Sources) == 1 && a.Sources[0].Nodes == n+1 })
	question, _ := json.Marshal(query.TreeRequest{Source: "orders-1", Nodes: query.MaxTreeNodes, Bytes: query.MaxTreeBytes})
	data, err := q.client.Ask(t.Context(), "tree", question)
	if err != nil || int64(len(data)) <= q.Conn().MaxPayload() {
		t.Fatalf("%d bytes, which one message takes, %v", len(data), err)
	}
	var a query.TreeAnswer
	if err := json.Unmarshal(data, &a); err != nil || len(a.Nodes) != n+1 || a.Nodes[n].Attrs[1].Value != fmt.Sprint(n-1) {
		t.Errorf("%d nodes of %d, %v", len(a.Nodes), n+1, err)
	}
}

// TestWatchOverNATS follows a program from a snapshot on, and survives that
// nobody answers for a while.
func TestWatchOverNATS(t *testing.T) {
	q := startQueried(t)
	until(t, q.client.Sources, query.SourcesRequest{}, func(a query.SourcesAnswer) bool { return len(a.Sources) == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	const lines = 200
	ready, next := false, 0
	done := errors.New("done")
	err := query.Follow(ctx, q.client, query.WatchRequest{Kinds: []string{query.EventConsole}}, func(e query.Event) error {
		switch {
		case e.Kind == query.EventReady && !ready:
			ready = true
			go func() {
				for i := range lines {
					q.program.Record(subjects.PlaneConsole, console.TopicMessage, console.Message{Type: "log", Logger: fmt.Sprint(i)})
				}
			}()
		case e.Kind == query.EventConsole:
			if e.Console.Logger != fmt.Sprint(next) {
				t.Errorf("%s came, %d was next", e.Console.Logger, next)
			}
			if next++; next == lines {
				return done
			}
		}
		return nil
	}, nil)
	if !errors.Is(err, done) {
		t.Errorf("after %d lines: %v", next, err)
	}
}

func TestNobodyAnswersQueries(t *testing.T) {
	i := startTest(t, Options{})
	_, err := query.NewClient(i.Conn(), "elsewhere").Sources(t.Context(), query.SourcesRequest{})
	if !errors.Is(err, query.ErrUnavailable) || !strings.Contains(err.Error(), "gateway") {
		t.Errorf("a space without a gateway: %v", err)
	}
	data, err := query.NewClient(i.Conn(), "").Ask(t.Context(), "sources", []byte(`{"unknown":1}`))
	if err != nil || !bytes.Contains(data, []byte(`"space":"dev"`)) {
		t.Errorf("an unknown field: %s, %v", data, err)
	}
	if _, err = query.NewClient(i.Conn(), "").Ask(t.Context(), "sources", []byte(`[]`)); !errors.Is(err, query.ErrMalformed) {
		t.Errorf("a malformed question: %v", err)
	}
}

// TestQuestionsAreCounted: the micro service tells how many questions were answered
// and refused, though it answers after it took the next one.
func TestQuestionsAreCounted(t *testing.T) {
	i := startTest(t, Options{})
	c := query.NewClient(i.Conn(), "")
	for _, question := range []string{"{}", "[]", "{}", "[]", "{}"} {
		_, _ = c.Ask(t.Context(), "sources", []byte(question)) // What it answers is the concern of others.
	}
	m, err := i.Conn().Request("$SRV.STATS."+service.Name, nil, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var stats struct {
		Endpoints []struct {
			Name string        `json:"name"`
			Data service.Tally `json:"data"`
		} `json:"endpoints"`
	}
	if err := json.Unmarshal(m.Data, &stats); err != nil {
		t.Fatal(err)
	}
	for _, e := range stats.Endpoints {
		if e.Name == "sources" {
			if e.Data != (service.Tally{Answered: 3, Refused: 2}) {
				t.Errorf("got %+v", e)
			}
			return
		}
	}
	t.Errorf("no endpoint: %s", m.Data)
}
