package cdpgw

import "sync"

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
	messages [][]byte
	// waiting counts what is queued or being written, taken what of it is being written.
	waiting, taken load
	overflow       bool
	closed         bool

	// ready wakes the writer, room wakes the reader; both hold at most one token.
	ready chan struct{}
	room  chan struct{}
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
func (q *queue) answer(message []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.waiting.answers += len(message)
	q.add(message)
}

// event adds a live event. It returns false when the queue is full for the
// first time, from when on nothing more is added.
func (q *queue) event(message []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.overflow {
		return true
	}
	if q.waiting.live >= q.bounds.live || q.waiting.bytes+len(message) > q.bounds.bytes {
		q.overflow = true
		return false
	}
	q.waiting.live++
	q.waiting.bytes += len(message)
	q.add(message)
	return true
}

// add appends a message; q.mu is held.
func (q *queue) add(message []byte) {
	q.messages = append(q.messages, message)
	wake(q.ready)
}

// take returns everything that waits and empties the queue.
func (q *queue) take() (messages [][]byte, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
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
}

// full reports whether so many answers wait that no command should be taken.
func (q *queue) full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting.answers > q.bounds.answers && !q.closed
}

// close lets nothing more in and wakes both ends.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	wake(q.ready)
	wake(q.room)
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
