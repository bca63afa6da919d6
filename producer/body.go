package producer

import (
	"sync"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// Body captures one body of one request: a prefix of its bytes, in order,
// without holes. Its methods are safe for concurrent use and never block. A
// Body that is never ended holds no more than its own few words.
type Body struct {
	q         *bodyQueue
	request   network.RequestID
	direction subjects.Direction
	limit     int64

	// All below is guarded by q.mu.

	seen, captured int64
	// cut says that bytes were left out; nothing follows a hole.
	cut, ended bool
	// tail is the last waiting piece, which may still grow.
	tail *piece

	// last is the sequence of the newest piece that is in the stream, 0 for none. The loop owns it.
	last uint64
}

// piece is one message of a body.
type piece struct {
	body   *Body
	offset int64
	data   []byte
	end    string
	total  int64
	// part says that the rest of the piece still waits.
	part bool
}

// bodyQueue holds the pieces of all bodies that wait to be sent.
type bodyQueue struct {
	chunk     int
	maxBytes  int
	maxPieces int

	// mu guards all below, and the state of every Body.
	mu       sync.Mutex
	pieces   []*piece
	bytes    int
	inflight int
	// queued counts pieces since the start, lost those that never went out, cuts the bodies that pressure cut short.
	queued, lost, cuts uint64
	closed             bool
	wake               func()
}

func newBodyQueue(l subjects.Limits, wake func()) *bodyQueue {
	return &bodyQueue{chunk: l.BodyChunkBytes, maxBytes: l.BodyQueueBytes, maxPieces: l.QueueRecords, wake: wake}
}

// Body begins the capture of one body of a request. The id is the one of the
// request's net records. The limit is RequestBodyBytes or ResponseBodyBytes. The
// caller ends the body with End.
func (p *Producer) Body(id network.RequestID, d subjects.Direction) *Body {
	limit := p.o.Limits.ResponseBodyBytes
	if d == subjects.RequestBody {
		limit = p.o.Limits.RequestBodyBytes
	} else {
		d = subjects.ResponseBody
	}
	return &Body{q: p.bodies, request: network.RequestID(subjects.Token(string(id))), direction: d, limit: limit}
}

// Write captures the next bytes of the body. It copies them, enqueues them and
// returns. Bytes beyond the limit, or that find the queue full, are counted but
// not kept, and neither is anything after them.
func (b *Body) Write(chunk []byte) {
	if len(chunk) == 0 {
		return
	}
	b.q.mu.Lock()
	wake := b.write(chunk)
	b.q.mu.Unlock()
	if wake {
		b.q.wake()
	}
}

func (b *Body) write(data []byte) (wake bool) {
	q := b.q
	if b.ended || q.closed {
		return false
	}
	b.seen += int64(len(data))
	if b.cut {
		return false
	}
	if room := b.limit - b.captured; int64(len(data)) > room {
		data, b.cut = data[:room], true
	}
	for len(data) > 0 {
		if b.tail == nil || len(b.tail.data) >= q.chunk {
			if len(q.pieces) >= q.maxPieces {
				break
			}
			q.push(&piece{body: b, offset: b.captured})
			wake = true
		}
		n := min(len(data), q.chunk-len(b.tail.data), q.maxBytes-q.bytes)
		if n <= 0 {
			break
		}
		b.tail.data = append(b.tail.data, data[:n]...)
		q.bytes += n
		b.captured += int64(n)
		data = data[n:]
	}
	if len(data) > 0 && !b.cut {
		b.cut = true
		q.cuts++
	}
	return wake
}

// End says that nothing follows. reason is one of subjects.BodyComplete,
// BodyTruncated and BodyAborted; a complete body that was cut is published as
// truncated. total is the size of the whole body in bytes, -1 if only what was
// written is known. Only the first call counts.
func (b *Body) End(reason string, total int64) {
	b.q.mu.Lock()
	b.end(reason, total)
	b.q.mu.Unlock()
	b.q.wake()
}

func (b *Body) end(reason string, total int64) {
	q := b.q
	if b.ended || q.closed {
		return
	}
	b.ended = true
	if reason != subjects.BodyComplete && reason != subjects.BodyTruncated {
		reason = subjects.BodyAborted
	}
	if b.tail == nil {
		// Ends outlive the bound for data, since readers wait for them; not without a bound of their own.
		if len(q.pieces) >= 2*q.maxPieces {
			q.lost++
			return
		}
		q.push(&piece{body: b, offset: b.captured})
	}
	b.tail.end, b.tail.total = reason, max(total, b.seen)
	b.tail = nil
}

// Captured is how many bytes of the body were kept so far.
func (b *Body) Captured() int64 {
	b.q.mu.Lock()
	defer b.q.mu.Unlock()
	return b.captured
}

// Truncated reports whether bytes of the body were left out.
func (b *Body) Truncated() bool {
	b.q.mu.Lock()
	defer b.q.mu.Unlock()
	return b.cut
}

// push appends a piece, which its body may still fill.
func (q *bodyQueue) push(p *piece) {
	q.pieces = append(q.pieces, p)
	q.queued++
	p.body.tail = p
}

// take hands out the next piece with at most limit bytes of data, or nil.
func (q *bodyQueue) take(limit int) *piece {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.pieces) == 0 {
		return nil
	}
	p := q.pieces[0]
	out := *p
	if len(p.data) > limit {
		out.data, out.end, out.part = p.data[:limit:limit], "", true
		p.data, p.offset = p.data[limit:], p.offset+int64(limit)
	} else {
		q.inflight = 1
		q.pieces[0] = nil
		q.pieces = q.pieces[1:]
		if p.body.tail == p {
			p.body.tail = nil
		}
	}
	if out.end == subjects.BodyComplete && p.body.cut {
		out.end = subjects.BodyTruncated
	}
	q.bytes -= len(out.data)
	return &out
}

// settle ends a piece that was taken. One that could not be delivered leaves a hole, so its body is cut.
func (q *bodyQueue) settle(p *piece, delivered bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inflight = 0
	if !delivered {
		q.lost++
		p.body.cut = true
	}
}

// putBack makes a taken piece wait again, before everything else.
func (q *bodyQueue) putBack(p *piece) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inflight = 0
	q.bytes += len(p.data)
	if p.part {
		// The rest is the first that waits, since nothing was taken in between.
		rest := q.pieces[0]
		rest.data, rest.offset = append(p.data, rest.data...), p.offset
		return
	}
	q.pieces = append([]*piece{p}, q.pieces...)
}

// abandon forgets all pieces: they belong to a generation that is over.
func (q *bodyQueue) abandon() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range q.pieces {
		p.body.cut, p.body.ended, p.body.tail = true, true, nil
	}
	q.lost += uint64(len(q.pieces))
	q.pieces, q.bytes = nil, 0
}

func (q *bodyQueue) settled() (done, queued uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.queued - uint64(len(q.pieces)) - uint64(q.inflight), q.queued
}

func (q *bodyQueue) waiting() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.pieces) > 0
}
