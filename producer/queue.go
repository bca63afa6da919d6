package producer

import (
	"math"
	"sync"

	"github.com/natscope/natscope/subjects"
)

// minFrame is the smallest frame that still holds every marker, in bytes.
const minFrame = 4 << 10

// policy says what a full queue does.
type policy int

const (
	// dropOldest makes room by dropping from the front; dropped records spend their numbers.
	dropOldest policy = iota
	// coalesce discards everything and asks for the newest state, which replaces it. Nothing counts as dropped.
	coalesce
	// refuse drops the newest: what waits is worth more.
	refuse
)

// queue holds the records of one plane that wait to be sent. It is safe for concurrent use.
type queue struct {
	plane      subjects.Plane
	policy     policy
	maxRecords int
	maxBytes   int

	// mu guards all below. It is held for appends and list operations only.
	mu           sync.Mutex
	frameRecords int
	frameBytes   int
	chunks       []*chunk
	spare        []*chunk
	// next is the number that the first waiting record will have; lost is how
	// many before it were lost and are not told yet, tailLost how many behind the last one.
	next, lost, tailLost uint64
	// records and bytes count what waits; the bounded ones leave out exempt chunks.
	records, bytes               int
	boundedRecords, boundedBytes int
	// inflight is how many records were taken and are not settled.
	inflight int
	// recorded, dropped and coalesced count since the start.
	recorded, dropped, coalesced uint64
	// canCoalesce says that somebody can tell the newest state; needSnapshot that it is wanted.
	canCoalesce, needSnapshot bool
	closed                    bool
	// watched says that the loop looks soon anyway, so that a first record need not wake it.
	watched bool
}

func newQueue(plane subjects.Plane, p policy, l subjects.Limits) *queue {
	return &queue{
		plane: plane, policy: p, next: 1,
		maxRecords: l.QueueRecords, maxBytes: l.QueueBytes,
		frameRecords: l.FrameRecords, frameBytes: l.FrameBytes,
	}
}

// push appends one record and reports whether the loop should look. data is
// valid JSON, or empty, and is copied.
func (q *queue) push(t float64, topic string, data []byte) (wake bool) {
	need := len(data) + len(topic) + lineOverhead
	cut := false
	if need > minFrame {
		data, cut = q.fit(topic, data)
		need = len(data) + len(topic) + lineOverhead
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.recorded++
	// A tree that lost an operation is of no use to any reader.
	q.needSnapshot = q.needSnapshot || cut && q.canCoalesce
	if (q.boundedRecords >= q.maxRecords || q.boundedBytes+need > q.maxBytes) && !q.makeRoom(need) {
		q.tailLost++
		q.dropped++
		return true
	}
	before := len(q.chunks)
	c := q.tail(topic, need)
	was := len(c.body)
	var at int
	c.body, at = appendLine(c.body, t, topic, data)
	c.marks = append(c.marks, mark{uint32(at), uint32(len(c.body))})
	q.count(1, len(c.body)-was, c.exempt)
	// The loop looks at waiting records by itself; it must hear of the first, and of a frame that became full.
	return before == 0 && !q.watched || before > 0 && before != len(q.chunks) || q.needSnapshot
}

// fit replaces data that no frame can carry by a shorter form of it, and tells whether it did.
func (q *queue) fit(topic string, data []byte) ([]byte, bool) {
	q.mu.Lock()
	limit := q.frameBytes - len(topic) - lineOverhead
	q.mu.Unlock()
	if len(data) <= limit {
		return data, false
	}
	return shrink(q.plane, topic, data, limit), true
}

// tail returns the chunk that takes the next record.
func (q *queue) tail(topic string, need int) *chunk {
	if q.plane != subjects.PlaneEvent {
		topic = ""
	}
	if n := len(q.chunks); n > 0 && q.tailLost == 0 {
		c := q.chunks[n-1]
		if !c.exempt && c.topic == topic && len(c.marks) < q.frameRecords && len(c.body)+need <= q.frameBytes {
			return c
		}
	}
	var c *chunk
	if n := len(q.spare); n > 0 && topic == "" {
		c, q.spare = q.spare[n-1], q.spare[:n-1]
	} else {
		c = new(chunk)
		if n := len(q.chunks); n > 0 && len(q.chunks[n-1].body) > q.frameBytes/2 {
			// The last one became full, and so will this one: growing it step by step would copy everything twice.
			c.body = make([]byte, 0, q.frameBytes)
		}
	}
	c.topic, c.lost, q.tailLost = topic, q.tailLost, 0
	q.chunks = append(q.chunks, c)
	return c
}

// makeRoom reports whether the record may be appended.
func (q *queue) makeRoom(need int) bool {
	switch {
	case q.policy == refuse:
		return false
	case q.policy == coalesce && q.canCoalesce:
		q.discard()
		q.needSnapshot = true
		return true
	}
	for len(q.chunks) > 0 && (q.boundedRecords >= q.maxRecords || q.boundedBytes+need > q.maxBytes) {
		q.dropFirst()
	}
	return true
}

// dropFirst drops the oldest waiting record, which spends its number.
func (q *queue) dropFirst() {
	c := q.chunks[0]
	n := c.lost + 1
	size := int(c.marks[c.head].end - c.start())
	c.lost = 0
	c.head++
	q.next, q.lost, q.dropped = q.next+n, q.lost+n, q.dropped+1
	q.count(-1, -size, c.exempt)
	if c.len() == 0 {
		q.pop()
		q.recycle(c)
	}
}

// discard forgets all that waits. Losses that were not told stay untold.
func (q *queue) discard() {
	for _, c := range q.chunks {
		q.coalesced += uint64(c.len())
		q.tailLost += c.lost
	}
	q.chunks = nil
	q.records, q.bytes, q.boundedRecords, q.boundedBytes = 0, 0, 0, 0
}

// take hands out the records that go into the next frame, at most limit bytes
// but at least one record; nil when nothing waits. The caller settles the frame
// or puts it back before it takes another one.
func (q *queue) take(limit int) *frame {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.chunks) == 0 {
		return nil
	}
	c := q.chunks[0]
	q.next, q.lost, c.lost = q.next+c.lost, q.lost+c.lost, 0
	f := &frame{seq: q.next, dropped: q.lost, topic: c.topic}
	if c.size() <= limit {
		c.lend(f, c.len())
		if !c.shared {
			f.whole = c
		}
		q.pop()
	} else {
		c.lend(f, c.prefix(limit))
		c.shared = true
	}
	q.count(-f.len(), -len(f.body), c.exempt)
	q.next, q.lost = q.next+uint64(f.len()), 0
	q.inflight = f.len()
	return f
}

// settle ends a frame. A frame that was not delivered counts as dropped.
func (q *queue) settle(f *frame, delivered bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inflight = 0
	if !delivered {
		q.dropped += uint64(f.len())
		q.lost += uint64(f.len()) + f.dropped
	}
	if f.whole != nil {
		q.recycle(f.whole)
	}
}

// putBack makes a taken frame wait again, before everything else.
func (q *queue) putBack(f *frame) {
	q.mu.Lock()
	defer q.mu.Unlock()
	// What was lost since belongs behind the frame.
	if len(q.chunks) > 0 {
		q.chunks[0].lost += q.lost
	} else {
		q.tailLost += q.lost
	}
	c := &chunk{body: f.body, marks: f.marks, lost: f.dropped, topic: f.topic, exempt: true, shared: true}
	q.chunks = append([]*chunk{c}, q.chunks...)
	q.next, q.lost, q.inflight = f.seq-f.dropped, 0, 0
	q.count(f.len(), len(f.body), true)
}

// rewind numbers the waiting records from 1 again, for a new generation.
func (q *queue) rewind() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.next = 1 + q.lost
}

// front puts records before all that wait, beyond the bounds of the queue.
func (q *queue) front(records []subjects.Record) (n int) {
	q.mu.Lock()
	l := subjects.Limits{QueueRecords: math.MaxInt, QueueBytes: math.MaxInt, FrameRecords: q.frameRecords, FrameBytes: q.frameBytes}
	q.mu.Unlock()
	side := newQueue(q.plane, dropOldest, l)
	for _, r := range records {
		if len(r.Data) > 0 {
			r.Data = clean(r.Data)
		}
		side.push(r.T, cleanTopic(r.Topic), r.Data)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(side.chunks) == 0 {
		return 0
	}
	for _, c := range side.chunks {
		c.exempt = true
	}
	q.chunks = append(side.chunks, q.chunks...)
	q.recorded += uint64(side.records)
	q.count(side.records, side.bytes, true)
	return side.records
}

// replaceable discards all that waits because a snapshot is on its way.
func (q *queue) replaceable() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.needSnapshot = false
	q.discard()
}

// lose counts records that were lost before they reached the queue.
func (q *queue) lose(n uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tailLost, q.recorded, q.dropped = q.tailLost+n, q.recorded+n, q.dropped+n
}

// settled is how many records are done with, of all that were ever recorded.
func (q *queue) settled() (done, recorded uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.recorded - uint64(q.records) - uint64(q.inflight), q.recorded
}

// waiting tells whether there is anything to take, and whether a frame is full.
func (q *queue) waiting() (some, full bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.chunks) > 0, len(q.chunks) > 1
}

// look is waiting for the loop that is about to sleep. again says that it comes
// back soon even if nothing wakes it; until then a first record lets it sleep.
func (q *queue) look(again bool) (some, full bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.watched = again
	return len(q.chunks) > 0, len(q.chunks) > 1
}

func (q *queue) count(records, bytes int, exempt bool) {
	q.records += records
	q.bytes += bytes
	if !exempt {
		q.boundedRecords += records
		q.boundedBytes += bytes
	}
}

func (q *queue) pop() {
	q.chunks[0] = nil
	q.chunks = q.chunks[1:]
}

// maxSpare is how many chunks of a queue wait to be used again.
const maxSpare = 4

// recycle keeps the memory of a chunk that nobody uses any more.
func (q *queue) recycle(c *chunk) {
	if c.shared || c.topic != "" || len(q.spare) >= maxSpare {
		return
	}
	*c = chunk{body: c.body[:0], marks: c.marks[:0]}
	q.spare = append(q.spare, c)
}
