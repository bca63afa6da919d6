package cdpgw

import (
	_ "embed"
	"html/template"
	"net/http"

	"github.com/natscope/natscope/cdpgw/access"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/replica"
)

//go:embed index.html
var indexHTML string

var indexTemplate = template.Must(template.New("index").Parse(indexHTML))

// indexPage is what the page of links shows.
type indexPage struct {
	Space   string
	Version string
	All     string
	// Waiting is why the state is not followed now; empty while it is.
	Waiting string
	Sources []indexSource
}

type indexSource struct {
	Name, ID, Kind, Title, URL, Runtime string
	Link                                string
	Connected                           bool
	Nodes, Requests, Messages           int
	Lost, Faults                        uint64
}

// serveIndex shows the sources, their state and copyable links. A browser does
// not follow a link to devtools:// from a web page, so the links are there to be copied.
func (g *Gateway) serveIndex(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/" {
		plain(w, http.StatusNotFound, "Not found. The list of sources is at /, the list of DevTools targets at /json/list.")
		return
	}
	page := indexPage{Space: string(g.space), Version: g.version, All: g.frontendURL(r, target{space: g.space})}
	if r, ok := g.state.(interface{ Status() replica.Status }); ok {
		page.Waiting = r.Status().Waiting
	}
	grant := access.GrantOf(r)
	if !grant.Space(string(g.space)) {
		plain(w, http.StatusForbidden, "Your token does not allow to see the space "+string(g.space)+".")
		return
	}
	g.state.View(func(s *fold.Space) {
		for _, src := range s.Sources() {
			if !grant.Source(string(src.ID)) {
				continue
			}
			d := src.Life.Descriptor
			page.Sources = append(page.Sources, indexSource{
				Name: src.Name(), ID: string(src.ID), Kind: string(kindOf(src)), Title: d.Title, URL: d.URL, Runtime: d.Runtime,
				Link:      g.frontendURL(r, target{space: g.space, source: src.ID}),
				Connected: src.Connected,
				Nodes:     src.Tree.Len(), Requests: len(src.Net.Requests), Messages: len(src.Console.Entries),
				Lost: src.Lost(), Faults: src.FaultCount,
			})
		}
	})
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=UTF-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'")
	if err := indexTemplate.Execute(w, page); err != nil {
		g.log.Debug("the page of links was not sent", "error", err)
	}
}
