package cdpgw

import (
	"time"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects/network"
)

// redirectWait is how long the response of a redirect waits for the request that follows it.
const redirectWait = time.Second

// heldResponse is a response that says "look elsewhere", with everything that
// came after it. The protocol tells a redirect together with the request that
// follows; whether one does is known only when it comes.
type heldResponse struct {
	events [][]byte
	timer  *time.Timer
}

// redirects reports whether a response may lead to another request.
func redirects(r *network.Request) bool {
	if r.Response == nil || r.Start.Value.Direction == network.Incoming || typeOf(r.Start.Value) == "WebSocket" {
		return false
	}
	switch r.Response.Value.Status {
	case 301, 302, 303, 307, 308:
		return headerOf(r.Response.Value.Headers, "Location") != ""
	}
	return false
}

// hold keeps the events of a change back while it is open whether a redirect
// was followed. What comes for a response that is held waits behind it.
func (s *session) hold(src *fold.Source, c *network.Change, events [][]byte) bool {
	for _, r := range c.Evicted {
		s.release(r)
	}
	r := c.Request
	if before := src.Net.Before(r); c.Topic == network.TopicStart && before != nil {
		s.drop(before)
	}
	h := s.network.held[r]
	switch {
	case len(c.Evicted) > 0:
		// Other requests end with these events, which must not be lost to a redirect.
		s.release(r)
		return false
	case h != nil:
		h.events = append(h.events, events...)
		return true
	case c.Topic != network.TopicResponse || !redirects(r) || len(events) == 0:
		return false
	}
	h = &heldResponse{events: events[:len(events):len(events)]}
	if s.network.held == nil {
		s.network.held = make(map[*network.Request]*heldResponse)
	}
	s.network.held[r] = h
	h.timer = time.AfterFunc(redirectWait, func() { s.late(r, h) })
	return true
}

// late tells of a response after which no request came.
func (s *session) late(r *network.Request, h *heldResponse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.network.held[r] == h {
		s.release(r)
	}
}

// release tells of a held response now; session.mu is held.
func (s *session) release(r *network.Request) {
	h := s.network.held[r]
	if h == nil {
		return
	}
	s.drop(r)
	following := s.following
	s.following = true
	for _, m := range h.events {
		s.send(m)
	}
	s.following = following
}

// drop forgets a held response; session.mu is held.
func (s *session) drop(r *network.Request) {
	if h := s.network.held[r]; h != nil {
		h.timer.Stop()
		delete(s.network.held, r)
	}
}
