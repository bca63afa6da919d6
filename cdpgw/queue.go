package cdpgw

import (
	"context"
	"sync"
)

// The bounds of a connection's outgoing queue. Live events count against the
// first two: a viewer that falls behind by more is closed, because it cannot be
// brought up to date any more. Answers, with the history that a command asks
// for, count against the third: no further command is taken while more waits.
const (
	maxLiveMessages = 65536
	maxLiveBytes    = 32 << 20
	maxAnswerBytes  = 32 << 20
)

// defaultBounds are the bounds of every connection; tests use smaller ones.
var defaultBounds = load{live: maxLiveMessages, bytes: maxLiveBytes, answers: maxAnswerBytes}

// queue holds the encoded messages that wait for a connection's writer. It
// never blocks whoever adds to it.
type queue struct {
	bounds load

	mu       sync.Mutex
	messages []message
	// waiting counts what is queued or being written, taken what of it is being written.
	waiting, taken load
	overflow       bool
	closed         bool

	// ready wakes the writer, room wakes the reader; both hold at most one token.
	ready chan struct{}
	room  chan struct{}
	// waiters are closed when the writer has sent something.
	waiters []chan struct{}
}

// message is an encoded message, or the place of one that is still being encoded.
type message struct {
	data []byte
	late *reserved
}

// load is an amount of messages.
type load struct {
	live    int // live events
	bytes   int // of live events
	answers int // bytes of everything else
}

func newQueue(bounds load) *queue {
	return &queue{bounds: bounds, ready: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// answer adds what a command caused: events before its answer, or the answer.
func (q *queue) answer(data []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.waiting.answers += len(data)
	q.add(message{data: data})
}

// reserved is the place in a queue of a message that is encoded later. Its order
// is settled under the locks, its encoding needs none.
type reserved struct {
	queue *queue
	taken bool // guarded by queue.mu
	ready chan struct{}
	data  []byte // written before ready closes
}

// reserve adds a message that is not encoded yet. The caller must fill it soon: the writer waits for it.
func (q *queue) reserve() *reserved {
	r := &reserved{queue: q, ready: make(chan struct{})}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.add(message{late: r})
	}
	return r
}

// fill completes a reserved message.
func (r *reserved) fill(data []byte) {
	r.data = data
	close(r.ready)
	r.queue.mu.Lock()
	defer r.queue.mu.Unlock()
	r.queue.waiting.answers += len(data)
	if r.taken {
		r.queue.taken.answers += len(data)
	}
}

// bytes returns the message; it waits for one that is still being encoded.
func (m message) bytes() []byte {
	if m.late == nil {
		return m.data
	}
	<-m.late.ready
	return m.late.data
}

// event adds a live event. It returns false when the queue is full for the
// first time, from when on nothing more is added.
func (q *queue) event(data []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.overflow {
		return true
	}
	if q.waiting.live >= q.bounds.live || q.waiting.bytes+len(data) > q.bounds.bytes {
		q.overflow = true
		return false
	}
	q.waiting.live++
	q.waiting.bytes += len(data)
	q.add(message{data: data})
	return true
}

// add appends a message; q.mu is held.
func (q *queue) add(m message) {
	q.messages = append(q.messages, m)
	wake(q.ready)
}

// take returns everything that waits and empties the queue.
func (q *queue) take() (messages []message, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range q.messages {
		if m.late != nil {
			m.late.taken = true
		}
	}
	messages, q.messages = q.messages, nil
	q.taken = q.waiting
	return messages, q.closed
}

// sent gives back the room of messages that take returned.
func (q *queue) sent() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting.live -= q.taken.live
	q.waiting.bytes -= q.taken.bytes
	q.waiting.answers -= q.taken.answers
	q.taken = load{}
	wake(q.room)
	q.drained()
}

// full reports whether so many answers wait that no command should be taken.
func (q *queue) full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting.answers > q.bounds.answers && !q.closed
}

// roomy reports whether the queue is far from its bounds.
func (q *queue) roomy() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed || q.waiting.live <= q.bounds.live/4 && q.waiting.bytes <= q.bounds.bytes/4
}

// drained wakes whoever waits for the queue to be roomy; q.mu is held.
func (q *queue) drained() {
	for _, c := range q.waiters {
		close(c)
	}
	q.waiters = nil
}

// wait waits until the queue is roomy, closed, or ctx ends.
func (q *queue) wait(ctx context.Context) {
	for !q.roomy() {
		c := make(chan struct{})
		q.mu.Lock()
		q.waiters = append(q.waiters, c)
		q.mu.Unlock()
		select {
		case <-c:
		case <-ctx.Done():
			return
		}
	}
}

// close lets nothing more in and wakes both ends.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	wake(q.ready)
	wake(q.room)
	q.drained()
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
