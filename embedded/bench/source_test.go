package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/value"
)

// beSource is a process that records at a rate until its standard input ends,
// and prints the processor time that it took, in nanoseconds a second. Without a
// URL it does the same work with no producer.
func beSource() int {
	perSecond, err := strconv.Atoi(os.Getenv(sourceRate))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	record := func(console.Message) {}
	if url := os.Getenv(sourceURL); url != "" {
		p, err := producer.Start(producer.Options{Service: "bench", URL: url})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
		defer closeProducer(p)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := p.Flush(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
		record = func(m console.Message) { p.Record(subjects.PlaneConsole, console.TopicMessage, m) }
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for r := bufio.NewReader(os.Stdin); ; {
			if _, err := r.ReadByte(); err != nil {
				return
			}
		}
	}()
	const beat = 10 * time.Millisecond
	tick := time.NewTicker(beat)
	defer tick.Stop()
	text := value.Encode("the order was placed and waits for its payment")
	start, spent := time.Now(), processTime()
	done := 0
	for {
		select {
		case <-ended:
			took := time.Since(start)
			fmt.Println(int64(float64(processTime()-spent) / took.Seconds()))
			return 0
		case <-tick.C:
		}
		for due := int(time.Since(start).Seconds() * float64(perSecond)); done < due; done++ {
			record(console.Message{Type: "log", Args: []json.RawMessage{text}})
		}
	}
}

// processTime is the processor time of this process.
func processTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cost runs a source process for d and returns its share of one core, in percent.
func cost(b *testing.B, url string, perSecond int, d time.Duration) float64 {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), sourceURL+"="+url, sourceRate+"="+strconv.Itoa(perSecond))
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
	timer := time.NewTimer(d)
	<-timer.C
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
// record 1000 console lines a second, in bursts of ten, while nobody looks;
// beside the same process without a producer.
func BenchmarkSource(b *testing.B) {
	addr := startServer(b)
	streams(b, jetStream(b, addr), subjects.Storage{})
	var with, without sample
	for b.Loop() {
		with.add(cost(b, addr, 1000, 2*time.Second))
		without.add(cost(b, "", 1000, 2*time.Second))
	}
	b.ReportMetric(with.median(), "%core")
	b.ReportMetric(without.median(), "bare-%core")
	b.ReportMetric(with.median()-without.median(), "added-%core")
	silent(b)
}
