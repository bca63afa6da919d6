package cdpgw

import (
	"bytes"
	"embed"
	"encoding/hex"
	"encoding/json"
	"hash/fnv"
	"net/http"

	"github.com/natscope/natscope/cdpgw/access"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/subjects/tree"
	"github.com/natscope/natscope/subjects/value"
)

// webFiles are the page of sources: no asset of it comes from elsewhere.
//
//go:embed web
var webFiles embed.FS

// The bounds of what the page shows of one source's history.
const (
	maxPageCommits = 100
	maxPageChanges = 20
	maxPageValue   = 200
)

// sourcesAnswer is what the page of sources asks for every second.
type sourcesAnswer struct {
	Space   string `json:"space"`
	Version string `json:"version"`
	Role    string `json:"role"`
	// Waiting is why the state is not followed now; empty while it is.
	Waiting string `json:"waiting,omitempty"`
	// Frontend says that Open links work: a frontend of DevTools is served here.
	Frontend bool `json:"frontend,omitempty"`
	pageLinks
	Sources []pageRow `json:"sources"`
}

// pageLinks open a target: Link in Chrome's own DevTools, Open in the frontend that is served here.
type pageLinks struct {
	Link string `json:"link"`
	Open string `json:"open,omitempty"`
}

type pageRow struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Kind       string `json:"kind"`
	Runtime    string `json:"runtime,omitempty"`
	Title      string `json:"title,omitempty"`
	URL        string `json:"url,omitempty"`
	Connected  bool   `json:"connected"`
	Generation string `json:"generation"`
	// Records counts the records of the generation; the page makes rates of it.
	Records  uint64 `json:"records"`
	Nodes    int    `json:"nodes"`
	Requests int    `json:"requests"`
	Messages int    `json:"messages"`
	Lost     uint64 `json:"lost,omitempty"`
	Faults   uint64 `json:"faults,omitempty"`
	pageLinks
}

// serveIndex serves the page of sources and what it asks for.
func (g *Gateway) serveIndex(w http.ResponseWriter, r *http.Request) {
	if !access.GrantOf(r).Space(string(g.space)) {
		plain(w, http.StatusForbidden, "Your token does not allow to see the space "+string(g.space)+".")
		return
	}
	switch r.URL.Path {
	case "/":
		g.serveWeb(w, "index.html", "text/html; charset=UTF-8")
	case "/page.js":
		g.serveWeb(w, "page.js", "text/javascript; charset=UTF-8")
	case "/page.css":
		g.serveWeb(w, "page.css", "text/css; charset=UTF-8")
	case "/sources.json":
		g.serveSources(w, r)
	case "/history.json":
		g.serveHistory(w, r)
	default:
		plain(w, http.StatusNotFound, "Not found. The list of sources is at /, the list of DevTools targets at /json/list.")
	}
}

func (g *Gateway) serveWeb(w http.ResponseWriter, name, contentType string) {
	data, err := webFiles.ReadFile("web/" + name)
	if err != nil {
		plain(w, http.StatusNotFound, "Not found.")
		return
	}
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	// The client left if this fails; nobody is there to be told.
	_, _ = w.Write(data)
}

// serveSources answers with the state of all sources that the asker may see.
func (g *Gateway) serveSources(w http.ResponseWriter, r *http.Request) {
	grant := access.GrantOf(r)
	answer := sourcesAnswer{
		Space: string(g.space), Version: g.version, Role: string(grant.Role), Frontend: g.frontend != nil,
		pageLinks: g.pageLinks(r, target{space: g.space}), Sources: []pageRow{},
	}
	if s, ok := g.state.(interface{ Status() replica.Status }); ok {
		answer.Waiting = s.Status().Waiting
	}
	g.state.View(func(s *fold.Space) {
		for _, src := range s.Sources() {
			if grant.Source(string(src.ID)) {
				answer.Sources = append(answer.Sources, g.pageRow(r, src))
			}
		}
	})
	data := encode(answer)
	hash := fnv.New64a()
	_, _ = hash.Write(data)
	tag := `"` + hex.EncodeToString(hash.Sum(nil)) + `"`
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	writeJSON(w, json.RawMessage(data))
}

func (g *Gateway) pageRow(r *http.Request, src *fold.Source) pageRow {
	d := src.Life.Descriptor
	row := pageRow{
		ID: string(src.ID), Name: src.Name(), Kind: string(kindOf(src)), Runtime: d.Runtime, Title: d.Title, URL: d.URL,
		Connected: src.Connected, Generation: string(src.Generation),
		Nodes: src.Tree.Len(), Requests: len(src.Net.Requests), Messages: len(src.Console.Entries), Lost: src.Lost(), Faults: src.FaultCount,
		pageLinks: g.pageLinks(r, target{space: g.space, source: src.ID}),
	}
	for _, p := range src.Planes {
		row.Records += p.Records
	}
	return row
}

func (g *Gateway) pageLinks(r *http.Request, t target) pageLinks {
	l := pageLinks{Link: g.frontendURL(r, t)}
	if g.frontend != nil {
		l.Open = g.openURL(r, t)
	}
	return l
}

// historyAnswer is the timeline of one source: its newest commits first, its newest faults first.
type historyAnswer struct {
	Commits    []pageCommit `json:"commits"`
	Truncated  bool         `json:"truncated,omitempty"`
	Faults     []fold.Fault `json:"faults"`
	FaultCount uint64       `json:"faultCount"`
}

type pageCommit struct {
	T       float64      `json:"t"`
	Changes []pageChange `json:"changes"`
	More    int          `json:"more,omitempty"`
}

// pageChange is a change with its values in words.
type pageChange struct {
	Op     string  `json:"op"`
	Name   string  `json:"name"`
	Nodes  int     `json:"nodes,omitempty"`
	Symbol string  `json:"symbol,omitempty"`
	From   *string `json:"from,omitempty"`
	To     *string `json:"to,omitempty"`
}

// serveHistory answers with the history of one source.
func (g *Gateway) serveHistory(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("source")
	answer := historyAnswer{Commits: []pageCommit{}, Faults: []fold.Fault{}}
	var commits []tree.HistoryCommit
	found := false
	g.state.View(func(s *fold.Space) {
		for _, src := range s.Sources() {
			if string(src.ID) != id || !access.GrantOf(r).Source(id) {
				continue
			}
			found = true
			commits, answer.Truncated = src.Tree.History.Since(0)
			answer.Faults = append(answer.Faults, src.Faults...)
			answer.FaultCount = src.FaultCount
		}
	})
	if !found {
		plain(w, http.StatusNotFound, "There is no such source.")
		return
	}
	for i := len(commits) - 1; i >= 0 && len(answer.Commits) < maxPageCommits; i-- {
		answer.Commits = append(answer.Commits, toPageCommit(commits[i]))
	}
	answer.Truncated = answer.Truncated || len(answer.Commits) < len(commits)
	for i, j := 0, len(answer.Faults)-1; i < j; i, j = i+1, j-1 {
		answer.Faults[i], answer.Faults[j] = answer.Faults[j], answer.Faults[i]
	}
	writeJSON(w, answer)
}

func toPageCommit(c tree.HistoryCommit) pageCommit {
	out := pageCommit{T: c.T, More: c.More, Changes: []pageChange{}}
	for i, x := range c.Changes {
		if i == maxPageChanges {
			out.More += len(c.Changes) - i
			break
		}
		out.Changes = append(out.Changes, pageChange{Op: x.Op, Name: x.Name, Nodes: x.Nodes, Symbol: x.Symbol, From: inWords(x.From), To: inWords(x.To)})
	}
	return out
}

// inWords shows an encoded value as people read it, or nil where there is none.
func inWords(raw json.RawMessage) *string {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	v, err := value.Parse(raw)
	if err != nil {
		return nil
	}
	text := cut(value.Preview(v), maxPageValue)
	return &text
}
