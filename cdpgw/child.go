package cdpgw

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
)

// Sources that can be profiled, or whose debugger DevTools can use, have a
// session of their own below the root's, as a worker of a page has: so that one
// program that is paused blocks no other, and each has its row in Memory. The
// root session announces all execution contexts and evaluates in them. A child
// owns Debugger, Profiler and HeapProfiler of its source and, where that has a
// debugger, the console output: DevTools links a message only to scripts of the
// session that the message comes in.

// ChildID names a child session of a connection. It is never used twice.
type ChildID string

// maxChildren is how many children are attached without being asked for; further
// ones are attached when somebody evaluates in their source. 200 with all their
// scripts make DevTools slow.
const maxChildren = 50

// childState is what the client was told of child sessions.
type childState struct {
	// attaching says that the client wants them.
	attaching bool
	bySource  map[subjects.SourceID]*child
	byID      map[ChildID]*child
	last      int64
	// refused are the runs whose children the client detached; they come only when it asks for them.
	refused map[subjects.SourceID]ContextID
}

// child is the session of one generation of a source. In a target of the type
// node it is the whole connection, and has no id.
type child struct {
	id ChildID
	at liveAt
	// enabled says that the client listens to Runtime: the source's console output is the child's then.
	enabled bool
	// asked says that the client named the child, and did not just take all that there are.
	asked bool
	// replayed is up to when the client knows what the engine is about to tell again, while it does; else 0.
	replayed float64
	pause    pauseState
}

// debugs reports whether the source has a debugger.
func (c *child) debugs() bool { return c.at.can("debugger.enable") }

// childTarget names the target of a source's child, as /json/list does, the same at every gateway.
func (s *session) childTarget(id subjects.SourceID) TargetID {
	return target{space: s.target.space, source: id, node: true}.id()
}

// whole reports whether the child is the whole connection.
func (c *child) whole() bool { return c.id == "" }

// translator translates what the realm says for the child, whose scripts and
// contexts are the realm's own. A target of the type node shows the gateway's one context.
func (c *child) translator() translator {
	t := translator{prefix: c.at.prefix()}
	if c.whole() {
		t.context = c.at.context
	}
	return t
}

type attachedToTargetEvent struct {
	SessionID          ChildID    `json:"sessionId"`
	TargetInfo         targetInfo `json:"targetInfo"`
	WaitingForDebugger bool       `json:"waitingForDebugger"`
}

type detachedFromTargetEvent struct {
	SessionID ChildID  `json:"sessionId"`
	TargetID  TargetID `json:"targetId"`
}

// targetSetAutoAttach begins or ends the attaching of children.
func (s *session) targetSetAutoAttach(p struct {
	AutoAttach bool `json:"autoAttach"`
	Flatten    bool `json:"flatten"`
}) (any, error) {
	s.targets.attaching = p.AutoAttach && p.Flatten && !s.target.node
	for _, src := range s.sources() {
		s.syncChild(src)
	}
	return nil, nil
}

// childRealm returns the realm of a source that has a child, if the client may have it.
func (s *session) childRealm(src *fold.Source) (liveAt, bool) {
	if !s.target.grant.Controls() {
		return liveAt{}, false
	}
	at, err := s.liveRealm(src, realm.MethodOpenSession)
	return at, err == nil && (at.can("debugger.enable") || at.can("profiler.start") || at.can("heap.enable"))
}

// syncChild attaches or detaches the child of a source, as its state and the client ask for.
func (s *session) syncChild(src *fold.Source) {
	var at liveAt
	wanted := false
	c := s.targets.bySource[src.ID]
	if (s.targets.attaching || c != nil && c.asked) && s.source(src.ID) == src {
		at, wanted = s.childRealm(src)
	}
	if c != nil && (!wanted || c.at.context != at.context) {
		s.detach(c)
		c = nil
	}
	if wanted && c == nil && len(s.targets.byID) < maxChildren && s.targets.refused[src.ID] != at.context {
		s.attach(src, at)
	}
}

// attach tells the client of a child.
func (s *session) attach(src *fold.Source, at liveAt) *child {
	k := &s.targets
	k.last++
	c := &child{id: ChildID("child-" + itoa(k.last)), at: at}
	if k.byID == nil {
		k.bySource, k.byID = make(map[subjects.SourceID]*child), make(map[ChildID]*child)
	}
	k.bySource[src.ID], k.byID[c.id] = c, c
	s.event("Target.attachedToTarget", attachedToTargetEvent{SessionID: c.id, TargetInfo: targetInfo{
		// DevTools shows the last part of the address as the child's name.
		TargetID: s.childTarget(src.ID), Type: "node_worker", Title: src.Name(), URL: "natscope://" + string(s.target.space) + "/" + addressName(src.Name()), Attached: true,
	}})
	return c
}

// addressName makes a name the last part of an address. DevTools shows it as it
// is, so that only what ends a part is written otherwise.
func addressName(name string) string {
	return strings.NewReplacer("/", "∕", "?", "%3F", "#", "%23").Replace(name)
}

// attachFor attaches the child of a source that somebody turned to.
func (s *session) attachFor(at liveAt) {
	if !s.targets.attaching || s.targets.bySource[at.source] != nil {
		return
	}
	if src := s.source(at.source); src != nil {
		if at, ok := s.childRealm(src); ok && s.targets.refused[src.ID] != at.context {
			s.attach(src, at)
		}
	}
}

// detach tells the client that a child is gone.
func (s *session) detach(c *child) {
	delete(s.targets.bySource, c.at.source)
	delete(s.targets.byID, c.id)
	s.pauseOver(c)
	s.event("Target.detachedFromTarget", detachedFromTargetEvent{SessionID: c.id, TargetID: s.childTarget(c.at.source)})
}

// childEvent queues an event of a child.
func (s *session) childEvent(c *child, method string, params any) {
	out := outgoing{Method: method, Params: params, SessionID: string(c.id)}
	if s.following {
		s.send(encode(out))
		return
	}
	s.postpone(out)
}

// childMethod is a command of a child.
type childMethod func(s *session, c *child, p rawParams) (any, error)

// childMethods are the commands of a child that are more than passed on.
var childMethods map[string]childMethod

func init() {
	childMethods = map[string]childMethod{
		"Runtime.enable":                  (*session).childRuntimeEnable,
		"Runtime.disable":                 (*session).childRuntimeDisable,
		"Runtime.evaluate":                inChild(realm.MethodEvaluate),
		"Runtime.compileScript":           inChild("runtime.compileScript"),
		"Runtime.globalLexicalScopeNames": inChild("runtime.globalLexicalScopeNames"),
		"Runtime.callFunctionOn":          rootMethod("Runtime.callFunctionOn"),
		"Runtime.getProperties":           rootMethod("Runtime.getProperties"),
		"Runtime.awaitPromise":            rootMethod("Runtime.awaitPromise"),
		"Runtime.queryObjects":            rootMethod("Runtime.queryObjects"),
		"Runtime.getExceptionDetails":     rootMethod("Runtime.getExceptionDetails"),
		"Runtime.releaseObject":           rootMethod("Runtime.releaseObject"),
		"Runtime.releaseObjectGroup":      rootMethod("Runtime.releaseObjectGroup"),
		"Runtime.getIsolateId":            (*session).childIsolateID,
		"Runtime.addBinding":              childConstant(empty{}),
		"Runtime.removeBinding":           childConstant(empty{}),
		"Runtime.runIfWaitingForDebugger": childConstant(empty{}),
		"Network.loadNetworkResource":     rootMethod("Network.loadNetworkResource"),
		"IO.read":                         rootMethod("IO.read"),
		"IO.close":                        rootMethod("IO.close"),
		"Debugger.enable":                 (*session).childDebuggerEnable,
		"Debugger.disable":                (*session).childDebuggerDisable,
	}
}

func childConstant(result any) childMethod {
	return func(*session, *child, rawParams) (any, error) { return result, nil }
}

// rootMethod is a command that is the same in the root: its objects say whose they are.
func rootMethod(name string) childMethod {
	return func(s *session, _ *child, p rawParams) (any, error) {
		run, err := methods[name](encode(p))
		if err != nil {
			return nil, err
		}
		return run(s)
	}
}

// inChild is a command that goes to the child's realm, whichever of its contexts it names.
func inChild(m realm.Method) childMethod {
	return func(s *session, c *child, p rawParams) (any, error) {
		result, err := s.passed(c.at, m, p, c.translator())
		if m == realm.MethodEvaluate {
			return s.explained(p, result, err)
		}
		return result, err
	}
}

// childCommand runs a command of a child.
func (s *session) childCommand(c *child, name string, p rawParams) (any, error) {
	if f := childMethods[name]; f != nil {
		return f(s, c, p)
	}
	m, ok := groupMethod(name)
	switch {
	case !ok:
		return nil, notFound(name)
	case m.Group() == realm.GroupDebugger && !c.debugs():
		// What DevTools sets at the start is as well done; there is nothing to stop.
		return rootMethod(name).orNotFound(name)(s, c, p)
	case !c.at.can(m):
		return nil, notFound(name)
	}
	return s.childPassed(c, m, p)
}

// orNotFound is a root method that may not exist.
func (f childMethod) orNotFound(name string) childMethod {
	if methods[name] == nil {
		return func(*session, *child, rawParams) (any, error) { return nil, notFound(name) }
	}
	return f
}

// childPassed sends a command of Debugger, Profiler, HeapProfiler or Runtime to
// the child's realm as it is, save the ids of objects in it.
func (s *session) childPassed(c *child, m realm.Method, p rawParams) (any, error) {
	params, err := c.own(p)
	if err != nil {
		return nil, err
	}
	if g := m.Group(); !s.target.grant.Controls() && (g == realm.GroupDebugger || g == realm.GroupProfiler || g == realm.GroupHeap) {
		// Not even what changes nothing: it holds the program up, or slows it down.
		return nil, failf("%s", errOnlyLook)
	}
	if err := s.allowed(m, params); err != nil {
		return nil, err
	}
	at, selected := c.at, s.selectedFor(c.at, p)
	return s.queued(at.realmOf, func(ctx context.Context, t *turn) (any, error) {
		defer t.lane.runs(m)()
		s.tellSelected(at, t.lane, selected)
		raw, err := s.ask(ctx, at, m, params, t.over)
		if errors.Is(err, realm.ErrUnsupported) {
			// Engines differ in what they have; clients ask, and take this for the answer.
			_, command, _ := strings.Cut(string(m), ".")
			return nil, notFound(domainOf(m.Group()) + "." + command)
		}
		if err != nil {
			return nil, err
		}
		if len(raw) == 0 {
			return nil, nil
		}
		return c.translator().translate(raw), nil
	}), nil
}

// own puts the realm's ids in the place of this connection's in parameters.
func (c *child) own(p rawParams) (json.RawMessage, error) {
	out := p.without()
	for _, name := range []string{"objectId", "newValue"} {
		raw, ok := p[name]
		if !ok {
			continue
		}
		if name == "newValue" {
			var v rawParams
			if json.Unmarshal(raw, &v) != nil || v["objectId"] == nil {
				continue
			}
			inner, err := c.own(rawParams{"objectId": v["objectId"]})
			if err != nil {
				return nil, err
			}
			var id rawParams
			_ = json.Unmarshal(inner, &id)
			v = v.without()
			v["objectId"] = id["objectId"]
			out[name] = encode(v)
			continue
		}
		var id ObjectID
		o, is := liveObject{}, false
		if json.Unmarshal(raw, &id) == nil {
			o, is = parseLiveObject(id)
		}
		switch {
		case !is:
			return nil, errNoObject()
		case o.source != c.at.source || o.context != c.at.context:
			return nil, errOtherWorld()
		}
		out[name] = encode(o.id)
	}
	return encode(out), nil
}

// childIsolateID tells the worlds apart, for the rows of Memory.
func (s *session) childIsolateID(c *child, p rawParams) (any, error) {
	if c.debugs() {
		return s.childPassed(c, "runtime.getIsolateId", p)
	}
	return map[string]string{"id": string(c.at.source) + "." + string(c.at.generation)}, nil
}

// childDebuggerEnable begins debugging. A source without a debugger has no
// scripts here: those that it has are the root's.
func (s *session) childDebuggerEnable(c *child, p rawParams) (any, error) {
	if c.debugs() {
		return s.childPassed(c, "debugger.enable", p)
	}
	return map[string]string{"debuggerId": "natscope." + string(s.childTarget(c.at.source))}, nil
}

// childDebuggerDisable ends debugging: a program that was paused runs on, and the engine does not say so.
func (s *session) childDebuggerDisable(c *child, p rawParams) (any, error) {
	if !c.debugs() {
		return nil, nil
	}
	s.resumed(c)
	return s.childPassed(c, "debugger.disable", p)
}

// childOf returns the child to whom a source's events go, nil if there is none.
func (s *session) childOf(id subjects.SourceID) *child {
	if s.target.node {
		return s.nodeChild()
	}
	return s.targets.bySource[id]
}

// childTold passes an event of a realm on to the child of its source.
func (s *session) childTold(c *child, group, name string, data json.RawMessage) {
	if len(data) == 0 {
		data = json.RawMessage("{}")
	}
	params := c.translator().translate(data)
	switch {
	case group == realm.GroupDebugger && name == "paused":
		s.pausing(c)
	case group == realm.GroupDebugger && name == "scriptParsed":
		params = s.offerMap(c, params)
	case group == realm.GroupDebugger && name == "resumed":
		defer s.resumed(c)
	case group == realm.GroupRuntime && !c.enabled, group == realm.GroupRuntime && contextEvents[name]:
		return
	case group == realm.GroupRuntime && consoleEventNames[name] && s.knownFrom(c, data):
		return
	}
	s.childEvent(c, domainOf(group)+"."+name, params)
}

// contextEvents are a realm's announcements of contexts, which the gateway makes itself.
var contextEvents = map[string]bool{"executionContextCreated": true, "executionContextDestroyed": true, "executionContextsCleared": true}
