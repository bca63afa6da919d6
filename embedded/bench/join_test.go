package bench

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/tree"
)

// node is one node of a benchmark's tree: a component with two attributes.
func node(id int) tree.Node {
	return tree.Node{ID: tree.NodeID(id), Kind: "component", Name: "OrderRow", Attrs: []tree.Attr{{Name: "key", Value: fmt.Sprint("order-", id)}, {Name: "status", Value: "paid"}}}
}

// grow sends a tree of n nodes with twenty children each, numbered from 1, as its first revision.
func grow(p *producer.Producer, n int) {
	p.Record(subjects.PlaneTree, tree.TopicBegin, tree.Snapshot{Version: tree.SchemaVersion, Profile: tree.ProfileComponent, Revision: 1})
	var part []tree.PlacedNode
	for id := 1; id <= n; id++ {
		x := tree.PlacedNode{Node: node(id)}
		if id > 1 {
			x.Parent = tree.NodeID((id-2)/20 + 1)
		}
		if part = append(part, x); len(part) == 2000 || id == n {
			p.Record(subjects.PlaneTree, tree.TopicNodes, tree.Nodes{Revision: 1, Nodes: part})
			part = nil
		}
	}
	p.Record(subjects.PlaneTree, tree.TopicCommit, tree.Commit{Revision: 1, Count: n})
}

// holds reports whether a state has n nodes in all.
func holds(r *replica.Replica, n int) (ok bool) {
	r.View(func(s *fold.Space) {
		sum := 0
		for _, src := range s.Sources() {
			sum += src.Tree.Len()
		}
		ok = sum == n
	})
	return ok
}

// saved waits until what a store has folded is in the bucket.
func saved(b *testing.B, addr string, n int) {
	b.Helper()
	nc := connect(b, addr)
	until(b, "the state is saved", func() bool {
		r := openReplica(b, replica.Options{Conn: nc, Limits: ample})
		defer r.Close()
		s := r.Status()
		return holds(r, n) && s.Applied == 0
	})
}

// ample are limits for the largest tree, with heartbeats that disturb nothing.
var ample = subjects.Limits{ComponentNodes: 200_000, DisconnectedTrees: 5000, Heartbeat: 20 * time.Second}

// heap is how much memory is reachable, in bytes.
func heap() float64 {
	var m runtime.MemStats
	for range 2 { // What finalizers hold goes with the second.
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// join opens replicas of a saved state and reports how long that takes and what one of them holds.
func join(b *testing.B, nc *nats.Conn, nodes int, per int, unit string) {
	b.Helper()
	var took, size sample
	for b.Loop() {
		before := heap()
		start := time.Now()
		r := openReplica(b, replica.Options{Conn: nc, Limits: ample})
		took.add(float64(time.Since(start)) / float64(time.Millisecond))
		if !holds(r, nodes) {
			b.Fatal("the replica does not hold the whole state")
		}
		size.add((heap() - before) / float64(per))
		_ = r.Close()
	}
	b.ReportMetric(took.median(), "join-ms")
	b.ReportMetric(size.median(), "B/"+unit)
	silent(b)
}

// BenchmarkJoin is how long a late joiner takes to hold one tree that is saved,
// and the memory that it holds it in.
func BenchmarkJoin(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprint("nodes=", n), func(b *testing.B) {
			addr := startServer(b)
			startStore(b, addr, subjects.Storage{}, ample)
			p := startProducer(b, producer.Options{Service: "bench", URL: addr, Limits: ample})
			grow(p, n)
			flush(b, p)
			saved(b, addr, n)
			join(b, connect(b, addr), n, n, "node")
		})
	}
}

// BenchmarkJoinSources is the same for many sources, each with ten nodes and twenty console lines.
func BenchmarkJoinSources(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint("sources=", n), func(b *testing.B) {
			addr := startServer(b)
			startStore(b, addr, subjects.Storage{}, ample)
			nc := connect(b, addr)
			for i := range n {
				p := startProducer(b, producer.Options{Service: "bench", Instance: strconv.Itoa(i), Conn: nc, Limits: ample})
				grow(p, 10)
				for k := range 20 {
					p.Record(subjects.PlaneConsole, "message", line(k))
				}
				flush(b, p)
			}
			saved(b, addr, 10*n)
			join(b, connect(b, addr), 10*n, n, "source")
		})
	}
}
