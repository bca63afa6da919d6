package tree

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func ctx(id NodeID, children ...Node) Node { return ContextNode(id, object(id), children...) }

// fib makes a Fiber whose uid is its id, with a Context of the next id.
func fib(id NodeID, children ...Node) Node {
	return FiberNode(id, object(id), uint64(id), ctx(id+1, children...))
}

func with(n Node, f func(*Node)) Node {
	f(&n)
	return n
}

func cordisOf(revision uint64, root Node) Snapshot {
	return Snapshot{Version: SchemaVersion, Profile: ProfileCordis, Revision: revision, Root: &root}
}

// cordisClient has the tree 1(2(3(4(5) 6)) 7).
func cordisClient(t testing.TB) *client {
	k := newClient(t)
	k.apply(TopicSnapshot, cordisOf(1, ctx(1, fib(2, fib(4), ctx(6)), ctx(7))))
	return k
}

func TestCordisSnapshots(t *testing.T) {
	for rule, c := range map[string]struct {
		root Node
		want error
		says string
	}{
		"the root is a context":             {fib(1), ErrPayload, `kind of the root 1 is "fiber"`},
		"kinds are context and fiber":       {ctx(1, with(ctx(2), func(n *Node) { n.Kind = "service" })), ErrPayload, `kind of node 2 is "service"`},
		"kinds are not empty":               {ctx(1, with(ctx(2), func(n *Node) { n.Kind = "" })), ErrPayload, `kind of node 2 is ""`},
		"a context is called Context":       {ctx(1, with(ctx(2), func(n *Node) { n.Name = "context" })), ErrPayload, `name of node 2 is "context"`},
		"a fiber is called Fiber":           {ctx(1, with(fib(2), func(n *Node) { n.Name = "logger" })), ErrPayload, `name of node 2 is "logger"`},
		"a context has no attributes":       {ctx(1, with(ctx(2), func(n *Node) { n.Attrs = []Attr{{"uid", "5"}} })), ErrPayload, "attrs of node 2: a context has none"},
		"a fiber has a uid":                 {ctx(1, with(fib(2), func(n *Node) { n.Attrs = nil })), ErrPayload, "attrs of node 2: a fiber has uid"},
		"a fiber has only a uid":            {ctx(1, with(fib(2), func(n *Node) { n.Attrs = append(n.Attrs, Attr{"state", "ACTIVE"}) })), ErrPayload, "attrs of node 2"},
		"a fiber has no other attribute":    {ctx(1, with(fib(2), func(n *Node) { n.Attrs = []Attr{{"id", "5"}} })), ErrPayload, "attrs of node 2"},
		"a uid is at least 1":               {ctx(1, with(fib(2), func(n *Node) { n.Attrs[0].Value = "0" })), ErrPayload, `uid of node 2 is "0"`},
		"a uid is whole":                    {ctx(1, with(fib(2), func(n *Node) { n.Attrs[0].Value = "1.5" })), ErrPayload, `uid of node 2 is "1.5"`},
		"a uid has no sign":                 {ctx(1, with(fib(2), func(n *Node) { n.Attrs[0].Value = "+1" })), ErrPayload, `uid of node 2 is "+1"`},
		"a uid is one that JavaScript has":  {ctx(1, with(fib(2), func(n *Node) { n.Attrs[0].Value = "9007199254740992" })), ErrPayload, "uid of node 2"},
		"uids are unique":                   {ctx(1, fib(2), with(fib(4), func(n *Node) { n.Attrs[0].Value = "2" })), ErrPayload, "uid 2 of node 4 is that of node 2 too"},
		"objects are unique":                {ctx(1, fib(2), with(ctx(4), func(n *Node) { n.Object = "o3" })), ErrPayload, `object "o3" of node 4 is that of node 3 too`},
		"a node has an object":              {ctx(1, with(ctx(2), func(n *Node) { n.Object = "" })), ErrPayload, "object of node 2 has 0 bytes"},
		"an object is short":                {ctx(1, with(ctx(2), func(n *Node) { n.Object = ObjectRef(strings.Repeat("x", 257)) })), ErrPayload, "object of node 2 has 257 bytes"},
		"a fiber has a context":             {ctx(1, with(fib(2), func(n *Node) { n.Children = nil })), ErrPayload, "children of node 2: a fiber has exactly one context"},
		"a fiber has one context":           {ctx(1, with(fib(2), func(n *Node) { n.Children = append(n.Children, ctx(4)) })), ErrPayload, "children of node 2"},
		"a fiber has no fiber":              {ctx(1, with(fib(2), func(n *Node) { n.Children = []Node{fib(4)} })), ErrPayload, "children of node 2"},
		"there is no text":                  {ctx(1, with(ctx(2), func(n *Node) { n.Text = "x" })), ErrPayload, `"text" of node 2`},
		"there are no values":               {ctx(1, with(ctx(2), func(n *Node) { n.Values = map[string]json.RawMessage{"v": []byte("1")} })), ErrPayload, `"values" of node 2`},
		"there are no kinds of values":      {ctx(1, with(ctx(2), func(n *Node) { n.ValueKinds = map[string]string{"v": "state"} })), ErrPayload, `"valueKinds" of node 2`},
		"there is nothing to write":         {ctx(1, with(ctx(2), func(n *Node) { n.Writable = []string{"v"} })), ErrPayload, `"writable" of node 2`},
		"there is no place":                 {ctx(1, with(ctx(2), func(n *Node) { n.Loc = "a.js:1" })), ErrPayload, `"loc" of node 2`},
		"there are no snippets":             {ctx(1, with(ctx(2), func(n *Node) { n.Snippets = []string{"s"} })), ErrPayload, `"snippets" of node 2`},
		"ids are unique":                    {ctx(1, ctx(2), with(ctx(2), func(n *Node) { n.Object = "x" })), ErrPayload, "node 2 is there twice"},
		"nodes are bounded":                 {fibers(8), ErrLimit, "more than 16 nodes"},
		"depth is bounded, in plugins":      {nested(6), ErrLimit, "node 13 is 7 levels deep, the limit is 6"},
		"depth is bounded without a plugin": {ctx(1, ctx(2, ctx(3, ctx(4, ctx(5, ctx(6, ctx(7))))))), ErrLimit, "node 7 is 7 levels deep"},
	} {
		t.Run(rule, func(t *testing.T) {
			for _, parts := range []bool{false, true} {
				k := cordisClient(t)
				k.limits = Limits{CordisNodes: 16, Depth: 6}
				was := content(&k.state)
				var err error
				if parts {
					list := placed(c.root)
					head := cordisOf(2, Node{})
					head.Root = nil
					k.apply(TopicBegin, head)
					if _, err = k.try(TopicNodes, Nodes{2, list}); err == nil {
						_, err = k.try(TopicCommit, Commit{2, len(list)})
					}
				} else {
					_, err = k.try(TopicSnapshot, cordisOf(2, c.root))
				}
				if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
					if !parts || !strings.Contains(fmt.Sprint(err), "node 2 is there twice") && !strings.Contains(fmt.Sprint(err), "more than 16 nodes") {
						t.Errorf("in parts %v: got %v, want %v that says %q", parts, err, c.want, c.says)
					}
				}
				if got := content(&k.state); got != was {
					t.Errorf("in parts %v: the last valid tree was\n%s\nand is\n%s", parts, was, got)
				}
			}
		})
	}
}

// TestCordisUnknownFields shows that a node with a field too many is refused on every way in.
func TestCordisUnknownFields(t *testing.T) {
	node := func(more string) string {
		return `{"name":"Context", "id" : 8,"kind":"context","object":"o8","attrs":[],"children":null` + more + `}`
	}
	inside := `{"id":1,"kind":"context","name":"Context","object":"o1","children":[` + node(`,"plugin":{"children":[{"a":"]}"}]}`) + `]}`
	for name, c := range map[string]struct{ topic, data string }{
		"snapshot":             {TopicSnapshot, `{"version":1,"profile":"cordis","revision":2,"root":` + inside + `}`},
		"add":                  {TopicOps, `{"revision":2,"ops":[{"op":"add","parent":1,"node":` + node(`,"plugin":1`) + `}]}`},
		"update":               {TopicOps, `{"revision":2,"ops":[{"op":"update","node":{"id":7,"kind":"context","name":"Context","object":"o7","plugin":true}}]}`},
		"another case":         {TopicOps, `{"revision":2,"ops":[{"op":"add","parent":1,"node":` + node(`,"Plugin":1`) + `}]}`},
		"a field in capitals":  {TopicOps, `{"revision":2,"ops":[{"op":"add","parent":1,"node":` + node(`,"KIND":"context"`) + `}]}`},
		"nodes":                {TopicNodes, `{"revision":3,"nodes":[{"node":` + node(`,"plugin":"\"}"`) + `}]}`},
		"below a snapshot's":   {TopicNodes, `{"revision":3,"nodes":[{"node":` + inside + `}]}`},
		"the last of an array": {TopicOps, `{"revision":2,"ops":[{"op":"remove","id":7},{"op":"add","parent":1,"node":` + node(`,"plugin":[]`) + `}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			k := cordisClient(t)
			head := cordisOf(3, Node{})
			head.Root = nil
			k.apply(TopicBegin, head)
			was := content(&k.state)
			_, err := k.try(c.topic, json.RawMessage(c.data))
			if err == nil || !strings.Contains(err.Error(), "a cordis node has no such field") || !strings.Contains(err.Error(), "of node 8") && !strings.Contains(err.Error(), "of node 7") {
				t.Errorf("the error is %v", err)
			}
			if content(&k.state) != was {
				t.Error("the tree changed")
			}
		})
	}
	// Around the nodes unknown fields are ignored, as everywhere.
	k := cordisClient(t)
	k.apply(TopicSnapshot, json.RawMessage(`{"version":1,"profile":"cordis","revision":2,"future":{"plugin":1},"root":`+node("")+`}`))
	k.apply(TopicOps, json.RawMessage(`{"revision":3,"future":1,"ops":[{"op":"add","parent":8,"future":2,"node":{"id":9,"kind":"context","name":"Context","object":"o9"}}]}`))
}

func TestCordisOps(t *testing.T) {
	for name, c := range map[string]struct {
		ops []Op
		// want is the shape, or says why the ops are refused.
		want string
	}{
		"a plugin starts":                    {[]Op{add(1, 7, fib(8, ctx(10)))}, "1(2(3(4(5) 6)) 7 8(9(10)))"},
		"a plugin stops":                     {[]Op{drop(2)}, "1(7)"},
		"a plugin stops and another starts":  {[]Op{drop(4), add(3, 0, with(fib(8), func(n *Node) { n.Attrs[0].Value = "4"; n.Object = "o4" }))}, "1(2(3(8(9) 6)) 7)"},
		"a plugin moves":                     {[]Op{move(4, 7, 0)}, "1(2(3(6)) 7(4(5)))"},
		"an object is another":               {[]Op{change(with(ctx(7), func(n *Node) { n.Object = "new" })), add(1, 0, with(ctx(8), func(n *Node) { n.Object = "o7" }))}, "1(8 2(3(4(5) 6)) 7)"},
		"objects that were added in between": {[]Op{add(1, 0, ctx(8)), change(with(ctx(8), func(n *Node) { n.Object = "x" })), drop(8), add(1, 0, with(ctx(9), func(n *Node) { n.Object = "x" }))}, "1(9 2(3(4(5) 6)) 7)"},
		"a fiber gets another context":       {[]Op{add(2, 0, ctx(8))}, "children of node 2"},
		"a context is put behind the one":    {[]Op{move(7, 2, 3)}, "children of node 2"},
		"a fiber loses its context":          {[]Op{drop(3)}, "children of node 2"},
		"a context leaves its fiber":         {[]Op{move(5, 1, 0)}, "children of node 4"},
		"a context moves within its fiber":   {[]Op{move(5, 4, 0)}, "children of node 4"},
		"a fiber without a context":          {[]Op{add(1, 0, with(fib(8), func(n *Node) { n.Children = nil }))}, "children of node 8"},
		"a fiber that gets one later":        {[]Op{add(1, 0, with(fib(8), func(n *Node) { n.Children = nil })), add(8, 0, ctx(9))}, "children of node 8"},
		"a uid that is taken":                {[]Op{add(1, 0, with(fib(8), func(n *Node) { n.Attrs[0].Value = "4" }))}, "uid 4 of node 8 is that of node 4 too"},
		"a uid twice in one add":             {[]Op{add(1, 0, fib(8, with(fib(10), func(n *Node) { n.Attrs[0].Value = "8" })))}, "uid 8 of node 10 is that of node 8 too"},
		"an object that is taken":            {[]Op{add(1, 0, with(ctx(8), func(n *Node) { n.Object = "o5" }))}, `object "o5" of node 8 is that of node 5 too`},
		"an update to a taken object":        {[]Op{change(with(ctx(7), func(n *Node) { n.Object = "o6" }))}, `object "o6" of node 7 is that of node 6 too`},
		"an update to a taken uid":           {[]Op{change(with(fib(4), func(n *Node) { n.Attrs[0].Value, n.Children = "2", nil }))}, "uid 2 of node 4 is that of node 2 too"},
		"an update with values":              {[]Op{change(with(ctx(7), func(n *Node) { n.Values = map[string]json.RawMessage{"v": []byte("1")} }))}, `"values" of node 7`},
		"another kind":                       {[]Op{add(1, 0, Node{ID: 8, Kind: "service", Name: "Service", Object: "x"})}, `kind of node 8 is "service"`},
		"too many":                           {[]Op{add(1, 0, fib(20, fib(22), fib(24), fib(26)))}, "more than 12 nodes"},
		"too deep":                           {[]Op{add(5, 0, ctx(8, ctx(9)))}, "node 9 is 5 levels deep, the limit is 4"},
		"moved too deep":                     {[]Op{add(7, 0, ctx(8)), move(2, 8, 0)}, "more than 4 levels deep"},
	} {
		t.Run(name, func(t *testing.T) {
			k := cordisClient(t)
			k.limits = Limits{CordisNodes: 12, Depth: 4}
			was := content(&k.state)
			_, err := k.try(TopicOps, Ops{Revision: 2, Ops: c.ops})
			if got := shape(k.state.Root); err == nil && got != c.want {
				t.Errorf("the tree is %s, want %s", got, c.want)
			}
			if err == nil {
				return
			}
			if !errors.Is(err, ErrRevision) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if got := content(&k.state); got != was {
				t.Errorf("the tree was\n%s\nand is\n%s", was, got)
			}
			// What was refused left no name behind.
			k.limits = Limits{}
			k.apply(TopicOps, Ops{Revision: 2, Ops: []Op{add(1, 0, fib(30)), drop(4)}})
		})
	}
}

// TestCordisOpsAtRandom applies random ops, many of them wrong, to a Cordis
// tree; the client checks after each that the rules hold and the names are right.
func TestCordisOpsAtRandom(t *testing.T) {
	applied, refused := 0, 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 5))
		k := cordisClient(t)
		k.limits = Limits{CordisNodes: 60, Depth: 12, Commits: 5}
		next := NodeID(10)
		for range 60 {
			var ops []Op
			ids := slices.Sorted(maps.Keys(k.state.byID))
			for range 1 + r.IntN(2) {
				id, other := ids[r.IntN(len(ids))], ids[r.IntN(len(ids))]
				switch r.IntN(8) {
				case 0:
					ops = append(ops, drop(id))
				case 1:
					ops = append(ops, move(id, other, 0))
				case 2:
					ops = append(ops, change(with(ctx(id), func(n *Node) { n.Object = object(other + 1000) })))
				case 3:
					ops = append(ops, add(other, 0, with(fib(next), func(n *Node) { n.Attrs[0].Value = fmt.Sprint(1 + r.IntN(30)) })))
					next += 2
				case 4, 5:
					ops = append(ops, add(other, 0, ctx(next)))
					next++
				default:
					ops = append(ops, add(other, 0, fib(next, ctx(next+2))))
					next += 3
				}
			}
			was := content(&k.state)
			if _, err := k.try(TopicOps, Ops{Revision: k.state.Revision + 1, Commit: 1, Ops: ops}); err != nil {
				refused++
				if content(&k.state) != was {
					t.Fatalf("seed %d: %v, yet the tree changed", seed, err)
				}
				continue
			}
			applied++
		}
	}
	if applied < 300 || refused < 300 {
		t.Errorf("%d records were applied and %d refused: the test shows too little", applied, refused)
	}
}

// TestPeersLimits shows the trees that the peer cannot show: with the limits
// that a source has by default, and with more nodes allowed.
func TestPeersLimits(t *testing.T) {
	defaults := Limits{Nodes: 100_000, CordisNodes: 2048, Depth: 256}
	k := newClient(t)
	k.limits = defaults
	k.apply(TopicSnapshot, cordisOf(1, nested(250)))
	if k.state.Len() != 501 || k.state.level(k.state.Node(501)) != 251 {
		t.Errorf("250 nested plugins have %d nodes", k.state.Len())
	}
	k.apply(TopicOps, Ops{Revision: 2, Ops: []Op{add(501, 0, fib(600, fib(602, fib(604))))}})

	many := fibers(5000)
	if dropped := Truncate(ProfileCordis, &many, defaults); dropped != 10_001-2047 {
		t.Errorf("of 10 001 nodes %d are dropped", dropped)
	}
	snap := cordisOf(3, many)
	snap.Truncated = true
	k.apply(TopicSnapshot, snap)
	if k.state.Len() != 2047 || !k.state.Truncated {
		t.Errorf("%d nodes", k.state.Len())
	}

	k = newClient(t)
	k.limits = Limits{Nodes: 100_000, CordisNodes: 20_000, Depth: 256}
	k.apply(TopicSnapshot, cordisOf(1, fibers(5000)))
	if k.state.Len() != 10_001 {
		t.Errorf("%d nodes", k.state.Len())
	}
}

// FuzzExact compares the check for unknown fields with a decoder that knows nodes only.
func FuzzExact(f *testing.F) {
	for _, seed := range []string{
		`{"id":1,"kind":"context","name":"Context","object":"o","attrs":[["uid","\"}"]],"children":[{"id":2},{"id":3,"children":[]}]}`,
		`{"id":1,"plugin":{"id":5},"children":[{"id":2,"x":[]}]}`, `{"children":[null,{"children":null,"":1}]}`, `null`, ` { } `, `{"children":[{"a\u0062":1}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var n Node
		if json.Unmarshal(data, &n) != nil {
			return
		}
		err := exactNode(data)
		if err != nil && !errors.Is(err, ErrPayload) {
			t.Fatal(err)
		}
		if known := onlyKnown(data); known != (err == nil) {
			t.Fatalf("known fields only: %v, the error is %v", known, err)
		}
	})
}

// onlyKnown says by another way whether a node has only the fields of a Cordis node.
func onlyKnown(data []byte) bool {
	d := json.NewDecoder(strings.NewReader(string(data)))
	return knownValue(d)
}

func knownValue(d *json.Decoder) bool {
	t, err := d.Token()
	if err != nil || t != json.Delim('{') {
		return true
	}
	ok := true
	for d.More() {
		key, _ := d.Token()
		switch key {
		case "children":
			if t, _ := d.Token(); t == json.Delim('[') {
				for d.More() {
					ok = knownValue(d) && ok
				}
				_, _ = d.Token()
			}
			continue
		case "id", "kind", "name", "attrs", "object":
		default:
			ok = false
		}
		var skipped json.RawMessage
		_ = d.Decode(&skipped)
	}
	_, _ = d.Token()
	return ok
}
