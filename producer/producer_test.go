package producer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/source"
)

const space = subjects.Space("test")

func TestMain(m *testing.M) {
	// The examples connect to the usual server; they must not appear in a natscope that runs on this machine.
	_ = os.Setenv("NATS_URL", "nats://127.0.0.1:1")
	goleak.VerifyTestMain(m)
}

// start makes a producer that is closed with the test.
func start(t testing.TB, o producer.Options) *producer.Producer {
	t.Helper()
	if o.Space == "" {
		o.Space = space
	}
	if o.Service == "" && o.ID == "" {
		o.Service, o.Instance = "svc", "one"
	}
	p, err := producer.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		_ = p.Close(ctx)
	})
	return p
}

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func flush(t testing.TB, p *producer.Producer) {
	t.Helper()
	if err := p.Flush(within(t, 20*time.Second)); err != nil {
		t.Fatalf("%v; stats %+v", err, p.Stats())
	}
}

func end(t testing.TB, p *producer.Producer) {
	t.Helper()
	if err := p.Close(within(t, 20*time.Second)); err != nil {
		t.Fatal(err)
	}
}

// folded folds the whole record stream as every reader does.
func folded(t testing.TB, s *natstest.Server) *fold.Space {
	t.Helper()
	sp := fold.New(space, subjects.Limits{ConsoleEntries: 1 << 20})
	for _, m := range s.Read(subjects.RecordStreamName(space)) {
		sp.Apply(m.Subject, subjects.StreamSeq(m.Seq), m.Header, m.Data)
	}
	return sp
}

// source returns the only source, which must have no faults.
func only(t testing.TB, sp *fold.Space) *fold.Source {
	t.Helper()
	if len(sp.Sources()) != 1 {
		t.Fatalf("%d sources", len(sp.Sources()))
	}
	src := sp.Sources()[0]
	for _, f := range src.Faults {
		t.Errorf("fault: %s %s: %s", f.Kind, f.Plane, f.Text)
	}
	return src
}

// numbers returns the numbers that count wrote, as the stream has them.
func numbers(t testing.TB, s *natstest.Server, id subjects.SourceID) []int {
	t.Helper()
	var out []int
	for _, m := range s.Read(subjects.RecordStreamName(space)) {
		name, err := subjects.ParseRecord(m.Subject)
		if err != nil || name.Source != id || name.Plane != subjects.PlaneEvent {
			continue
		}
		f, err := subjects.DecodeFrame(m.Header, m.Data)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range f.Records {
			var n int
			if err := json.Unmarshal(r.Data, &n); err != nil {
				t.Fatalf("%s: %v", r.Data, err)
			}
			out = append(out, n)
		}
	}
	return out
}

func count(p *producer.Producer, from, to int) {
	for i := from; i < to; i++ {
		p.Record(subjects.PlaneEvent, "n", i)
	}
}

// wantCount fails unless got is 0, 1, … n-1.
func wantCount(t testing.TB, got []int, n int) {
	t.Helper()
	for i, v := range got {
		if v != i {
			t.Fatalf("record %d is number %d: lost, doubled or out of order (%d records)", i, v, len(got))
		}
	}
	if len(got) != n {
		t.Fatalf("%d records, want %d", len(got), n)
	}
}

func TestOneOfEverything(t *testing.T) {
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{Memory: true})
	title := "a title"
	p := start(t, producer.Options{URL: s.URL(), Service: "Shop Front", Instance: "été.1", Describe: func(d *source.Descriptor) { d.Capabilities = []string{"console"} }})
	p.Record(subjects.PlaneConsole, "message", map[string]any{"type": "log", "args": []any{"hello"}})
	p.Record(subjects.PlaneNet, network.TopicStart, network.Start{ID: "r1", Method: "GET", URL: "http://x/"})
	p.RecordAt(subjects.PlaneTree, "snapshot", 1.5, json.RawMessage(`{"version":1,"profile":"component","revision":1,"root":{"id":1,"name":"app"}}`))
	if err := p.Publish("orders.created", map[string]int{"id": 1}); err != nil {
		t.Fatal(err)
	}
	p.Update(source.Update{Title: &title})
	b := p.Body("r1", subjects.ResponseBody)
	b.Write([]byte("hello "))
	b.Write([]byte("world"))
	b.End(subjects.BodyComplete, 11)
	flush(t, p)
	if st := p.Stats(); !st.Opened || !st.Connected || st.Planes[subjects.PlaneConsole].Published != 1 || st.Planes[subjects.PlaneLife].Published == 0 {
		t.Errorf("stats %+v", st)
	}
	end(t, p)

	src := only(t, folded(t, s))
	d := src.Life.Descriptor
	if d.Name != "Shop Front" || d.Instance != "été.1" || d.Title != title || d.Realm != p.Realm() || len(d.Capabilities) != 1 {
		t.Errorf("descriptor %+v", d)
	}
	if src.ID != p.ID() || src.Generation != p.Generation() || !src.Life.Closed {
		t.Errorf("source %s %s closed %v", src.ID, src.Generation, src.Life.Closed)
	}
	if len(src.Console.Entries) != 1 || len(src.Net.Requests) != 1 || src.Tree.Len() != 1 || src.Planes[subjects.PlaneEvent].Records != 1 {
		t.Errorf("console %d, requests %d, nodes %d, events %+v", len(src.Console.Entries), len(src.Net.Requests), src.Tree.Len(), src.Planes)
	}
	records := s.Read(subjects.RecordStreamName(space))
	if !strings.HasSuffix(records[0].Subject, ".life") || !strings.HasSuffix(records[len(records)-1].Subject, ".life") {
		t.Errorf("the stream begins with %s and ends with %s", records[0].Subject, records[len(records)-1].Subject)
	}
	bodies := s.Read(subjects.BodyStreamName(space))
	if got, end := joinBody(t, bodies); got != "hello world" || end.End != subjects.BodyComplete || end.Total != 11 {
		t.Errorf("body %q ends %+v", got, end)
	}
}

// joinBody puts the pieces of the only body of a stream together.
func joinBody(t testing.TB, messages []natstest.Message) (string, subjects.BodyChunk) {
	t.Helper()
	var b strings.Builder
	var last subjects.BodyChunk
	for _, m := range messages {
		c, err := subjects.ParseBodyChunk(m.Header)
		if err != nil {
			t.Fatal(err)
		}
		if c.Offset != int64(b.Len()) {
			t.Fatalf("a piece at %d after %d bytes", c.Offset, b.Len())
		}
		if last.End != "" {
			t.Fatal("something follows the end")
		}
		b.Write(m.Data)
		last = c
	}
	return b.String(), last
}

func TestServerComesLater(t *testing.T) {
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{})
	s.Stop()
	began := time.Now()
	p := start(t, producer.Options{URL: s.URL()})
	if d := time.Since(began); d > time.Second {
		t.Errorf("Start took %v", d)
	}
	count(p, 0, 500)
	s.Run()
	flush(t, p)
	end(t, p)
	wantCount(t, numbers(t, s, p.ID()), 500)
	only(t, folded(t, s))
}

func TestStreamComesLater(t *testing.T) {
	s := natstest.Start(t)
	p := start(t, producer.Options{URL: s.URL()})
	count(p, 0, 100)
	natstest.Until(t, "the missing stream is noticed", func() bool { return strings.Contains(p.Stats().LastError, "no stream takes") })
	s.Streams(space, subjects.Storage{Memory: true})
	flush(t, p)
	wantCount(t, numbers(t, s, p.ID()), 100)
	only(t, folded(t, s))
}

func TestRestartLosesAndDoublesNothing(t *testing.T) {
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{})
	p := start(t, producer.Options{URL: s.URL()})
	const n = 6000
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; i < n; i += 20 {
			count(p, i, i+20)
			tick := time.NewTimer(2 * time.Millisecond)
			<-tick.C
		}
	}()
	for i := range 3 {
		natstest.Until(t, "records flow", func() bool { return p.Stats().Planes[subjects.PlaneEvent].Published > uint64(500*(i+1)) })
		s.Stop()
		s.Run()
	}
	<-done
	flush(t, p)
	end(t, p)
	wantCount(t, numbers(t, s, p.ID()), n)
	only(t, folded(t, s))
}

func TestMemoryStreamIsReplaced(t *testing.T) {
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{Memory: true})
	p := start(t, producer.Options{URL: s.URL(), Describe: func(d *source.Descriptor) { d.Realm = "same" }})
	revision := 0
	p.OnSnapshot(func() []subjects.Record {
		revision++
		return []subjects.Record{{Topic: "snapshot", Data: fmt.Appendf(nil, `{"version":1,"profile":"component","revision":%d,"root":{"id":1,"name":"app"}}`, revision)}}
	})
	p.Resnapshot()
	for i := range 10 {
		count(p, i, i+1)
		flush(t, p)
	}
	first := p.Generation()
	s.Stop()
	s.Run()
	s.Streams(space, subjects.Storage{Memory: true})
	count(p, 10, 12)
	natstest.Until(t, "the source opened again", func() bool { st := p.Stats(); return st.Reopened == 1 && st.Opened })
	count(p, 12, 20)
	flush(t, p)
	end(t, p)
	if p.Generation() <= first {
		t.Errorf("generation %s does not follow %s", p.Generation(), first)
	}
	// Nothing of the first generation is in the new stream, where nobody could open it.
	src := only(t, folded(t, s))
	if src.Generation != p.Generation() || src.Late != 0 || !src.Life.Opened || src.Tree.Len() != 1 || src.Life.Descriptor.Realm != "same" {
		t.Errorf("source %+v", src)
	}
	got := numbers(t, s, p.ID())
	if len(got) != 10 || got[0] != 10 || got[9] != 19 {
		t.Errorf("records of the new stream: %v", got)
	}
}

// TestMemoryStreamIsReplacedUnderLoad: frames that were on their way when the
// stream was lost are in the new one once, and in order.
func TestMemoryStreamIsReplacedUnderLoad(t *testing.T) {
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{Memory: true})
	p := start(t, producer.Options{URL: s.URL(), Limits: subjects.Limits{ReconnectMin: time.Millisecond, ReconnectMax: 20 * time.Millisecond}})
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			count(p, i, i+1)
			p.Record(subjects.PlaneConsole, "message", map[string]any{"type": "log", "args": []int{i}})
			p.Record(subjects.PlaneNet, "unknown", i)
			select {
			case <-quit:
				return
			case <-tick.C:
			}
		}
	}()
	for round := range 5 {
		natstest.Until(t, "records are stored", func() bool { return p.Stats().Planes[subjects.PlaneConsole].Published > uint64(round+1)*100 })
		s.Stop()
		s.Run()
		s.Streams(space, subjects.Storage{Memory: true})
		natstest.Until(t, "the source opened again", func() bool { st := p.Stats(); return st.Reopened == uint64(round+1) && st.Opened })
	}
	close(quit)
	<-done
	flush(t, p)
	end(t, p)
	src := only(t, folded(t, s))
	if src.Generation != p.Generation() || src.Late != 0 || src.Lost() != 0 {
		t.Errorf("generation %s (now %s), %d late frames, %d lost", src.Generation, p.Generation(), src.Late, src.Lost())
	}
	got := numbers(t, s, p.ID())
	for i := 1; i < len(got); i++ {
		if got[i] != got[i-1]+1 {
			t.Fatalf("number %d comes after %d", got[i], got[i-1])
		}
	}
}

func TestFrozenAcks(t *testing.T) {
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{Memory: true})
	x := natstest.NewProxy(t, s, nil)
	p := start(t, producer.Options{URL: x.URL()})
	count(p, 0, 10)
	flush(t, p)
	x.Freeze(true)
	began := time.Now()
	count(p, 10, 2000)
	if d := time.Since(began); d > time.Second {
		t.Errorf("recording took %v while nothing is acknowledged", d)
	}
	natstest.Until(t, "a frame is resent or the connection is given up", func() bool {
		st := p.Stats()
		return st.Planes[subjects.PlaneEvent].Resent > 0 || !st.Connected
	})
	x.Freeze(false)
	flush(t, p)
	wantCount(t, numbers(t, s, p.ID()), 2000)
	only(t, folded(t, s))
}

func TestLostAck(t *testing.T) {
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{Memory: true})
	swallow := make(chan struct{}, 3)
	x := natstest.NewProxy(t, s, func(b []byte) []byte {
		// An acknowledgement begins a protocol line with MSG or HMSG and names its stream.
		if strings.Contains(string(b), `{"stream":`) {
			select {
			case <-swallow:
				return nil
			default:
			}
		}
		return b
	})
	p := start(t, producer.Options{URL: x.URL()})
	count(p, 0, 10)
	flush(t, p)
	swallow <- struct{}{}
	count(p, 10, 30)
	natstest.Until(t, "the acknowledgement is swallowed", func() bool { return len(swallow) == 0 })
	// Cutting the connection makes it certain now that it was lost.
	x.Cut()
	flush(t, p)
	if p.Stats().Planes[subjects.PlaneEvent].Resent == 0 {
		t.Error("nothing was resent")
	}
	wantCount(t, numbers(t, s, p.ID()), 30)
	only(t, folded(t, s))
}

func TestEvictedTail(t *testing.T) {
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{Memory: true}, func(c *jetstream.StreamConfig) { c.MaxAge, c.Duplicates = 200*time.Millisecond, 100*time.Millisecond })
	p := start(t, producer.Options{URL: s.URL()})
	count(p, 0, 5)
	body(p, "a", "x")
	flush(t, p)
	natstest.Until(t, "everything is evicted", func() bool {
		return len(s.Read(subjects.RecordStreamName(space))) == 0 && len(s.Read(subjects.BodyStreamName(space))) == 0
	})
	count(p, 5, 10)
	body(p, "b", "y")
	flush(t, p)
	if st := p.Stats(); st.Gaps != 0 || st.Reopened != 0 || st.Planes[subjects.PlaneEvent].Published != 10 || st.Bodies.Published != 2 {
		t.Errorf("stats %+v", st)
	}
}

func body(p *producer.Producer, id network.RequestID, text string) {
	b := p.Body(id, subjects.ResponseBody)
	b.Write([]byte(text))
	b.End(subjects.BodyComplete, int64(len(text)))
}

func TestTwoProducers(t *testing.T) {
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{Memory: true})
	a := start(t, producer.Options{URL: s.URL(), Service: "A"})
	b := start(t, producer.Options{URL: s.URL(), Service: "a"})
	if a.ID() == b.ID() {
		t.Fatalf("both are %s", a.ID())
	}
	for i := range 200 {
		count(a, i, i+1)
		count(b, i, i+1)
	}
	flush(t, a)
	flush(t, b)
	wantCount(t, numbers(t, s, a.ID()), 200)
	wantCount(t, numbers(t, s, b.ID()), 200)
	if n := len(folded(t, s).Sources()); n != 2 {
		t.Errorf("%d sources", n)
	}
}

func TestGivenConnectionStaysOpen(t *testing.T) {
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{Memory: true})
	nc := s.Connect()
	p := start(t, producer.Options{Conn: nc})
	count(p, 0, 10)
	end(t, p)
	wantCount(t, numbers(t, s, p.ID()), 10)
	if !nc.IsConnected() || nc.NumSubscriptions() != 0 {
		t.Errorf("connected %v, %d subscriptions left", nc.IsConnected(), nc.NumSubscriptions())
	}
}

// TestCloseDoesNotWaitForNobody: without a deadline, a program that ends does not wait for a server that is away.
func TestCloseDoesNotWaitForNobody(t *testing.T) {
	p := start(t, producer.Options{URL: "nats://127.0.0.1:1"})
	count(p, 0, 10)
	began := time.Now()
	if err := p.Close(context.Background()); !errors.Is(err, producer.ErrUnflushed) || !strings.Contains(err.Error(), "no connection") {
		t.Errorf("error %v", err)
	}
	if d := time.Since(began); d > 2*time.Second {
		t.Errorf("Close took %v", d)
	}
}

func TestCloseWithoutServer(t *testing.T) {
	p := start(t, producer.Options{URL: "nats://127.0.0.1:1"})
	count(p, 0, 10)
	began := time.Now()
	err := p.Close(within(t, 100*time.Millisecond))
	if !errors.Is(err, producer.ErrUnflushed) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if d := time.Since(began); d > time.Second {
		t.Errorf("Close took %v", d)
	}
	if err := p.Close(context.Background()); err != nil {
		t.Errorf("second Close: %v", err)
	}
	p.Record(subjects.PlaneConsole, "message", 1)
	if err := p.Publish("x", 1); !errors.Is(err, producer.ErrClosed) {
		t.Errorf("Publish after Close: %v", err)
	}
	if err := p.Flush(context.Background()); !errors.Is(err, producer.ErrClosed) {
		t.Errorf("Flush after Close: %v", err)
	}
}

// TestRedactOptions refuses rules that cannot work when the source starts, not when a secret has leaked.
func TestRedactOptions(t *testing.T) {
	if _, err := producer.Start(producer.Options{Service: "x", Redact: producer.Redact{Patterns: []string{"("}}}); !errors.Is(err, producer.ErrOptions) || !strings.Contains(err.Error(), "pattern") {
		t.Errorf("a pattern that does not compile: %v", err)
	}
}
