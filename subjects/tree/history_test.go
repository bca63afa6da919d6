package tree

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/natscope/natscope/subjects/value"
)

// last writes the newest commit in short.
func last(s *State) string {
	if len(s.History.Commits) == 0 {
		return ""
	}
	var out []string
	for _, c := range s.History.Commits[len(s.History.Commits)-1].Changes {
		out = append(out, strings.TrimRight(fmt.Sprintf("%s %d %s %d %s %s %s>%s", c.Op, c.ID, c.Name, c.Nodes, c.Part, c.Symbol, c.From, c.To), "> "))
	}
	return strings.Join(out, "; ")
}

func TestHistory(t *testing.T) {
	counter := func(count, more string, attrs ...Attr) Node {
		v := values("count", count)
		if more != "" {
			v["more"] = json.RawMessage(more)
		}
		return Node{ID: 8, Name: "n8", Values: v, Attrs: attrs}
	}
	for name, c := range map[string]struct {
		before, ops []Op
		want        string
	}{
		"add":               {nil, []Op{add(1, 0, n(9, n(10)))}, "add 9 n9 2"},
		"remove":            {nil, []Op{drop(5)}, "remove 5 n5 3"},
		"move":              {nil, []Op{move(6, 2, 0)}, `move 6 n6 2   "n5 5">"n2 2"`},
		"move within":       {nil, []Op{move(3, 2, 4)}, `move 3 n3 1   "n2 2">"n2 2"`},
		"a value":           {[]Op{change(counter("1", ""))}, []Op{change(counter("2", ""))}, "update 8 n8 0 value count 1>2"},
		"a new value":       {[]Op{change(counter("1", ""))}, []Op{change(counter("1", `"x"`))}, `update 8 n8 0 value more >"x"`},
		"a value that went": {[]Op{change(counter("1", `[1, 2]`))}, []Op{change(counter("1", ""))}, "update 8 n8 0 value more [1,2]"},
		"values in order":   {[]Op{change(counter("1", "1"))}, []Op{change(counter("2", "2"))}, "update 8 n8 0 value count 1>2; update 8 n8 0 value more 1>2"},
		"an attribute":      {[]Op{change(counter("1", "", Attr{"a", "1"}, Attr{"b", "1"}))}, []Op{change(counter("1", "", Attr{"b", "2"}, Attr{"c", "3"}))}, `update 8 n8 0 attr b "1">"2"; update 8 n8 0 attr c >"3"; update 8 n8 0 attr a "1"`},
		"attributes turned": {[]Op{change(counter("1", "", Attr{"a", "1"}, Attr{"b", "1"}))}, []Op{change(counter("1", "", Attr{"b", "1"}, Attr{"a", "1"}))}, `update 8 n8 0`},
		"text":              {nil, []Op{change(withText(8, "x"))}, `update 8 n8 0 text  "">"x"`},
		"a place":           {nil, []Op{change(Node{ID: 8, Name: "n8", Loc: "a:1"})}, `update 8 n8 0 loc  "">"a:1"`},
		"what is writable":  {[]Op{change(counter("1", ""))}, []Op{change(with(counter("1", ""), func(n *Node) { n.Writable = []string{"count"} }))}, "update 8 n8 0"},
		"only the object":   {nil, []Op{change(Node{ID: 8, Name: "n8", Object: "new"})}, "add 1 n1 8"},
		"several":           {nil, []Op{drop(4), add(1, 0, n(9)), change(withText(8, "x")), move(7, 2, 0)}, `remove 4 n4 1; add 9 n9 1; update 8 n8 0 text  "">"x"; move 7 n7 1   "n6 6">"n2 2"`},
		"add and remove":    {nil, []Op{add(1, 0, n(9)), drop(9)}, "add 1 n1 8"},
	} {
		t.Run(name, func(t *testing.T) {
			k := exampleClient(t)
			if c.before != nil {
				k.ops(c.before...)
			}
			k.ops(c.ops...)
			if got := last(&k.state); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestHistoryOfSnapshots shows commits that come from comparing trees.
func TestHistoryOfSnapshots(t *testing.T) {
	k := newClient(t)
	k.snapshot(example())
	if got := last(&k.state); got != "add 1 n1 8" || !k.state.History.Commits[0].Snapshot {
		t.Errorf("the first commit is %q", got)
	}
	k.snapshot(example())
	if k.state.History.Count != 1 {
		t.Error("a snapshot that changed nothing is a commit")
	}
	k.inParts(3, n(1, n(2), withText(8, "x")), 2)
	if got, want := last(&k.state), `remove 5 n5 3; remove 4 n4 1; remove 3 n3 1; update 8 n8 0 text  "">"x"`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	k.apply(TopicOps, Ops{Revision: 4, Commit: 7, Ops: []Op{drop(2)}})
	k.state.Reset(false)
	k.snapshot(n(1))
	if got, want := last(&k.state), "remove 1 n1 2; add 1 n1 1"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for i, want := range []HistoryCommit{{Seq: 1, T: 1, Snapshot: true}, {Seq: 2, Snapshot: true}, {Seq: 3, Flush: 7}, {Seq: 4, Snapshot: true}} {
		c := k.state.History.Commits[i]
		if c.Seq != want.Seq || c.Flush != want.Flush || c.Snapshot != want.Snapshot || want.T != 0 && c.T != want.T || c.T == 0 {
			t.Errorf("commit %d is %+v, want %+v", i, c, want)
		}
	}
}

// TestHistoryOfCordis shows that a Fiber that came or went can be told from others.
func TestHistoryOfCordis(t *testing.T) {
	k := cordisClient(t)
	k.ops(drop(4), add(7, 0, fib(20)), add(7, 20, ctx(22)))
	if got, want := last(&k.state), `remove 4 Fiber 2 attr uid "4"; add 20 Fiber 2 attr uid >"20"; add 22 Context 1`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestHistorySince(t *testing.T) {
	k := newClient(t)
	k.limits = Limits{Commits: 3}
	for i := range 5 {
		k.snapshot(n(1, withText(2, fmt.Sprint(i))))
	}
	for _, c := range []struct {
		since     uint64
		want      string
		truncated bool
	}{{0, "3 4 5", true}, {1, "3 4 5", true}, {2, "3 4 5", false}, {3, "4 5", false}, {4, "5", false}, {5, "", false}, {99, "", false}} {
		commits, truncated := k.state.History.Since(c.since)
		var got []string
		for _, x := range commits {
			got = append(got, fmt.Sprint(x.Seq))
		}
		if strings.Join(got, " ") != c.want || truncated != c.truncated {
			t.Errorf("since %d: %v, truncated %v", c.since, got, truncated)
		}
	}
	// What a reader has stays as it is.
	commits, _ := k.state.History.Since(0)
	k.snapshot(n(1, withText(2, "new")))
	if commits[0].Seq != 3 || len(commits[0].Changes) != 1 {
		t.Errorf("the commit is %+v", commits[0])
	}
}

// TestHistoryIsBounded shows the bounds of values, commits and the whole.
func TestHistoryIsBounded(t *testing.T) {
	k := newClient(t)
	wide := n(1)
	for i := range 900 {
		wide.Children = append(wide.Children, withText(NodeID(i+2), ""))
	}
	k.snapshot(wide)
	for i := range wide.Children {
		wide.Children[i].Text = "x"
	}
	k.snapshot(wide)
	if c := k.state.History.Commits[1]; len(c.Changes)+c.More != 900 || len(c.Changes) != maxCommitChanges {
		t.Errorf("%d changes and %d more", len(c.Changes), c.More)
	}
	for i := range wide.Children {
		wide.Children[i].Text = strings.Repeat("é", 2000)
	}
	k.snapshot(wide)
	if c := k.state.History.Commits[2]; len(c.Changes)+c.More != 900 || c.size() > maxCommitBytes+64 || len(c.Changes) < 50 {
		t.Errorf("%d changes of %d bytes and %d more", len(c.Changes), c.size(), c.More)
	}
	wide.Children = wide.Children[:150]
	for i := range 30 {
		for j := range wide.Children {
			wide.Children[j].Text = strings.Repeat(fmt.Sprint(i%10), 1000)
		}
		k.snapshot(wide)
	}
	if h := &k.state.History; h.bytes > maxHistoryBytes || h.bytes < maxHistoryBytes/2 || h.Dropped == 0 || h.Count != 33 {
		t.Errorf("%d bytes, %d commits dropped of %d", h.bytes, h.Dropped, h.Count)
	}
}

// TestHistoryCuts shows what is left of large values and long texts.
func TestHistoryCuts(t *testing.T) {
	long := strings.Repeat("é", 3000)
	list := "[" + strings.Repeat("1,", 3000) + "1]"
	fields := `{"__natscope":"instance","name":"Cart","fields":{"a":"` + long + `"}}`
	for name, c := range map[string]struct {
		raw  string
		want func(v value.Value) bool
	}{
		"a string": {`"` + long + `"`, func(v value.Value) bool {
			return v.Kind == value.String && v.Partial && v.Size == 3000 && len(v.Text) == 1024
		}},
		"a string that was cut": {`{"__natscope":"string","head":"` + long + `","length":9000}`, func(v value.Value) bool {
			return v.Kind == value.String && v.Partial && v.Size == 9000
		}},
		"an array": {list, func(v value.Value) bool {
			return v.Kind == value.Dehydrated && v.Name == "array" && v.Size == 3001 && v.Opaque
		}},
		"a set": {`{"__natscope":"set","values":` + list + `}`, func(v value.Value) bool { return v.Kind == value.Dehydrated && v.Name == "set" }},
		"a struct": {fields, func(v value.Value) bool {
			return v.Kind == value.Dehydrated && v.Name == "object" && strings.HasPrefix(v.Text, "Cart {a: ")
		}},
		"an error": {`{"__natscope":"error","name":"TypeError","message":"` + long + `","stack":"` + long + `"}`, func(v value.Value) bool {
			return v.Kind == value.Error && v.Name == "TypeError" && len(v.Text) == 512 && v.Stack == ""
		}},
		"a number":    {`{"__natscope":"bigint","value":"` + strings.Repeat("1", 3000) + `"}`, func(v value.Value) bool { return v.Kind == value.String && strings.HasPrefix(v.Text, "111") }},
		"a short one": {`{"__natscope":"bigint","value":"1"}`, func(v value.Value) bool { return v.Kind == value.BigInt }},
	} {
		t.Run(name, func(t *testing.T) {
			k := newClient(t)
			k.snapshot(Node{ID: 1, Name: "n1", Values: values("v", c.raw)})
			k.snapshot(Node{ID: 1, Name: "n1", Values: values("v", "0")})
			x := k.state.History.Commits[1].Changes[0]
			v, err := value.Parse(x.From)
			if err != nil || !c.want(v) || string(x.To) != "0" || len(x.From) > 2*maxHistoryValue || !utf8.Valid(x.From) {
				t.Errorf("%d bytes: %+v, %v", len(x.From), v, err)
			}
		})
	}
	k := newClient(t)
	k.snapshot(Node{ID: 1, Name: long, Attrs: []Attr{{long, "1"}}, Text: long})
	k.snapshot(Node{ID: 1, Name: long, Attrs: []Attr{{long, "2"}}})
	if c := k.state.History.Commits[1]; c.size() > 4*maxHistoryValue || len(c.Changes) != 2 || c.Changes[0].Name != strings.Repeat("é", 100) {
		t.Errorf("the commit is %+v", c)
	}
}

// TestHistoryChains shows that every value that a commit changes from is the
// one that the commit before changed it to, and that playing the values of all
// commits gives those of the tree.
func TestHistoryChains(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 11))
		k := exampleClient(t)
		type place struct {
			backend BackendNodeID
			symbol  string
		}
		now := make(map[place]string)
		for range 80 {
			id := NodeID(1 + r.IntN(8))
			node := n(id)
			node.Values = make(map[string]json.RawMessage)
			for _, name := range []string{"a", "b", "c"} {
				if r.IntN(3) > 0 {
					node.Values[name] = json.RawMessage([]string{"1", "null", `"x"`, "[ 1]", `{"a":{"__natscope":"undefined"}}`}[r.IntN(5)])
				}
			}
			before := k.state.History.Count
			if len(k.ops(change(node))) == 0 {
				continue
			}
			if k.state.History.Count != before+1 {
				t.Fatalf("seed %d: %d commits for one record", seed, k.state.History.Count-before)
			}
			for _, c := range k.state.History.Commits[len(k.state.History.Commits)-1].Changes {
				p := place{c.Backend, c.Symbol}
				if now[p] != string(c.From) {
					t.Fatalf("seed %d: %s of node %d was %q, the commit says %q", seed, c.Symbol, c.ID, now[p], c.From)
				}
				now[p] = string(c.To)
			}
		}
		k.state.Root.Walk(func(e *Entry) bool {
			for _, name := range []string{"a", "b", "c"} {
				if got := now[place{e.Backend, name}]; got != string(e.Values[name]) {
					t.Fatalf("seed %d: %s of node %d is %q, by the history it is %q", seed, name, e.ID, e.Values[name], got)
				}
			}
			return true
		})
	}
}

// TestHistoryRestores rebuilds a history from what is stored of it, and goes on with both.
func TestHistoryRestores(t *testing.T) {
	k := newClient(t)
	k.limits = Limits{Commits: 20}
	for i := range 30 {
		k.snapshot(n(1, Node{ID: 2, Name: "n2", Values: values("v", fmt.Sprintf(`{"i": %d}`, i)), Attrs: []Attr{{"<", strings.Repeat("x", i*100)}}}))
	}
	h := History{Count: k.state.History.Count, Dropped: k.state.History.Dropped}
	for _, c := range k.state.History.Commits {
		data, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var again HistoryCommit
		if err := json.Unmarshal(data, &again); err != nil {
			t.Fatal(err)
		}
		h.Restore(again)
	}
	for _, x := range []*History{&h, &k.state.History} {
		x.add(HistoryCommit{Changes: []HistoryChange{{Op: OpAdd, ID: 1}}}, 20)
		if err := checkHistory(x, k.limits); err != nil {
			t.Error(err)
		}
	}
	one, _ := json.Marshal(h.Commits)
	two, _ := json.Marshal(k.state.History.Commits)
	if string(one) != string(two) || h.bytes != k.state.History.bytes || h.Dropped != 11 {
		t.Errorf("the restored history has %d commits of %d bytes\n%s\nwant\n%s", len(h.Commits), h.bytes, one, two)
	}
}
