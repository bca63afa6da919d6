package bench

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/tree"
)

// BenchmarkChange is one changed attribute on its way from a source to a
// DevTools client that has opened the whole tree, in trees of different sizes.
// Neither the events nor the time may depend on the size.
func BenchmarkChange(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000, 100_000} {
		b.Run(fmt.Sprint("nodes=", n), func(b *testing.B) {
			addr := startServer(b)
			js := jetStream(b, addr)
			streams(b, js, subjects.Storage{})
			p := startProducer(b, producer.Options{Service: "bench", URL: addr, Limits: ample})
			grow(p, n)
			flush(b, p)
			changes := newClock()
			var events, size atomic.Int64
			opened := make(chan struct{})
			ws := dial(b, gateway(b, addr, ample), func(data []byte) {
				if bytes.HasPrefix(data, []byte(`{"id":2,`)) {
					close(opened)
					return
				}
				events.Add(1)
				size.Add(int64(len(data)))
				changes.arrive(number(data, `"value":"round-`))
			})
			for _, m := range []string{`{"id":1,"method":"DOM.enable"}`, `{"id":2,"method":"DOM.getDocument","params":{"depth":-1}}`} {
				if err := ws.WriteMessage(websocket.TextMessage, []byte(m)); err != nil {
					b.Fatal(err)
				}
			}
			<-opened
			events.Store(0)
			size.Store(0)
			done := 0
			for b.Loop() {
				pulse(20, 20*time.Millisecond, func() {
					x := node(n / 2)
					x.Attrs[1].Value = fmt.Sprint("round-", changes.leave())
					done++
					p.Record(subjects.PlaneTree, tree.TopicOps, tree.Ops{Revision: uint64(1 + done), Ops: []tree.Op{{Op: tree.OpUpdate, Node: &x}}})
					flush(b, p) // Each change is a frame of its own.
				})
				changes.wait(b)
			}
			b.ReportMetric(changes.took.median(), "p50-µs")
			b.ReportMetric(float64(events.Load())/float64(done), "events/change")
			b.ReportMetric(float64(size.Load())/float64(done), "B/change")
			silent(b)
		})
	}
}
