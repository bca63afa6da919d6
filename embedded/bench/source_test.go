package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/value"
)

// The ways of a source process to record.
const (
	wayProducer = "producer"
	wayAsync    = "async"
	wayNone     = "none"
)

// beSource is a process that records 1000 console lines a second, in bursts of
// ten, until its standard input ends, and prints the processor time that it
// took, in nanoseconds a second.
func beSource(way, url string) error {
	record, end, err := recorder(way, url)
	if err != nil {
		return err
	}
	defer end()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, os.Stdin) // However it ends, it ends the source.
	}()
	const perSecond = 1000
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	m := console.Message{Type: "log", Args: []json.RawMessage{value.Encode("the order was placed and waits for its payment")}}
	start, spent := time.Now(), processTime()
	for done := 0; ; {
		select {
		case <-ended:
			fmt.Println(int64(float64(processTime()-spent) / time.Since(start).Seconds()))
			return nil
		case <-tick.C:
		}
		for due := int(time.Since(start).Seconds() * perSecond); done < due; done++ {
			record(m)
		}
	}
}

// recorder connects and returns what records one line, and what ends it.
func recorder(way, url string) (record func(console.Message), end func(), err error) {
	switch way {
	case wayProducer:
		p, err := producer.Start(producer.Options{Service: "bench", URL: url})
		if err != nil {
			return nil, nil, err
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		record = func(m console.Message) { p.Record(subjects.PlaneConsole, console.TopicMessage, m) }
		return record, func() { closeProducer(p) }, p.Flush(ctx)
	case wayAsync:
		nc, err := nats.Connect(url)
		if err != nil {
			return nil, nil, err
		}
		js, err := jetstream.New(nc)
		record = func(m console.Message) {
			data, _ := json.Marshal(m)
			_, _ = js.PublishAsync("natscope."+string(subjects.DefaultSpace)+".rec.async.1.console", data) // Only its cost counts.
		}
		return record, nc.Close, err
	}
	return func(console.Message) {}, func() {}, nil
}

// processTime is the processor time of this process.
func processTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cost runs a source process for two seconds and returns its share of one core, in percent.
func cost(b *testing.B, way, url string) float64 {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), sourceWay+"="+way, sourceURL+"="+url)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	<-time.NewTimer(2 * time.Second).C
	in.Close()
	var ns int64
	if _, err := fmt.Fscan(out, &ns); err != nil {
		b.Fatalf("the source said nothing: %v", err)
	}
	if err := cmd.Wait(); err != nil {
		b.Fatal(err)
	}
	return float64(ns) / 1e9 * 100
}

// BenchmarkSource is the share of one core that a process of its own takes to
// record 1000 console lines a second while nobody looks: with a producer, with
// one record a message by the client library's asynchronous publishing, and with nothing.
func BenchmarkSource(b *testing.B) {
	addr := startServer(b)
	streams(b, jetStream(b, addr), subjects.Storage{})
	var ours, async, none sample
	for b.Loop() {
		ours.add(cost(b, wayProducer, addr))
		async.add(cost(b, wayAsync, addr))
		none.add(cost(b, wayNone, addr))
	}
	b.ReportMetric(ours.median(), "%core")
	b.ReportMetric(async.median(), "async-%core")
	b.ReportMetric(none.median(), "bare-%core")
	b.ReportMetric(ours.more(none), "added-%core")
	b.ReportMetric(ours.over(async), "x-async")
	silent(b)
}
