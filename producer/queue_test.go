package producer

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/natscope/natscope/subjects"
)

// reader follows frames as the fold does and finds holes that nobody told of.
type reader struct {
	t       *testing.T
	next    uint64
	got     []int
	dropped uint64
}

func (r *reader) read(f *frame) {
	r.t.Helper()
	if f.seq != r.next+f.dropped {
		r.t.Fatalf("frame %d with %d dropped, expected %d", f.seq, f.dropped, r.next)
	}
	r.dropped += f.dropped
	r.next = f.seq + uint64(f.len())
	if n := strings.Count(string(f.body), "\n"); n != f.len() || !strings.HasSuffix(string(f.body), "}\n") {
		r.t.Fatalf("%d lines for %d records", n, f.len())
	}
	for line := range strings.Lines(string(f.body)) {
		var n int
		if _, err := fmt.Sscanf(line, `{"t":0,"topic":"n","data":%d}`, &n); err != nil {
			r.t.Fatalf("%q: %v", line, err)
		}
		r.got = append(r.got, n)
	}
}

// TestQueueAgainstReader plays random operations: whatever happens, numbers have
// no hole that is not told, nothing is doubled, and the counts add up.
func TestQueueAgainstReader(t *testing.T) {
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		q := newQueue(subjects.PlaneConsole, dropOldest, subjects.Limits{QueueRecords: 40, QueueBytes: 4000, FrameRecords: 7, FrameBytes: 600})
		r := &reader{t: t, next: 1}
		var out *frame
		pushed, gaveUp := 0, 0
		for range 400 {
			switch k := rnd.IntN(20); {
			case k < 11:
				q.push(0, "n", fmt.Append(nil, pushed))
				pushed++
			case k == 11:
				q.lose(uint64(rnd.IntN(3)))
			case k < 17 && out == nil:
				out = q.take(100 + rnd.IntN(600))
			case k == 17 && out != nil:
				q.putBack(out)
				out = nil
			case k == 18 && out != nil && rnd.IntN(4) == 0:
				gaveUp += out.len()
				q.settle(out, false)
				out = nil
			case out != nil:
				r.read(out)
				q.settle(out, true)
				out = nil
			}
		}
		if out != nil {
			q.putBack(out)
		}
		q.push(0, "n", fmt.Append(nil, pushed)) // so that losses at the end are told
		pushed++
		for f := q.take(600); f != nil; f = q.take(600) {
			r.read(f)
			q.settle(f, true)
		}
		for i := 1; i < len(r.got); i++ {
			if r.got[i] <= r.got[i-1] {
				t.Fatalf("seed %d: %d after %d", seed, r.got[i], r.got[i-1])
			}
		}
		done, recorded := q.settled()
		if r.dropped != q.dropped || recorded != uint64(len(r.got))+q.dropped || done != recorded {
			t.Fatalf("seed %d: read %d, told %d dropped, counted %d; recorded %d, settled %d, pushed %d", seed, len(r.got), r.dropped, q.dropped, recorded, done, pushed)
		}
		if q.records != 0 || q.bytes != 0 || q.boundedRecords != 0 || q.boundedBytes != 0 || q.inflight != 0 {
			t.Fatalf("seed %d: an empty queue counts %d records, %d bytes, %d and %d bounded", seed, q.records, q.bytes, q.boundedRecords, q.boundedBytes)
		}
	}
}

func TestQueueBounds(t *testing.T) {
	q := newQueue(subjects.PlaneNet, dropOldest, subjects.Limits{QueueRecords: 1000, QueueBytes: 2000, FrameRecords: 2048, FrameBytes: 512 << 10})
	for i := range 500 {
		q.push(0, "n", []byte(strings.Repeat("1", 1+i%50)))
		if q.bytes > 2000 {
			t.Fatalf("%d bytes wait", q.bytes)
		}
	}
	if q.dropped == 0 || q.records == 0 {
		t.Errorf("%d dropped, %d wait", q.dropped, q.records)
	}
	q = newQueue(subjects.PlaneLife, refuse, subjects.Limits{QueueRecords: 2, QueueBytes: 2000, FrameRecords: 2048, FrameBytes: 512 << 10})
	for i := range 5 {
		q.push(0, "n", fmt.Append(nil, i))
	}
	r := &reader{t: t, next: 1}
	f := q.take(1000)
	r.read(f)
	if q.settle(f, true); fmt.Sprint(r.got) != "[0 1]" || q.dropped != 3 {
		t.Errorf("kept %v, dropped %d", r.got, q.dropped)
	}
}

func TestQueueKeepsTopicsApart(t *testing.T) {
	q := newQueue(subjects.PlaneEvent, dropOldest, subjects.DefaultLimits())
	for _, topic := range []string{"a", "a", "b", "a"} {
		q.push(0, topic, []byte("1"))
	}
	var got []string
	for f := q.take(1 << 20); f != nil; f = q.take(1 << 20) {
		got = append(got, fmt.Sprint(f.topic, f.seq, f.len()))
		q.settle(f, true)
	}
	if s := strings.Join(got, " "); s != "a1 2 b3 1 a4 1" && s != "a12 b31 a41" {
		t.Error(s)
	}
}

func TestSnapshotGoesFirstAndIsExempt(t *testing.T) {
	q := newQueue(subjects.PlaneTree, coalesce, subjects.Limits{QueueRecords: 3, QueueBytes: 4000, FrameRecords: 4, FrameBytes: 2000})
	q.canCoalesce = true
	for i := range 10 {
		q.push(0, "n", fmt.Append(nil, i))
	}
	if !q.needSnapshot || q.coalesced == 0 || q.dropped != 0 {
		t.Fatalf("need %v, coalesced %d, dropped %d", q.needSnapshot, q.coalesced, q.dropped)
	}
	q.replaceable()
	q.push(0, "n", []byte("100"))
	var snap []subjects.Record
	for i := range 20 {
		snap = append(snap, subjects.Record{Topic: "n", Data: fmt.Append(nil, 50+i)})
	}
	if n := q.front(snap); n != 20 {
		t.Fatalf("%d records put in front", n)
	}
	q.push(0, "n", []byte("101"))
	if q.needSnapshot {
		t.Error("the snapshot itself fills the queue")
	}
	r := &reader{t: t, next: 1}
	for f := q.take(2000); f != nil; f = q.take(2000) {
		r.read(f)
		q.settle(f, true)
	}
	if len(r.got) != 22 || r.got[0] != 50 || r.got[21] != 101 || r.dropped != 0 {
		t.Errorf("%v, %d dropped", r.got, r.dropped)
	}
}

func TestOversizedOperationAsksForASnapshot(t *testing.T) {
	q := newQueue(subjects.PlaneTree, coalesce, subjects.DefaultLimits())
	big := []byte(`{"revision":2,"ops":["` + strings.Repeat("x", 600<<10) + `"]}`)
	q.push(0, "ops", big)
	if q.needSnapshot {
		t.Error("a snapshot is wanted that nobody can make")
	}
	q.canCoalesce = true
	if !q.push(0, "ops", big) || !q.needSnapshot {
		t.Error("no snapshot is wanted")
	}
}

func TestPace(t *testing.T) {
	p := pace(0, time.Hour)
	if p != linger {
		t.Errorf("after a quiet time %v", p)
	}
	for range 10 {
		p = pace(p, p)
	}
	if p != lingerMax {
		t.Errorf("under load %v", p)
	}
	if p = pace(p, quietTime); p != linger {
		t.Errorf("after a quiet time %v", p)
	}
}
