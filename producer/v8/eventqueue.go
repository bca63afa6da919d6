package v8

import (
	"encoding/json"
	"sync"
	"time"
)

// event is one event that waits.
type event struct {
	method string
	params json.RawMessage
	// at is when it came, in milliseconds since 1970; old says that the engine told
	// it as one that was there before it was observed.
	at  float64
	old bool
}

// nowMillis is the time in milliseconds since 1970, as engines tell it.
func nowMillis() float64 { return float64(time.Now().UnixMicro()) / 1000 }

// eventQueue holds the events between the connection's reader, which must not wait, and the observer.
type eventQueue struct {
	wake chan struct{}

	mu    sync.Mutex // guards all below
	list  []event
	bytes int
	lost  uint64
}

// push appends an event. When there are too many, the oldest half goes.
func (q *eventQueue) push(method string, params json.RawMessage, old bool) {
	e := event{method, params, nowMillis(), old}
	q.mu.Lock()
	q.list = append(q.list, e)
	q.bytes += len(params)
	if len(q.list) > maxQueued || q.bytes > maxQueuedBytes && len(q.list) > 1 {
		n := (len(q.list) + 1) / 2
		for _, e := range q.list[:n] {
			q.bytes -= len(e.params)
		}
		q.lost += uint64(n)
		q.list = append([]event(nil), q.list[n:]...)
	}
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take returns the oldest events that wait, and how many were lost since the last call.
func (q *eventQueue) take() ([]event, uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	out, lost := q.list, q.lost
	q.list, q.bytes, q.lost = nil, 0, 0
	return out, lost
}
