package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natscope/natscope/embedded"
	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
)

// clock notes when numbered things leave, and how long each takes to arrive.
type clock struct {
	mu   sync.Mutex // guards all below
	left map[int]time.Time
	took sample
	last int
}

func newClock() *clock { return &clock{left: make(map[int]time.Time)} }

// leave returns the next number.
func (c *clock) leave() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	c.left[c.last] = time.Now()
	return c.last
}

func (c *clock) arrive(n int) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.left[n]
	if !ok {
		return
	}
	c.took.add(float64(now.Sub(at)) / float64(time.Microsecond))
	delete(c.left, n)
}

// wait returns when everything has arrived.
func (c *clock) wait(b *testing.B) {
	b.Helper()
	until(b, "everything has arrived", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.left) == 0
	})
}

// pulse calls f n times, at a pause from each other.
func pulse(n int, pause time.Duration, f func()) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for range n {
		<-tick.C
		f()
	}
}

// line is a console message that says a number.
func line(n int) console.Message {
	return console.Message{Type: "log", Args: []json.RawMessage{strconv.AppendInt(nil, int64(n), 10)}}
}

// watcher calls a function with the number of every line.
type watcher func(int)

// Changed implements replica.Watcher.
func (w watcher) Changed(_ *fold.Space, changes []fold.Change) {
	for _, c := range changes {
		if c.Kind != fold.ConsoleAdded || c.Console.Message == nil {
			continue
		}
		if n, err := strconv.Atoi(string(c.Console.Message.Args[0])); err == nil {
			w(n)
		}
	}
}

// number returns the number that follows mark in a text, or 0.
func number(text []byte, mark string) int {
	_, rest, ok := bytes.Cut(text, []byte(mark))
	if !ok {
		return 0
	}
	end := 0
	for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
		end++
	}
	n, _ := strconv.Atoi(string(rest[:end]))
	return n
}

// ordered consumes a subject with the client library's ordered consumer until the benchmark ends.
func ordered(b *testing.B, js jetstream.JetStream, subject string, f func(data []byte)) {
	b.Helper()
	c, err := js.OrderedConsumer(b.Context(), subjects.RecordStreamName(subjects.DefaultSpace), jetstream.OrderedConsumerConfig{FilterSubjects: []string{subject}})
	if err != nil {
		b.Fatal(err)
	}
	cc, err := c.Consume(func(m jetstream.Msg) { f(m.Data()) })
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		cc.Stop()
		<-cc.Closed()
	})
}

// dial opens a WebSocket until the benchmark ends and calls f with every message.
func dial(b *testing.B, url string, f func([]byte)) *websocket.Conn {
	b.Helper()
	ws, _, err := websocket.DefaultDialer.DialContext(b.Context(), url, nil)
	if err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			_, data, err := ws.ReadMessage()
			if err != nil {
				return
			}
			f(data)
		}
	})
	b.Cleanup(func() {
		ws.Close()
		wg.Wait()
	})
	return ws
}

// relay is a WebSocket server that passes on what comes from a channel, as little code as can be. It returns its address.
func relay(b *testing.B, from <-chan []byte) string {
	b.Helper()
	up := websocket.Upgrader{}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		wg.Add(1)
		defer wg.Done()
		defer ws.Close()
		for {
			select {
			case <-stop:
				return
			case data := <-from:
				if ws.WriteMessage(websocket.TextMessage, data) != nil {
					return
				}
			}
		}
	}))
	b.Cleanup(func() {
		close(stop)
		wg.Wait()
		srv.Close()
	})
	return strings.Replace(srv.URL, "http:", "ws:", 1)
}

// gateway runs a gateway on a replica of its own until the benchmark ends, and returns the WebSocket address of its whole space.
func gateway(b *testing.B, addr string, l subjects.Limits) string {
	b.Helper()
	i, err := embedded.Start(b.Context(), embedded.Options{Conn: connect(b, addr), Parts: embedded.Parts{Gateway: true}, HTTPAddr: "127.0.0.1:0", Limits: l})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := i.Close(ctx); err != nil {
			b.Error(err)
		}
	})
	return strings.Replace(i.HTTP(), "http:", "ws:", 1) + "/devtools/page/" + string(subjects.DefaultSpace)
}

// openReplica joins a replica that the caller closes.
func openReplica(b *testing.B, o replica.Options) *replica.Replica {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	r, err := replica.Open(ctx, o)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// BenchmarkLatency is how long a console line takes from Record to a reader: to
// a watcher of a replica, and to a DevTools client of a gateway; beside one
// message from the client library's publish to its ordered consumer, and on to a
// WebSocket client. All four run on one server, and take turns.
//
// quiet has one line at a time with pauses between them, steady has 1000 a second.
func BenchmarkLatency(b *testing.B) {
	for _, load := range []struct {
		name  string
		n     int
		pause time.Duration
	}{{"quiet", 10, 60 * time.Millisecond}, {"steady", 300, time.Millisecond}} {
		b.Run(load.name, func(b *testing.B) {
			addr := startServer(b)
			js := jetStream(b, addr)
			streams(b, js, subjects.Storage{})
			p := startProducer(b, producer.Options{Service: "bench", URL: addr})
			folded, consumed, shown, relayed := newClock(), newClock(), newClock(), newClock()

			r := openReplica(b, replica.Options{Conn: connect(b, addr)})
			b.Cleanup(func() { _ = r.Close() })
			r.Watch(nil, watcher(folded.arrive))
			ws := dial(b, gateway(b, addr, subjects.Limits{}), func(data []byte) {
				if bytes.Contains(data, []byte("Runtime.consoleAPICalled")) {
					shown.arrive(number(data, `"value":`))
				}
			})
			if err := ws.WriteMessage(websocket.TextMessage, []byte(`{"id":1,"method":"Runtime.enable"}`)); err != nil {
				b.Fatal(err)
			}
			bareSubject := "natscope." + string(subjects.DefaultSpace) + ".rec.bare.1.console"
			passed := make(chan []byte, 1024)
			dial(b, relay(b, passed), func(data []byte) { relayed.arrive(number(data, `"value":`)) })
			ordered(b, js, bareSubject, func(data []byte) {
				consumed.arrive(number(data, `"value":`))
				passed <- bytes.Clone(data)
			})
			for b.Loop() {
				pulse(load.n, load.pause, func() {
					n := folded.leave()
					shown.leave()
					p.Record(subjects.PlaneConsole, console.TopicMessage, line(n))
				})
				folded.wait(b)
				shown.wait(b)
				pulse(load.n, load.pause, func() {
					n := consumed.leave()
					relayed.leave()
					if _, err := js.PublishAsync(bareSubject, []byte(`{"type":"log","value":`+strconv.Itoa(n)+`}`)); err != nil {
						b.Error(err)
					}
				})
				consumed.wait(b)
				relayed.wait(b)
			}
			for name, c := range map[string]*clock{"replica": folded, "bare": consumed, "devtools": shown, "bare-ws": relayed} {
				b.ReportMetric(c.took.quantile(0.5), name+"-p50-µs")
				b.ReportMetric(c.took.quantile(0.99), name+"-p99-µs")
			}
			b.ReportMetric(folded.took.median()/consumed.took.median(), "x-bare-p50")
			b.ReportMetric(shown.took.median()/relayed.took.median(), "x-bare-ws-p50")
			silent(b)
		})
	}
}
