package bench

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/query/engine"
	"github.com/natscope/natscope/query/service"
	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// BenchmarkQuery is questions over NATS in a space of 1000 sources, each with ten
// nodes, twenty console lines and five requests; one of them has 10 000 nodes.
// Beside it is a get of 1 KiB from a key-value bucket on the same connection.
func BenchmarkQuery(b *testing.B) {
	addr := startServer(b)
	streams(b, jetStream(b, addr), subjects.Storage{})
	nc := connect(b, addr)
	const sources = 1000
	for i := range sources {
		p := startProducer(b, producer.Options{Service: "bench", Instance: strconv.Itoa(i), Conn: nc, Limits: ample})
		nodes := 10
		if i == 0 {
			nodes = 10_000
		}
		grow(p, nodes)
		for k := range 20 {
			p.Record(subjects.PlaneConsole, "message", line(k))
		}
		for k := range 5 {
			id := network.RequestID(fmt.Sprint("r", k))
			p.Record(subjects.PlaneNet, network.TopicStart, network.Start{ID: id, Method: "GET", URL: "http://orders.example/api/orders/" + strconv.Itoa(k)})
			p.Record(subjects.PlaneNet, network.TopicResponse, network.Response{ID: id, Status: 200 + 300*(k/4)})
			p.Record(subjects.PlaneNet, network.TopicEnd, network.End{ID: id})
		}
		flush(b, p)
	}
	r := openReplica(b, replica.Options{Conn: connect(b, addr), Limits: ample})
	until(b, "all is folded", func() bool { return holds(r, 10*(sources-1)+10_000) })
	e, err := engine.New(engine.Options{State: r})
	if err != nil {
		b.Fatal(err)
	}
	s, err := service.Start(service.Options{Conn: connect(b, addr), API: e})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = s.Close(context.Background())
		e.Close()
		_ = r.Close()
	}()
	c := query.NewClient(connect(b, addr), "")
	get := bucketGet(b, addr)
	ctx := b.Context()
	request, err := c.Requests(ctx, query.RequestsRequest{Page: query.Page{Sources: []string{"bench-0"}, Limit: 1}})
	if err != nil {
		b.Fatal(err)
	}
	found, err := c.FindNodes(ctx, query.FindRequest{Text: "order-5000"})
	if err != nil || len(found.Nodes) == 0 {
		b.Fatal(err)
	}
	for _, q := range []struct {
		name string
		ask  func() error
	}{
		{"request", func() error { _, err := c.Request(ctx, query.RequestRequest{ID: request.Requests[0].ID}); return err }},
		{"node", func() error { _, err := c.Node(ctx, query.NodeRequest{ID: found.Nodes[0].ID}); return err }},
		{"tree-100", func() error { _, err := c.Tree(ctx, query.TreeRequest{Source: "bench-0", Nodes: 100}); return err }},
		{"console-100", func() error {
			_, err := c.Console(ctx, query.ConsoleRequest{Page: query.Page{Sources: []string{"bench-0"}}})
			return err
		}},
		{"console-100-of-all", func() error { _, err := c.Console(ctx, query.ConsoleRequest{}); return err }},
		{"requests-filter-all", func() error {
			_, err := c.Requests(ctx, query.RequestsRequest{Page: query.Page{Filter: "status >= 500"}})
			return err
		}},
		{"sources-1000", func() error { _, err := c.Sources(ctx, query.SourcesRequest{}); return err }},
		{"find-20000-nodes", func() error { _, err := c.FindNodes(ctx, query.FindRequest{Text: "nowhere"}); return err }},
		{"search-all", func() error { _, err := c.Search(ctx, query.SearchRequest{Text: "nowhere"}); return err }},
	} {
		b.Run(q.name, func(b *testing.B) {
			var took, bare sample
			for b.Loop() {
				for range 20 {
					took.add(timed(b, q.ask))
					bare.add(timed(b, get))
				}
			}
			b.ReportMetric(took.median(), "p50-µs")
			b.ReportMetric(bare.median(), "get-p50-µs")
			b.ReportMetric(took.over(bare), "x-get")
			silent(b)
		})
	}
}

// timed returns how long f took, in microseconds.
func timed(b *testing.B, f func() error) float64 {
	b.Helper()
	start := time.Now()
	if err := f(); err != nil {
		b.Fatal(err)
	}
	return float64(time.Since(start)) / float64(time.Microsecond)
}

// bucketGet returns what reads 1 KiB from a bucket of its own.
func bucketGet(b *testing.B, addr string) func() error {
	b.Helper()
	ctx := b.Context()
	kv, err := jetStream(b, addr).CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "beside", Storage: jetstream.MemoryStorage})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := kv.Put(ctx, "key", make([]byte, 1024)); err != nil {
		b.Fatal(err)
	}
	return func() error {
		_, err := kv.Get(ctx, "key")
		return err
	}
}
