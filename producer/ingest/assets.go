package ingest

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/natscope/natscope/producer/client"
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

// module is a module as it is sent.
type module struct{ plain, gzip []byte }

// serveModules serves JavaScript files and nothing else: without their comments,
// and compressed for those who take it.
func serveModules(files fs.FS) http.Handler {
	load := sync.OnceValue(func() map[string]module { return loadModules(files) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m, ok := load()[path.Clean(r.URL.Path)]
		if !ok {
			http.Error(w, "there is no such client module; the entry is /client.js", http.StatusNotFound)
			return
		}
		h := w.Header()
		h.Set("Content-Type", "text/javascript; charset=utf-8")
		h.Add("Vary", "Accept-Encoding")
		data := m.plain
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			h.Set("Content-Encoding", "gzip")
			data = m.gzip
		}
		_, _ = w.Write(data)
	})
}

func loadModules(files fs.FS) map[string]module {
	out := make(map[string]module)
	_ = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".js") {
			return nil
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return nil // The files are embedded; one that cannot be read is not there.
		}
		m := module{plain: client.Lean(data)}
		var b bytes.Buffer
		z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
		_, _ = z.Write(m.plain)
		_ = z.Close()
		m.gzip = b.Bytes()
		out[name] = m
		return nil
	})
	return out
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
