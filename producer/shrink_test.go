package producer

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/tree"
	"github.com/natscope/natscope/subjects/value"
)

const shrinkLimit = 8 << 10

func shrunk[T any](t *testing.T, plane subjects.Plane, topic string, v T) T {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out := shrink(plane, topic, data, shrinkLimit)
	if len(out) > shrinkLimit || !json.Valid(out) {
		t.Fatalf("%d bytes, valid %v", len(out), json.Valid(out))
	}
	if strings.Contains(string(out), `"__natscope":"truncated"`) {
		t.Fatalf("%s/%s became a marker: %s", plane, topic, out)
	}
	var got T
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	return got
}

func long(n int) string { return strings.Repeat("long text \" é ", n/14+1) }

func quoted(s string) json.RawMessage {
	b, _ := json.Marshal(s)
	return b
}

func TestShrinkKeepsMeaning(t *testing.T) {
	m := shrunk(t, subjects.PlaneConsole, console.TopicMessage, console.Message{
		Type: "error", Args: []json.RawMessage{quoted("short"), quoted(long(64 << 10)), []byte(`{"a":` + string(quoted(long(64<<10))) + `}`), []byte(`[` + string(quoted(long(64<<10))) + `]`)},
		Stack: make([]network.Frame, 500),
	})
	if m.Type != "error" || string(m.Args[0]) != `"short"` || len(m.Args) != 4 || len(m.Stack) != shrunkFrames {
		t.Errorf("%+v", m)
	}
	for i, kind := range []value.Kind{value.String, value.String, value.Dehydrated, value.Dehydrated} {
		if v, err := value.Parse(m.Args[i]); err != nil || v.Kind != kind {
			t.Errorf("argument %d is %s: %v", i, v.Kind, err)
		}
	}
	many := shrunk(t, subjects.PlaneConsole, console.TopicMessage, console.Message{Type: "log", Args: slicesOf(5000, quoted(long(100)))})
	if len(many.Args) == 0 {
		t.Error("no arguments left")
	}
	x := shrunk(t, subjects.PlaneConsole, console.TopicException, console.Exception{Text: long(64 << 10), Value: quoted(long(64 << 10)), Line: 3})
	if x.Line != 3 || x.Text == "" {
		t.Errorf("%+v", x)
	}
	headers := slicesOf(3, network.Header{"X-Large", long(64 << 10)})
	s := shrunk(t, subjects.PlaneNet, network.TopicStart, network.Start{ID: "r1", Method: "GET", URL: "http://x/", Headers: headers})
	if s.ID != "r1" || s.URL != "http://x/" || len(s.Headers) != 4 || s.Headers[3][0] != "natscope-truncated" {
		t.Errorf("%+v", s)
	}
	r := shrunk(t, subjects.PlaneNet, network.TopicResponse, network.Response{ID: "r1", Status: 200, Headers: headers})
	if r.ID != "r1" || r.Status != 200 || len(r.Headers) != 4 {
		t.Errorf("%+v", r)
	}
	msg := shrunk(t, subjects.PlaneNet, network.TopicMessage, network.Message{ID: "r1", Data: long(64 << 10)})
	if msg.ID != "r1" || !strings.Contains(msg.Data, "bytes in all") {
		t.Errorf("%.100s", msg.Data)
	}
	b64 := shrunk(t, subjects.PlaneNet, network.TopicMessage, network.Message{ID: "r1", Base64: true, Data: strings.Repeat("QUJD", 1<<14)})
	if len(b64.Data)%4 != 0 || len(b64.Data) < 1000 {
		t.Errorf("%d characters of base64", len(b64.Data))
	}
	if e := shrunk(t, subjects.PlaneNet, network.TopicError, network.Error{ID: "r1", Text: long(64 << 10)}); e.ID != "r1" {
		t.Errorf("%+v", e)
	}
	if e := shrunk(t, subjects.PlaneNet, network.TopicEnd, network.End{ID: "r1", Bytes: 5, Error: long(64 << 10)}); e.Bytes != 5 {
		t.Errorf("%+v", e)
	}
}

func slicesOf[T any](n int, v T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = v
	}
	return out
}

func TestShrinkCutsTrailingBranches(t *testing.T) {
	root := tree.Node{ID: 1, Name: "app"}
	id := tree.NodeID(1)
	for g := range 50 {
		group := tree.Node{ID: id + 1, Name: fmt.Sprint("group", g)}
		id++
		for range 20 {
			id++
			group.Children = append(group.Children, tree.Node{ID: id, Name: "leaf", Attrs: []tree.Attr{{Name: "i", Value: "value"}}})
		}
		root.Children = append(root.Children, group)
	}
	s := shrunk(t, subjects.PlaneTree, tree.TopicSnapshot, tree.Snapshot{Version: 1, Revision: 9, Profile: tree.ProfileComponent, Root: &root})
	if !s.Truncated || s.Revision != 9 || len(s.Root.Children) < 2 {
		t.Fatalf("truncated %v, %d groups", s.Truncated, len(s.Root.Children))
	}
	for i, g := range s.Root.Children {
		if g.Name != fmt.Sprint("group", i) || i < len(s.Root.Children)-1 && len(g.Children) != 20 {
			t.Errorf("group %d is %s with %d leaves", i, g.Name, len(g.Children))
		}
	}
	var st tree.State
	data, _ := json.Marshal(s)
	if _, err := st.Apply(tree.TopicSnapshot, data, tree.IDsOf(1), tree.Limits{}, 0); err != nil {
		t.Error(err)
	}
}

func FuzzShrink(f *testing.F) {
	f.Add("console", "message", []byte(`{"type":"log","args":["x",{}],"stack":[{}]}`), 300)
	f.Add("net", "start", []byte(`{"id":"r","headers":[["a","b"]]}`), 300)
	f.Add("tree", "snapshot", []byte(`{"root":{"id":1,"name":"a","children":[{"id":2,"name":"b"}]}}`), 300)
	f.Add("event", "x\xff", []byte(`"text"`), 256)
	f.Fuzz(func(t *testing.T, plane, topic string, data []byte, limit int) {
		if !validJSON(data) {
			return
		}
		limit = max(limit, 1024)
		out := shrink(subjects.Plane(plane), topic, data, limit)
		if !validJSON(out) || !utf8.Valid(out) || len(out) > limit {
			t.Fatalf("%d bytes for a limit of %d: %q", len(out), limit, out)
		}
	})
}
