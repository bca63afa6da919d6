package shop

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/tree"
)

// broker runs a NATS server with the streams of the default space and returns its URL.
func broker(t *testing.T) string {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true, JetStream: true, StoreDir: t.TempDir(), JetStreamMaxMemory: 256 << 20})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the NATS server does not start")
	}
	js := jetStream(t, s.ClientURL())
	storage := subjects.Storage{Memory: true, RecordBytes: 64 << 20, BodyBytes: 64 << 20}
	for _, c := range []jetstream.StreamConfig{subjects.RecordStream(subjects.DefaultSpace, storage), subjects.BodyStream(subjects.DefaultSpace, storage)} {
		if _, err := js.CreateStream(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	return s.ClientURL()
}

func jetStream(t *testing.T, url string) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// watcher folds what a shop publishes, as a gateway does.
type watcher struct {
	mu    sync.Mutex // guards all below
	space *fold.Space
	// packers counts the packers that came, gone those that went again.
	packers, gone int
	faults        []string
}

// watch follows the records of the default space.
func watch(t *testing.T, url string) *watcher {
	t.Helper()
	w := &watcher{space: fold.New(subjects.DefaultSpace, subjects.DefaultLimits())}
	c, err := jetStream(t, url).OrderedConsumer(t.Context(), subjects.RecordStreamName(subjects.DefaultSpace), jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	cc, err := c.Consume(func(m jetstream.Msg) {
		meta, err := m.Metadata()
		if err != nil {
			t.Error(err)
			return
		}
		w.apply(m.Subject(), meta.Sequence.Stream, subjects.Header(m.Headers()), m.Data())
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cc.Stop()
		<-cc.Closed()
	})
	return w
}

func (w *watcher) apply(subject string, seq uint64, h subjects.Header, data []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.space.Apply(subject, subjects.StreamSeq(seq), h, data) {
		switch {
		case c.Kind == fold.FaultAdded:
			w.faults = append(w.faults, c.Fault.Text)
		case c.Kind == fold.TreeChanged && attr(c.Tree.Entry, "name") == "packer":
			switch c.Tree.Kind {
			case tree.Inserted:
				w.packers++
			case tree.Removed:
				w.gone++
			}
		}
	}
}

// until waits until ok says yes of the shop's state.
func (w *watcher) until(t *testing.T, what string, ok func(*fold.Source) bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		w.mu.Lock()
		src := w.space.Source(subjects.NewSourceID("shop", "test"))
		done := src != nil && ok(src)
		w.mu.Unlock()
		if done {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
		<-tick.C
	}
}

func attr(e *tree.Entry, name string) string {
	for _, a := range e.Attrs {
		if a.Name == name {
			return a.Value
		}
	}
	return ""
}

// find returns the first node with the given name and attribute.
func find(src *fold.Source, node, name, value string) *tree.Entry {
	if src.Tree.Root == nil {
		return nil
	}
	var found *tree.Entry
	src.Tree.Root.Walk(func(e *tree.Entry) bool {
		if e.Name == node && attr(e, name) == value {
			found = e
		}
		return found == nil
	})
	return found
}

// request returns whether a request whose URL contains path ended as wanted.
func request(src *fold.Source, path string, ending network.Ending, status int) bool {
	return slices.ContainsFunc(src.Net.Requests, func(r *network.Request) bool {
		return strings.Contains(r.Start.Value.URL, path) && r.Ending == ending && (status == 0 || r.Response != nil && r.Response.Value.Status == status)
	})
}

// logged returns whether the console has a message with the text and of the type.
func logged(src *fold.Source, kind, text string) bool {
	return slices.ContainsFunc(src.Console.Entries, func(e *console.Entry) bool {
		return e.Message != nil && e.Message.Type == kind && strings.Contains(string(bytes.Join(rawArgs(e.Message), []byte(" "))), text)
	})
}

func rawArgs(m *console.Message) (out [][]byte) {
	for _, a := range m.Args {
		out = append(out, a)
	}
	return out
}

// TestWhatAViewerSees runs a quick shop and waits for everything that the demo promises to show.
func TestWhatAViewerSees(t *testing.T) {
	url := broker(t)
	w := watch(t, url)
	s := open(t, Options{NATS: url, Interval: 20 * time.Millisecond})

	w.until(t, "the descriptor", func(src *fold.Source) bool {
		d := src.Life.Descriptor
		return d.Name == "shop" && d.Title == "Coffee shop" && d.URL == s.URL()
	})
	w.until(t, "products are read", func(src *fold.Source) bool { return request(src, "/api/products", network.Finished, 200) })
	w.until(t, "an order is placed", func(src *fold.Source) bool { return request(src, "/api/orders", network.Finished, 201) })
	w.until(t, "the slow endpoint answers", func(src *fold.Source) bool { return request(src, "/api/slow", network.Finished, 200) })
	w.until(t, "the failing endpoint fails", func(src *fold.Source) bool { return request(src, "/api/fail", network.Finished, 500) })
	w.until(t, "the refused port refuses", func(src *fold.Source) bool { return request(src, "/api/rates", network.Failed, 0) })
	w.until(t, "the stream stays open and grows", func(src *fold.Source) bool {
		return slices.ContainsFunc(src.Net.Requests, func(r *network.Request) bool {
			return strings.HasSuffix(r.Start.Value.URL, "/api/stream") && r.Ending == network.Running && r.Received.Bytes > 200
		})
	})
	for _, d := range []network.Direction{network.Incoming, network.Outgoing} {
		w.until(t, "prices are told event by event, "+string(d), func(src *fold.Source) bool {
			return slices.ContainsFunc(src.Net.Requests, func(r *network.Request) bool {
				return r.Start.Value.Direction == d && strings.HasSuffix(r.Start.Value.URL, "/api/stream") && len(r.Messages) > 2 && r.Messages[0].Value.Event == "price"
			})
		})
		w.until(t, "the kitchen talks over a WebSocket, "+string(d), func(src *fold.Source) bool {
			return slices.ContainsFunc(src.Net.Requests, func(r *network.Request) bool {
				return r.Start.Value.Direction == d && r.Start.Value.Type == "websocket" && r.Response != nil && r.Response.Value.Status == 101 &&
					slices.ContainsFunc(r.Messages, func(m network.Timed[network.Message]) bool {
						return strings.Contains(m.Value.Data, "cooking") && m.Value.Sent == (d == network.Outgoing)
					})
			})
		})
	}
	w.until(t, "a served request names its route", func(src *fold.Source) bool {
		return slices.ContainsFunc(src.Net.Requests, func(r *network.Request) bool {
			return r.Response != nil && r.Response.Value.Route == "POST /api/orders"
		})
	})
	for kind, text := range map[string]string{"debug": "price changed", "info": "order placed", "warning": "exchange rates", "error": "payment provider is down"} {
		w.until(t, "a line of type "+kind, func(src *fold.Source) bool { return logged(src, kind, text) })
	}
	w.until(t, "packers come and go", func(*fold.Source) bool { return w.packers >= 3 && w.gone >= 3 })
	w.until(t, "a worker counts its jobs", func(src *fold.Source) bool {
		e := find(src, "worker", "name", "checkout")
		return e != nil && attr(e, "jobs") >= "2" && e.Parent.Name == "workers" && e.Parent.Parent.Name == "service"
	})
	w.until(t, "a route counts its hits", func(src *fold.Source) bool {
		e := find(src, "route", "pattern", "/api/fail")
		return e != nil && attr(e, "count") != "0" && attr(e, "status") == "500"
	})
	w.until(t, "connections are shown", func(src *fold.Source) bool { return find(src, "connection", "state", "active") != nil })
	w.until(t, "stock falls", func(src *fold.Source) bool {
		e := find(src, "item", "SKU", "mug")
		return e != nil && attr(e, "Stock") != "24" && attr(e, "Cents") != "" && attr(e, "Name") == "Stoneware mug"
	})

	w.until(t, "the process is shown", func(src *fold.Source) bool { return find(src, "process", "pid", strconv.Itoa(os.Getpid())) != nil })
	w.until(t, "pricing is shown as a live value", func(src *fold.Source) bool {
		e := find(src, "pricing", "Interval", "40ms")
		return e != nil && attr(e, "Changes") > "0" && e.Values["Product"] != nil && e.Object != ""
	})

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
	w.until(t, "the goodbye", func(src *fold.Source) bool { return src.Life.Closed })
	w.mu.Lock()
	defer w.mu.Unlock()
	src := w.space.Source(s.Source())
	for _, r := range src.Net.Requests {
		if r.Ending == network.Running {
			t.Errorf("%s still runs after the shop was closed", r.Start.Value.URL)
		}
		for _, f := range r.Start.Value.Stack {
			if f.Function == "" || f.URL == "" || f.Line == 0 {
				t.Errorf("stack frame %+v", f)
			}
		}
	}
	if len(w.faults) > 0 || src.Lost() > 0 {
		t.Errorf("faults %v, %d records lost", w.faults, src.Lost())
	}
}

// TestSettings edits the shop while it runs, as a viewer does.
func TestSettings(t *testing.T) {
	url := broker(t)
	w := watch(t, url)
	s := open(t, Options{NATS: url, Interval: time.Hour})
	var id, process tree.NodeID
	w.until(t, "the settings", func(src *fold.Source) bool {
		e, p := find(src, "pricing", "Paused", "false"), find(src, "process", "watched", "false")
		if e == nil || p == nil {
			return false
		}
		id, process = e.ID, p.ID
		return true
	})
	for _, c := range []struct {
		id               tree.NodeID
		name, value, why string
	}{
		{id, "Interval", `"150ms"`, ""}, {id, "Interval", `"1ms"`, "not between 100ms and 1m0s"},
		{id, "Paused", `"true"`, ""}, {id, "Changes", `1`, `it has "Interval", "Paused"`}, {process, "watched", `"true"`, ""},
	} {
		err := s.tree.Edit(c.id, c.name, json.RawMessage(c.value))
		if (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s = %s: %v", c.name, c.value, err)
		}
	}
	w.until(t, "the edits show", func(src *fold.Source) bool {
		e := find(src, "pricing", "Interval", "150ms")
		return e != nil && attr(e, "Paused") == "true" && find(src, "process", "watched", "true") != nil && find(src, "group", "state", "select") != nil
	})
	if s.pricing.pace() != 150*time.Millisecond {
		t.Errorf("the pace is %s", s.pricing.pace())
	}
	before := s.stock.list()
	if err := s.changePrice(t.Context(), 1); err != nil || !slices.Equal(before, s.stock.list()) {
		t.Errorf("a price changed while prices are paused (%v)", err)
	}
}

// TestNodeNamesAreElementNames keeps names out of the tree that DevTools shows as custom elements.
func TestNodeNamesAreElementNames(t *testing.T) {
	url := broker(t)
	w := watch(t, url)
	open(t, Options{NATS: url, Interval: 20 * time.Millisecond})
	w.until(t, "the tree", func(src *fold.Source) bool { return find(src, "worker", "name", "packer") != nil })
	w.mu.Lock()
	defer w.mu.Unlock()
	w.space.Source(subjects.NewSourceID("shop", "test")).Tree.Root.Walk(func(e *tree.Entry) bool {
		if !regexp.MustCompile(`^[a-z][A-Za-z]*$`).MatchString(e.Name) {
			t.Errorf("node %q", e.Name)
		}
		return true
	})
}
