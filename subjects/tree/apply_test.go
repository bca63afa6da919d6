package tree

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// TestSnapshotRevisions is case C5: a doubled snapshot is a no-op, an older one is ignored.
func TestSnapshotRevisions(t *testing.T) {
	k := newClient(t)
	k.apply(TopicSnapshot, snapshotOf(7, n(1, n(2))))
	if changes := k.apply(TopicSnapshot, snapshotOf(7, n(1, n(2)))); len(changes) > 0 {
		t.Errorf("the same snapshot twice gives the changes %s", describe(changes))
	}
	k.apply(TopicSnapshot, snapshotOf(8, n(1, n(3))))
	if changes := k.apply(TopicSnapshot, snapshotOf(7, n(1, n(2)))); len(changes) > 0 {
		t.Errorf("revision 7 behind 8 gives the changes %s", describe(changes))
	}
	if got := shape(k.state.Root); got != "1(3)" || k.state.Revision != 8 {
		t.Errorf("the tree is %s of revision %d", got, k.state.Revision)
	}
}

func TestSnapshotRefused(t *testing.T) {
	for name, c := range map[string]struct {
		data string
		want error
		says string
	}{
		"no JSON":            {`{`, ErrPayload, "snapshot"},
		"no object":          {`[]`, ErrPayload, "snapshot"},
		"no root":            {`{"version":1,"revision":2}`, ErrPayload, "root is missing"},
		"another version":    {`{"version":3,"revision":2,"root":{"id":1,"name":"x"}}`, ErrPayload, "version 3, this reader has version 1"},
		"no revision":        {`{"version":1,"root":{"id":1,"name":"x"}}`, ErrPayload, "revision is 0"},
		"a negative id":      {`{"version":1,"revision":2,"root":{"id":-1,"name":"x"}}`, ErrPayload, "id"},
		"no id":              {`{"version":1,"revision":2,"root":{"name":"x"}}`, ErrPayload, "no id"},
		"no name":            {`{"version":1,"revision":2,"root":{"id":1}}`, ErrPayload, "node 1 has no name"},
		"an id twice":        {`{"version":1,"revision":2,"root":{"id":1,"name":"x","children":[{"id":1,"name":"x"}]}}`, ErrPayload, "node 1 is there twice"},
		"a child of null":    {`{"version":1,"revision":2,"root":{"id":1,"name":"x","children":[null]}}`, ErrPayload, "no id"},
		"an odd attribute":   {`{"version":1,"revision":2,"root":{"id":1,"name":"x","attrs":[["a"]]}}`, ErrPayload, "[name, value] pair"},
		"a nameless attr":    {`{"version":1,"revision":2,"root":{"id":1,"name":"x","attrs":[["","v"]]}}`, ErrPayload, "[name, value] pair"},
		"a number attribute": {`{"version":1,"revision":2,"root":{"id":1,"name":"x","attrs":[["a",1]]}}`, ErrPayload, "attrs"},
		"too many nodes":     {`{"version":1,"revision":2,"root":{"id":1,"name":"x","children":[{"id":2,"name":"x"},{"id":3,"name":"x"},{"id":4,"name":"x"},{"id":5,"name":"x"}]}}`, ErrLimit, "more than 4 nodes"},
		"too many of cordis": {`{"version":1,"revision":2,"profile":"cordis","root":{"id":1,"kind":"context","name":"Context","object":"a","children":[{"id":2,"kind":"context","name":"Context","object":"b"},{"id":3,"kind":"context","name":"Context","object":"c"},{"id":4,"kind":"context","name":"Context","object":"d"}]}}`, ErrLimit, "more than 3 nodes"},
		"too deep":           {`{"version":1,"revision":2,"root":{"id":1,"name":"x","children":[{"id":2,"name":"x","children":[{"id":3,"name":"x","children":[{"id":4,"name":"x"}]}]}]}}`, ErrLimit, "node 4 is 4 levels deep, the limit is 3"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newClient(t)
			k.snapshot(n(1, n(2)))
			k.limits = Limits{Nodes: 4, CordisNodes: 3, Depth: 3}
			was := content(&k.state)
			changes, err := k.state.Apply(TopicSnapshot, json.RawMessage(c.data), IDsOf(9), k.limits, 0)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || changes != nil {
				t.Errorf("got %v, want %v that says %q", err, c.want, c.says)
			}
			if got := content(&k.state); got != was {
				t.Errorf("the tree was\n%s\nand is\n%s", was, got)
			}
		})
	}
}

// TestSnapshotTolerates shows what is ignored.
func TestSnapshotTolerates(t *testing.T) {
	var s State
	data := `{"version":1,"revision":1,"profile":"hologram","future":{},"registry":"r","truncated":true,
		"root":{"id":1,"name":"x","kind":"odd","future":[1],"attrs":[["a","1"],["a","2"]],"children":null,"values":{"v":{"__natscope":"undefined"}}}}`
	if _, err := s.Apply(TopicSnapshot, json.RawMessage(data), IDsOf(1), Limits{}, 0); err != nil {
		t.Fatal(err)
	}
	if s.Profile != "hologram" || s.Registry != "r" || !s.Truncated || s.Root.Kind != "odd" || len(s.Root.Attrs) != 2 {
		t.Errorf("the state is %+v", s)
	}
	if changes, err := s.Apply("hologram", json.RawMessage(`{`), IDsOf(2), Limits{}, 0); err != nil || changes != nil {
		t.Errorf("an unknown topic gives %v and the changes %s", err, describe(changes))
	}
}

// TestIDsRunOut shows that a message that adds more nodes than it has ids for changes nothing.
func TestIDsRunOut(t *testing.T) {
	root, err := json.Marshal(snapshotOf(2, wideTree(1<<idBits+2, func(i int) int { return i })))
	if err != nil {
		t.Fatal(err)
	}
	k := newClient(t)
	k.snapshot(n(1, n(2)))
	was := content(&k.state)
	if _, err := k.state.Apply(TopicSnapshot, root, IDsOf(2), Limits{}, 0); !errors.Is(err, ErrLimit) {
		t.Errorf("the error is %v", err)
	}
	if content(&k.state) != was {
		t.Error("the tree changed")
	}
	ids := IDsOf(7)
	first, err := ids.Take()
	if err != nil || first != 7<<idBits || first < FirstID {
		t.Errorf("the first id is %d, %v", first, err)
	}
}

// FuzzApply applies arbitrary records, in arbitrary order, and checks the invariants and a strict client.
func FuzzApply(f *testing.F) {
	f.Add([]byte("snapshot\n" + `{"version":1,"revision":1,"root":{"id":1,"name":"a","children":[{"id":2,"name":"b"}]}}` +
		"\nops\n" + `{"revision":2,"ops":[{"op":"remove","id":2},{"op":"add","parent":1,"node":{"id":3,"name":"c"}},{"op":"move","id":3,"parent":1},{"op":"update","node":{"id":3,"name":"c","text":"t"}}]}`))
	f.Add([]byte("begin\n" + `{"version":1,"revision":1}` + "\nnodes\n" + `{"revision":1,"nodes":[{"node":{"id":1,"name":"a"}},{"parent":1,"node":{"id":2,"name":"b"}}]}` + "\ncommit\n" + `{"revision":1,"count":2}`))
	f.Add([]byte("snapshot\n" + `{"version":1,"revision":1,"root":{"id":1,"name":"a","children":[{"id":2,"name":"b","children":[{"id":3,"name":"c"}]}]}}` +
		"\nops\n" + `{"revision":2,"ops":[{"op":"add","parent":1,"node":{"id":4,"name":"d"}},{"op":"move","id":3,"parent":4},{"op":"remove","id":2}]}` +
		"\nsnapshot\n" + `{"version":1,"revision":9,"root":{"id":1,"name":"a","children":[{"id":3,"name":"c","children":[{"id":2,"name":"b"}]}]}}`))
	f.Add([]byte("snapshot\n" + `{"version":1,"revision":1,"root":{"id":1,"name":"a","values":{"v":{"__natscope":"set","values":[ 1 ]},"w":"x"},"writable":["v"],"attrs":[["a","1"],["a","2"]]}}` +
		"\nops\n" + `{"revision":2,"ops":[{"op":"update","node":{"id":1,"name":"a","values":{"v":[1, 2],"u":null}}},{"op":"add","parent":1,"node":{"id":2,"name":"b","values":{"v":{"__natscope":"map"}}}}]}`))
	for _, revision := range []string{"1", "2"} {
		f.Add([]byte("snapshot\n" + `{"version":1,"profile":"cordis","revision":1,"root":{"id":1,"kind":"context","name":"Context","object":"a","children":[{"id":2,"kind":"fiber","name":"Fiber","object":"b","attrs":[["uid","1"]],"children":[{"id":3,"kind":"context","name":"Context","object":"c"}]}]}}` +
			"\nops\n" + `{"revision":` + revision + `,"ops":[{"op":"remove","id":2},{"op":"add","parent":1,"node":{"id":4,"kind":"fiber","name":"Fiber","object":"b","attrs":[["uid","1"]],"children":[{"id":5,"kind":"context","name":"Context","object":"c"}]}},{"op":"move","id":4,"parent":1},{"op":"update","node":{"id":1,"kind":"context","name":"Context","object":"d"}}]}` +
			"\nops\n" + `{"revision":3,"ops":[{"op":"add","parent":5,"node":{"id":6,"kind":"context","name":"Context","object":"e","plugin":"x"}},{"op":"remove","id":5}]}`))
	}
	limits := Limits{Nodes: 40, CordisNodes: 20, Depth: 8, Commits: 3}
	f.Fuzz(func(t *testing.T, data []byte) {
		k := newClient(t)
		lines := strings.Split(string(data), "\n")
		for i := 0; i+1 < len(lines); i += 2 {
			if lines[i] == "reset" {
				k.state.Reset(len(lines[i+1]) > 0)
				continue
			}
			was := content(&k.state)
			changes, err := k.state.Apply(lines[i], json.RawMessage(lines[i+1]), IDsOf(uint64(i+1)), limits, float64(i))
			if err != nil && (changes != nil || content(&k.state) != was) {
				t.Fatalf("%v, yet the tree changed", err)
			}
			if err != nil && !errors.Is(err, ErrPayload) && !errors.Is(err, ErrLimit) && !errors.Is(err, ErrRevision) {
				t.Fatalf("the error %v is none of this package", err)
			}
			if err := checkState(&k.state, limits); err != nil {
				t.Fatal(err)
			}
			if err := k.model.play(changes); err != nil {
				t.Fatalf("%v: %s", err, describe(changes))
			}
			if err := k.model.equals(&k.state); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// FuzzRecords applies valid records in an arbitrary order: each byte chooses one.
func FuzzRecords(f *testing.F) {
	type record struct {
		topic   string
		payload any
	}
	records := []record{
		{TopicSnapshot, snapshotOf(1, example())},
		{TopicSnapshot, snapshotOf(3, n(1, n(8, n(2)), n(5)))},
		{TopicSnapshot, snapshotOf(5, n(9, n(1)))},
		{TopicOps, Ops{Revision: 2, Ops: []Op{add(1, 0, n(20, n(21))), move(2, 20, 0), drop(8)}}},
		{TopicOps, Ops{Revision: 4, Ops: []Op{change(withText(5, "x")), move(5, 2, 0)}}},
		{TopicOps, Ops{Revision: 6, Ops: []Op{add(1, 0, n(22)), add(22, 0, n(23)), drop(22)}}},
		{TopicBegin, begin(2)},
		{TopicBegin, begin(6)},
		{TopicNodes, Nodes{2, placed(n(1, n(2), n(30)))}},
		{TopicNodes, Nodes{6, placed(example())}},
		{TopicCommit, Commit{2, 3}},
		{TopicCommit, Commit{6, 8}},
	}
	f.Add([]byte{0, 3, 1, 4, 2, 7, 9, 11})
	f.Add([]byte{6, 8, 10, 12, 0, 13, 1, 3})
	f.Fuzz(func(t *testing.T, order []byte) {
		k := newClient(t)
		for _, b := range order[:min(len(order), 40)] {
			i := int(b) % (len(records) + 2)
			if i >= len(records) {
				k.state.Reset(i == len(records))
				continue
			}
			was := content(&k.state)
			if _, err := k.try(records[i].topic, records[i].payload); err != nil && content(&k.state) != was {
				t.Fatalf("%v, yet the tree changed", err)
			}
		}
	})
}
