package v8

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/source"
)

// chromium runs a browser with a debugging port and returns the port's address.
func chromium(t *testing.T, address string) string {
	t.Helper()
	bin := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			bin = path
			break
		}
	}
	if bin == "" {
		t.Fatal("this test needs Chromium")
	}
	// Not t.TempDir: Chromium's processes write for a moment after their first one is gone.
	dir, err := os.MkdirTemp("", "natscope-chromium-")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(bin, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-port=0", "--user-data-dir="+dir, address)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		for end := time.Now().Add(10 * time.Second); os.RemoveAll(dir) != nil && time.Now().Before(end); {
			time.Sleep(50 * time.Millisecond)
		}
	})
	var port int
	natstest.Until(t, "Chromium says its port", func() bool {
		data, err := os.ReadFile(filepath.Join(dir, "DevToolsActivePort"))
		line, _, _ := strings.Cut(string(data), "\n")
		port, _ = strconv.Atoi(line)
		return err == nil && port > 0
	})
	return "127.0.0.1:" + strconv.Itoa(port)
}

const pageHTML = `<!doctype html><title>The shop</title><script>
console.log('page says', {a: 1}, location.search);
new Worker(URL.createObjectURL(new Blob(['setInterval(() => console.log("worker says"), 100)'])));
fetch('/api?x=1', {method: 'POST', body: 'asked'}).then((r) => r.text()).then((t) => console.log('got', t));
</script>`

func TestChromiumPagesAreSources(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api" {
			rw.Header().Set("Content-Type", "text/plain")
			fmt.Fprint(rw, "answered")
			return
		}
		rw.Header().Set("Content-Type", "text/html")
		fmt.Fprint(rw, pageHTML)
	}))
	defer server.Close()
	w := newWorld(t)
	w.attach(Options{Endpoints: []string{chromium(t, server.URL+"/?first")}})
	page := func() *seen {
		for _, s := range w.sources {
			if d := s.life.Descriptor; s.life.Opened && d.Title == "The shop" && !strings.Contains(d.Name, " worker ") {
				return s
			}
		}
		return nil
	}
	w.until("the page and its console are there", func() bool {
		return page() != nil && strings.Contains(page().log(), `log "page says" {a: 1} "?first"`)
	})
	w.until("its worker is a source, too", func() bool {
		for _, s := range w.sources {
			if s.life.Opened && strings.Contains(s.life.Descriptor.Name, " worker ") && strings.Contains(s.log(), "worker says") {
				return true
			}
		}
		return false
	})
	w.mu.Lock()
	d := page().life.Descriptor
	w.mu.Unlock()
	if d.Kind != source.KindClient || !strings.HasPrefix(d.Runtime, "Chrome ") || d.URL != server.URL+"/?first" {
		t.Errorf("%+v", d)
	}
	o := newOffice(w)
	worker := ""
	w.mu.Lock()
	for _, s := range w.sources {
		if n := s.life.Descriptor.Name; strings.Contains(n, " worker ") {
			worker = n
		}
	}
	w.mu.Unlock()
	if got := o.ask(worker).eval("typeof WorkerGlobalScope", ""); got != "function" {
		t.Error(got)
	}
	name := func() string { w.mu.Lock(); defer w.mu.Unlock(); return page().life.Descriptor.Name }
	a := o.ask(name())
	if got := a.eval("document.title", ""); got != "The shop" {
		t.Error(got)
	}
	w.mu.Lock()
	before := page().generations
	w.mu.Unlock()
	a.eval(fmt.Sprintf("location.href = %q; 1", server.URL+"/?second"), "")
	w.until("the page is a new generation with its own requests", func() bool {
		s := page()
		if s == nil || s.generations == before || !strings.Contains(s.log(), `log "got" "answered"`) {
			return false
		}
		var document, api bool
		for _, r := range s.net.Requests {
			if r.Generation != string(s.generation) || r.Ending != network.Finished {
				continue
			}
			document = document || strings.HasSuffix(r.Start.Value.URL, "/?second") && r.Start.Value.Type == "document" && s.bodies[r.Generation+"."+string(r.ID())+".res"] == pageHTML
			api = api || strings.HasSuffix(r.Start.Value.URL, "/api?x=1") && s.bodies[r.Generation+"."+string(r.ID())+".req"] == "asked" && s.bodies[r.Generation+"."+string(r.ID())+".res"] == "answered" && r.Response.Value.Timing != nil
		}
		return document && api
	})
	b := o.ask(name())
	if got := b.eval("location.search", ""); got != "?second" {
		t.Error(got)
	}
}
