package cdpgw

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strings"

	"github.com/natscope/natscope/cdpgw/access"
)

// frontendPath is the path below which a frontend of DevTools is served.
const frontendPath = "/frontend/"

// frontendApp is the page of a frontend that has all panels.
const frontendApp = "devtools_app.html"

// ErrFrontend says that a directory holds no frontend of DevTools.
var ErrFrontend = errors.New("cdpgw: no frontend of DevTools")

// openFrontend finds the frontend in a directory: the built files themselves, or
// a published package that has them in one of its folders. It never reads
// anything outside of the directory, links included.
func openFrontend(dir string) (fs.FS, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFrontend, err)
	}
	files := root.FS()
	for _, at := range []string{".", "front_end", "dist/third-party/front_end", "public/front_end", "package/dist/third-party/front_end"} {
		if _, err := fs.Stat(files, path.Join(at, frontendApp)); err == nil {
			return fs.Sub(files, at)
		}
	}
	_ = root.Close() // Nothing was written.
	return nil, fmt.Errorf("%w in %s: there is no %s; name the folder of a built frontend, such as the npm package @react-native/debugger-frontend", ErrFrontend, dir, frontendApp)
}

// serveFrontend serves the files of the frontend.
func (g *Gateway) serveFrontend(w http.ResponseWriter, r *http.Request) {
	if g.frontend == nil {
		plain(w, http.StatusNotFound, "No frontend of DevTools is served here: start natscope with --frontend DIR.")
		return
	}
	if !access.GrantOf(r).Space(string(g.space)) {
		plain(w, http.StatusForbidden, "Your token does not allow to see the space "+string(g.space)+".")
		return
	}
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	// Some frontends ask for a script of whoever embeds them, and log an error without one.
	if strings.HasSuffix(r.URL.Path, "/embedderScript.js") {
		h.Set("Content-Type", "text/javascript; charset=UTF-8")
		return
	}
	http.StripPrefix(strings.TrimSuffix(frontendPath, "/"), http.FileServerFS(g.frontend)).ServeHTTP(w, r)
}

// openURL is the address of the frontend that is served here, opened on a target. It is relative to the page of sources.
func (g *Gateway) openURL(r *http.Request, t target) string {
	scheme := "ws"
	secure, base := g.base(r)
	if secure {
		scheme = "wss"
	}
	return strings.TrimPrefix(frontendPath, "/") + frontendApp + "?" + scheme + "=" + base + t.path()
}
