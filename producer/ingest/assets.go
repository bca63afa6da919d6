package ingest

import (
	"io/fs"
	"net/http"
	"path"
	"strings"
)

// routes returns the handler of all paths. files holds the client's modules.
func (s *Server) routes(files fs.FS) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /client.js", s.admitOrigin(http.HandlerFunc(redirectToClient)))
	mux.Handle("GET /client/", s.admitOrigin(http.StripPrefix("/client/", serveModules(files))))
	mux.Handle("GET /ingest", s.admitOrigin(http.HandlerFunc(s.serveIngest)))
	return mux
}

// redirectToClient sends a page to the entry module. The modules import each
// other by relative addresses, and the address after a redirect is the one that
// the entry sees as its own, query included. The target is relative, so that it
// holds behind a proxy with a path prefix.
func redirectToClient(w http.ResponseWriter, r *http.Request) {
	to := "client/client.js"
	if r.URL.RawQuery != "" {
		to += "?" + r.URL.RawQuery
	}
	// http.Redirect would make the target absolute.
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusTemporaryRedirect)
}

// serveModules serves JavaScript files and nothing else.
func serveModules(files fs.FS) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := path.Clean(r.URL.Path)
		data, err := fs.ReadFile(files, name)
		if err != nil || !strings.HasSuffix(name, ".js") {
			http.Error(w, "there is no such client module; the entry is /client.js", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		_, _ = w.Write(data)
	})
}

// admitOrigin refuses requests of foreign origins, and lets pages of admitted
// ones load the modules across origins, which module scripts need.
func (s *Server) admitOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Add("Vary", "Origin")
		origin, ok := requestOrigin(r)
		if !ok || !originAllowed(origin, s.o.Origins) {
			s.count(func(st *Stats) { st.Rejected["origin"]++ })
			s.log.Warn("ingest: a page was refused by its origin", "origin", clip(origin), "path", r.URL.Path)
			h.Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			writeJSON(w, Rejected{Type: MsgRejected, Code: "origin", Reason: "pages of the origin " + clip(origin) + " are not admitted; start natscope with --allow-origin " + clip(origin) + " to admit them"})
			return
		}
		if origin != "" {
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Cross-Origin-Resource-Policy", "cross-origin")
		}
		next.ServeHTTP(w, r)
	})
}
