package cdpgw

import (
	"strings"

	"github.com/gorilla/websocket"

	"github.com/natscope/natscope/subjects/realm"
)

// A target of the type node is one source as debuggers of Node know programs:
// for js_app.html, in which CPU profiles are recorded, VS Code, and everything
// that speaks to node --inspect. Its realm is passed through.

// reasonEnded is why a target of the type node closes: debuggers attach to it anew.
const reasonEnded = "The program ended or was restarted. Connect again to debug the present run."

// domains are the protocol's names of groups of methods.
var domains = map[string]string{
	realm.GroupRuntime: "Runtime", realm.GroupDebugger: "Debugger", realm.GroupProfiler: "Profiler", realm.GroupHeap: "HeapProfiler",
	"nodeWorker": "NodeWorker", "nodeRuntime": "NodeRuntime", "nodeTracing": "NodeTracing", "schema": "Schema",
}

// domainOf returns the domain of a group.
func domainOf(group string) string { return domains[group] }

// groupMethod returns the method of sessions that a command of the protocol is; false if it is none.
func groupMethod(name string) (realm.Method, bool) {
	domain, command, _ := strings.Cut(name, ".")
	for g, d := range domains {
		if d == domain {
			return realm.Method(g + "." + command), command != ""
		}
	}
	return "", false
}

// nodeChild returns the child that a target of the type node is, nil while its
// source has no realm for one. A new run of the program ends the connection of a
// debugger, which would take it for the old one.
func (s *session) nodeChild() *child {
	src := s.source(s.target.source)
	if src == nil {
		return s.whole
	}
	at, err := s.liveRealm(src, realm.MethodOpenSession)
	if err != nil {
		return s.whole
	}
	if s.whole == nil {
		s.whole = &child{at: at}
	}
	return s.whole
}

// syncNode ends a debugger's connection to a run that is over.
func (s *session) syncNode() {
	if c := s.whole; c != nil && c.debugs() && s.gateway.hub.contextOf(c.at.source, string(c.at.generation)) != c.at.context {
		s.conn.end(websocket.CloseGoingAway, reasonEnded)
	}
}

// nodeCommand returns the child for a command that it answers in the place of the root.
func (s *session) nodeCommand(name string) *child {
	m, ok := groupMethod(name)
	if !ok {
		return nil
	}
	c := s.nodeChild()
	if c == nil {
		return nil
	}
	switch m.Group() {
	case realm.GroupRuntime, realm.GroupDebugger:
		// Of a source without a debugger, the root shows console and scripts.
		if !c.debugs() || name == "Runtime.enable" {
			return nil
		}
	}
	return c
}
