package cdpgw

import (
	"context"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects/realm"
)

// scriptRef names a script of one generation: by its context and the realm's own id.
type scriptRef struct {
	context ContextID
	id      string
}

// scriptTable gives the scripts of live realms their ids on this connection.
// Files have the ids that recorded stacks name them by; what was evaluated has a
// small number, since DevTools shows it: VM7.
type scriptTable struct {
	mu    sync.Mutex // guards all below; it is a leaf
	byID  map[ScriptID]scriptRef
	byRef map[scriptRef]ScriptID
	last  int
}

// of returns the id of a script. id is the one that it should have, empty for a number.
func (t *scriptTable) of(ref scriptRef, id ScriptID) ScriptID {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ref.id == "" || ref.id == "0" {
		return ScriptID(ref.id) // no script
	}
	if known, ok := t.byRef[ref]; ok {
		return known
	}
	if t.byID == nil || len(t.byID) >= 4*maxScripts {
		t.byID, t.byRef = make(map[ScriptID]scriptRef), make(map[scriptRef]ScriptID)
	}
	if id == "" {
		t.last++
		id = ScriptID(strconv.Itoa(t.last))
	}
	t.byID[id], t.byRef[ref] = ref, id
	return id
}

func (t *scriptTable) find(id ScriptID) (scriptRef, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ref, ok := t.byID[id]
	return ref, ok
}

// clear forgets all scripts; their numbers are not used again.
func (t *scriptTable) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byID, t.byRef = nil, nil
}

// withScripts returns the realm of a source whose scripts the root session
// announces: not one with a debugger, whose scripts a session of its own has.
func (s *session) withScripts(src *fold.Source) (liveAt, bool) {
	at, err := s.liveRealm(src, realm.MethodEnableSources)
	return at, err == nil && !at.can("debugger.enable")
}

// scriptsWait is how long a realm may take to list its scripts before the client goes on without them.
const scriptsWait = 2 * time.Second

// listScripts announces the scripts of realms, and then the files that only their records name.
func (s *session) listScripts(ctx context.Context, realms []liveAt) {
	ctx, cancel := context.WithTimeout(ctx, scriptsWait)
	defer cancel()
	var all sync.WaitGroup
	for _, at := range realms {
		all.Go(func() {
			raw, err := s.ask(ctx, at, realm.MethodEnableSources, json.RawMessage("{}"), nil)
			var r realm.EnableSourcesResult
			if err != nil || json.Unmarshal(raw, &r) != nil {
				s.gateway.log.Debug("a source does not list its scripts", "source", string(at.source), "error", err)
			}
			s.during(func() {
				if s.debugger.enabled {
					s.debugger.listed[at.context] = true
				}
				src := s.source(at.source)
				if src == nil || src.Generation != at.generation {
					return
				}
				for _, params := range r.Scripts {
					s.scriptParsed(at, params)
				}
				if s.debugger.enabled {
					s.announceAll(src)
				}
			})
		})
	}
	all.Wait()
}

// scriptParsed announces a script of a live realm.
func (s *session) scriptParsed(at liveAt, params json.RawMessage) {
	var p rawParams
	var about struct {
		ScriptID string `json:"scriptId"`
		URL      string `json:"url"`
		EmbedURL string `json:"embedderName"`
	}
	if !s.debugger.enabled || json.Unmarshal(params, &p) != nil || json.Unmarshal(params, &about) != nil || about.ScriptID == "" {
		return
	}
	address := fileURL(about.URL)
	id := s.debugger.scripts.of(scriptRef{at.context, about.ScriptID}, scriptOf(at.source, string(at.generation), address))
	if _, known := s.debugger.known[id]; known || len(s.debugger.known) >= maxScripts {
		return
	}
	s.debugger.known[id] = address
	p["scriptId"], p["url"] = encode(id), encode(address)
	p["executionContextId"] = encode(at.context)
	p["executionContextAuxData"] = encode(contextData{IsDefault: true, Type: "default", FrameID: frameOf(at.source)})
	for name, zero := range map[string]string{"startLine": "0", "startColumn": "0", "endLine": "0", "endColumn": "0", "hash": `""`, "buildId": `""`} {
		if p[name] == nil {
			p[name] = json.RawMessage(zero)
		}
	}
	s.event("Debugger.scriptParsed", p)
}

// scriptRealm returns the realm that has the text of a script.
func (s *session) scriptRealm(id ScriptID) (liveAt, bool) {
	ref, ok := s.debugger.scripts.find(id)
	if !ok {
		return liveAt{}, false
	}
	for _, src := range s.sources() {
		if x := s.gateway.hub.contexts[src.ID]; x != nil && x.id == ref.context {
			at, err := s.liveRealm(src, realm.MethodScriptSource)
			return at, err == nil
		}
	}
	return liveAt{}, false
}

// scriptText asks a realm for the text of a script.
func (s *session) scriptText(ctx context.Context, at liveAt, id ScriptID, sent func()) (string, error) {
	ref, _ := s.debugger.scripts.find(id)
	params, err := json.Marshal(realm.ScriptSourceParams{ScriptID: ref.id})
	if err != nil {
		return "", err
	}
	raw, err := s.ask(ctx, at, realm.MethodScriptSource, params, sent)
	var r realm.ScriptSourceResult
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	return r.ScriptSource, err
}

// textMatch is a line in which something was found.
type textMatch struct {
	LineNumber  int    `json:"lineNumber"`
	LineContent string `json:"lineContent"`
}

// The bounds of a search in a script.
const (
	maxMatches   = 1000
	maxMatchLine = 1000
)

type searchInContentParams struct {
	ScriptID      ScriptID `json:"scriptId"`
	Query         string   `json:"query"`
	CaseSensitive bool     `json:"caseSensitive"`
	IsRegex       bool     `json:"isRegex"`
}

// debuggerSearchInContent searches in a live script, for the search over all files.
func (s *session) debuggerSearchInContent(p searchInContentParams) (any, error) {
	pattern := p.Query
	if !p.IsRegex {
		pattern = regexp.QuoteMeta(pattern)
	}
	if !p.CaseSensitive {
		pattern = "(?i)" + pattern
	}
	match, err := regexp.Compile(pattern)
	if err != nil {
		return nil, failf("The pattern cannot be read: %v", err)
	}
	at, ok := s.scriptRealm(p.ScriptID)
	if !ok {
		return map[string][]textMatch{"result": {}}, nil
	}
	return s.queued(at.realmOf, func(ctx context.Context, t *turn) (any, error) {
		text, err := s.scriptText(ctx, at, p.ScriptID, t.over)
		if err != nil {
			return nil, err
		}
		found := []textMatch{}
		for i, line := range strings.Split(text, "\n") {
			if len(found) < maxMatches && match.MatchString(line) {
				found = append(found, textMatch{i, cut(line, maxMatchLine)})
			}
		}
		return map[string][]textMatch{"result": found}, nil
	}), nil
}

// forgetScripts forgets the scripts of a run that is over: the next one announces its own.
func (s *session) forgetScripts(context ContextID) {
	delete(s.debugger.listed, context)
	t := &s.debugger.scripts
	t.mu.Lock()
	defer t.mu.Unlock()
	for ref, script := range t.byRef {
		if ref.context == context {
			delete(t.byRef, ref)
			delete(t.byID, script)
		}
	}
}
