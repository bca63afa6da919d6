package replica

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/follow"
	"github.com/natscope/natscope/store/internal/natstest"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/network"
)

// BenchmarkReplicaApply is how fast a replica takes in frames of 32 small records.
func BenchmarkReplicaApply(b *testing.B) {
	const frames, size = 512, 32
	var msgs []entry
	src := natstest.NewSource(b, nil, "t", "a")
	src.Sent = func(seq uint64, subject string, h subjects.Header, data []byte) {
		msgs = append(msgs, entry{seq, time.Time{}, subject, nats.Header(h), data})
	}
	src.Open()
	for i := range frames {
		var records []subjects.Record
		plane := subjects.PlaneConsole
		for k := range size {
			if i%2 == 0 {
				records = append(records, src.Record(console.TopicMessage, console.Message{Type: "log"}))
				continue
			}
			plane = subjects.PlaneNet
			records = append(records, src.Record(network.TopicStart, network.Start{ID: network.RequestID(fmt.Sprintf("r%d-%d", i, k)), URL: "http://example.com/path"}))
		}
		src.Frame(plane, 0, records...)
	}
	b.ReportAllocs()
	b.ResetTimer()
	records := 0
	for b.Loop() {
		limits := subjects.Limits{}.WithDefaults()
		r := &Replica{limits: limits, deadline: follow.Patience(limits), space: fold.New("t", limits), lives: make(map[subjects.SourceID]follow.Presence)}
		s := session{r: r}
		for i := 0; i < len(msgs); i += followBatch {
			s.fold(msgs[i:min(i+followBatch, len(msgs))])
		}
		records += frames * size
	}
	b.ReportMetric(float64(records)/b.Elapsed().Seconds(), "records/s")
}

// BenchmarkFollow is the same over NATS: records that wait in the stream until the replica is there.
func BenchmarkFollow(b *testing.B) {
	srv := natstest.Start(b)
	js := srv.JetStream()
	streams(b, js, subjects.Storage{Memory: true})
	src := natstest.NewSource(b, js, "t", "a")
	src.Open()
	const frames, size = 400, 128
	for range frames {
		var records []subjects.Record
		for range size {
			records = append(records, src.Record(console.TopicMessage, console.Message{Type: "log"}))
		}
		src.Frame(subjects.PlaneConsole, 0, records...)
	}
	conn := srv.Connect()
	records := 0
	for b.Loop() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		r, err := Open(ctx, Options{Conn: conn, Space: "t"})
		cancel()
		if err != nil {
			b.Fatal(err)
		}
		_ = r.Close()
		records += frames * size
	}
	b.ReportMetric(float64(records)/b.Elapsed().Seconds(), "records/s")
}
