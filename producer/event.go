package producer

import (
	"encoding/json"
	"sync"
	"sync/atomic"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/tree"
)

// maxEvents is how many session events wait for the loop; more are lost and counted.
const maxEvents = 256

// sessionEvents wait for the loop, which alone sends.
type sessionEvents struct {
	lost atomic.Uint64

	mu      sync.Mutex // guards waiting
	waiting []sessionEvent
}

type sessionEvent struct {
	session realm.Session
	data    []byte
}

// Emit tells one session of an event of package realm. It returns at once. While
// there is no connection, or too many events wait, the event is lost and
// counted: a session that could not be told has been told by its gateway that the source went.
func (p *Producer) Emit(s realm.Session, event string, payload any) {
	if !subjects.IsToken(s.Gateway) || !subjects.IsToken(s.ID) || event == "" {
		p.events.lost.Add(1)
		return
	}
	t := scratches.Get().(*scratch)
	defer t.free()
	raw, err := t.encode(payload)
	if err != nil {
		p.events.lost.Add(1)
		return
	}
	data, err := json.Marshal(realm.Event{Event: event, T: p.Now(), Data: raw})
	if err != nil || len(data) > realm.MaxEvent || !p.events.push(sessionEvent{s, data}) {
		p.events.lost.Add(1)
		return
	}
	p.wake()
}

func (q *sessionEvents) push(e sessionEvent) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= maxEvents {
		return false
	}
	q.waiting = append(q.waiting, e)
	return true
}

func (q *sessionEvents) take() []sessionEvent {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := q.waiting
	q.waiting = nil
	return out
}

// emit sends the events that wait.
func (l *loop) emit() {
	for _, e := range l.p.events.take() {
		subject := subjects.Event(l.p.o.Space, l.p.ID(), subjects.GatewayID(e.session.Gateway), subjects.SessionID(e.session.ID))
		if !l.connected || l.link.nc.Publish(subject, e.data) != nil {
			l.p.events.lost.Add(1)
		}
	}
}

// Reveal shows a node of the source's tree to everybody who looks at it, as if
// each of them had picked it.
func (p *Producer) Reveal(id tree.NodeID) {
	p.Record(subjects.PlaneEvent, realm.RevealTopic, realm.Reveal{ID: id})
}
