package producer_test

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
	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/subjects"
)

// payload is a typical console record of about 150 bytes.
var payload = json.RawMessage(`{"type":"info","args":["order placed",{"id":12345,"user":"ada","total":12.5}],"stack":[{"function":"main.place","url":"/src/shop/main.go","line":42}]}`)

// BenchmarkRecord is what one record costs the application's goroutine, with a
// server that stores what comes and without one.
func BenchmarkRecord(b *testing.B) {
	run := func(b *testing.B, url string, f func(*producer.Producer)) {
		p := start(b, producer.Options{URL: url})
		b.ReportAllocs()
		b.SetBytes(int64(len(payload)))
		for b.Loop() {
			f(p)
		}
	}
	at := func(p *producer.Producer) { p.RecordAt(subjects.PlaneConsole, "message", 123.456, payload) }
	b.Run("RecordAt/away", func(b *testing.B) { run(b, "nats://127.0.0.1:1", at) })
	b.Run("RecordAt/stored", func(b *testing.B) {
		s := natstest.Start(b)
		s.Streams(space, subjects.Storage{Memory: true})
		run(b, s.URL(), at)
	})
	v := struct {
		Type string   `json:"type"`
		Args []string `json:"args"`
	}{"log", []string{"order placed", "12345"}}
	b.Run("Record/away", func(b *testing.B) {
		run(b, "nats://127.0.0.1:1", func(p *producer.Producer) { p.Record(subjects.PlaneConsole, "message", &v) })
	})
}

// BenchmarkPublish is records per second into a file stream, of 256 bytes each,
// by three ways on one server: this package, asynchronous publishing of one
// record a message, and a bare loop that publishes batches of the same size one after the other.
func BenchmarkPublish(b *testing.B) {
	s := natstest.Start(b)
	// Records that compress about as well as real ones.
	rnd := rand.New(rand.NewPCG(1, 1))
	records := make([]json.RawMessage, 2048)
	lines := make([]string, len(records))
	for i := range records {
		records[i] = fmt.Appendf(nil, `{"type":"info","args":["order placed",{"id":%d,"user":"user-%x","total":%g,"trace":"%016x%016x"}],"stack":[{"function":"main.place","url":"/src/shop/main.go","line":42}],"pad":"%016x%016x"}`,
			i, rnd.Uint32(), rnd.Float64(), rnd.Uint64(), rnd.Uint64(), rnd.Uint64(), rnd.Uint64())
		lines[i] = `{"t":123.456,"topic":"message","data":` + string(records[i]) + "}\n"
	}
	batch := strings.Join(lines[:2000], "")
	rate := func(b *testing.B, n int) { b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "records/s") }
	s.Streams(space, subjects.Storage{RecordBytes: 64 << 20})
	runs := 0
	b.Run("natscope", func(b *testing.B) {
		p := start(b, producer.Options{URL: s.URL()})
		flush(b, p)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		b.ResetTimer()
		for i := range b.N {
			p.RecordAt(subjects.PlaneConsole, "message", 123.456, records[i%len(records)])
			// As fast as can be without a drop.
			for i%1000 == 0 && p.Stats().Planes[subjects.PlaneConsole].Queued > 40000 {
				<-tick.C
			}
		}
		flush(b, p)
		rate(b, b.N)
		if d := p.Stats().Planes[subjects.PlaneConsole].Dropped; d > 0 {
			b.Fatalf("%d dropped", d)
		}
	})
	b.Run("async", func(b *testing.B) {
		js, err := jetstream.New(s.Connect(), jetstream.WithPublishAsyncMaxPending(256))
		if err != nil {
			b.Fatal(err)
		}
		b.ResetTimer()
		for i := range b.N {
			if _, err := js.PublishAsync("natscope.test.rec.raw.raw.console", []byte(lines[i%len(lines)])); err != nil {
				b.Fatal(err)
			}
		}
		<-js.PublishAsyncComplete()
		rate(b, b.N)
	})
	b.Run("bare", func(b *testing.B) {
		nc := s.Connect()
		// Each run has a chain of its own.
		runs++
		subject := fmt.Sprintf("natscope.test.rec.raw.bare%d.console", runs)
		b.ResetTimer()
		var last uint64
		for left := b.N; left > 0; {
			n := min(left, 2000)
			left -= n
			m := nats.NewMsg(subject)
			m.Data = []byte(batch[:len(batch)*n/2000])
			m.Header.Set("Nats-Expected-Last-Subject-Sequence", strconv.FormatUint(last, 10))
			r, err := nc.RequestMsg(m, 10*time.Second)
			if err != nil {
				b.Fatal(err)
			}
			var ack struct{ Seq uint64 }
			if err := json.Unmarshal(r.Data, &ack); err != nil || ack.Seq == 0 {
				b.Fatalf("%s", r.Data)
			}
			last = ack.Seq
		}
		rate(b, b.N)
	})
}
