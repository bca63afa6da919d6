package embedded

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/natscope/natscope/store/replica"
)

// health answers for the process: /healthz whether it lives, /readyz whether it
// can do its work now.
type health struct {
	i *Instance
	// state is what a gateway shows; nil in a process without one.
	state *replica.Replica
}

// routes adds both paths.
func (h health) routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { tell(w, nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { tell(w, h.ready()) })
}

// errDraining says that the process ends.
var errDraining = errors.New("this process is stopping")

// ready returns why the process cannot do its work, nil if it can.
func (h health) ready() error {
	if h.i.draining.Load() {
		return errDraining
	}
	if s := h.i.conn.Status(); !h.i.conn.IsConnected() {
		return fmt.Errorf("no connection to NATS: %s", s)
	}
	if err := h.i.conn.FlushTimeout(2 * time.Second); err != nil {
		return fmt.Errorf("NATS does not answer: %w", err)
	}
	if h.state != nil {
		if s := h.state.Status(); s.Waiting != "" {
			return fmt.Errorf("the state is not current: %s", s.Waiting)
		}
	}
	return nil
}

// tell answers 200 or 503, with a text for people.
func tell(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprintln(w, err)
		return
	}
	_, _ = fmt.Fprintln(w, "ok")
}
