package realm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/tree"
)

// ResolveArgumentParams ask for the live argument of a console message.
type ResolveArgumentParams struct {
	// Ref is the message's, not 0.
	Ref console.Ref `json:"ref"`
	// Arg counts the arguments from 0.
	Arg int `json:"arg"`
	// ObjectGroup is the group that the object belongs to in the session; it may be empty.
	ObjectGroup string `json:"objectGroup,omitempty"`
}

func (p ResolveArgumentParams) check() error {
	switch {
	case p.Ref == 0:
		return fmt.Errorf("ref is missing")
	case p.Arg < 0:
		return fmt.Errorf("arg is negative")
	}
	return nil
}

// ObjectResult is a live object.
type ObjectResult struct {
	// Object is the protocol's RemoteObject.
	Object json.RawMessage `json:"object"`
}

// ResolveNodeParams ask for the live object of a node.
type ResolveNodeParams struct {
	// ID is the node.
	ID tree.NodeID `json:"id"`
	// ObjectGroup is the group that the object belongs to in the session; it may be empty.
	ObjectGroup string `json:"objectGroup,omitempty"`
}

func (p ResolveNodeParams) check() error {
	if p.ID == 0 {
		return errNoID
	}
	return nil
}

// NodeOfParams ask for the node of a live object.
type NodeOfParams struct {
	// ObjectID is the object.
	ObjectID ObjectID `json:"objectId"`
}

func (p NodeOfParams) check() error { return p.ObjectID.check() }

// NodeOfResult is the node of a live object.
type NodeOfResult struct {
	// ID is the node; 0 means that the object is no node's.
	ID tree.NodeID `json:"id"`
}

// InspectedParams say which node a person selected.
type InspectedParams struct {
	// ID is the node; 0 means one that is none of this realm's, so that $0 is nothing here.
	ID tree.NodeID `json:"id"`
}

// EnableSourcesResult lists the scripts of a realm.
type EnableSourcesResult struct {
	// Scripts are the protocol's parameters of Debugger.scriptParsed.
	Scripts []json.RawMessage `json:"scripts"`
}

// ScriptSourceParams name a script.
type ScriptSourceParams struct {
	// ScriptID is the realm's.
	ScriptID string `json:"scriptId"`
}

func (p ScriptSourceParams) check() error {
	if p.ScriptID == "" {
		return fmt.Errorf("scriptId is missing")
	}
	return nil
}

// ScriptSourceResult is the text of a script.
type ScriptSourceResult struct {
	// ScriptSource is the text.
	ScriptSource string `json:"scriptSource"`
}

// LoadResourceParams name what a script refers to, such as its source map.
type LoadResourceParams struct {
	// URL is the address as the script has it. Realms refuse what none of their scripts names.
	URL string `json:"url"`
}

func (p LoadResourceParams) check() error {
	if p.URL == "" {
		return fmt.Errorf("url is missing")
	}
	return nil
}

// LoadResourceResult is what was loaded.
type LoadResourceResult struct {
	// Content is the text.
	Content string `json:"content"`
}

// SideEffect begins the description of the exception with which a realm
// refuses to evaluate what it cannot prove to change nothing, as V8 does.
const SideEffect = "EvalError: Possible side-effect in debug-evaluate"

// reads are the commands of the protocol that cannot change a program, whatever their parameters.
var reads = map[Method]bool{}

func init() {
	for group, names := range map[string]string{
		GroupSession: "open touch close cancel",
		GroupRuntime: "enable disable compileScript getProperties awaitPromise releaseObject releaseObjectGroup globalLexicalScopeNames " +
			"queryObjects getExceptionDetails getHeapUsage getIsolateId discardConsoleEntries runIfWaitingForDebugger setAsyncCallStackDepth",
		GroupSources:  "enable disable getScriptSource loadResource",
		GroupConsole:  "resolve",
		GroupTree:     "inspect highlight pick log watch resolve nodeOf inspected",
		GroupProfiler: "enable disable setSamplingInterval start stop",
		GroupHeap:     "enable disable getHeapObjectId getObjectByHeapObjectId getSamplingProfile addInspectedHeapObject",
	} {
		for _, name := range strings.Fields(names) {
			reads[Method(group+"."+name)] = true
		}
	}
}

// pure are the commands that change nothing if the asker says throwOnSideEffect:
// the realm then refuses what it cannot prove to be harmless.
var pure = map[Method]bool{MethodEvaluate: true, MethodCallFunctionOn: true, MethodEvaluateOnCallFrame: true}

// Changes reports whether a command can change a program, hold it up or reach
// outside of it, so that it has to be written to the audit before it is sent and
// is refused to who may only look. It is true for unknown methods.
func (m Method) Changes() bool { return m != MethodPing && !reads[m] }

// ChangesWith is Changes for a command with its parameters: what is evaluated
// with throwOnSideEffect changes nothing, since the realm has to refuse what would.
func (m Method) ChangesWith(params json.RawMessage) bool {
	if !pure[m] {
		return m.Changes()
	}
	// Most commands do not name it, not even in escaped letters.
	if !bytes.ContainsRune(params, '\\') && !bytes.Contains(params, []byte("throwOnSideEffect")) {
		return true
	}
	// A map, since the fields of structures are found in any case, which a realm would not.
	var p map[string]json.RawMessage
	return json.Unmarshal(params, &p) != nil || string(p["throwOnSideEffect"]) != "true"
}

// LookTimeout bounds what somebody evaluates who may only look: a loop holds a
// program up as long as it runs, even if it changes nothing.
const LookTimeout = 500 * time.Millisecond

// Brief returns the parameters of a command with a timeout of at most
// LookTimeout, for commands that have one. It is for who may only look.
func (m Method) Brief(params json.RawMessage) json.RawMessage {
	if m != MethodEvaluate && m != MethodEvaluateOnCallFrame {
		return params
	}
	var p map[string]json.RawMessage
	var given float64
	if json.Unmarshal(params, &p) != nil || p == nil {
		return params // No realm takes it.
	}
	most := float64(LookTimeout.Milliseconds())
	if json.Unmarshal(p["timeout"], &given) != nil || given <= 0 || given > most {
		given = most
	}
	// Values that were JSON, and a finite number, always are.
	p["timeout"], _ = json.Marshal(given)
	out, _ := json.Marshal(p)
	return out
}

// Group returns what stands before a method's dot; empty for one without.
func (m Method) Group() string {
	group, _, ok := strings.Cut(string(m), ".")
	if !ok {
		return ""
	}
	return group
}

// InSession reports whether a method needs an open session.
func (m Method) InSession() bool {
	switch m.Group() {
	case GroupRuntime, GroupDebugger, GroupProfiler, GroupHeap, GroupSources, GroupConsole:
		return true
	}
	return m == MethodResolveNode || m == MethodNodeOf || m == MethodInspected
}
