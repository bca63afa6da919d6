package cdpgw

import "testing"

// A client that asks and does not read is not answered without end.
func TestAnswersAreBounded(t *testing.T) {
	q := newQueue(load{live: 9, bytes: 99, answers: 10})
	q.answer(make([]byte, 11))
	if !q.full() {
		t.Error("the queue takes more commands")
	}
	q.event([]byte("live"))
	q.take()
	q.event([]byte("while the burst is written"))
	q.sent()
	if q.full() || q.waiting != (load{live: 1, bytes: 26}) {
		t.Errorf("after the burst: %+v", q.waiting)
	}
	q.close()
	if q.answer([]byte("x")); len(q.messages) != 1 {
		t.Error("a closed queue takes messages")
	}
}

// A message that is encoded late keeps its place, and its size counts once.
func TestReservedPlace(t *testing.T) {
	q := newQueue(defaultBounds)
	early, late := q.reserve(), q.reserve()
	q.event([]byte("event"))
	early.fill([]byte("one"))
	messages, _ := q.take()
	after := q.reserve()
	late.fill([]byte("two"))
	after.fill([]byte("three"))
	got := ""
	for _, m := range messages {
		got += string(m.bytes()) + " "
	}
	if got != "one two event " {
		t.Errorf("%s", got)
	}
	q.sent()
	if q.waiting != (load{answers: 5}) {
		t.Errorf("after the burst: %+v", q.waiting)
	}
}

// An overflow is told once, and nothing is added after it.
func TestOverflow(t *testing.T) {
	q := newQueue(load{live: 2, bytes: 99, answers: 10})
	for i, want := range []bool{true, true, false, true} {
		if got := q.event([]byte("x")); got != want {
			t.Errorf("event %d: %v", i, got)
		}
	}
	if len(q.messages) != 2 {
		t.Errorf("%d messages", len(q.messages))
	}
	q = newQueue(load{live: 9, bytes: 3, answers: 10})
	if !q.event([]byte("abc")) || q.event([]byte("d")) {
		t.Error("the bound of bytes does not hold")
	}
}
