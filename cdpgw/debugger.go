package cdpgw

import (
	"context"
	"fmt"
	"hash/fnv"
	"net/url"
	"strconv"
	"strings"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/realm"
)

// ScriptID names a file of one run of a source. It follows from source,
// generation and address, so it is the same at every gateway and needs no table.
// Another run has others: DevTools drops the scripts of a run that is over, and
// takes none again that it had.
type ScriptID string

// maxScripts is how many files one connection is told of; frames in others show no link.
const maxScripts = 10000

// debuggerState is what the client was told of the Debugger domain. Nothing can
// be paused here. Scripts of live realms can be read; other files are announced
// because DevTools links a stack to a file that it was told of, and shows no place at all for any other.
type debuggerState struct {
	enabled bool
	known   map[ScriptID]string
	// listed has the runs whose scripts were asked for, and whether they are there.
	listed map[ContextID]bool
	// refused has the breakpoints whose refusal the client was told.
	refused map[string]bool
	// scripts are those of live realms.
	scripts scriptTable
}

var debuggerMethods = map[string]method{
	"Debugger.enable":                      on((*session).debuggerEnable),
	"Debugger.disable":                     on((*session).debuggerDisable),
	"Debugger.getScriptSource":             on((*session).debuggerGetScriptSource),
	"Debugger.searchInContent":             on((*session).debuggerSearchInContent),
	"Debugger.getPossibleBreakpoints":      constant(map[string][]empty{"locations": {}}),
	"Debugger.setAsyncCallStackDepth":      constant(empty{}),
	"Debugger.setBlackboxPatterns":         constant(empty{}),
	"Debugger.setBreakpointsActive":        constant(empty{}),
	"Debugger.setPauseOnExceptions":        constant(empty{}),
	"Debugger.setSkipAllPauses":            constant(empty{}),
	"Debugger.setBreakpointByUrl":          on((*session).debuggerSetBreakpointByURL),
	"Debugger.setBreakpoint":               on((*session).debuggerSetBreakpoint),
	"Debugger.removeBreakpoint":            constant(empty{}),
	"Debugger.setBreakpointOnFunctionCall": refuse(noPause),
	"Debugger.pause":                       on((*session).debuggerPause),
}

type scriptParsedEvent struct {
	ScriptID           ScriptID    `json:"scriptId"`
	URL                string      `json:"url"`
	StartLine          int         `json:"startLine"`
	StartColumn        int         `json:"startColumn"`
	EndLine            int         `json:"endLine"`
	EndColumn          int         `json:"endColumn"`
	ExecutionContextID ContextID   `json:"executionContextId"`
	Hash               string      `json:"hash"`
	BuildID            string      `json:"buildId"`
	AuxData            contextData `json:"executionContextAuxData"`
	SourceMapURL       string      `json:"sourceMapURL"`
	Length             int         `json:"length"`
}

// fileURL returns the address of a file as DevTools wants it: a plain path,
// which is what Go's stacks have, becomes an address, so that links show the
// file's name instead of the whole path.
func fileURL(name string) string {
	if strings.HasPrefix(name, "/") {
		return (&url.URL{Scheme: "file", Path: name}).String()
	}
	return name
}

// scriptOf returns the id of a file of a source; empty for a frame without one.
func scriptOf(id subjects.SourceID, generation, address string) ScriptID {
	if address == "" {
		return ""
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(string(id) + "\x00" + generation + "\x00" + address))
	return ScriptID(strconv.FormatUint(h.Sum64(), 10))
}

// debuggerEnable tells of the files that the kept records name.
func (s *session) debuggerEnable(empty) (any, error) {
	result := map[string]string{"debuggerId": "natscope." + string(s.target.id())}
	if s.debugger.enabled {
		return result, nil
	}
	s.debugger.enabled, s.debugger.known, s.debugger.listed = true, make(map[ScriptID]string), make(map[ContextID]bool)
	var live []liveAt
	for _, src := range s.sources() {
		if at, ok := s.withScripts(src); ok && len(live) < maxAttended {
			live = append(live, at)
			s.debugger.listed[at.context] = false
		}
		// Of two files with one address DevTools shows the last: older runs go first.
		s.announceAll(src)
	}
	if len(live) == 0 {
		return result, nil
	}
	return later(func(ctx context.Context) (any, error) {
		s.listScripts(ctx, live)
		return result, nil
	}), nil
}

// childsFiles reports whether the files of a source are, or will be, its child's.
// DevTools shows a file of each session that tells of it: of two with one address
// a person would set breakpoints in the one that has neither text nor engine.
func (s *session) childsFiles(src *fold.Source) bool {
	if !s.mayHaveChild(src) {
		return false
	}
	k := &s.targets
	// Before Runtime.enable, and for a while after it, the client has yet to say that it wants children.
	return k.bySource[src.ID] != nil || s.runtime.held[src.ID] || !s.runtime.enabled || k.attaching && len(k.byID) < maxChildren
}

// announceAll tells of the files that the records of a source name.
func (s *session) announceAll(src *fold.Source) {
	if s.childsFiles(src) {
		return
	}
	for _, r := range src.Net.Requests {
		s.announce(src, r.Generation, r.Start.Value.Stack)
	}
	for _, e := range src.Console.Entries {
		s.announceEntry(fold.Change{Source: src, Console: e})
	}
}

func (s *session) debuggerDisable(empty) (any, error) {
	s.debugger.enabled, s.debugger.known, s.debugger.listed = false, nil, nil
	s.debugger.scripts.clear()
	return nil, nil
}

// announceFiles tells of the files that a change names, before the change itself.
func (s *session) announceFiles(c fold.Change) {
	switch {
	case !s.debugger.enabled || s.childsFiles(c.Source):
	case c.Request != nil && c.Request.Topic == network.TopicStart:
		s.announce(c.Source, c.Request.Request.Generation, c.Request.Request.Start.Value.Stack)
	case c.Console != nil:
		s.announceEntry(c)
	}
}

func (s *session) announceEntry(c fold.Change) {
	if m := c.Console.Message; m != nil {
		s.announce(c.Source, c.Console.Generation, m.Stack)
	}
	if x := c.Console.Exception; x != nil {
		s.announce(c.Source, c.Console.Generation, x.Stack)
	}
}

// announce tells of files. Those of a run whose realm is listing its scripts come
// with the list, which knows more of them.
func (s *session) announce(src *fold.Source, generation string, stack []network.Frame) {
	context := s.gateway.hub.contextOf(src.ID, generation)
	if done, listing := s.debugger.listed[context]; listing && !done {
		return
	}
	for _, f := range stack {
		address := fileURL(f.URL)
		id := scriptOf(src.ID, generation, address)
		if id == "" || s.debugger.known[id] != "" || len(s.debugger.known) == maxScripts {
			continue
		}
		s.debugger.known[id] = address
		s.event("Debugger.scriptParsed", scriptParsedEvent{
			ScriptID: id, URL: address, ExecutionContextID: context, Hash: string(id),
			AuxData: contextData{IsDefault: true, Type: "default", FrameID: frameOf(src.ID)},
		})
	}
}

type scriptParams struct {
	ScriptID ScriptID `json:"scriptId"`
}

// debuggerGetScriptSource returns the text of a live script, and says in the
// place of any other that there is none.
func (s *session) debuggerGetScriptSource(p scriptParams) (any, error) {
	if at, ok := s.scriptRealm(p.ScriptID); ok {
		return s.queued(at.realmOf, func(ctx context.Context, t *turn) (any, error) {
			text, err := s.scriptText(ctx, at, p.ScriptID, t.over)
			if err != nil {
				return nil, err
			}
			return realm.ScriptSourceResult{ScriptSource: text}, nil
		}), nil
	}
	address, ok := s.debugger.known[p.ScriptID]
	if !ok {
		return nil, failf("No script for id: %.80s", p.ScriptID)
	}
	return map[string]string{"scriptSource": fmt.Sprintf("// %s\n// The source recorded this file's name and line, not its text.\n", address)}, nil
}
