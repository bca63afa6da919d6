package cdpgw

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/tree"
)

func TestSourcesAnswer(t *testing.T) {
	m := editableShop(t)
	_, server := serve(t, m)
	resp, err := http.Get(server.URL + "/sources.json")
	if err != nil {
		t.Fatal(err)
	}
	var a sourcesAnswer
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	rows := make(map[string]pageRow)
	for _, s := range a.Sources {
		rows[s.ID] = s
	}
	page := rows["page"]
	if page.Kind != "client" || !page.Connected || page.Nodes != 2 || page.Records < 2 || !strings.HasSuffix(page.Link, "/devtools/page/dev/page") || page.Open != "" || a.Role != "debug" {
		t.Errorf("%+v of %+v", page, a)
	}
	// What has not changed is not sent again.
	r, _ := http.NewRequest(http.MethodGet, server.URL+"/sources.json", nil)
	r.Header.Set("If-None-Match", resp.Header.Get("ETag"))
	again, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Body.Close()
	if again.StatusCode != http.StatusNotModified {
		t.Errorf("an answer that has not changed: %s", again.Status)
	}
	m.ops("page", gen2, 2, tree.Op{Op: tree.OpRemove, ID: 2})
	if again, err = http.DefaultClient.Do(r); err != nil {
		t.Fatal(err)
	}
	_ = again.Body.Close()
	if again.StatusCode != http.StatusOK {
		t.Errorf("an answer that changed: %s", again.Status)
	}
	_, text := body(t, server.URL+"/history.json?source=page")
	var h historyAnswer
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		t.Fatal(err)
	}
	if len(h.Commits) == 0 || len(h.Commits[0].Changes) != 1 || h.Commits[0].Changes[0].Op != tree.OpRemove || h.Commits[0].Changes[0].Name != "Cart" {
		t.Errorf("the newest commit comes first: %s", text)
	}
	for path, want := range map[string]int{"/history.json": 404, "/history.json?source=none": 404, "/page.js": 200, "/page.css": 200, "/": 200, "/index.html": 404, "/frontend/devtools_app.html": 404} {
		if status, _ := body(t, server.URL+path); status != want {
			t.Errorf("%s: %d, want %d", path, status, want)
		}
	}
}

// A frontend is served from its directory, and nothing from outside of it.
func TestFrontendStaysInItsDirectory(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret.txt")
	files := filepath.Join(dir, "pkg", "dist", "third-party", "front_end")
	if err := os.MkdirAll(files, 0o700); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{secret: "secret", filepath.Join(files, frontendApp): "the app", filepath.Join(files, "entry.js"): "1"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(secret, filepath.Join(files, "link.txt")); err != nil {
		t.Fatal(err)
	}
	_, server := serve(t, newMemory(t, subjects.Limits{}), func(o *Options) { o.Frontend = filepath.Join(dir, "pkg") })
	if status, text := body(t, server.URL+"/frontend/devtools_app.html?ws=x"); status != http.StatusOK || text != "the app" {
		t.Errorf("%d %s", status, text)
	}
	if status, _ := body(t, server.URL+"/frontend/embedder-static/embedderScript.js"); status != http.StatusOK {
		t.Errorf("the embedder's script: %d", status)
	}
	for _, path := range []string{"link.txt", "../../../../secret.txt", "%2e%2e/%2e%2e/%2e%2e/%2e%2e/secret.txt", "..%2f..%2f..%2f..%2fsecret.txt"} {
		if _, text := body(t, server.URL+"/frontend/"+path); strings.Contains(text, "secret") && !strings.Contains(text, "<a") {
			t.Errorf("%s gives away what is outside: %s", path, text)
		}
	}
	if _, err := New(Options{State: newMemory(t, subjects.Limits{}), Frontend: dir}); !errors.Is(err, ErrFrontend) {
		t.Errorf("a directory without a frontend: %v", err)
	}
}
