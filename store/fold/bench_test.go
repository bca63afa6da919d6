package fold_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
)

// BenchmarkFoldTreeChange folds frames that each change one node of a tree, as
// they come from the stream, with a history that is full. The time must depend
// neither on the size of the tree nor on its depth: sixty of them a second are
// a small part of a processor however large the tree is.
func BenchmarkFoldTreeChange(b *testing.B) {
	limits := subjects.Limits{CordisNodes: 200_000}
	branch := func(from, size int) string {
		nodes := make([]string, size)
		for i := range nodes {
			nodes[i] = `{"id":` + itoa(from+i+1) + `,"name":"leaf"}`
		}
		return `{"id":` + itoa(from) + `,"name":"branch","children":[` + strings.Join(nodes, ",") + `]}`
	}
	components := func(size int) string {
		var branches []string
		for id := 10; id < size; id += 100 {
			branches = append(branches, branch(id, 99))
		}
		return `{"version":1,"profile":"component","revision":1,"root":{"id":1,"name":"App","children":[` + strings.Join(branches, ",") + `]}}`
	}
	plugins := func(count int) string {
		all := make([]string, count)
		for i := range all {
			all[i] = fiber(2 + 2*i)
		}
		return cordis(1, context(1, all...))
	}
	nested := context(502)
	for id := 500; id > 0; id -= 2 {
		nested = strings.Replace(context(id), `"children":[]`, `"children":[`+strings.Replace(fiber(id+1), context(id+2), nested, 1)+`]`, 1)
	}
	update := func(i int) string {
		return fmt.Sprintf(`{"op":"update","node":{"id":%d,"name":"leaf","values":{"count":%d}}}`, 11+i%50, i)
	}
	// A plugin starts, and stops with the next record.
	plugin := func(at int) func(int) string {
		return func(i int) string {
			if i%2 == 1 {
				return `{"op":"remove","id":1000000}`
			}
			return `{"op":"add","parent":` + itoa(at) + `,"node":` + fiber(1_000_000) + `}`
		}
	}
	for _, c := range []struct {
		name, tree string
		op         func(int) string
	}{
		{"component 100", components(100), update},
		{"component 1000", components(1000), update},
		{"component 10000", components(10_000), update},
		{"fibers 100", plugins(100), plugin(3)},
		{"fibers 1000", plugins(1000), plugin(3)},
		{"fibers 5000", plugins(5000), plugin(3)},
		{"nested 250", cordis(1, nested), plugin(502)},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := newStream(b)
			s.put("a", "g1", life, open("r"))
			s.put("a", "g1", trees, rec("snapshot", c.tree))
			space := fold.New("dev", limits)
			for i, m := range s.messages {
				space.Apply(m.subject, subjects.StreamSeq(i+1), m.header, m.data)
			}
			if space.Source("a").Tree.Root == nil {
				b.Fatalf("no tree: %+v", space.Source("a").Faults)
			}
			messages := newStream(b)
			messages.next[subjectOf("a", "g1", trees)] = 2
			const round = 2000
			for i := range round {
				messages.put("a", "g1", trees, rec("ops", fmt.Sprintf(`{"revision":%d,"commit":%d,"ops":[%s]}`, i+2, i+1, c.op(i))))
			}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if n == round {
					// The same generation again, so that the same messages fit once more.
					b.StopTimer()
					space.Remove("a")
					for i, m := range s.messages {
						space.Apply(m.subject, subjects.StreamSeq(i+1), m.header, m.data)
					}
					n = 0
					b.StartTimer()
				}
				m := messages.messages[n]
				if changes := space.Apply(m.subject, subjects.StreamSeq(100+n), m.header, m.data); len(changes) != 1 || changes[0].Kind != fold.TreeChanged {
					b.Fatalf("message %d: %q %+v", n, kinds(changes), space.Source("a").Faults)
				}
				n++
			}
		})
	}
}
