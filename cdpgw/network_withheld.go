package cdpgw

import (
	"slices"
	"time"

	"github.com/natscope/natscope/subjects/network"
)

// withheldEvents are the events of a response that DevTools reads for events. It
// finds them in the body, which does not come as it grows where the source's rules
// look at bodies: they want the whole of one, and an event stream rarely ends. The
// source tells its events one by one besides, so once it is clear that no bytes
// come, those are told. session.mu guards it.
type withheldEvents struct {
	// waiting are the newest events that were not told, as much of them as a request keeps; bytes is the size of their data.
	waiting []network.Timed[network.Message]
	bytes   int
	// telling says that the events are told and the bytes of the body are not.
	telling bool
	timer   *time.Timer
}

// eventsOf returns nil for a response that is no event stream, or whose type makes
// DevTools wait for the events instead of reading the body.
func eventsOf(r *network.Request) *withheldEvents {
	if r.Response == nil || r.Response.Value.MIMEType != "text/event-stream" || typeOf(r.Start.Value) == "EventSource" {
		return nil
	}
	e := &withheldEvents{}
	for _, m := range r.Messages {
		e.add(m)
	}
	return e
}

func (e *withheldEvents) add(m network.Timed[network.Message]) {
	e.waiting, e.bytes = append(e.waiting, m), e.bytes+len(m.Value.Data)
	for len(e.waiting) > network.MaxMessages || e.bytes > network.MaxMessageBytes && len(e.waiting) > 1 {
		e.bytes -= len(e.waiting[0].Value.Data)
		e.waiting = slices.Delete(e.waiting, 0, 1)
	}
}

func (e *withheldEvents) stop() {
	if e.timer != nil {
		e.timer.Stop()
	}
}

// addEvent takes an event of a stream: it is told now, or once it is clear that no
// bytes come, or never because its bytes do.
func (s *session) addEvent(st *bodyStream, t float64, m network.Message) {
	e := st.events
	switch {
	case e == nil && st.received > 0:
		return
	case e == nil:
		// The stream was asked for before the headers were there.
		if e = eventsOf(st.request); e == nil {
			return
		}
		st.events = e
	case e.telling:
		s.send(eventSourceMessage(st.id, st.request, t, &m))
		return
	default:
		e.add(network.Timed[network.Message]{T: t, Value: m})
	}
	if e.timer == nil {
		s.awaitBytes(st)
	}
}

// awaitBytes tells the events of a stream unless their bytes come in time.
func (s *session) awaitBytes(st *bodyStream) {
	st.events.timer = time.AfterFunc(eventSilence, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.network.streams[st.request] == st && st.events != nil {
			s.following = true
			s.tellEvents(st)
			s.following = false
		}
	})
}

// tellEvents tells the events that wait for bytes which did not come. The caller holds session.mu.
func (s *session) tellEvents(st *bodyStream) {
	e := st.events
	if e == nil {
		return
	}
	e.telling = true
	for i := range e.waiting {
		s.send(eventSourceMessage(st.id, st.request, e.waiting[i].T, &e.waiting[i].Value))
	}
	e.waiting, e.bytes = nil, 0
}
