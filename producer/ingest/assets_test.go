package ingest

import (
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/natscope/natscope/producer/client"
)

func get(t *testing.T, url, origin string) *http.Response {
	t.Helper()
	req, err := http.NewRequest("GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if origin != "" {
		req.Header.Set("Origin", origin)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func TestClientIsServed(t *testing.T) {
	r := newRig(t)
	resp := get(t, r.http.URL+"/client.js?token=abc&name=x%20y", "http://localhost:99")
	if resp.StatusCode != 307 || resp.Header.Get("Location") != "client/client.js?token=abc&name=x%20y" {
		t.Errorf("status %d, location %q", resp.StatusCode, resp.Header.Get("Location"))
	}
	err := fs.WalkDir(client.Files(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		resp := get(t, r.http.URL+"/client/"+name, "http://localhost:99")
		h := resp.Header
		if resp.StatusCode != 200 || h.Get("Content-Type") != "text/javascript; charset=utf-8" || h.Get("Access-Control-Allow-Origin") != "http://localhost:99" || h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: status %d, headers %v", name, resp.StatusCode, h)
		}
		want, _ := fs.ReadFile(client.Files(), name)
		if got := body(t, resp, nil); got != string(client.Lean(want)) || !resp.Uncompressed {
			t.Errorf("%s differs from the file", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/client/", "/client/embed.go", "/client/../client.js", "/client/shared", "/client/package.json", "/client/test/value.test.js"} {
		if resp := get(t, r.http.URL+path, ""); resp.StatusCode == 200 {
			t.Errorf("%s is served", path)
		}
	}
}

func TestForeignOriginsLoadNothing(t *testing.T) {
	r := newRig(t)
	resp := get(t, r.http.URL+"/client.js", "https://evil.test")
	if resp.StatusCode != 403 || resp.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("status %d, headers %v", resp.StatusCode, resp.Header)
	}
	if text := body(t, resp, nil); !strings.Contains(text, "--allow-origin https://evil.test") {
		t.Errorf("the refusal %q does not say what to do", text)
	}
	if resp := get(t, r.http.URL+"/ingest", ""); resp.StatusCode != http.StatusUpgradeRequired {
		t.Errorf("a plain GET of the ingest: status %d", resp.StatusCode)
	}
}

// imported finds the modules that a module imports before it runs.
var imported = regexp.MustCompile(`(?m)^(?:import|export)\b[^;]*?from '([^']+)'`)

// TestClientIsSmall keeps the promise that a page loads no more than 40 KiB,
// 10 KiB more with the first command and 25 KiB more with the first session.
func TestClientIsSmall(t *testing.T) {
	seen := make(map[string]bool)
	modules := loadModules(client.Files())
	var size func(name string) int
	size = func(name string) int {
		if seen[name] {
			return 0
		}
		seen[name] = true
		data, err := fs.ReadFile(client.Files(), name)
		if err != nil {
			t.Fatal(err)
		}
		n := len(modules[name].gzip)
		for _, m := range imported.FindAllSubmatch(data, -1) {
			n += size(path.Join(path.Dir(name), string(m[1])))
		}
		return n
	}
	start := size("client.js")
	later := size("shared/live.js") + size("browser/tools.js")
	session := size("shared/realm.js") + size("shared/sources.js") + size("browser/inspection.js")
	if start > 40<<10 || start < 5<<10 || later > 10<<10 || later < 3<<10 || session > 25<<10 || session < 8<<10 {
		t.Errorf("a page loads %d bytes after gzip, %d with the first command and %d with the first session; the limits are 40, 10 and 25 KiB", start, later, session)
	}
	if len(seen) < 25 || !seen["browser/overlay.js"] || !seen["shared/tree.js"] {
		t.Errorf("the walk saw %d modules only", len(seen))
	}
	t.Logf("%d, %d and %d bytes after gzip", start, later, session)
}
