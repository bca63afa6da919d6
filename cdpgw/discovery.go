package cdpgw

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/natscope/natscope/cdpgw/access"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/source"
)

// protocolVersion is the version of the protocol that every Chrome names.
const protocolVersion = "1.3"

// listing is one entry of /json/list, in the order of Chrome's fields.
type listing struct {
	Description          string   `json:"description"`
	DevtoolsFrontendURL  string   `json:"devtoolsFrontendUrl"`
	ID                   TargetID `json:"id"`
	Title                string   `json:"title"`
	Type                 string   `json:"type"`
	URL                  string   `json:"url"`
	WebSocketDebuggerURL string   `json:"webSocketDebuggerUrl"`
}

// serveJSON answers the discovery endpoints with Chrome's texts.
func (g *Gateway) serveJSON(w http.ResponseWriter, r *http.Request) {
	command := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/json"), "/")
	verb, id, _ := strings.Cut(command, "/")
	switch {
	case r.URL.Path == "/json" || command == "list":
		writeJSON(w, g.list(r))
	case command == "version":
		writeJSON(w, map[string]string{
			"Browser":              "natscope/" + g.version,
			"Protocol-Version":     protocolVersion,
			"User-Agent":           "natscope/" + g.version,
			"webSocketDebuggerUrl": g.webSocketURL(r, target{space: g.space}),
		})
	case command == "protocol":
		writeJSON(w, protocol())
	case verb == "new" && r.Method != http.MethodPut:
		plain(w, http.StatusMethodNotAllowed, "Using unsafe HTTP verb "+r.Method+" to invoke /json/new. This action supports only PUT verb.")
	case verb == "new":
		plain(w, http.StatusInternalServerError, "Could not create new page")
	case verb == "activate" || verb == "close":
		g.serveVerb(w, verb, id)
	default:
		plain(w, http.StatusNotFound, "Unknown command: "+command)
	}
}

// serveVerb answers the two commands on a single target: there is nothing to bring to the front and nothing to close.
func (g *Gateway) serveVerb(w http.ResponseWriter, verb, id string) {
	if _, no := parseTarget(g.space, id, nil); no != nil {
		plain(w, http.StatusNotFound, "No such target id: "+id)
		return
	}
	if verb == "close" {
		plain(w, http.StatusInternalServerError, "Could not close target id: "+id)
		return
	}
	plain(w, http.StatusOK, "Target activated")
}

// list returns the targets: the space, then every source in the order of its appearance.
func (g *Gateway) list(r *http.Request) []listing {
	grant := access.GrantOf(r)
	out := []listing{}
	if !grant.Space(string(g.space)) {
		return out
	}
	all := "all sources of the space "
	if grant.Narrow() {
		all = "the sources that you may see of the space "
	}
	out = append(out, g.listing(r, target{space: g.space}, string(g.space), all+string(g.space)))
	g.state.View(func(s *fold.Space) {
		for _, src := range s.Sources() {
			if !grant.Source(string(src.ID)) {
				continue
			}
			e := g.listing(r, target{space: g.space, source: src.ID}, sourceTitle(src), string(kindOf(src)))
			e.URL = frameURL(g.space, src)
			out = append(out, e)
			if can := src.Life.Descriptor.Capabilities; src.Connected && grant.Controls() && realm.Supports(can, realm.MethodOpenSession) && (realm.Supports(can, "debugger.enable") || realm.Supports(can, "profiler.start")) {
				e := g.listing(r, target{space: g.space, source: src.ID, node: true}, sourceTitle(src), "the program itself, for debuggers of Node")
				e.Type, e.URL = "node", frameURL(g.space, src)
				out = append(out, e)
			}
		}
	})
	return out
}

func (g *Gateway) listing(r *http.Request, t target, title, description string) listing {
	return listing{
		Description:          description,
		DevtoolsFrontendURL:  g.frontendURL(r, t),
		ID:                   t.id(),
		Title:                title,
		Type:                 "page",
		URL:                  t.url(),
		WebSocketDebuggerURL: g.webSocketURL(r, t),
	}
}

// base returns scheme security, host and path prefix under which the client reaches the gateway.
func (g *Gateway) base(r *http.Request) (secure bool, hostPath string) {
	prefix := access.PrefixOf(r)
	if g.external != nil {
		return g.external.Scheme == "https", g.external.Host + g.external.Path + prefix
	}
	host := r.Host
	if host == "" {
		host = "127.0.0.1"
	}
	return r.TLS != nil, host + prefix
}

func (g *Gateway) webSocketURL(r *http.Request, t target) string {
	if secure, base := g.base(r); secure {
		return "wss://" + base + t.path()
	} else {
		return "ws://" + base + t.path()
	}
}

// frontendURL returns the address that opens the target in the DevTools of any Chrome.
func (g *Gateway) frontendURL(r *http.Request, t target) string {
	app := "devtools://devtools/bundled/devtools_app.html?"
	if t.node {
		app = "devtools://devtools/bundled/js_app.html?"
	}
	if secure, base := g.base(r); secure {
		return app + "wss=" + base + t.path()
	} else {
		return app + "ws=" + base + t.path()
	}
}

func kindOf(s *fold.Source) source.Kind {
	if s.Life.Descriptor.Kind == source.KindClient {
		return source.KindClient
	}
	return source.KindHost
}

// sourceTitle is the text of a source's row: its name, its page's title, its state.
func sourceTitle(s *fold.Source) string {
	title := s.Name()
	if t := s.Life.Descriptor.Title; t != "" && t != title {
		title += " – " + t
	}
	if !s.Connected {
		title += " (disconnected)"
	}
	return title
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	// The client left if this fails; nobody is there to be told.
	_ = enc.Encode(v)
}

func plain(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text))
}
