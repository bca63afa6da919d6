package producer

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/tree"
)

// The bounds of session events that wait for the loop; more are lost and counted.
const (
	// maxEvents bounds those of all sessions by number.
	maxEvents = 16 << 10
	// maxEventBytes bounds them by bytes.
	maxEventBytes = 16 << 20
)

// eventToken begins the tokens of acknowledgements of events in the loop's inbox.
const eventToken = "e"

// sessionEvents wait for the loop, which alone sends them, and with them the
// answers that must not overtake them.
type sessionEvents struct {
	lost atomic.Uint64

	mu      sync.Mutex // guards all below
	waiting []sessionEvent
	bytes   int
	// token numbers the events that are acknowledged; unacknowledged are those that are sent.
	token          uint64
	unacknowledged map[string]chan<- error
}

type sessionEvent struct {
	subject string
	data    []byte
	// out is the session's at a realm, nil for an event of a function of OnCommand.
	out *sessionOut
	// done is told of the acknowledgement, nil if nobody waits for it.
	done chan<- error
	// answer says that this is an answer.
	answer bool
}

// Emit tells one session of an event of package realm. It returns at once. While
// there is no connection, or too many events wait, the event is lost and
// counted: a session that could not be told has been told by its gateway that the source went.
func (p *Producer) Emit(s realm.Session, event string, payload any) {
	_ = p.emit(s, nil, event, payload, nil)
}

// emit queues an event. done is told what became of it, if it is not nil and the
// error is: exactly once.
func (p *Producer) emit(s realm.Session, out *sessionOut, event string, payload any, done chan<- error) error {
	data, err := p.encodeEvent(s, event, payload)
	if err == nil {
		subject := subjects.Event(p.o.Space, p.ID(), subjects.GatewayID(s.Gateway), subjects.SessionID(s.ID))
		err = p.events.push(sessionEvent{subject: subject, data: data, out: out, done: done})
	} else {
		p.events.lose(out)
	}
	if err != nil {
		return err
	}
	p.wake()
	return nil
}

// encodeEvent makes the message of an event.
func (p *Producer) encodeEvent(s realm.Session, event string, payload any) ([]byte, error) {
	if !subjects.IsToken(s.Gateway) || !subjects.IsToken(s.ID) || event == "" {
		return nil, fmt.Errorf("%w: an event without a name, or without a session", realm.ErrMalformed)
	}
	raw, verbatim := payload.(Verbatim)
	if !verbatim || tooDeep(raw) || !utf8.Valid(raw) {
		t := scratches.Get().(*scratch)
		defer t.free()
		var err error
		if raw, err = t.encode(payload); err != nil {
			return nil, fmt.Errorf("%w: event %.80s: %w", realm.ErrMalformed, event, err)
		}
	}
	data := appendEvent(make([]byte, 0, len(raw)+len(event)+64), event, p.Now(), raw)
	most := realm.MaxEvent
	if limit := int(p.commands.limit.Load()); limit > 0 {
		most = min(most, limit)
	}
	if len(data) > most {
		return nil, fmt.Errorf("%w: event %.80s has %d bytes, a message takes %d", realm.ErrTooLarge, event, len(data), most)
	}
	return data, nil
}

// appendEvent appends a realm.Event whose data are valid JSON, or empty.
func appendEvent(dst []byte, event string, t float64, data []byte) []byte {
	dst = append(dst, `{"event":`...)
	dst = appendQuoted(dst, event)
	dst = append(dst, `,"t":`...)
	dst = appendMillis(dst, t)
	if len(data) > 0 {
		dst = append(append(dst, `,"data":`...), data...)
	}
	return append(dst, '}')
}

// lose counts an event that does not get through.
func (q *sessionEvents) lose(out *sessionOut) {
	q.lost.Add(1)
	if out != nil {
		q.mu.Lock()
		out.lost++
		q.mu.Unlock()
	}
}

// push queues an event. It says how many of its session were lost before it.
func (q *sessionEvents) push(e sessionEvent) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= maxEvents || q.bytes+len(e.data) > maxEventBytes {
		q.lost.Add(1)
		if e.out != nil {
			e.out.lost++
		}
		return fmt.Errorf("%w: %d events wait to be sent", realm.ErrBusy, len(q.waiting))
	}
	if e.out != nil {
		if e.out.lost > 0 {
			// The object has a member already, so that a comma follows.
			e.data = append([]byte(`{"lost":`+strconv.FormatUint(e.out.lost, 10)+`,`), e.data[1:]...)
			e.out.lost = 0
		}
		e.out.waiting++
	}
	q.waiting = append(q.waiting, e)
	q.bytes += len(e.data)
	return nil
}

// behind queues an answer behind the events of its session that wait; false when there are none.
func (q *sessionEvents) behind(out *sessionOut, reply string, data []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if out.waiting == 0 {
		return false
	}
	q.add(out, reply, data)
	return true
}

// answer queues an answer. out is nil without a session.
func (q *sessionEvents) answer(out *sessionOut, reply string, data []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(out, reply, data)
}

// add is answer; q.mu is held.
func (q *sessionEvents) add(out *sessionOut, reply string, data []byte) {
	q.waiting = append(q.waiting, sessionEvent{subject: reply, data: data, out: out, answer: true})
	if out != nil {
		out.waiting++
	}
}

// take returns what waits.
func (q *sessionEvents) take() []sessionEvent {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := q.waiting
	q.waiting, q.bytes = nil, 0
	return out
}

// expect returns the token under which an event is acknowledged.
func (q *sessionEvents) expect(done chan<- error) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.unacknowledged == nil {
		q.unacknowledged = make(map[string]chan<- error)
	}
	q.token++
	token := strconv.FormatUint(q.token, 10)
	q.unacknowledged[token] = done
	return token
}

// acknowledged deals with the acknowledgement of an event. It tells whoever waits.
func (q *sessionEvents) acknowledged(token string, m *nats.Msg) {
	q.mu.Lock()
	done := q.unacknowledged[token]
	delete(q.unacknowledged, token)
	q.mu.Unlock()
	switch {
	case done == nil:
	case len(m.Data) == 0 && m.Header.Get("Status") == "503":
		done <- fmt.Errorf("%w: nobody listens to the session's events any more", realm.ErrGone)
	default:
		done <- nil
	}
}

// disconnected gives up what waits for an acknowledgement that will not come.
func (q *sessionEvents) disconnected() {
	q.mu.Lock()
	all := q.unacknowledged
	q.unacknowledged = nil
	q.mu.Unlock()
	for _, done := range all {
		done <- errNotSent
	}
}

var errNotSent = fmt.Errorf("%w: the connection to NATS broke", realm.ErrGone)

// sent notes what became of an event or answer of a session.
func (q *sessionEvents) sent(e sessionEvent, err error) {
	if err != nil && !e.answer {
		q.lost.Add(1)
		if e.done != nil {
			e.done <- errNotSent
		}
	}
	if e.out == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	e.out.waiting--
	if err != nil && !e.answer {
		e.out.lost++
	}
}

// emit sends the events that wait.
func (l *loop) emit() {
	for _, e := range l.p.events.take() {
		l.p.events.sent(e, l.emitOne(e))
	}
}

func (l *loop) emitOne(e sessionEvent) error {
	if !l.connected {
		return errNotSent
	}
	if e.answer {
		pieces := l.p.commands.pieces(e.subject, e.data)
		if len(pieces) > piecesAtOnce {
			nc := l.link.nc
			l.helpers.Go(func() { l.p.commands.sendPaced(l.ctx, nc, pieces) })
			return nil
		}
		for _, m := range pieces {
			if err := l.link.nc.PublishMsg(m); err != nil {
				return err
			}
		}
		return nil
	}
	m := &nats.Msg{Subject: e.subject, Data: e.data}
	if e.done == nil {
		return l.link.nc.PublishMsg(m)
	}
	token := l.p.events.expect(e.done)
	m.Reply = l.link.inbox + "." + eventToken + token
	err := l.link.nc.PublishMsg(m)
	if err != nil {
		l.p.events.forget(token)
	}
	return err
}

// forget takes back expect.
func (q *sessionEvents) forget(token string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.unacknowledged, token)
}

// Reveal shows a node of the source's tree to everybody who looks at it, as if
// each of them had picked it.
func (p *Producer) Reveal(id tree.NodeID) {
	p.Record(subjects.PlaneEvent, realm.RevealTopic, realm.Reveal{ID: id})
}
