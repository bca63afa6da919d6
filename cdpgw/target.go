package cdpgw

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/natscope/natscope/cdpgw/access"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/source"
)

// TargetID names a debugging target: the space, or one source of it. It is the
// same at every gateway and over restarts, so that a saved DevTools URL keeps working.
type TargetID string

// FrameID names a frame in Page.getResourceTree: the main frame has the
// target's id, each source one that follows from its SourceID.
type FrameID string

// targetPath is the path below which targets are served.
const targetPath = "/devtools/page/"

// nodePath is the path below which targets of the type node are served.
const nodePath = "/devtools/node/"

// target is what one DevTools connection looks at.
type target struct {
	space subjects.Space
	// source is set for the target of a single source, which need not exist yet.
	source subjects.SourceID
	// pattern and kind narrow the target of a space; empty means all. They come
	// from the query (?source=orders*&kind=host), which has to be escaped within a
	// link to DevTools: Chrome refuses "?" and takes "&" for itself there.
	pattern string
	kind    source.Kind
	// node says that the target is of the type node: one source, passed through.
	node bool
	// grant is what the connection may see and do.
	grant access.Grant
}

// admitted reports whether the grant covers the target at all.
func (t target) admitted() bool {
	return t.grant.Space(string(t.space)) && (t.source == "" || t.grant.Source(string(t.source)))
}

// id returns the target's id.
func (t target) id() TargetID {
	if t.node {
		return TargetID("node." + string(t.space) + "." + string(t.source))
	}
	if t.source != "" {
		return TargetID(string(t.space) + "." + string(t.source))
	}
	return TargetID(t.space)
}

// path returns the path under which the target is served.
func (t target) path() string {
	if t.node {
		return nodePath + string(t.space) + "/" + string(t.source)
	}
	if t.source != "" {
		return targetPath + string(t.space) + "/" + string(t.source)
	}
	return targetPath + string(t.space)
}

// url is the address that the target's document has in DevTools.
func (t target) url() string {
	if t.source != "" {
		return sourceURL(t.space, t.source)
	}
	return "natscope://" + string(t.space) + "/"
}

// title is what people call the target.
func (t target) title() string {
	if t.source != "" {
		return string(t.source)
	}
	return string(t.space)
}

// includes reports whether a source belongs to the target.
func (t target) includes(s *fold.Source) bool {
	if !t.grant.Source(string(s.ID)) {
		return false
	}
	if t.source != "" {
		return s.ID == t.source
	}
	if t.kind != "" && kindOf(s) != t.kind {
		return false
	}
	return t.pattern == "" || matches(t.pattern, string(s.ID)) || matches(t.pattern, s.Name())
}

func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// refusal is why a target's URL is not served: an HTTP status and a sentence for
// the client, as Chrome words it where Chrome has one.
type refusal struct {
	status int
	text   string
}

// parseTarget reads the path and query of a target's URL. The refusal is nil if they name a target.
func parseTarget(space subjects.Space, rest string, query url.Values) (target, *refusal) {
	t := target{space: space}
	rest = strings.TrimSuffix(rest, "/")
	name, src, one := strings.Cut(rest, "/")
	if !one {
		// The id of a source's target in place of its path, as clients build it that know only ids.
		name, src, one = strings.Cut(rest, ".")
	}
	if name != string(space) || one && !subjects.IsToken(src) {
		return target{}, &refusal{http.StatusNotFound, fmt.Sprintf("No such target id: %.200s", rest)}
	}
	t.source = subjects.SourceID(src)
	t.pattern, t.kind = query.Get("source"), source.Kind(query.Get("kind"))
	if _, err := path.Match(t.pattern, ""); err != nil {
		return target{}, &refusal{http.StatusBadRequest, fmt.Sprintf("source=%.200q is not a pattern; use *, ? and [a-z]", t.pattern)}
	}
	if t.kind != "" && t.kind != source.KindHost && t.kind != source.KindClient {
		return target{}, &refusal{http.StatusBadRequest, fmt.Sprintf("kind=%.200q is unknown; use host or client", t.kind)}
	}
	return t, nil
}

// frameOf returns the id of the frame that stands for a source.
func frameOf(id subjects.SourceID) FrameID { return FrameID("source." + string(id)) }

// sourceURL is the address of a source that has none of its own. DevTools calls
// groups of requests and files by the host alone, so that names the source.
func sourceURL(space subjects.Space, id subjects.SourceID) string {
	return "natscope://" + string(id) + "." + string(space) + "/"
}

// frameURL returns the address of a source: its page's, or one made from its id.
func frameURL(space subjects.Space, s *fold.Source) string {
	if u := s.Life.Descriptor.URL; u != "" {
		return u
	}
	return sourceURL(space, s.ID)
}

// ownFrameURL is the address of the frame of a source. DevTools lists the document
// of a frame as a file. A source with a debugger has the file of its address among
// its scripts, and of two with one address people would open, and set breakpoints
// in, the one without text: the frame of such a source is called by its id.
func ownFrameURL(space subjects.Space, s *fold.Source) string {
	if realm.Supports(s.Life.Descriptor.Capabilities, "debugger.enable") {
		return sourceURL(space, s.ID)
	}
	return frameURL(space, s)
}
