package cdpgw

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/natscope/natscope/store/command"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects/realm"
)

// maxAttended is how many sources one connection has sessions at before anybody
// asks them for something; to others a session is opened with the first command.
const maxAttended = 100

// syncRealm turns to the realm of a source that came, began anew or can do more
// than before: it opens this connection's session, from when on the realm keeps
// the live arguments of what it logs, and asks for its scripts.
func (s *session) syncRealm(src *fold.Source) {
	if s.gateway.realms == nil || s.source(src.ID) != src {
		return
	}
	if at, ok := s.withScripts(src); ok && s.debugger.enabled && !has(s.debugger.listed, at.context) && len(s.debugger.listed) < maxAttended {
		s.debugger.listed[at.context] = false
		s.slow.Go(func() { s.listScripts(s.conn.ctx, []liveAt{at}) })
	}
	at, err := s.liveRealm(src, realm.MethodOpenSession)
	if !s.runtime.enabled || err != nil || !at.can(realm.MethodResolveArgument) || len(s.runtime.contexts) > maxAttended || s.gateway.realms.IsOpen(at.realmOf.at(), s.id) {
		return
	}
	s.slow.Go(func() {
		if _, err := s.gateway.realms.Open(s.conn.ctx, at.realmOf.at(), s.id); err != nil {
			s.gateway.log.Debug("a source opens no session", "source", string(at.source), "error", err)
		}
	})
}

func has[K comparable, V any](m map[K]V, k K) bool {
	_, ok := m[k]
	return ok
}

// abandon ends this connection's session at a generation that is over.
func (s *session) abandon(at realmOf) {
	delete(s.realms.lanes, at)
	if s.gateway.realms != nil {
		s.gateway.realms.CloseSource(at.at(), s.id)
	}
}

// sourceEvent brings an event of a source to the session that it is for.
func (g *Gateway) sourceEvent(e command.Event) {
	for _, s := range g.hub.all() {
		if s.id == e.Session {
			s.live(func() { s.realmEvent(e) })
			if e.Waits() {
				s.acknowledge(e)
				return
			}
			break
		}
	}
	e.Acknowledge()
}

// acknowledge tells a source that waits that this connection has room again.
func (s *session) acknowledge(e command.Event) {
	if s.conn.queue.roomy() {
		e.Acknowledge()
		return
	}
	s.slow.Go(func() {
		s.conn.queue.wait(s.conn.ctx)
		e.Acknowledge()
	})
}

// realmEvent takes one event of a realm.
func (s *session) realmEvent(e command.Event) {
	src := s.source(e.Source)
	if src == nil {
		return
	}
	if e.Lost > 0 {
		s.complain(fmt.Sprintf("%d events of %s were lost: more came than could be sent. What is shown of it may be incomplete.", e.Lost, src.Name()))
	}
	group, name, grouped := strings.Cut(e.Event.Event, ".")
	if !grouped {
		s.pickEvent(e.Source, e.Event)
		return
	}
	at, err := s.liveRealm(src, realm.MethodOpenSession)
	if err != nil {
		return
	}
	switch group {
	case realm.GroupSources:
		if e.Event.Event == realm.EventScriptParsed {
			if _, ok := s.withScripts(src); ok {
				s.scriptParsed(at, e.Data)
			}
		}
	case realm.GroupRuntime:
		if c := s.childOf(e.Source); c != nil && c.debugs() {
			s.childTold(c, group, name, e.Data)
			return
		}
		s.runtimeEvent(at, name, e.Data)
	default:
		if c := s.childOf(e.Source); c != nil && domainOf(group) != "" && c.at.context == at.context {
			s.childTold(c, group, name, e.Data)
		}
	}
}

// runtimeEvent passes on what a realm tells a person by itself: console output
// comes as records, and contexts are the gateway's.
func (s *session) runtimeEvent(at liveAt, name string, data json.RawMessage) {
	if name == "inspectRequested" && s.runtime.enabled {
		s.event("Runtime.inspectRequested", s.translatorOf(at).translate(data))
	}
}

// ending is during with a result, for slow commands that end with what the state has.
func ending[T any](s *session, f func() (T, error)) (result T, err error) {
	err = fmt.Errorf("cdpgw: the session failed")
	s.during(func() { result, err = f() })
	return result, err
}
