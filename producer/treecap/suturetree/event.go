package suturetree

import (
	"log"
	"math"
	"strings"

	"github.com/thejerf/suture/v4"

	"github.com/natscope/natscope/producer/treecap"
)

// defaultHook is what suture does without a hook.
func defaultHook(e suture.Event) { log.Print(e) }

// observe shows what an event tells, and returns it as suture would have told it
// without this package.
func (s *Supervisor) observe(e suture.Event) suture.Event {
	switch e := e.(type) {
	case suture.EventServicePanic:
		if x, ok := e.Service.(*service); ok {
			x.failed(strings.TrimSpace("panic: "+e.PanicMsg), e.CurrentFailures, e.Restarting)
		}
		e.Service = unwrapped(e.Service)
		return e
	case suture.EventServiceTerminate:
		if x, ok := e.Service.(*service); ok {
			x.failed("", e.CurrentFailures, e.Restarting)
		}
		e.Service = unwrapped(e.Service)
		return e
	case suture.EventStopTimeout:
		if x, ok := e.Service.(*service); ok {
			x.node.Set("state", "does not stop")
		}
		e.Service = unwrapped(e.Service)
		return e
	case suture.EventBackoff:
		if n := s.find(e.Supervisor); n != nil {
			n.Set("state", "backoff")
		}
	case suture.EventResume:
		if n := s.find(e.Supervisor); n != nil {
			n.Set("state", "running")
		}
	}
	return e
}

// failed shows the failure of a service. One that is not started again at once waits for its supervisor.
func (x *service) failed(text string, failures float64, restarting bool) {
	x.owner.mu.Lock()
	defer x.owner.mu.Unlock()
	if text != "" {
		x.node.Set("error", text)
	}
	if !restarting {
		x.node.Set("state", "backoff")
	}
	x.owner.node.Set("failures", math.Round(failures*10)/10)
}

// find returns the node of a supervisor: this one, or one below it, since suture
// tells the outer hook of the inner supervisors' events.
func (s *Supervisor) find(x *suture.Supervisor) *treecap.Node {
	if x == s.Supervisor {
		return s.node
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if in := s.nested[x]; in != nil {
		return in.node
	}
	for _, in := range s.nested {
		if own, ok := in.inner.(interface{ supervisor() *Supervisor }); ok {
			if n := own.supervisor().find(x); n != nil {
				return n
			}
		}
	}
	return nil
}
