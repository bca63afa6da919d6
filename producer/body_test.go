package producer

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

func newTestBodies(l subjects.Limits) *Producer {
	return &Producer{o: Options{Limits: l.WithDefaults()}, bodies: newBodyQueue(l.WithDefaults(), func() {})}
}

// drain takes all pieces and returns what each body has, by request.
func drain(t *testing.T, q *bodyQueue, limit int) (data map[string][]byte, ends map[string]piece) {
	t.Helper()
	data, ends = make(map[string][]byte), make(map[string]piece)
	for p := q.take(limit); p != nil; p = q.take(limit) {
		id := string(p.body.request)
		if len(p.data) > limit || p.offset != int64(len(data[id])) || ends[id].end != "" {
			t.Fatalf("%s: %d bytes at %d after %d, end %q", id, len(p.data), p.offset, len(data[id]), ends[id].end)
		}
		data[id] = append(data[id], p.data...)
		if p.end != "" {
			ends[id] = *p
		}
		q.settle(p, true)
	}
	if q.bytes != 0 || q.inflight != 0 {
		t.Fatalf("an empty queue counts %d bytes", q.bytes)
	}
	return data, ends
}

func TestBodiesInterleave(t *testing.T) {
	for seed := range uint64(10) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		p := newTestBodies(subjects.Limits{BodyChunkBytes: 10})
		want := make(map[string][]byte)
		bodies := make(map[string]*Body)
		got, ends := make(map[string][]byte), make(map[string]piece)
		for i := range 5 {
			id := fmt.Sprint("r", i)
			bodies[id] = p.Body(network.RequestID(id), subjects.RequestBody)
		}
		for range 200 {
			id := fmt.Sprint("r", rnd.IntN(5))
			chunk := make([]byte, rnd.IntN(25))
			for i := range chunk {
				chunk[i] = byte(rnd.Uint32())
			}
			bodies[id].Write(chunk)
			want[id] = append(want[id], chunk...)
			if rnd.IntN(4) == 0 {
				if x := p.bodies.take(7); x != nil {
					got[string(x.body.request)] = append(got[string(x.body.request)], x.data...)
					p.bodies.settle(x, true)
				}
			}
			if rnd.IntN(10) == 0 {
				if x := p.bodies.take(7); x != nil {
					p.bodies.putBack(x)
				}
			}
		}
		for _, b := range bodies {
			b.End(subjects.BodyComplete, -1)
			b.End(subjects.BodyAborted, 5)
			b.Write([]byte("late"))
		}
		for x := p.bodies.take(7); x != nil; x = p.bodies.take(7) {
			id := string(x.body.request)
			if x.offset != int64(len(got[id])) {
				t.Fatalf("seed %d: %s continues at %d after %d", seed, id, x.offset, len(got[id]))
			}
			got[id] = append(got[id], x.data...)
			if x.end != "" {
				ends[id] = *x
			}
			p.bodies.settle(x, true)
		}
		for id, w := range want {
			if !bytes.Equal(got[id], w) || ends[id].end != subjects.BodyComplete || ends[id].total != int64(len(w)) || bodies[id].Captured() != int64(len(w)) {
				t.Fatalf("seed %d: %s has %d of %d bytes, ends %q with %d", seed, id, len(got[id]), len(w), ends[id].end, ends[id].total)
			}
		}
		if done, queued := p.bodies.settled(); done != queued {
			t.Fatalf("seed %d: %d of %d settled", seed, done, queued)
		}
	}
}

func TestBodyLimits(t *testing.T) {
	p := newTestBodies(subjects.Limits{RequestBodyBytes: 10, ResponseBodyBytes: 20, BodyChunkBytes: 8})
	for _, c := range []struct {
		id     string
		d      subjects.Direction
		n      int
		reason string
		total  int64
		want   int
		end    string
		seen   int64
	}{
		{"exact", subjects.RequestBody, 10, subjects.BodyComplete, 10, 10, subjects.BodyComplete, 10},
		{"over", subjects.RequestBody, 11, subjects.BodyComplete, 11, 10, subjects.BodyTruncated, 11},
		{"wide", subjects.ResponseBody, 20, subjects.BodyComplete, -1, 20, subjects.BodyComplete, 20},
		{"aborted", subjects.ResponseBody, 30, subjects.BodyAborted, 100, 20, subjects.BodyAborted, 100},
		{"empty", subjects.ResponseBody, 0, subjects.BodyComplete, 0, 0, subjects.BodyComplete, 0},
		{"unknown", subjects.ResponseBody, 5, "because", 5, 5, subjects.BodyAborted, 5},
		{"announced", subjects.ResponseBody, 5, subjects.BodyTruncated, 2, 5, subjects.BodyTruncated, 5},
	} {
		b := p.Body(network.RequestID(c.id), c.d)
		for range c.n {
			b.Write([]byte{'x'})
		}
		b.End(c.reason, c.total)
		if b.Truncated() != (c.n > c.want) || b.Captured() != int64(c.want) {
			t.Errorf("%s: truncated %v, captured %d", c.id, b.Truncated(), b.Captured())
		}
		data, ends := drain(t, p.bodies, 8)
		if len(data[c.id]) != c.want || ends[c.id].end != c.end || ends[c.id].total != c.seen {
			t.Errorf("%s: %d bytes, ends %q with %d", c.id, len(data[c.id]), ends[c.id].end, ends[c.id].total)
		}
	}
}

func TestBodiesUnderPressure(t *testing.T) {
	p := newTestBodies(subjects.Limits{BodyQueueBytes: 100, QueueRecords: 20, BodyChunkBytes: 10})
	for i := range 100 {
		b := p.Body(network.RequestID(fmt.Sprint(i)), subjects.ResponseBody)
		b.Write(make([]byte, 30))
		b.End(subjects.BodyComplete, 30)
		if p.bodies.bytes > 100 || len(p.bodies.pieces) > 40 {
			t.Fatalf("%d bytes in %d pieces wait", p.bodies.bytes, len(p.bodies.pieces))
		}
	}
	data, ends := drain(t, p.bodies, 10)
	if len(data["0"]) != 30 || ends["0"].end != subjects.BodyComplete {
		t.Errorf("the first body has %d bytes and ends %q", len(data["0"]), ends["0"].end)
	}
	if len(data["5"]) != 0 || ends["5"].end != subjects.BodyTruncated || ends["5"].total != 30 {
		t.Errorf("a body without room has %d bytes, ends %+v", len(data["5"]), ends["5"])
	}
	if p.bodies.cuts == 0 || p.bodies.lost == 0 {
		t.Errorf("%d cut, %d lost", p.bodies.cuts, p.bodies.lost)
	}
	// A piece that cannot be delivered leaves a hole, so its body is not complete.
	b := p.Body("hole", subjects.ResponseBody)
	b.Write(make([]byte, 10))
	p.bodies.settle(p.bodies.take(10), false)
	b.Write(make([]byte, 10))
	b.End(subjects.BodyComplete, 20)
	if _, ends := drainFrom(p.bodies); ends != subjects.BodyTruncated || !b.Truncated() {
		t.Errorf("ends %q", ends)
	}
}

func drainFrom(q *bodyQueue) (n int, end string) {
	for p := q.take(100); p != nil; p = q.take(100) {
		n += len(p.data)
		end = p.end
		q.settle(p, true)
	}
	return n, end
}

// A piece of a body expects the newest piece of its own body, and nothing about
// others: a server looks for what a message expects in all that it keeps, which
// took a millisecond with 10 000 bodies when one chain ran over all of them.
func TestEachBodyIsAChainOfItsOwn(t *testing.T) {
	p := newTestBodies(subjects.Limits{BodyChunkBytes: 10})
	l := &lane{p: p, bodies: p.bodies}
	a, b := p.Body("a", subjects.ResponseBody), p.Body("b", subjects.ResponseBody)
	want := []struct {
		write    *Body
		expected uint64
		stored   uint64
	}{{a, 0, 5}, {b, 0, 6}, {a, 5, 9}, {a, 9, 12}, {b, 6, 13}}
	for i, w := range want {
		w.write.Write([]byte("0123456789"))
		l.load(time.Now(), identity{source: "s", generation: "g"}, 100)
		if l.out.filter != "" || l.last != w.expected {
			t.Fatalf("piece %d expects %d on %q, want %d on its own subject", i, l.last, l.out.filter, w.expected)
		}
		l.last = w.stored
		l.done(true)
	}
}
