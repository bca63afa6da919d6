package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/natscope/natscope/query"
)

// The times of a stream.
const (
	// quietFor is how long a stream may be silent before a comment shows that it lives.
	quietFor = 10 * time.Second
	// writeWithin is how long one write may take; a reader that is slower is let go, and can come back with its last id.
	writeWithin = 30 * time.Second
)

// stream answers a watch as server-sent events. The id of each event is the mark
// behind it, or behind the events before it where only that is known; a browser
// sends it as Last-Event-ID when it comes back, and the stream goes on from there.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request, api query.API, question []byte) {
	var q query.WatchRequest
	if len(question) > 0 {
		if err := json.Unmarshal(question, &q); err != nil {
			answerError(w, query.Errorf(query.ErrMalformed, "the question of watch cannot be read: %v", err))
			return
		}
	}
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		q.After = query.Mark(last)
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(h.done, cancel)()
	s := sse{w: w, c: http.NewResponseController(w)}
	holds := h.o.Holds(r)
	q.WaitMS = 0
	for ctx.Err() == nil && holds() {
		a, err := api.Watch(ctx, q)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.trouble(err)
			return
		}
		if err := s.events(q.After, &a); err != nil {
			return
		}
		q.After, q.WaitMS = a.Next, int(quietFor/time.Millisecond)
	}
}

// sse writes server-sent events.
type sse struct {
	w     http.ResponseWriter
	c     *http.ResponseController
	begun bool
}

func (s *sse) begin() {
	if s.begun {
		return
	}
	s.begun = true
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	s.w.WriteHeader(http.StatusOK)
}

// events writes the events of one answer. Only the last one carries the new
// mark: whoever was cut off in the middle gets all of them again, none is lost.
func (s *sse) events(before query.Mark, a *query.WatchAnswer) error {
	s.begin()
	var b []byte
	for i := range a.Events {
		id := before
		if i == len(a.Events)-1 {
			id = a.Next
		}
		data, err := json.Marshal(&a.Events[i])
		if err != nil {
			return err
		}
		if id != "" {
			b = append(append(append(b, "id: "...), id...), '\n')
		}
		b = append(append(append(b, "event: "...), a.Events[i].Kind...), '\n')
		b = append(append(append(b, "data: "...), data...), '\n', '\n')
	}
	if len(a.Events) == 0 {
		// Even silence moves the mark.
		b = append(append(append(b, ": nothing new\nid: "...), a.Next...), '\n', '\n')
	}
	return s.write(b)
}

func (s *sse) write(b []byte) error {
	// Not every writer has deadlines; those of servers do.
	_ = s.c.SetWriteDeadline(time.Now().Add(writeWithin))
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	return s.c.Flush()
}

// trouble ends a stream with an error, as a status where nothing was sent yet.
func (s *sse) trouble(err error) {
	if !s.begun {
		answerError(s.w, err)
		return
	}
	data, _ := json.Marshal(query.ErrorOf(err)) // Two strings are always JSON.
	_ = s.write(append(append([]byte("event: error\ndata: "), data...), '\n', '\n'))
}
