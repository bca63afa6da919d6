package ingest

import (
	"net/http"
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
	bundle, err := client.NewBundle(client.Files())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range bundle.Files {
		for query, keep := range map[string]string{"": "no-store", "?v=" + bundle.Version: "private, max-age=31536000, immutable"} {
			if !strings.Contains(name, "/") {
				keep = "no-store" // Its address has the token in it.
			}
			resp := get(t, r.http.URL+"/client/"+name+query, "http://localhost:99")
			h := resp.Header
			kind := "text/javascript; charset=utf-8"
			if strings.HasSuffix(name, ".map") {
				kind = "application/json"
			}
			if resp.StatusCode != 200 || h.Get("Content-Type") != kind || h.Get("Access-Control-Allow-Origin") != "http://localhost:99" || h.Get("Cache-Control") != keep || !strings.Contains(strings.Join(h.Values("Vary"), " "), "Origin") {
				t.Errorf("%s%s: status %d, headers %v", name, query, resp.StatusCode, h)
			}
			if got := body(t, resp, nil); got != string(want) || !resp.Uncompressed {
				t.Errorf("%s differs from the file", name)
			}
		}
	}
	resp = get(t, r.http.URL+"/client/browser/start.js?v=0123", "http://localhost:99")
	if text := body(t, resp, nil); resp.StatusCode != 404 || !strings.Contains(text, "load it anew") || resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("another version: status %d, %s", resp.StatusCode, text)
	}
	if resp := get(t, r.http.URL+"/client/source/shared/read.js", ""); resp.StatusCode != 200 {
		t.Errorf("a source: status %d", resp.StatusCode)
	}
	for _, path := range []string{"/client/", "/client/embed.go", "/client/../client.js", "/client/shared", "/client/shared/read.js", "/client/source/node/start.js", "/client/package.json", "/client/test/value.test.js"} {
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

// TestClientIsSmall keeps the promise that a page loads no more than 40 KiB in two
// files, 10 KiB more with the first command and 25 KiB more with the first session.
func TestClientIsSmall(t *testing.T) {
	all, err := loadAssets(client.Files())
	if err != nil {
		t.Fatal(err)
	}
	size := func(names ...string) (n int) {
		for _, name := range names {
			n += len(all.files[name].gzip)
		}
		return n
	}
	start, later, session := size("client.js", "browser/start.js"), size("shared/live.js"), size("shared/realm.js")
	if start > 40<<10 || start < 5<<10 || later > 10<<10 || later < 3<<10 || session > 25<<10 || session < 8<<10 {
		t.Errorf("a page loads %d bytes after gzip, %d with the first command and %d with the first session; the limits are 40, 10 and 25 KiB", start, later, session)
	}
	t.Logf("%d, %d and %d bytes after gzip", start, later, session)
}
