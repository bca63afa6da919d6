package cdpgw

// detachedEvent is the parameters of Inspector.detached; DevTools shows the reason word by word.
type detachedEvent struct {
	Reason string `json:"reason"`
}

var inspectorMethods = map[string]method{
	"Inspector.enable":  constant(empty{}),
	"Inspector.disable": constant(empty{}),
	"Tracing.start":     refuse(noTracing),
}

// noTracing is what a client is told that wants to record what a browser does, as the Performance panel does.
const noTracing = "Tracing is what a browser does, and there is none here. A CPU profile of a program with a debugger is recorded in its own target, the one of type node in the list of targets."

// targetInfo describes the target of the connection.
type targetInfo struct {
	TargetID        TargetID `json:"targetId"`
	Type            string   `json:"type"`
	Title           string   `json:"title"`
	URL             string   `json:"url"`
	Attached        bool     `json:"attached"`
	CanAccessOpener bool     `json:"canAccessOpener"`
}

// targetMethods answer clients that look around before they work, and attach the children (child.go).
var targetMethods = map[string]method{
	"Target.setAutoAttach":      on((*session).targetSetAutoAttach),
	"Target.setDiscoverTargets": constant(empty{}),
	"Target.setRemoteLocations": constant(empty{}),
	"Target.getTargetInfo":      on((*session).targetGetTargetInfo),
	"Target.getTargets":         on((*session).targetGetTargets),
}

func (s *session) targetInfo() targetInfo {
	kind := "page"
	if s.target.node {
		kind = "node"
	}
	return targetInfo{TargetID: s.target.id(), Type: kind, Title: s.target.title(), URL: s.target.url(), Attached: true}
}

func (s *session) targetGetTargetInfo(empty) (any, error) {
	return map[string]targetInfo{"targetInfo": s.targetInfo()}, nil
}

func (s *session) targetGetTargets(empty) (any, error) {
	return map[string][]targetInfo{"targetInfos": {s.targetInfo()}}, nil
}
