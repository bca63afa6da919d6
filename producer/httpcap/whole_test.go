package httpcap_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/httpcap"
	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// TestBodiesAreWholeOrSaySo reads 20 MB over loopback, four at a time, on both
// sides where nothing is in the way, and holds every body that reached the stream to one of two: it is
// whole, or a reader can tell that it is not. It goes with a queue that holds
// everything, with one that does not, and through an outage of NATS.
func TestBodiesAreWholeOrSaySo(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits subjects.Limits
		outage bool
		// whole says that every body must be.
		whole bool
	}{
		{name: "a queue that holds everything", limits: subjects.Limits{BodyQueueBytes: 512 << 20}, whole: true},
		{name: "a queue that overflows", limits: subjects.Limits{BodyQueueBytes: 16 << 20}},
		{name: "an outage", limits: subjects.Limits{BodyQueueBytes: 512 << 20}, outage: true, whole: true},
		{name: "an outage and a queue that overflows", limits: subjects.Limits{BodyQueueBytes: 4 << 20}, outage: true},
	} {
		t.Run(c.name, func(t *testing.T) { wholeBodies(t, c.limits, c.outage, c.whole) })
	}
}

const wholeSize, wholeCount = 20_000_000, 4

// patterns are the bodies of the requests, made once: the race detector is slow at it.
var patterns = sync.OnceValue(func() (all [wholeCount][]byte) {
	for n := range all {
		b := make([]byte, wholeSize)
		block := make([]byte, 1<<16)
		for i := 0; i < len(b); i += len(block) {
			for k := 0; k < len(block); k += 64 {
				block[k], block[k+1] = byte(i>>16)^byte(n*37), byte(k>>6)
			}
			copy(b[i:], block)
		}
		all[n] = b
	}
	return all
})

// pattern is the body of request n.
func pattern(n int) []byte { return patterns()[n] }

func wholeBodies(t *testing.T, limits subjects.Limits, outage, whole bool) {
	nats := natstest.Start(t)
	storage := subjects.Storage{BodyBytes: 400 << 20}
	nats.Streams(subjects.DefaultSpace, storage)
	p, err := producer.Start(producer.Options{Service: "reader", Instance: "test", URL: nats.URL(), Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	half := make(chan struct{})
	var reached sync.WaitGroup
	reached.Add(wholeCount)
	sides, server := 2, p
	if outage || !whole {
		sides, server = 1, nil
	}
	srv := serve(t, httpcap.Handler(server, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		b := pattern(n)
		w.Write(b[:wholeSize/2])
		reached.Done()
		<-half
		w.Write(b[wholeSize/2:])
	})).ServeHTTP)
	client := http.Client{Transport: httpcap.Transport(p, bare(t))}
	var readers sync.WaitGroup
	for n := range wholeCount {
		readers.Go(func() {
			resp, err := client.Get(fmt.Sprintf("%s/?n=%d", srv.URL, n))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			if err != nil || !bytes.Equal(b, pattern(n)) {
				t.Errorf("the application reads %d bytes, %v", len(b), err)
			}
		})
	}
	reached.Wait()
	if outage {
		nats.Stop()
	}
	close(half)
	readers.Wait()
	if outage {
		nats.Run()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	if err := p.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(ctx); err != nil {
		t.Fatal(err)
	}
	state := foldStream(t, nats.Read(streamName(subjects.RecordStream(subjects.DefaultSpace, storage))))
	if len(state.Requests) != sides*wholeCount {
		t.Fatalf("%d requests, want %d", len(state.Requests), sides*wholeCount)
	}
	streamed := readBodies(t, nats.Read(streamName(subjects.BodyStream(subjects.DefaultSpace, storage))))
	cut := 0
	for _, r := range state.Requests {
		var n int
		fmt.Sscanf(r.Start.Value.URL[bytes.IndexByte([]byte(r.Start.Value.URL), '?'):], "?n=%d", &n)
		b := streamed[string(r.ID())]
		if b == nil {
			b = &streamedBody{}
		}
		if !bytes.HasPrefix(pattern(n), b.data) {
			t.Errorf("request %s: the body is not the beginning of what passed", r.ID())
		}
		complete := b.end == subjects.BodyComplete && !b.hole && int64(len(b.data)) == b.total
		switch {
		case complete && (len(b.data) != wholeSize || r.End.Truncated || r.End.Captured != wholeSize || r.Ending != network.Finished):
			t.Errorf("request %s: the stream says complete with %d bytes, the record %+v", r.ID(), len(b.data), r.End)
		case !complete && b.end == subjects.BodyComplete:
			t.Errorf("request %s: the stream says complete with %d of %d bytes, hole %t", r.ID(), len(b.data), b.total, b.hole)
		case !complete:
			cut++
		}
		if r.End.Bytes != wholeSize {
			t.Errorf("request %s: %d bytes passed", r.ID(), r.End.Bytes)
		}
	}
	if whole && cut > 0 {
		t.Errorf("%d of %d bodies are not whole, though there was room", cut, sides*wholeCount)
	}
	t.Logf("%d of %d bodies are cut, and say so; %d were cut by pressure", cut, sides*wholeCount, p.Stats().CutBodies)
}

// streamedBody is one body as a reader of the stream puts it together.
type streamedBody struct {
	data  []byte
	hole  bool
	end   string
	total int64
}

func readBodies(t *testing.T, messages []natstest.Message) map[string]*streamedBody {
	t.Helper()
	out := make(map[string]*streamedBody)
	for _, m := range messages {
		subject, err := subjects.ParseBody(m.Subject)
		if err != nil {
			t.Fatal(err)
		}
		c, err := subjects.ParseBodyChunk(m.Header)
		if err != nil {
			t.Fatal(err)
		}
		b := out[string(subject.Request)]
		if b == nil {
			b = &streamedBody{}
			out[string(subject.Request)] = b
		}
		switch {
		case c.Offset > int64(len(b.data)):
			b.hole = true
		case !b.hole:
			b.data = append(b.data, m.Data[min(int64(len(b.data))-c.Offset, int64(len(m.Data))):]...)
		}
		if c.End != "" {
			b.end, b.total = c.End, c.Total
		}
	}
	return out
}
