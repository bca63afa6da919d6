package v8

import (
	"encoding/json"
	"sync"
)

// maxWorkers is how many worker threads of one process are observed.
const maxWorkers = 256

// workerInfo is what an engine says of a worker thread.
type workerInfo struct {
	SessionID string `json:"sessionId"`
	Info      struct {
		ID    string `json:"workerId"`
		Title string `json:"title"`
		URL   string `json:"url"`
	} `json:"workerInfo"`
	Waiting bool `json:"waitingForDebugger"`
}

// nest makes a session with a worker thread, whose messages travel inside of
// those of its process. The caller gives it what the process receives for it.
func nest(parent *peer, session string, event func(string, json.RawMessage)) *peer {
	send := func(data []byte) error {
		parent.start("NodeWorker.sendMessageToWorker", map[string]string{"sessionId": session, "message": string(data)}, func(json.RawMessage, error) {})
		return nil
	}
	return newPeer(send, event)
}

// workerAttached begins to observe a worker thread. It runs on the connection's reader.
func (x *observer) workerAttached(params json.RawMessage) {
	var w workerInfo
	if json.Unmarshal(params, &w) != nil || w.SessionID == "" {
		return
	}
	y := newObserver(x.w, listed{ID: x.target.ID + ":" + w.Info.Title, Type: "node_worker", Title: w.Info.Title, URL: or(w.Info.URL, x.target.URL)}, x.engine)
	y.parent, y.held = x, w.Waiting
	closed := make(chan struct{})
	y.closed = closed
	y.peer = nest(x.peer, w.SessionID, y.event)
	var once sync.Once
	y.close = func() {
		once.Do(func() {
			y.peer.end(errHungUp)
			close(closed)
			x.peer.start("NodeWorker.detach", map[string]string{"sessionId": w.SessionID}, func(json.RawMessage, error) {})
		})
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended || len(x.workers) >= maxWorkers || x.w.a.ctx.Err() != nil {
		if !x.ended {
			x.w.a.o.Logger.Warn("too many worker threads; this one is not observed", "title", w.Info.Title, "most", maxWorkers)
		}
		return
	}
	x.workers[w.SessionID] = y
	x.w.a.all.Go(y.observe)
}

// workerMessage gives a message to the session of its worker thread.
func (x *observer) workerMessage(params json.RawMessage) {
	var m struct {
		SessionID string `json:"sessionId"`
		Message   string `json:"message"`
	}
	if json.Unmarshal(params, &m) != nil {
		return
	}
	x.mu.Lock()
	y := x.workers[m.SessionID]
	x.mu.Unlock()
	if y != nil {
		y.peer.receive([]byte(m.Message))
	}
}

// workerDetached ends a worker thread's observer.
func (x *observer) workerDetached(params json.RawMessage) {
	var m struct {
		SessionID string `json:"sessionId"`
	}
	if json.Unmarshal(params, &m) != nil {
		return
	}
	x.mu.Lock()
	y := x.workers[m.SessionID]
	delete(x.workers, m.SessionID)
	x.mu.Unlock()
	if y != nil {
		y.gone.Store(true)
		y.close()
	}
}
