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

// asset is a file as it is sent.
type asset struct {
	kind        string
	plain, gzip []byte
}

// assets are the files that pages may load, by their path below /client/.
type assets struct {
	version string
	files   map[string]asset
}

// serveModules serves the client and nothing else, compressed for those who take
// it. What is asked for by the version that it has may be kept for ever; another
// version's is refused, since its files fit only each other.
func serveModules(files fs.FS) http.Handler {
	load := sync.OnceValues(func() (assets, error) { return loadAssets(files) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all, err := load()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		name := path.Clean(r.URL.Path)
		a, ok := all.files[name]
		if !ok {
			http.Error(w, "there is no such client module; the entry is /client.js", http.StatusNotFound)
			return
		}
		h := w.Header()
		if v := r.URL.Query().Get("v"); v != "" && path.Dir(name) != "." {
			if v != all.version {
				http.Error(w, "the page was loaded from another version of natscope; load it anew", http.StatusNotFound)
				return
			}
			h.Set("Cache-Control", "private, max-age=31536000, immutable")
		}
		h.Set("Content-Type", a.kind)
		h.Add("Vary", "Accept-Encoding")
		data := a.plain
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			h.Set("Content-Encoding", "gzip")
			data = a.gzip
		}
		_, _ = w.Write(data)
	})
}

func loadAssets(files fs.FS) (assets, error) {
	b, err := client.NewBundle(files)
	if err != nil {
		return assets{}, err
	}
	out := assets{version: b.Version, files: make(map[string]asset)}
	for name, data := range b.Files {
		kind := "text/javascript; charset=utf-8"
		if path.Ext(name) == ".map" {
			kind = "application/json"
		}
		out.files[name] = asset{kind: kind, plain: data, gzip: compressed(data)}
	}
	for name, data := range b.Sources {
		out.files["source/"+name] = asset{kind: "text/plain; charset=utf-8", plain: data, gzip: compressed(data)}
	}
	return out, nil
}

func compressed(data []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	_, _ = z.Write(data)
	_ = z.Close()
	return b.Bytes()
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
