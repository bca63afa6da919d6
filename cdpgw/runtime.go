package cdpgw

import (
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
)

// runtimeState is what the client was told of the Runtime domain.
type runtimeState struct {
	enabled bool
	// contexts are the contexts of sources that the client knows.
	contexts map[subjects.SourceID]*execution
	// discarded holds, for each source, the number of the last console entry that the client asked to forget.
	discarded map[subjects.SourceID]uint64
	// held are the sources whose console output waits until it is clear whether a child has it.
	held map[subjects.SourceID]bool
	// told is the time of the newest console entry of each source that the client was told, by whichever session.
	told map[subjects.SourceID]float64
	// groups are those that the client has open; they count where a source has the target for itself.
	groups groupState
}

var runtimeMethods = map[string]method{
	"Runtime.enable":                  on((*session).runtimeEnable),
	"Runtime.disable":                 on((*session).runtimeDisable),
	"Runtime.discardConsoleEntries":   on((*session).runtimeDiscardConsoleEntries),
	"Runtime.getIsolateId":            on((*session).runtimeGetIsolateID),
	"Runtime.addBinding":              constant(empty{}),
	"Runtime.removeBinding":           constant(empty{}),
	"Runtime.runIfWaitingForDebugger": constant(empty{}),
	"Runtime.setAsyncCallStackDepth":  constant(empty{}),
}

// executionContext describes a context as the protocol does.
type executionContext struct {
	ID       ContextID   `json:"id"`
	Origin   string      `json:"origin"`
	Name     string      `json:"name"`
	UniqueID string      `json:"uniqueId"`
	AuxData  contextData `json:"auxData"`
}

type contextData struct {
	IsDefault bool    `json:"isDefault"`
	Type      string  `json:"type"`
	FrameID   FrameID `json:"frameId"`
}

type contextCreatedEvent struct {
	Context executionContext `json:"context"`
}

type contextDestroyedEvent struct {
	ID       ContextID `json:"executionContextId"`
	UniqueID string    `json:"executionContextUniqueId"`
}

// runtimeEnable announces the contexts, then replays the console: both before the answer.
func (s *session) runtimeEnable(empty) (any, error) {
	if s.runtime.enabled {
		return nil, nil
	}
	s.runtime.enabled = true
	s.runtime.contexts = make(map[subjects.SourceID]*execution)
	if !s.target.node {
		s.event("Runtime.executionContextCreated", contextCreatedEvent{s.rootContext()})
	}
	for _, src := range s.sources() {
		s.syncContext(src)
	}
	if s.target.node {
		if c := s.nodeChild(); c != nil && c.debugs() {
			return s.childRuntimeEnable(c, nil)
		}
	}
	s.replayConsole()
	return nil, nil
}

func (s *session) runtimeDisable(empty) (any, error) {
	s.runtime.enabled, s.runtime.contexts, s.runtime.told, s.runtime.groups = false, nil, nil, groupState{}
	return nil, nil
}

// runtimeGetIsolateID names the world of this target, the same at every gateway.
func (s *session) runtimeGetIsolateID(empty) (any, error) {
	return map[string]string{"id": string(s.target.id())}, nil
}

// rootContext is the context of the main frame. It stands for the target as a whole.
func (s *session) rootContext() executionContext {
	return executionContext{
		ID: rootContext, Origin: originOf(s.target.url()), Name: s.target.title(), UniqueID: string(s.target.id()),
		AuxData: contextData{IsDefault: true, Type: "default", FrameID: FrameID(s.target.id())},
	}
}

// syncContext tells the client of a source whose context came, was replaced or went.
func (s *session) syncContext(src *fold.Source) {
	if !s.runtime.enabled {
		return
	}
	current := s.gateway.hub.contexts[src.ID]
	if s.source(src.ID) == nil {
		current = nil
	}
	known := s.runtime.contexts[src.ID]
	if known == current {
		return
	}
	if known != nil {
		delete(s.runtime.contexts, src.ID)
		s.abandon(realmOf{src.ID, known.generation})
		s.forgetScripts(known.id)
		s.event("Runtime.executionContextDestroyed", contextDestroyedEvent{ID: known.id, UniqueID: known.uniqueID(src.ID)})
	}
	if current != nil {
		s.runtime.contexts[src.ID] = current
		s.event("Runtime.executionContextCreated", contextCreatedEvent{s.sourceContext(src, current)})
		s.syncRealm(src)
	}
}

// sourceContext describes the context of a source.
func (s *session) sourceContext(src *fold.Source, x *execution) executionContext {
	return executionContext{
		ID: x.id, Origin: originOf(frameURL(s.target.space, src)), Name: src.Name(), UniqueID: x.uniqueID(src.ID),
		AuxData: contextData{IsDefault: true, Type: "default", FrameID: frameOf(src.ID)},
	}
}

// uniqueID names a context for clients that keep it longer than a number: it is
// bound to the generation and to this announcement of it.
func (x *execution) uniqueID(id subjects.SourceID) string {
	return string(id) + "." + string(x.generation) + "." + itoa(int64(x.id))
}
