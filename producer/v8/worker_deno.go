package v8

import (
	"encoding/json"
	"sync"
)

// Deno gives all that a worker says to one of the connections with its program,
// the first one, however many ask for it. So sessions with a worker of Deno share
// the connection that observes it, and have no debugger, which could not be shared.

// shareWorker returns a channel to a worker over the connection that observes it.
// It carries commands and their answers, and no events.
func (x *observer) shareWorker() *channel {
	closed := make(chan struct{})
	var once sync.Once
	over := func() { once.Do(func() { close(closed) }) }
	var p *peer
	p = newPeer(func(data []byte) error {
		var c struct {
			ID     int64           `json:"id"`
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		}
		if err := json.Unmarshal(data, &c); err != nil {
			return err
		}
		if c.Method == "Runtime.enable" || c.Method == "Runtime.disable" {
			// It is enabled for the observer, and stays so.
			p.handle(message{ID: c.ID, Result: json.RawMessage("{}")})
			return nil
		}
		x.peer.start(c.Method, c.Params, func(result json.RawMessage, err error) {
			done := p.forget(c.ID)
			if done == nil {
				return
			}
			done(result, err)
		})
		return nil
	}, nil)
	x.w.a.all.Go(func() {
		select {
		case <-x.closed:
			p.end(errHungUp)
			over()
		case <-closed:
		}
	})
	return &channel{peer: p, close: func() { p.end(errHungUp); over() }, closed: closed}
}
