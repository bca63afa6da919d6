package ingest

import (
	"bytes"
	"compress/gzip"
	"io/fs"
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
		if got := body(t, resp, nil); got != string(want) {
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

// TestClientIsSmall keeps the promise that a page loads no more than 40 KiB.
func TestClientIsSmall(t *testing.T) {
	total := 0
	err := fs.WalkDir(client.Files(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(name, "node/") {
			return err
		}
		data, err := fs.ReadFile(client.Files(), name)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(data)
		if err := z.Close(); err != nil {
			return err
		}
		total += b.Len()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if const40 := 40 << 10; total > const40 || total < 5<<10 {
		t.Errorf("the client has %d bytes after gzip, the limit is %d", total, const40)
	}
	t.Logf("%d bytes after gzip", total)
}
