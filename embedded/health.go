package embedded

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// healthRoutes adds /healthz, whether the process lives, and /readyz, whether it
// can do its work now.
func (i *Instance) healthRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { tell(w, nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { tell(w, i.ready()) })
}

// errDraining says that the process ends.
var errDraining = errors.New("this process is stopping")

// ready returns why the process cannot do its work, nil if it can.
func (i *Instance) ready() error {
	if i.draining.Load() {
		return errDraining
	}
	if s := i.conn.Status(); !i.conn.IsConnected() {
		return fmt.Errorf("no connection to NATS: %s", s)
	}
	if err := i.conn.FlushTimeout(2 * time.Second); err != nil {
		return fmt.Errorf("NATS does not answer: %w", err)
	}
	if i.figures.state != nil {
		if s := i.figures.state.Status(); s.Waiting != "" {
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
