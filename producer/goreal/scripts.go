package goreal

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/natscope/natscope/producer/goreal/internal/gosrc"
	"github.com/natscope/natscope/subjects/realm"
)

const (
	// maxEvaluations is how many sources of evaluations are kept for links to them.
	maxEvaluations = 500
	// maxMentioned is how many Go files can be scripts.
	maxMentioned = 20_000
	// maxEvaluation is how many bytes of an evaluation's source are kept.
	maxEvaluation = 64 << 10
)

// script is a Go file, or the source of one evaluation.
type script struct {
	id, url string
	// file is the compiler's name of a Go file, text the source of an evaluation.
	file, text string
}

// scripts are the realm's scripts.
type scripts struct {
	finder *gosrc.Finder
	// listed is done once the main module's files are in.
	listed sync.Once

	mu     sync.Mutex // guards all below
	last   int
	byID   map[string]*script
	byName map[string]*script
	// evaluations are the ids of those that are kept, oldest first.
	evaluations []string
	files       []*script
}

func newScripts(roots []string) *scripts {
	return &scripts{finder: gosrc.NewFinder(roots), byID: make(map[string]*script), byName: make(map[string]*script)}
}

// add makes a script. The caller holds mu.
func (ss *scripts) add(name string, s *script) {
	ss.last++
	s.id = strconv.Itoa(ss.last)
	ss.byID[s.id] = s
	if name == "" {
		name = "VM" + s.id
	}
	ss.byName[name] = s
}

// addEvaluation keeps the source of an evaluation and returns its name.
func (ss *scripts) addEvaluation(src string) (name string, s *script) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if len(src) > maxEvaluation {
		src = strings.ToValidUTF8(src[:maxEvaluation], "")
	}
	s = &script{text: src}
	ss.add("", s)
	ss.evaluations = append(ss.evaluations, s.id)
	if len(ss.evaluations) > maxEvaluations {
		old := ss.evaluations[0]
		ss.evaluations = ss.evaluations[1:]
		delete(ss.byID, old)
		delete(ss.byName, "VM"+old)
	}
	return "VM" + s.id, s
}

// id is the id of a name that addEvaluation returned.
func (ss *scripts) id(name string) string { return strings.TrimPrefix(name, "VM") }

// find returns the script of a Go file or of an evaluation. A Go file becomes a
// script when it is mentioned first.
func (ss *scripts) find(name string) (id, url string, ok bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s := ss.byName[name]
	if s == nil && strings.HasSuffix(name, ".go") && !strings.HasPrefix(name, "<") && len(ss.files) < maxMentioned {
		s = &script{file: name, url: ss.urlOf(name)}
		ss.add(name, s)
		ss.files = append(ss.files, s)
	}
	if s == nil {
		return "", "", false
	}
	return s.id, s.url, true
}

// urlOf is the URL of a Go file: of the file on this machine, if it is there.
func (ss *scripts) urlOf(file string) string {
	if path, ok := ss.finder.Find(file); ok {
		return "file://" + filepath.ToSlash(path)
	}
	if filepath.IsAbs(file) {
		return "file://" + filepath.ToSlash(file)
	}
	return "go://" + file
}

// get returns a script by its id.
func (ss *scripts) get(id string) *script {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.byID[id]
}

// list returns all scripts of Go files, with those of the main module.
func (ss *scripts) list() []*script {
	ss.listed.Do(func() {
		// Without the table there are those that were mentioned.
		files, _ := gosrc.Files()
		for _, f := range files {
			ss.find(f)
		}
	})
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return append([]*script(nil), ss.files...)
}

// source is the text of a script.
func (ss *scripts) source(s *script) string {
	if s.file != "" {
		return ss.finder.Read(s.file)
	}
	return s.text
}

// parsedScript is CDP's scriptParsed.
type parsedScript struct {
	ScriptID           string `json:"scriptId"`
	URL                string `json:"url"`
	StartLine          int    `json:"startLine"`
	StartColumn        int    `json:"startColumn"`
	EndLine            int    `json:"endLine"`
	EndColumn          int    `json:"endColumn"`
	ExecutionContextID int    `json:"executionContextId"`
	Hash               string `json:"hash"`
	BuildID            string `json:"buildId"`
	Language           string `json:"scriptLanguage"`
	Length             int    `json:"length"`
}

func (ss *scripts) parsed(s *script) parsedScript {
	text := ss.source(s)
	sum := sha256.Sum256([]byte(s.url + "\x00" + text))
	last := text[strings.LastIndexByte(text, '\n')+1:]
	return parsedScript{ScriptID: s.id, URL: s.url, EndLine: strings.Count(text, "\n"), EndColumn: len(last), ExecutionContextID: 1, Hash: hex.EncodeToString(sum[:]), Language: "JavaScript", Length: len(text)}
}

// addScript keeps the source of an evaluation and tells those who listen.
func (r *Realm) addScript(src string) string {
	name, s := r.scripts.addEvaluation(src)
	r.announce(s)
	return name
}

// announce tells the sessions that want to hear of scripts.
func (r *Realm) announce(sc *script) {
	p, made := parsedScript{}, false
	r.each(func(s *session) {
		s.mu.Lock()
		wants := s.sources
		s.mu.Unlock()
		if !wants {
			return
		}
		if !made {
			p, made = r.scripts.parsed(sc), true
		}
		s.out.Emit("sources.scriptParsed", p)
	})
}

type sourcesResult struct {
	Scripts []parsedScript `json:"scripts"`
}

// enableSources is sources.enable: the Go files of the main module, and from now
// on those that are mentioned, and evaluations.
func enableSources(c *command, _ nothing) {
	c.s.mu.Lock()
	c.s.sources = true
	c.s.mu.Unlock()
	c.read(func() {
		list := c.s.r.scripts.list()
		out := sourcesResult{make([]parsedScript, len(list))}
		for i, s := range list {
			out.Scripts[i] = c.s.r.scripts.parsed(s)
		}
		c.reply(out, nil)
	})
}

func disableSources(c *command, _ nothing) {
	c.s.mu.Lock()
	c.s.sources = false
	c.s.mu.Unlock()
	c.ok()
}

type scriptParams struct {
	ScriptID string `json:"scriptId"`
}

type sourceResult struct {
	Source string `json:"scriptSource"`
}

// getScriptSource is sources.getScriptSource.
func getScriptSource(c *command, p scriptParams) {
	s := c.s.r.scripts.get(p.ScriptID)
	if s == nil {
		c.reply(nil, fmt.Errorf("%w: there is no script %.40q (any more)", realm.ErrNotFound, p.ScriptID))
		return
	}
	c.read(func() { c.reply(sourceResult{c.s.r.scripts.source(s)}, nil) })
}

// loadResource is sources.loadResource: Go scripts have no source maps.
func loadResource(c *command, _ nothing) {
	c.reply(nil, fmt.Errorf("%w: a Go program has no source maps", realm.ErrUnsupported))
}
