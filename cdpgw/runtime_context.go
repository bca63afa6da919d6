package cdpgw

import (
	"encoding/json"
	"strings"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
)

// contextParams name an execution context in one of the protocol's ways.
type contextParams struct {
	UniqueContextID    string    `json:"uniqueContextId"`
	ContextID          ContextID `json:"contextId"`
	ExecutionContextID ContextID `json:"executionContextId"`
}

// errNoContext is Chrome's answer to a context that is not there.
func errNoContext() error { return failf("Cannot find context with specified id") }

// contextRealm returns the realm of the context that a command names. Without
// one it is the root's, as in Chrome.
func (s *session) contextRealm(p contextParams, m realm.Method) (liveAt, error) {
	n := p.ContextID
	if n == 0 {
		n = p.ExecutionContextID
	}
	switch {
	case p.UniqueContextID == string(s.target.id()), p.UniqueContextID == "" && (n == 0 || n == rootContext):
		return s.rootRealm(m)
	case p.UniqueContextID != "":
		id, _, _ := strings.Cut(p.UniqueContextID, ".")
		src := s.source(subjects.SourceID(id))
		if src == nil {
			return liveAt{}, errNoContext()
		}
		if x := s.gateway.hub.contexts[src.ID]; x == nil || x.uniqueID(src.ID) != p.UniqueContextID {
			return liveAt{}, failf("Cannot find context with specified id: that run of %s is over.", src.Name())
		}
		return s.liveRealm(src, m)
	}
	for _, src := range s.sources() {
		if x := s.gateway.hub.contexts[src.ID]; x != nil && x.id == n {
			return s.liveRealm(src, m)
		}
	}
	return liveAt{}, errNoContext()
}

// rootRealm returns the realm that the root context stands for: that of the one
// source of the target. Where there are several, a person has to say which.
func (s *session) rootRealm(m realm.Method) (liveAt, error) {
	if s.gateway.realms == nil {
		return liveAt{}, errOnlyShows()
	}
	if id := s.target.source; id != "" {
		if src := s.source(id); src != nil {
			return s.liveRealm(src, m)
		}
		return liveAt{}, failf("The source %s is not there (yet).", id)
	}
	var able []*fold.Source
	for _, src := range s.sources() {
		if _, err := s.liveRealm(src, m); err == nil {
			able = append(able, src)
		}
	}
	switch len(able) {
	case 0:
		return liveAt{}, failf("No source in this view can be asked to do that: none is connected and serves a live realm.")
	case 1:
		return s.liveRealm(able[0], m)
	}
	const most = 5
	var names []string
	for _, src := range able[:min(len(able), most)] {
		names = append(names, src.Name())
	}
	more := ""
	if len(able) > most {
		more = " …"
	}
	return liveAt{}, failf("This is the whole space %s, and several programs could answer. Choose one in the list of contexts at the top of the Console, or by selecting one of its nodes in Elements: %s%s",
		s.target.space, strings.Join(names, ", "), more)
}

// rawParams are the parameters of a command that goes to a realm nearly as it came.
type rawParams map[string]json.RawMessage

// read reads some of the parameters.
func (p rawParams) read(v any) error {
	if err := json.Unmarshal(encode(p), v); err != nil {
		return invalidParams(describeJSON(err))
	}
	return nil
}

// flag reports whether a parameter is true.
func (p rawParams) flag(name string) bool { return string(p[name]) == "true" }

// without returns the parameters without some.
func (p rawParams) without(names ...string) rawParams {
	out := make(rawParams, len(p))
	for k, v := range p {
		out[k] = v
	}
	for _, n := range names {
		delete(out, n)
	}
	return out
}
