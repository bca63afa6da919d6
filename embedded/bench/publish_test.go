package bench

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/subjects"
)

// publishing is one contest of three ways to bring records into the record stream.
type publishing struct {
	addr string
	js   jetstream.JetStream
	nc   *nats.Conn
	// records are payloads of about 256 bytes that compress about as well as
	// real ones, lines the same as they stand in a frame.
	records []json.RawMessage
	lines   []string
	round   int
}

func newPublishing(b *testing.B, addr string) *publishing {
	c := &publishing{addr: addr, nc: connect(b, addr)}
	var err error
	if c.js, err = jetstream.New(c.nc); err != nil {
		b.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	for i := range 2048 {
		r := fmt.Sprintf(`{"type":"info","args":["order placed",{"id":%d,"user":"user-%x","total":%g,"trace":"%016x%016x"}],"stack":[{"function":"main.place","url":"/src/shop/main.go","line":42}],"pad":"%016x%016x"}`,
			i, rnd.Uint32(), rnd.Float64(), rnd.Uint64(), rnd.Uint64(), rnd.Uint64(), rnd.Uint64())
		c.records = append(c.records, json.RawMessage(r))
		c.lines = append(c.lines, `{"t":123.456,"topic":"message","data":`+r+"}\n")
	}
	return c
}

// ours records n payloads with a producer, as fast as it takes them without a
// drop, and returns how long it took until the last was acknowledged, and how many frames that were.
func (c *publishing) ours(b *testing.B, n int) (time.Duration, int) {
	c.round++
	p := startProducer(b, producer.Options{Service: "bench", Instance: strconv.Itoa(c.round), URL: c.addr})
	defer closeProducer(p)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	start := time.Now()
	for i := range n {
		p.RecordAt(subjects.PlaneConsole, "message", 123.456, c.records[i%len(c.records)])
		for i%1000 == 0 && p.Stats().Planes[subjects.PlaneConsole].Queued > 40000 {
			<-tick.C
		}
	}
	flush(b, p)
	took := time.Since(start)
	s := p.Stats().Planes[subjects.PlaneConsole]
	if s.Dropped > 0 || s.Published != uint64(n) {
		b.Fatalf("not everything was published: %+v", s)
	}
	return took, int(s.Frames)
}

// async publishes n records, one a message, as the client library does it by default.
func (c *publishing) async(b *testing.B, n int) time.Duration {
	c.round++
	subject := fmt.Sprintf("natscope.%s.rec.async.%d.console", subjects.DefaultSpace, c.round)
	start := time.Now()
	for i := range n {
		if _, err := c.js.PublishAsync(subject, []byte(c.lines[i%len(c.lines)]), jetstream.WithStallWait(patience)); err != nil {
			b.Fatal(err)
		}
	}
	<-c.js.PublishAsyncComplete()
	return time.Since(start)
}

// bare publishes frames that were made before, one after the other on a chain of expected sequences.
func (c *publishing) bare(b *testing.B, n, frames int) time.Duration {
	c.round++
	subject := fmt.Sprintf("natscope.%s.rec.bare.%d.console", subjects.DefaultSpace, c.round)
	size := min((n+frames-1)/frames, len(c.lines))
	body := []byte(strings.Join(c.lines[:size], ""))
	start := time.Now()
	var last uint64
	for left := n; left > 0; left -= size {
		m := nats.NewMsg(subject)
		m.Data = body
		if left < size {
			m.Data = body[:len(body)*left/size]
		}
		m.Header.Set("Nats-Expected-Last-Subject-Sequence", strconv.FormatUint(last, 10))
		r, err := c.nc.RequestMsg(m, patience)
		if err != nil {
			b.Fatal(err)
		}
		var ack struct{ Seq uint64 }
		if err := json.Unmarshal(r.Data, &ack); err != nil || ack.Seq == 0 {
			b.Fatalf("%s: %v", r.Data, err)
		}
		last = ack.Seq
	}
	return time.Since(start)
}

// purge empties the record stream, so that no round pays for those before it.
func (c *publishing) purge(b *testing.B) {
	s, err := c.js.Stream(b.Context(), subjects.RecordStreamName(subjects.DefaultSpace))
	if err == nil {
		err = s.Purge(b.Context())
	}
	if err != nil {
		b.Fatal(err)
	}
}

// run is the contest. Each round has all three in turn.
func (c *publishing) run(b *testing.B, n, asyncN int) {
	var ours, async, bare, frame sample
	for b.Loop() {
		took, frames := c.ours(b, n)
		ours.add(rate(n, took))
		frame.add(float64(n) / float64(frames))
		bare.add(rate(n, c.bare(b, n, frames)))
		async.add(rate(asyncN, c.async(b, asyncN)))
		c.purge(b)
	}
	b.ReportMetric(ours.median(), "records/s")
	b.ReportMetric(async.median(), "async-records/s")
	b.ReportMetric(bare.median(), "bare-records/s")
	b.ReportMetric(frame.median(), "records/frame")
	b.ReportMetric(ours.over(async), "x-async")
	b.ReportMetric(ours.over(bare), "x-bare")
	silent(b)
}

// BenchmarkPublish is records per second into a file stream, until the last one
// is acknowledged: a producer, one record a message with the client library's
// asynchronous publishing, and a bare loop that publishes prepared frames of the
// size that the producer made, one after the other.
func BenchmarkPublish(b *testing.B) {
	b.Run("R1", func(b *testing.B) {
		addr := startServer(b)
		streams(b, jetStream(b, addr), subjects.Storage{})
		newPublishing(b, addr).run(b, 400_000, 20_000)
	})
	b.Run("R3", func(b *testing.B) {
		addr := startCluster(b)
		streams(b, jetStream(b, addr), subjects.Storage{Replicas: 3})
		newPublishing(b, addr).run(b, 100_000, 10_000)
	})
	b.Run("R1+20ms", func(b *testing.B) {
		addr := startServer(b)
		streams(b, jetStream(b, addr), subjects.Storage{})
		newPublishing(b, distant(b, addr, 20*time.Millisecond)).run(b, 50_000, 20_000)
	})
}
