package suturetree

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/thejerf/suture/v4"

	"github.com/natscope/natscope/producer/treecap"
)

// service is one service as the supervisor gets it.
type service struct {
	owner *Supervisor
	inner suture.Service
	// name is what suture calls the service in its events.
	name string
	node *treecap.Node
	// child is the supervisor that the service is or has, nil for others.
	child *suture.Supervisor

	// All below is guarded by owner.mu.
	token  suture.ServiceToken
	starts int
	// running says that Serve has not returned, leaving that the application
	// removed the service, and over that it will not be started again.
	running, leaving, over bool
}

// newService wraps a service and shows it.
func newService(owner *Supervisor, inner suture.Service) *service {
	x := &service{owner: owner, inner: inner, name: nameOf(inner)}
	if has, ok := inner.(suture.HasSupervisor); ok {
		x.child = has.GetSupervisor()
	}
	if own, ok := inner.(interface{ supervisor() *Supervisor }); ok {
		// It shows itself.
		x.node = own.supervisor().node
		return x
	}
	options := []treecap.Option{treecap.Attr("name", shortName(inner)), treecap.Attr("state", "waiting")}
	if m, ok := reflect.TypeOf(inner).MethodByName("Serve"); ok {
		options = append(options, treecap.Func(m.Func.Interface()))
	}
	kind := "service"
	if x.child != nil {
		kind = "supervisor"
	}
	x.node = owner.node.Add(kind, options...)
	return x
}

// nameOf names a service as suture does.
func nameOf(s suture.Service) string {
	if x, ok := s.(fmt.Stringer); ok {
		return x.String()
	}
	return fmt.Sprintf("%#v", s)
}

// shortName names a service for people.
func shortName(s suture.Service) string {
	if x, ok := s.(fmt.Stringer); ok {
		return x.String()
	}
	return fmt.Sprintf("%T", s)
}

// String implements fmt.Stringer: suture asks for it.
func (x *service) String() string { return x.name }

// GetSupervisor implements suture.HasSupervisor. suture ignores nil.
func (x *service) GetSupervisor() *suture.Supervisor { return x.child }

// unwrapped returns the service that the application added.
func unwrapped(s suture.Service) suture.Service {
	if x, ok := s.(*service); ok {
		return x.inner
	}
	return s
}

// Serve implements suture.Service.
func (x *service) Serve(ctx context.Context) (err error) {
	x.begin()
	returned := false
	// A panic goes on its way with its stack; the event that follows tells of it.
	defer func() { x.end(ctx, err, returned) }()
	err = x.inner.Serve(ctx)
	returned = true
	return err
}

func (x *service) begin() {
	x.owner.mu.Lock()
	defer x.owner.mu.Unlock()
	x.running = true
	x.starts++
	x.node.Set("state", "running")
	x.node.Set("starts", x.starts)
}

// end shows how a run ended, and decides as suture does whether it was the last.
func (x *service) end(ctx context.Context, err error, returned bool) {
	s := x.owner
	s.mu.Lock()
	defer s.mu.Unlock()
	x.running = false
	switch {
	case x.leaving && ctx.Err() != nil:
		s.drop(x)
		x.node.Remove()
		return
	case ctx.Err() != nil:
		x.node.Set("state", "stopped")
		s.drop(x)
		return
	case !returned:
		x.node.Set("state", "panicked")
		return
	case errors.Is(err, suture.ErrDoNotRestart):
		x.node.Set("state", "done")
		s.drop(x)
		s.retire(x)
		return
	case errors.Is(err, suture.ErrTerminateSupervisorTree):
		x.node.Set("state", "terminated")
	case err == nil:
		x.node.Set("state", "returned")
		return
	default:
		x.node.Set("state", "failed")
	}
	x.node.Set("error", err)
}

// retire keeps the newest of the services that ended for good. The caller holds mu.
func (s *Supervisor) retire(x *service) {
	if s.ended = append(s.ended, x); len(s.ended) > maxEnded {
		s.ended[0].node.Remove()
		s.ended = append([]*service(nil), s.ended[1:]...)
	}
}

// removed says whether the supervisor let go of the service.
func (x *service) removed(ok bool) {
	if x == nil {
		return
	}
	x.owner.mu.Lock()
	defer x.owner.mu.Unlock()
	switch {
	case !ok:
		x.leaving = false
	case !x.running && !x.over:
		// It waited to be started again, or had just ended.
		x.owner.drop(x)
		x.node.Remove()
	}
}
