package suturetree

import (
	"context"
	"sync"
	"time"

	"github.com/thejerf/suture/v4"

	"github.com/natscope/natscope/producer/treecap"
)

// maxEnded is how many services that ended for good stay visible below one supervisor.
const maxEnded = 20

// Supervisor is a suture.Supervisor that is shown. Use its own methods where it
// has them; services that are added to the embedded one work as well and are not
// shown.
type Supervisor struct {
	*suture.Supervisor
	node *treecap.Node

	mu sync.Mutex // guards all below
	// services holds those that can be removed, by their tokens.
	services map[suture.ServiceToken]*service
	// nested holds the supervisors whose events come here.
	nested map[*suture.Supervisor]*service
	// ended holds the services that ended for good, oldest first.
	ended []*service
}

// New makes a supervisor as suture.New does, and shows it as a child of parent.
// The hook of spec is called as ever, with the services that were added. To nest
// supervisors, make the inner one below the Node of the outer one, and add it.
func New(parent *treecap.Node, name string, spec suture.Spec) *Supervisor {
	s := &Supervisor{
		node:     parent.Add("supervisor", treecap.Attr("name", name), treecap.Attr("state", "new")),
		services: make(map[suture.ServiceToken]*service),
		nested:   make(map[*suture.Supervisor]*service),
	}
	next := spec.EventHook
	if next == nil {
		next = defaultHook
	}
	spec.EventHook = func(e suture.Event) {
		next(s.observe(e))
	}
	s.Supervisor = suture.New(name, spec)
	return s
}

// Node returns the node that shows the supervisor.
func (s *Supervisor) Node() *treecap.Node { return s.node }

// Add adds a service, as suture.Supervisor does, and shows it.
func (s *Supervisor) Add(inner suture.Service) suture.ServiceToken {
	if inner == nil {
		return s.Supervisor.Add(nil) // suture says what is wrong
	}
	x := newService(s, inner)
	if x.child != nil {
		s.mu.Lock()
		s.nested[x.child] = x
		s.mu.Unlock()
	}
	token := s.Supervisor.Add(x)
	if token == (suture.ServiceToken{}) {
		// The supervisor has stopped and takes none any more.
		s.forget(x)
		return token
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !x.over {
		x.token = token
		s.services[token] = x
	}
	return token
}

// forget takes a service that is no longer supervised out of the tree.
func (s *Supervisor) forget(x *service) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(x)
	x.node.Remove()
}

// drop makes x unknown. The caller holds mu.
func (s *Supervisor) drop(x *service) {
	x.over = true
	delete(s.services, x.token)
	delete(s.nested, x.child)
}

// Remove removes a service, as suture.Supervisor does. Its node goes when it has stopped.
func (s *Supervisor) Remove(token suture.ServiceToken) error {
	x := s.removing(token)
	err := s.Supervisor.Remove(token)
	x.removed(err == nil)
	return err
}

// RemoveAndWait removes a service and waits until it has stopped, as
// suture.Supervisor does. Its node goes when it has stopped.
func (s *Supervisor) RemoveAndWait(token suture.ServiceToken, timeout time.Duration) error {
	x := s.removing(token)
	err := s.Supervisor.RemoveAndWait(token, timeout)
	x.removed(err == nil || err == suture.ErrTimeout)
	return err
}

// removing returns the service of a token, nil for an unknown one.
func (s *Supervisor) removing(token suture.ServiceToken) *service {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.services[token]
	if x != nil {
		x.leaving = true
	}
	return x
}

// Services returns the services that are supervised now, as suture.Supervisor does.
func (s *Supervisor) Services() []suture.Service {
	all := s.Supervisor.Services()
	for i := range all {
		all[i] = unwrapped(all[i])
	}
	return all
}

// Serve runs the supervisor until ctx ends, as suture.Supervisor does.
func (s *Supervisor) Serve(ctx context.Context) error {
	s.node.Set("state", "running")
	defer s.node.Set("state", "stopped")
	return s.Supervisor.Serve(ctx)
}

// ServeBackground runs the supervisor in the background until ctx ends, as
// suture.Supervisor does.
func (s *Supervisor) ServeBackground(ctx context.Context) <-chan error {
	s.node.Set("state", "running")
	from, to := s.Supervisor.ServeBackground(ctx), make(chan error, 1)
	go func() {
		err := <-from
		s.node.Set("state", "stopped")
		to <- err
	}()
	return to
}

// supervisor is how a service that embeds a Supervisor is known.
func (s *Supervisor) supervisor() *Supervisor { return s }
