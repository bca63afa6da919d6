package realm

import (
	"errors"
	"fmt"
	"time"
)

// The commands of sessions. A session is one DevTools, or another asker, at one
// generation of one source: the realm holds objects for it, and nobody else's
// commands can touch them. The producer carries these commands out; realms do not see them.
const (
	// MethodOpenSession begins a session, or renews the lease of one that is open: OpenResult.
	MethodOpenSession Method = "session.open"
	// MethodTouchSession renews the lease of a session. The error is ErrNoSession when the realm does not know it.
	MethodTouchSession Method = "session.touch"
	// MethodCloseSession ends a session and frees all that is held for it.
	MethodCloseSession Method = "session.close"
	// MethodCancel ends a command of the session that still runs: CancelParams.
	MethodCancel Method = "session.cancel"
)

// The times of sessions. Every command of a session renews its lease.
const (
	// SessionLease is how long a session lives after the last sign of its asker.
	SessionLease = 30 * time.Second
	// SessionTouch is how often an asker gives a sign of life.
	SessionTouch = 10 * time.Second
)

// OpenResult is the answer to MethodOpenSession.
type OpenResult struct {
	// LeaseMS is how long the session lives after the last command, in milliseconds.
	LeaseMS int64 `json:"leaseMs"`
	// Capabilities is what the realm answers in sessions: groups and methods.
	Capabilities []string `json:"capabilities"`
}

// RequestID names a running command of a session, for MethodCancel. The asker
// chooses it and uses it once in a session; it has at most 64 bytes.
type RequestID string

// maxRequestID is the most bytes of a RequestID.
const maxRequestID = 64

// CancelParams say which command to end.
type CancelParams struct {
	// Request is the id of the command. One that does not run (any more) is none to end, which is no error.
	Request RequestID `json:"request"`
}

func (p CancelParams) check() error {
	if p.Request == "" || len(p.Request) > maxRequestID {
		return fmt.Errorf("request must have 1 to %d bytes", maxRequestID)
	}
	return nil
}

// Groups of methods that realms answer in sessions, and the capabilities that
// stand for them. A method is a group, a dot and a command of the protocol of
// DevTools; parameters and results are that protocol's, with the realm's own
// object ids, context ids and script ids in the place of those that a DevTools connection sees.
const (
	// GroupSession is listed by every source that has sessions at all.
	GroupSession = "session"
	// GroupRuntime is the domain Runtime.
	GroupRuntime = "runtime"
	// GroupDebugger is the domain Debugger.
	GroupDebugger = "debugger"
	// GroupProfiler is the domain Profiler.
	GroupProfiler = "profiler"
	// GroupHeap is the domain HeapProfiler.
	GroupHeap = "heap"
	// GroupSources are the scripts of a realm and their texts.
	GroupSources = "sources"
	// GroupConsole are the live arguments of console messages.
	GroupConsole = "console"
	// GroupTree are the live objects of nodes.
	GroupTree = "tree"
)

// The commands of sessions that are not the protocol's own.
const (
	// MethodEvaluate is the command of the protocol: it is named since its parameters tell whether it changes anything.
	MethodEvaluate Method = "runtime.evaluate"
	// MethodCallFunctionOn is likewise the protocol's.
	MethodCallFunctionOn Method = "runtime.callFunctionOn"
	// MethodEvaluateOnCallFrame is likewise the protocol's.
	MethodEvaluateOnCallFrame Method = "debugger.evaluateOnCallFrame"
	// MethodResolveArgument finds the live argument of a console message: ResolveArgumentParams, ObjectResult.
	MethodResolveArgument Method = "console.resolve"
	// MethodResolveNode finds the live object of a node: ResolveNodeParams, ObjectResult.
	MethodResolveNode Method = "tree.resolve"
	// MethodNodeOf finds the node of a live object: NodeOfParams, NodeOfResult.
	MethodNodeOf Method = "tree.nodeOf"
	// MethodInspected tells which node the person selected: InspectedParams. It becomes $0, what was $0 becomes $1.
	MethodInspected Method = "tree.inspected"
	// MethodEnableSources lists the realm's scripts and has later ones announced: EnableSourcesResult, EventScriptParsed.
	MethodEnableSources Method = "sources.enable"
	// MethodScriptSource reads a script: ScriptSourceParams, ScriptSourceResult.
	MethodScriptSource Method = "sources.getScriptSource"
	// MethodLoadResource reads a source map that a script named: LoadResourceParams, LoadResourceResult.
	MethodLoadResource Method = "sources.loadResource"
)

// EventScriptParsed tells a session of a new script: the protocol's parameters of Debugger.scriptParsed.
const EventScriptParsed = "sources.scriptParsed"

// ObjectID is a realm's own name of an object that it holds for one session:
// opaque, never used twice in a session.
type ObjectID string

// maxObjectID is the most bytes of an ObjectID.
const maxObjectID = 256

func (id ObjectID) check() error {
	if id == "" || len(id) > maxObjectID {
		return fmt.Errorf("objectId must have 1 to %d bytes", maxObjectID)
	}
	return nil
}

var errNoID = errors.New("id is missing")
