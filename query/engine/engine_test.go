package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

func texts(entries []query.ConsoleEntry) string {
	var out []string
	for _, e := range entries {
		out = append(out, e.Text)
	}
	return strings.Join(out, ",")
}

// TestPagesMeetEverything reads a list of three sources page by page in both
// directions: every entry comes exactly once, in order, whatever the size of pages.
func TestPagesMeetEverything(t *testing.T) {
	m := newMemory(t, subjects.Limits{})
	e := newEngine(t, m)
	var want []string
	programs := []*program{m.open("a"), m.open("b"), m.open("c")}
	for i := range 60 {
		p := programs[i*i%3]
		p.t = float64(10 * i)
		p.log("log", fmt.Sprint(i))
		want = append(want, fmt.Sprint(i))
	}
	for _, size := range []int{1, 7, 100} {
		var got []string
		q := query.ConsoleRequest{Page: query.Page{After: query.Oldest, Limit: size}}
		for more := true; more; {
			a := must(t, e.Console, q)
			for _, x := range a.Entries {
				got = append(got, x.Text)
			}
			more, q.After = a.More, a.Next
		}
		if !slices.Equal(got, want) {
			t.Errorf("forward by %d: %v", size, got)
		}
		got = nil
		q = query.ConsoleRequest{Page: query.Page{Limit: size}}
		for more := true; more; {
			a := must(t, e.Console, q)
			var part []string
			for _, x := range a.Entries {
				part = append(part, x.Text)
			}
			got = append(part, got...)
			more, q.Before = a.More, a.Prev
		}
		if !slices.Equal(got, want) {
			t.Errorf("back by %d: %v", size, got)
		}
	}
}

// TestCursorSurvivesEvictions: what was evicted behind a cursor is counted, what
// came is read, and nothing is read twice.
func TestCursorSurvivesEvictions(t *testing.T) {
	m := newMemory(t, subjects.Limits{ConsoleEntries: 10})
	e := newEngine(t, m)
	a, b := m.open("a"), m.open("b")
	for i := range 5 {
		a.log("log", fmt.Sprint("a", i))
	}
	first := must(t, e.Console, query.ConsoleRequest{Page: query.Page{Limit: 2, After: query.Oldest}})
	if texts(first.Entries) != "a0,a1" || !first.More {
		t.Fatalf("first page: %+v", first)
	}
	for i := 5; i < 25; i++ {
		a.log("log", fmt.Sprint("a", i))
	}
	b.t = a.t
	b.log("log", "b0")
	c := m.open("c")
	c.t = b.t
	c.log("log", "c0")
	next := must(t, e.Console, query.ConsoleRequest{Page: query.Page{After: first.Next}})
	if got := texts(next.Entries); got != "a15,a16,a17,a18,a19,a20,a21,a22,a23,a24,b0,c0" || next.More {
		t.Errorf("next page: %s, more %v", got, next.More)
	}
	if len(next.Missed) != 1 || next.Missed[0] != (query.Missed{Source: "a", Count: 13}) {
		t.Errorf("missed %+v, want 13 of a", next.Missed)
	}
	m.Remove("a")
	last := must(t, e.Console, query.ConsoleRequest{Page: query.Page{After: next.Next}})
	if len(last.Entries) != 0 || last.More || last.Next == "" {
		t.Errorf("nothing is new, got %+v", last)
	}
	b.log("log", "b1")
	if got := must(t, e.Console, query.ConsoleRequest{Page: query.Page{After: last.Next}}); texts(got.Entries) != "b1" {
		t.Errorf("then %+v", got)
	}
}

// TestNewStream: a cursor, a node id and a mark of a stream that was made anew
// lead to nothing of the new one.
func TestNewStream(t *testing.T) {
	m := newMemory(t, subjects.Limits{})
	e := newEngine(t, m)
	p := m.open("a")
	p.tree(1, 3)
	p.log("log", "old")
	nodes := must(t, e.Tree, query.TreeRequest{Source: "a"}).Nodes
	page := must(t, e.Console, query.ConsoleRequest{})
	mark := must(t, e.Watch, query.WatchRequest{}).Next
	m.Renew()
	p = m.open("a")
	p.tree(1, 3)
	p.log("log", "new")
	if again := must(t, e.Tree, query.TreeRequest{Source: "a"}).Nodes; again[1].ID == nodes[1].ID {
		t.Fatal("the same id in both streams, so this test shows nothing")
	}
	if _, err := e.Node(t.Context(), query.NodeRequest{ID: nodes[1].ID}); !errors.Is(err, query.ErrGone) {
		t.Errorf("an old id gives %v", err)
	}
	a := must(t, e.Console, query.ConsoleRequest{Page: query.Page{After: page.Next}})
	if texts(a.Entries) != "new" || !a.Reset {
		t.Errorf("after an old cursor: %+v", a)
	}
	if _, err := e.Console(t.Context(), query.ConsoleRequest{Page: query.Page{Before: page.Prev}}); !errors.Is(err, query.ErrGone) {
		t.Errorf("before an old cursor: %v", err)
	}
	w := must(t, e.Watch, query.WatchRequest{After: mark})
	if len(w.Events) == 0 || w.Events[0].Kind != query.EventReset {
		t.Errorf("an old mark gives %+v", w.Events)
	}
}

func TestTreeBudgets(t *testing.T) {
	m := newMemory(t, subjects.Limits{})
	e := newEngine(t, m)
	m.open("a").tree(1, 50)
	a := must(t, e.Tree, query.TreeRequest{Source: "the a", Nodes: 11})
	if len(a.Nodes) != 11 || a.Total != 51 || a.Cut != 1 || a.Nodes[0].Children != 50 || a.Nodes[0].Shown != 10 || !a.Live {
		t.Fatalf("%d nodes, %+v", len(a.Nodes), a.Nodes[0])
	}
	seen := len(a.Nodes) - 1
	for a.Nodes[0].Shown > 0 {
		a = must(t, e.Tree, query.TreeRequest{From: a.Nodes[0].ID, After: a.Nodes[len(a.Nodes)-1].ID, Nodes: 11})
		seen += len(a.Nodes) - 1
	}
	if seen != 50 {
		t.Errorf("read %d of 50 children", seen)
	}
	if a = must(t, e.Tree, query.TreeRequest{Source: "a", Bytes: 3000, Values: true}); len(a.Nodes) < 2 || len(a.Nodes) > 12 {
		t.Errorf("%d nodes in 3000 bytes", len(a.Nodes))
	}
	if a = must(t, e.Tree, query.TreeRequest{Source: "a", Depth: 1}); len(a.Nodes) != 51 || a.Cut != 0 {
		t.Errorf("%d nodes to a depth of 1, %d cut", len(a.Nodes), a.Cut)
	}
	m.Presence("a", false)
	a = must(t, e.Tree, query.TreeRequest{Source: "a", Values: true})
	for _, n := range a.Nodes {
		for _, v := range n.Values {
			if v.Writable || a.Live {
				t.Fatal("the tree of a program that is gone counts as live")
			}
		}
	}
}

func TestFindAndNode(t *testing.T) {
	m := newMemory(t, subjects.Limits{})
	e := newEngine(t, m)
	p := m.open("a")
	p.tree(1, 30)
	m.open("b").tree(1, 30)
	q := query.FindRequest{Filter: "kind == 'item' && values.count >= 25", Limit: 3}
	var got []string
	for {
		a := must(t, e.FindNodes, q)
		for _, n := range a.Nodes {
			got = append(got, string(n.Source)+n.Attrs[0].Value)
		}
		if a.Next == "" {
			break
		}
		q.After = a.Next
	}
	if s := strings.Join(got, " "); s != "a25 a26 a27 a28 a29 b25 b26 b27 b28 b29" {
		t.Errorf("found %s", s)
	}
	found := must(t, e.FindNodes, query.FindRequest{Text: "item 17", Sources: []string{"a"}})
	if len(found.Nodes) != 1 || found.Nodes[0].Path != "app > Item" {
		t.Fatalf("by text: %+v", found)
	}
	p.update(2, 19, 99)
	p.update(3, 19, 100)
	n := must(t, e.Node, query.NodeRequest{ID: found.Nodes[0].ID})
	if len(n.Values) != 1 || n.Values[0].Preview != "100" || len(n.Changes) < 2 || string(n.Changes[len(n.Changes)-1].From) != "99" || string(n.Changes[len(n.Changes)-1].To) != "100" {
		t.Errorf("node: %+v", n)
	}
	h := must(t, e.History, query.HistoryRequest{Node: n.ID, Page: query.Page{Limit: 1}})
	if len(h.Commits) != 1 || string(h.Commits[0].Changes[0].To) != "100" || !h.More {
		t.Errorf("history of the node: %+v", h)
	}
	short := query.NodeID(strings.Split(string(n.ID), ".")[0])
	if x := must(t, e.Node, query.NodeRequest{ID: short}); x.ID != n.ID {
		t.Errorf("%s leads to %s", short, x.ID)
	}
}

func TestRequestsAndBodies(t *testing.T) {
	m := newMemory(t, subjects.Limits{Requests: 5})
	e := newEngine(t, m)
	p := m.open("a")
	p.call("r1", "http://x/ok", 200)
	p.call("r2", "http://x/broken", 503)
	p.call("r3", "http://nowhere/", 0)
	failed := must(t, e.Requests, query.RequestsRequest{Failed: true})
	if len(failed.Requests) != 2 || failed.Requests[0].Status != 503 || failed.Requests[1].Error != "connection refused" {
		t.Fatalf("failed: %+v", failed.Requests)
	}
	r := must(t, e.Request, query.RequestRequest{ID: failed.Requests[0].ID})
	if r.RequestHeaders[0] != (network.Header{"Accept", "*/*"}) || !r.ResponseBody.Ended || r.ResponseBody.Captured != 10 {
		t.Errorf("request: %+v", r)
	}
	if x := must(t, e.Request, query.RequestRequest{ID: "a#2"}); x.ID != r.ID {
		t.Errorf("a#2 leads to %s", x.ID)
	}
	text := strings.Repeat("äöü", 100)
	p.body("r2", []byte(text), subjects.BodyComplete)
	got := ""
	for q := (query.BodyRequest{ID: r.ID, Limit: 31}); ; {
		b := must(t, e.Body, q)
		if b.Base64 != "" {
			t.Fatalf("text at %d came as bytes", b.Offset)
		}
		got += b.Text
		if q.Offset = b.Offset + b.Length; !b.More {
			break
		}
	}
	if got != text {
		t.Errorf("the body in ranges is %d bytes of %d", len(got), len(text))
	}
	for i := range 9 {
		p.call(fmt.Sprint("s", i), "http://x/more", 200)
	}
	if _, err := e.Request(t.Context(), query.RequestRequest{ID: r.ID}); !errors.Is(err, query.ErrGone) {
		t.Errorf("an evicted request: %v", err)
	}
	if _, err := e.Body(t.Context(), query.BodyRequest{ID: "a#2"}); !errors.Is(err, query.ErrGone) {
		t.Errorf("the body of an evicted request: %v", err)
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	m := newMemory(t, subjects.Limits{})
	e := newEngine(t, m)
	ctx := t.Context()
	ask := func(err error) error { return err }
	_, empty := e.Tree(ctx, query.TreeRequest{Source: "x"})
	m.open("a").tree(1, 1)
	_, unknown := e.Tree(ctx, query.TreeRequest{Source: "x"})
	_, none := e.Tree(ctx, query.TreeRequest{})
	_, badID := e.Node(ctx, query.NodeRequest{ID: "nonsense"})
	_, cursor := e.Console(ctx, query.ConsoleRequest{Page: query.Page{After: "nonsense"}})
	_, filter := e.Requests(ctx, query.RequestsRequest{Page: query.Page{Filter: "stats > 3"}})
	_, nothing := e.Search(ctx, query.SearchRequest{})
	_, kind := e.Watch(ctx, query.WatchRequest{Kinds: []string{"x"}})
	_, level := e.Console(ctx, query.ConsoleRequest{Level: "loud"})
	for _, tt := range []struct {
		err  error
		kind error
		want string
	}{
		{ask(empty), query.ErrNotFound, "start a program"}, {unknown, query.ErrNotFound, "there are a"}, {none, query.ErrMalformed, "give source"},
		{badID, query.ErrMalformed, "take one from"}, {cursor, query.ErrMalformed, "oldest"}, {filter, query.ErrMalformed, "unknown name stats"},
		{nothing, query.ErrMalformed, "text, or filter"}, {kind, query.ErrMalformed, "request, console"}, {level, query.ErrMalformed, "debug, info"},
	} {
		if !errors.Is(tt.err, tt.kind) || !strings.Contains(query.ErrorOf(tt.err).Message, tt.want) {
			t.Errorf("%v, want %v with %q", tt.err, tt.kind, tt.want)
		}
	}
}

func TestSearch(t *testing.T) {
	m := newMemory(t, subjects.Limits{})
	e := newEngine(t, m)
	p := m.open("a")
	p.tree(1, 30)
	p.call("r1", "http://x/item 17", 500)
	p.log("error", "cannot load", map[string]any{"which": "item 17"})
	a := must(t, e.Search, query.SearchRequest{Text: "ITEM 17"})
	var kinds []string
	for _, h := range a.Hits {
		kinds = append(kinds, h.Kind)
	}
	if strings.Join(kinds, " ") != "request console node value" {
		t.Errorf("found %+v", a.Hits)
	}
	a = must(t, e.Search, query.SearchRequest{Filter: "what == 'value' && name == 'count' && value > 20", Limit: 4})
	if len(a.Hits) != 4 || len(a.More) != 1 {
		t.Errorf("values over 20: %+v", a)
	}
}

// TestOnly: a reader that may see one source sees nothing of the others.
func TestOnly(t *testing.T) {
	m := newMemory(t, subjects.Limits{})
	all := newEngine(t, m)
	a, b := m.open("a"), m.open("b")
	for _, p := range []*program{a, b} {
		p.tree(1, 2)
		p.log("log", "hello")
		p.call("r1", "http://x/", 500)
	}
	other := must(t, all.Tree, query.TreeRequest{Source: "b"}).Nodes[0].ID
	e := all.Only(func(id subjects.SourceID) bool { return id == "a" })
	var seen []subjects.SourceID
	for _, s := range must(t, e.Sources, query.SourcesRequest{}).Sources {
		seen = append(seen, s.ID)
	}
	for _, x := range must(t, e.Console, query.ConsoleRequest{}).Entries {
		seen = append(seen, x.Source)
	}
	for _, x := range must(t, e.Requests, query.RequestsRequest{}).Requests {
		seen = append(seen, x.Source)
	}
	for _, x := range must(t, e.FindNodes, query.FindRequest{Text: "app"}).Nodes {
		seen = append(seen, x.Source)
	}
	for _, x := range must(t, e.Search, query.SearchRequest{Text: "hello"}).Hits {
		seen = append(seen, x.Source)
	}
	for _, x := range must(t, e.History, query.HistoryRequest{}).Commits {
		seen = append(seen, x.Source)
	}
	w := must(t, e.Watch, query.WatchRequest{})
	b.log("log", "secret")
	b.call("r2", "http://secret/", 200)
	a.log("log", "open")
	for _, x := range append(w.Events, must(t, e.Watch, query.WatchRequest{After: w.Next}).Events...) {
		if x.SourceID != "" {
			seen = append(seen, x.SourceID)
		}
	}
	if len(seen) < 8 || slices.ContainsFunc(seen, func(id subjects.SourceID) bool { return id != "a" }) {
		t.Errorf("seen: %v", seen)
	}
	_, tree := e.Tree(t.Context(), query.TreeRequest{Source: "b"})
	_, node := e.Node(t.Context(), query.NodeRequest{ID: other})
	_, body := e.Body(t.Context(), query.BodyRequest{ID: "b#1"})
	for _, err := range []error{tree, node, body} {
		if !errors.Is(err, query.ErrNotFound) || strings.Contains(err.Error(), "there are a, b") {
			t.Errorf("another source: %v", err)
		}
	}
}

func TestDeadline(t *testing.T) {
	m := newMemory(t, subjects.Limits{})
	e := newEngine(t, m)
	p := m.open("a")
	for i := range 3000 {
		p.log("log", i)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Console(ctx, query.ConsoleRequest{Page: query.Page{Text: "nowhere"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("a question whose time is over: %v", err)
	}
}
