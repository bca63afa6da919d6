package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/natscope/natscope/store/internal/natstest"
	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/tree"
)

// grown opens a source whose tree has n nodes, and waits until a store has saved it.
func grown(b *testing.B, srv *natstest.Server, n int) *natstest.Source {
	b.Helper()
	js := srv.JetStream()
	src := natstest.NewSource(b, js, "t", "a")
	src.Open()
	src.Send(subjects.PlaneTree, tree.TopicBegin, tree.Snapshot{Version: tree.SchemaVersion, Profile: tree.ProfileComponent, Revision: 1})
	// Twenty children for every node.
	var part []tree.PlacedNode
	for id := 1; id <= n; id++ {
		p := tree.PlacedNode{Node: tree.Node{ID: tree.NodeID(id), Name: "item", Attrs: []tree.Attr{{Name: "key", Value: fmt.Sprint("value ", id)}}}}
		if id > 1 {
			p.Parent = tree.NodeID((id-2)/20 + 1)
		}
		if part = append(part, p); len(part) == 3000 || id == n {
			src.Send(subjects.PlaneTree, tree.TopicNodes, tree.Nodes{Revision: 1, Nodes: part})
			part = part[:0]
		}
	}
	covers(b, js, src.Send(subjects.PlaneTree, tree.TopicCommit, tree.Commit{Revision: 1, Count: n}))
	return src
}

// BenchmarkJoin is how long a late joiner takes to hold a saved tree.
func BenchmarkJoin(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			srv := natstest.Start(b)
			startStore(b, srv, patient, subjects.Storage{})
			grown(b, srv, n)
			conn := srv.Connect()
			for b.Loop() {
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
				r, err := replica.Open(ctx, replica.Options{Conn: conn, Space: "t", Limits: patient})
				cancel()
				if err != nil {
					b.Fatal(err)
				}
				_ = r.Close()
			}
		})
	}
}

// BenchmarkSave is one changed node of a large tree on its way into the bucket: capture, encode, commit.
func BenchmarkSave(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			srv := natstest.Start(b)
			s := startStore(b, srv, patient, subjects.Storage{})
			src := grown(b, srv, n)
			// From here on the benchmark saves, and nobody else.
			s.cancel()
			s.ended.Wait()
			revision := uint64(1)
			b.ResetTimer()
			for b.Loop() {
				b.StopTimer()
				revision++
				last := src.Send(subjects.PlaneTree, tree.TopicOps, tree.Ops{Revision: revision, Ops: []tree.Op{{Op: tree.OpUpdate, Node: &tree.Node{ID: 500, Name: "item", Text: fmt.Sprint(revision)}}}})
				natstest.Until(b, 5*time.Second, "the change is folded", func() bool { return uint64(s.Replica().Status().Covered) >= last })
				b.StartTimer()
				if err := s.writer.flush(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
