package v8

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/subjects/realm"
)

// BenchmarkEvaluate compares an evaluation over NATS with one on the engine's own port.
func BenchmarkEvaluate(b *testing.B) { compare(b, "runtime.evaluate", `{"expression":"1+1"}`) }

// BenchmarkRoundTrip is a bare request and its answer over the same NATS server:
// what an evaluation costs more than on the engine's port at the very least.
func BenchmarkRoundTrip(b *testing.B) {
	w := newWorld(b)
	data := []byte(`{"method":"runtime.evaluate","params":{"expression":"1+1"}}`)
	if _, err := w.conn.Subscribe("echo", func(m *nats.Msg) { _ = m.Respond(m.Data) }); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := w.conn.Request("echo", data, time.Minute); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLargeResult compares an evaluation with a result of 10 MB.
func BenchmarkLargeResult(b *testing.B) {
	compare(b, "runtime.evaluate", `{"expression":"'x'.repeat(10e6)","returnByValue":true}`)
}

// BenchmarkStep compares a step in the debugger, from the command to the next
// pause, over NATS with one on the engine's own port.
func BenchmarkStep(b *testing.B) {
	w, p, a := benched(b)
	_ = w
	b.Run("natscope", func(b *testing.B) {
		a.do("debugger.enable", "")
		a.do("debugger.pause", "")
		a.paused()
		for b.Loop() {
			a.mu.Lock()
			a.events = nil
			a.mu.Unlock()
			a.do("debugger.stepInto", "")
			for a.count("debugger.paused") == 0 {
				time.Sleep(20 * time.Microsecond)
			}
		}
		a.do("debugger.disable", "")
	})
	b.Run("port", func(b *testing.B) {
		var pauses atomic.Int64
		l := straight(b, p, func(m string, _ json.RawMessage) {
			if m == "Debugger.paused" {
				pauses.Add(1)
			}
		})
		step := func(method string) {
			before := pauses.Load()
			if _, err := l.call(b.Context(), method, nil); err != nil {
				b.Fatal(err)
			}
			for pauses.Load() == before {
				time.Sleep(20 * time.Microsecond)
			}
		}
		if _, err := l.call(b.Context(), "Debugger.enable", nil); err != nil {
			b.Fatal(err)
		}
		step("Debugger.pause")
		for b.Loop() {
			step("Debugger.stepInto")
		}
	})
}

// BenchmarkHeapSnapshot compares a heap snapshot over NATS with one on the engine's own port.
func BenchmarkHeapSnapshot(b *testing.B) { compare(b, "heap.takeHeapSnapshot", `{}`) }

// benched is a program and a session with it.
func benched(b *testing.B) (*world, *program, *asker) {
	w := newWorld(b)
	p := node(b, 0, "bench.js", steered+"globalThis.kept = Array.from({length: 100000}, (_, i) => ({i, s: 'x' + i})); let x = 0; setInterval(() => { for (let i = 0; i < 100; i++) x += i }, 1)")
	w.attach(Options{Endpoints: []string{p.endpoint}})
	a := newOffice(w).ask("bench.js")
	a.do("runtime.evaluate", `{"expression":"1"}`)
	return w, p, a
}

// straight is a connection to the engine's own port.
func straight(b testing.TB, p *program, event func(string, json.RawMessage)) *link {
	var list []listed
	if err := get(b.Context(), p.endpoint, "/json/list", &list); err != nil {
		b.Fatal(err)
	}
	l, err := dial(b.Context(), list[0].socket(p.endpoint), event)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.close(); <-l.closed })
	return l
}

func compare(b *testing.B, method, params string) {
	_, p, a := benched(b)
	b.Run("natscope", func(b *testing.B) {
		for b.Loop() {
			a.mu.Lock()
			a.events = nil
			a.mu.Unlock()
			a.do(method, params)
		}
	})
	b.Run("port", func(b *testing.B) {
		var bytes atomic.Int64
		l := straight(b, p, func(_ string, params json.RawMessage) { bytes.Add(int64(len(params))) })
		name, _ := commandOf(realm.Method(method))
		for b.Loop() {
			ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
			if _, err := l.call(ctx, name, json.RawMessage(params)); err != nil {
				b.Fatal(err)
			}
			cancel()
		}
		b.ReportMetric(float64(bytes.Load())/float64(b.N)/1e6, "MB/op")
	})
}
