package bench

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
)

// drain reads messages with the client library's ordered consumer and does nothing with them.
func drain(b *testing.B, js jetstream.JetStream, messages int) time.Duration {
	b.Helper()
	start := time.Now()
	c, err := js.OrderedConsumer(b.Context(), subjects.RecordStreamName(subjects.DefaultSpace), jetstream.OrderedConsumerConfig{})
	if err != nil {
		b.Fatal(err)
	}
	all := make(chan struct{})
	left := messages
	cc, err := c.Consume(func(jetstream.Msg) {
		if left--; left == 0 {
			close(all)
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	<-all
	took := time.Since(start)
	cc.Stop()
	<-cc.Closed()
	return took
}

// BenchmarkFollow is records per second that a new replica takes in from a
// stream that no store has read: decoding and folding included. Beside it is an
// ordered consumer that gets the same messages and does nothing with them.
func BenchmarkFollow(b *testing.B) {
	addr := startServer(b)
	js := jetStream(b, addr)
	streams(b, js, subjects.Storage{})
	p := startProducer(b, producer.Options{Service: "bench", URL: addr})
	const n = 60_000
	for i := range n {
		p.Record(subjects.PlaneConsole, console.TopicMessage, line(i))
	}
	flush(b, p)
	if s := p.Stats().Planes[subjects.PlaneConsole]; s.Dropped > 0 {
		b.Fatalf("records were dropped: %+v", s)
	}
	messages := 1 + int(p.Stats().Planes[subjects.PlaneConsole].Frames) // The first is the opening record.
	nc := connect(b, addr)
	var ours, bare sample
	for b.Loop() {
		start := time.Now()
		r := openReplica(b, replica.Options{Conn: nc})
		ours.add(rate(n, time.Since(start)))
		_ = r.Close()
		bare.add(rate(n, drain(b, js, messages)))
	}
	b.ReportMetric(ours.median(), "records/s")
	b.ReportMetric(bare.median(), "bare-records/s")
	silent(b)
}
