package cdpgw

import (
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
)

// Clients that speak to a browser, such as puppeteer, name the target that they
// want and get a session with it, where DevTools takes all that there are. The
// targets are the same, and so are the sessions: a connection has one session at
// a program, however often it asks.

var attachMethods = map[string]method{
	"Target.attachToTarget":     on((*session).targetAttachToTarget),
	"Target.detachFromTarget":   on((*session).targetDetachFromTarget),
	"Target.getBrowserContexts": constant(browserContexts{IDs: []string{}}),
	"Browser.getVersion":        on((*session).browserGetVersion),
}

// browserContexts is the result of Target.getBrowserContexts: there is only the default one, which has no id.
type browserContexts struct {
	IDs []string `json:"browserContextIds"`
}

// browserVersion is the result of Browser.getVersion.
type browserVersion struct {
	ProtocolVersion string `json:"protocolVersion"`
	Product         string `json:"product"`
	Revision        string `json:"revision"`
	UserAgent       string `json:"userAgent"`
	JSVersion       string `json:"jsVersion"`
}

// browserGetVersion says what /json/version says.
func (s *session) browserGetVersion(empty) (any, error) {
	name := "natscope/" + s.gateway.version
	return browserVersion{ProtocolVersion: protocolVersion, Product: name, UserAgent: name}, nil
}

// targetAttachToTarget attaches the child of the program that a target stands
// for, unless it is, and returns its session.
func (s *session) targetAttachToTarget(p struct {
	TargetID TargetID `json:"targetId"`
	Flatten  bool     `json:"flatten"`
}) (any, error) {
	if s.target.node {
		return nil, notFound("Target.attachToTarget")
	}
	if !p.Flatten {
		return nil, failf("Only flattened sessions are supported: set flatten to true.")
	}
	for _, src := range s.sources() {
		if s.childTarget(src.ID) != p.TargetID {
			continue
		}
		c := s.targets.bySource[src.ID]
		if c == nil {
			at, ok := s.childRealm(src)
			switch {
			case !s.target.grant.Controls():
				return nil, failf("%s", errOnlyLook)
			case !ok:
				if _, err := s.liveRealm(src, realm.MethodOpenSession); err != nil {
					return nil, err
				}
				return nil, failf("%s has neither a debugger nor a profiler; it is part of the target %s.", src.Name(), s.target.id())
			}
			c = s.attach(src, at)
		}
		c.asked = true
		delete(s.targets.refused, src.ID)
		return map[string]ChildID{"sessionId": c.id}, nil
	}
	return nil, failf("No target with given id found")
}

// targetDetachFromTarget ends the session of a child. What it had paused runs on.
func (s *session) targetDetachFromTarget(p struct {
	SessionID ChildID `json:"sessionId"`
}) (any, error) {
	c := s.targets.byID[p.SessionID]
	if c == nil {
		return nil, failf("No session with given id")
	}
	s.detach(c)
	// The realm's session is the root's too, but nothing of it outlives a debugger that left.
	s.abandon(c.at.realmOf)
	delete(s.runtime.told, c.at.source)
	if s.targets.attaching && c.asked {
		// Who takes all that there are keeps the session that they would have without having asked.
		if src := s.source(c.at.source); src != nil {
			s.syncChild(src)
		}
		return nil, nil
	}
	if s.targets.refused == nil {
		s.targets.refused = make(map[subjects.SourceID]ContextID)
	}
	s.targets.refused[c.at.source] = c.at.context
	return nil, nil
}
