package tree

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
)

// benchLimits are those of a source, wide enough for every tree here.
var benchLimits = Limits{Nodes: 200_000, CordisNodes: 200_000, Depth: 256, Commits: 200}

// branches makes a tree of branches with nine leaves each.
func branches(size int) Node {
	root := n(1)
	next := NodeID(2)
	for len(root.Children) < size/10 {
		branch := n(next)
		next++
		for range 9 {
			branch.Children = append(branch.Children, n(next))
			next++
		}
		root.Children = append(root.Children, branch)
	}
	return root
}

// benchState is a state with a tree, whose history is full.
func benchState(b *testing.B, profile Profile, root Node) *State {
	b.Helper()
	s := new(State)
	snap := snapshotOf(1, root)
	snap.Profile = profile
	list := placed(root)
	head := Snapshot{Version: SchemaVersion, Profile: profile, Revision: 1}
	seq := uint64(1)
	apply := func(topic string, payload any) {
		data, err := json.Marshal(payload)
		if err != nil {
			b.Fatal(err)
		}
		seq++
		if _, err := s.Apply(topic, data, IDsOf(seq), benchLimits, 0); err != nil {
			b.Fatal(err)
		}
	}
	apply(TopicBegin, head)
	for i := 0; i < len(list); i += 10_000 {
		apply(TopicNodes, Nodes{1, list[i:min(i+10_000, len(list))]})
	}
	apply(TopicCommit, Commit{1, len(list)})
	return s
}

// BenchmarkTreeOneChange changes one node of trees of different sizes, from the
// record as it travels to the history; the time must not depend on the size.
func BenchmarkTreeOneChange(b *testing.B) {
	for _, size := range []int{100, 1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s := benchState(b, ProfileComponent, branches(size))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				id := 2 + i%10
				data := `{"revision":` + strconv.FormatUint(s.Revision+1, 10) + `,"commit":1,"ops":[{"op":"update","node":{"id":` + strconv.Itoa(id) +
					`,"name":"n` + strconv.Itoa(id) + `","values":{"count":` + strconv.Itoa(i) + `,"last":{"a":1}}}}]}`
				if _, err := s.Apply(TopicOps, json.RawMessage(data), IDsOf(uint64(i+1000)), benchLimits, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCordisPlugin starts and stops one plugin in Cordis trees of
// different sizes and shapes; the time must depend on neither.
func BenchmarkCordisPlugin(b *testing.B) {
	for _, c := range []struct {
		name string
		root Node
		// at is the Context of the new plugin, after its last child.
		at, after NodeID
	}{
		{"100 fibers", fibers(100), 1, 200},
		{"1000 fibers", fibers(1000), 1, 2000},
		{"5000 fibers", fibers(5000), 1, 10_000},
		{"50000 fibers", fibers(50_000), 1, 100_000},
		{"nesting of 250", nested(250), 501, 0},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := benchState(b, ProfileCordis, c.root)
			next := 1_000_000
			seq := uint64(1000)
			apply := func(op string) {
				seq++
				data := `{"revision":` + strconv.FormatUint(s.Revision+1, 10) + `,"ops":[` + op + `]}`
				if _, err := s.Apply(TopicOps, json.RawMessage(data), IDsOf(seq), benchLimits, 0); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				id := strconv.Itoa(next)
				apply(`{"op":"add","parent":` + strconv.Itoa(int(c.at)) + `,"after":` + strconv.Itoa(int(c.after)) + `,"node":{"id":` + id + `,"kind":"fiber","name":"Fiber","object":"f` + id + `","attrs":[["uid","` + id +
					`"]],"children":[{"id":` + strconv.Itoa(next+1) + `,"kind":"context","name":"Context","object":"c` + id + `"}]}}`)
				apply(`{"op":"remove","id":` + id + `}`)
				next += 2
			}
		})
	}
}

// BenchmarkCordisSnapshot reads a whole tree of 5 000 fibers that is the same
// but for one, as a source sends it that knows no ops.
func BenchmarkCordisSnapshot(b *testing.B) {
	s := benchState(b, ProfileCordis, fibers(4999))
	root := [2]Node{fibers(4999), fibers(5000)}
	var records [2][]byte
	for i := range root {
		var err error
		if records[i], err = json.Marshal(root[i]); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(records[0])))
	for i := 1; b.Loop(); i++ {
		data := `{"version":1,"profile":"cordis","revision":` + strconv.Itoa(i+1) + `,"root":` + string(records[i%2]) + `}`
		if _, err := s.Apply(TopicSnapshot, json.RawMessage(data), IDsOf(uint64(i+1000)), benchLimits, 0); err != nil {
			b.Fatal(err)
		}
	}
}

// fibers makes a Cordis tree with so many fibers below its root.
func fibers(count int) Node {
	root := ContextNode(1, "o1")
	for i := range count {
		id := NodeID(2 + 2*i)
		root.Children = append(root.Children, FiberNode(id, object(id), uint64(i+1), ContextNode(id+1, object(id+1))))
	}
	return root
}

// nested makes a Cordis tree of plugins that each start the next one.
func nested(depth int) Node {
	x := ContextNode(NodeID(2*depth+1), object(NodeID(2*depth+1)))
	for i := depth; i > 0; i-- {
		id := NodeID(2 * i)
		x = ContextNode(id-1, object(id-1), FiberNode(id, object(id), uint64(i), x))
	}
	return x
}

func object(id NodeID) ObjectRef { return ObjectRef("o" + strconv.FormatUint(uint64(id), 10)) }
