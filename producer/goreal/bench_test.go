package goreal

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/subjects/realm"
)

// BenchmarkEvaluate is an evaluation over NATS, beside a bare request and its
// reply on the same server.
func BenchmarkEvaluate(b *testing.B) {
	c := overNATS(b)
	defer c.sessions.Close()
	r := New(c.producer, Options{})
	closeRealm(b, r)
	if err := r.Expose("store", testStore(), nil); err != nil {
		b.Fatal(err)
	}
	c.eval("a", "1")
	nc := c.server.Connect()
	if _, err := nc.Subscribe("bare", func(m *nats.Msg) { _ = m.Respond(m.Data) }); err != nil {
		b.Fatal(err)
	}
	body := []byte(`{"method":"runtime.evaluate","params":{"expression":"store.Orders[7].ID"}}`)
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := nc.Request("bare", body, time.Second); err != nil {
				b.Fatal(err)
			}
		}
	})
	ask := func(params m) func(b *testing.B) {
		raw, _ := json.Marshal(params)
		return func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.sessions.Do(context.Background(), c.at, "a", realm.Request{Method: "runtime.evaluate", Params: raw}); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	b.Run("evaluate", ask(m{"expression": "store.Orders[7].ID", "replMode": true, "silent": true}))
	b.Run("eager", ask(m{"expression": "store.Orders[7].Items.map(i => i.Price)", "throwOnSideEffect": true, "generatePreview": true}))
	b.Run("preview", ask(m{"expression": "store.Orders[7]", "generatePreview": true, "objectGroup": "console", "silent": true}))
}

// discard is a SessionOut for benchmarks.
type discard struct{}

func (discard) Emit(string, any)                            {}
func (discard) EmitWait(context.Context, string, any) error { return nil }

// do carries out a command without NATS.
func do(s *session, method string, params any) json.RawMessage {
	raw, _ := json.Marshal(params)
	done := make(chan json.RawMessage, 1)
	s.Do(context.Background(), realm.Method(method), raw, func(result any, err error) {
		data, _ := json.Marshal(result)
		if err != nil {
			data = nil
		}
		done <- data
	})
	return <-done
}

// BenchmarkEvaluateLocal is the realm's own share of an evaluation.
func BenchmarkEvaluateLocal(b *testing.B) {
	r := newRealm(nil, Options{})
	if err := r.Expose("store", testStore(), nil); err != nil {
		b.Fatal(err)
	}
	s := r.open(discard{})
	defer s.Close(nil)
	b.ReportAllocs()
	for b.Loop() {
		if do(s, "runtime.evaluate", m{"expression": "store.Orders[7].ID", "replMode": true, "silent": true}) == nil {
			b.Fatal("no answer")
		}
	}
}

// BenchmarkExpandMillion is what DevTools asks to expand a list of a million
// elements and a hundred of them: the ranges, and the elements with previews.
func BenchmarkExpandMillion(b *testing.B) {
	r := newRealm(nil, Options{})
	list := make([]*item, 1_000_000)
	for i := range list {
		list[i] = &item{Qty: i}
	}
	if err := r.Expose("list", list, Immutable); err != nil {
		b.Fatal(err)
	}
	s := r.open(discard{})
	defer s.Close(nil)
	var out evaluated
	if err := json.Unmarshal(do(s, "runtime.evaluate", m{"expression": "list", "objectGroup": "x"}), &out); err != nil {
		b.Fatal(err)
	}
	id := out.Result.ObjectID
	number := func(n int) m { return m{"value": n} }
	b.ReportAllocs()
	for b.Loop() {
		if do(s, "runtime.callFunctionOn", m{"objectId": id, "returnByValue": true, "functionDeclaration": "function n(o,i,a,g){ArrayBuffer.isView(this);return{ranges:[]}}", "arguments": []m{number(0), number(999_999), number(100), number(250_000)}}) == nil {
			b.Fatal("no ranges")
		}
		var part evaluated
		_ = json.Unmarshal(do(s, "runtime.callFunctionOn", m{"objectId": id, "functionDeclaration": "function c(r,e,t){let n=Object.create(null);for(let o=r;o<=e;++o)o in this&&(n[o]=this[o]);return n}", "arguments": []m{number(500_000), number(500_099), number(250_000)}}), &part)
		if len(do(s, "runtime.getProperties", m{"objectId": part.Result.ObjectID, "generatePreview": true})) < 1000 {
			b.Fatal("no elements")
		}
	}
}

// BenchmarkNew is a realm that nobody looks at.
func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		newRealm(nil, Options{})
	}
}

// BenchmarkFirst is a realm up to its first answer.
func BenchmarkFirst(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		s := newRealm(nil, Options{}).open(discard{})
		if do(s, "runtime.evaluate", m{"expression": "1"}) == nil {
			b.Fatal("no answer")
		}
		s.Close(nil)
	}
}

var _ producer.SessionOut = discard{}

// BenchmarkKeepIdle is a log line while no session is open.
func BenchmarkKeepIdle(b *testing.B) {
	r := newRealm(nil, Options{})
	b.ReportAllocs()
	for b.Loop() {
		r.Keep("text", 1)
	}
}
