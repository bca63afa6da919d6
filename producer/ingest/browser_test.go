package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/natscope/natscope/producer/internal/natstest"
)

// One browser serves all tests, each with tabs of its own.
var chromium struct {
	once   sync.Once
	ctx    context.Context
	cancel []context.CancelFunc
	err    error
}

// tab opens a tab. A machine without Chromium fails, rather than passing without a look.
func tab(t *testing.T) context.Context {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: no browser")
	}
	chromium.once.Do(startChromium)
	if chromium.err != nil {
		t.Fatalf("these tests need Chromium (scripts/test installs it; -short leaves them out): %v", chromium.err)
	}
	ctx, cancel := chromedp.NewContext(chromium.ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func startChromium() {
	path, err := exec.LookPath("chromium")
	if err != nil {
		chromium.err = err
		return
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		// Tabs in the background are what half of these tests are about.
		chromedp.Flag("disable-features", "Translate,LocalNetworkAccessChecks"),
	)
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	chromium.cancel = append(chromium.cancel, cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	chromium.cancel = append(chromium.cancel, cancel)
	chromium.ctx = ctx
	chromium.err = chromedp.Do(ctx)
}

func stopChromium() {
	if chromium.ctx != nil && chromium.err == nil {
		_ = chromedp.Cancel(chromium.ctx)
	}
	for _, cancel := range slices.Backward(chromium.cancel) {
		cancel()
	}
}

// app is a web application on another port than the ingest, as real ones are.
func (r *rig) app(script string) *httptest.Server {
	mux := http.NewServeMux()
	page := func(title, more string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<!doctype html><title>%s</title><link rel=icon href=data:,>%s%s", title, script, more)
		}
	}
	mux.HandleFunc("GET /{$}", page("Home", ""))
	mux.HandleFunc("GET /calls", page("Calls", "<script src=/app.js></script>"+script))
	mux.HandleFunc("GET /app.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		fmt.Fprint(w, "addEventListener('natscope:ready', function ready() {\n  console.log('from the app');\n  fetch('/json');\n});\n")
	})
	mux.HandleFunc("GET /other", page("Other", ""))
	mux.HandleFunc("GET /json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		fmt.Fprint(w, `{"items":[1,2,3]}`)
	})
	mux.HandleFunc("POST /echo", func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("X-Two", "a")
		w.WriteHeader(201)
		_, _ = fmt.Fprint(w, "echo")
	})
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "id: %d\nevent: tick\ndata: line %d\ndata: more\n\n", i, i)
			w.(http.Flusher).Flush()
		}
	})
	mux.HandleFunc("GET /endless", func(w http.ResponseWriter, req *http.Request) {
		for req.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
			w.(http.Flusher).Flush()
		}
	})
	mux.HandleFunc("GET /hang", func(w http.ResponseWriter, req *http.Request) { <-req.Context().Done() })
	s := httptest.NewServer(mux)
	r.t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (r *rig) script() string {
	return `<script type="module" src="` + r.http.URL + `/client.js?token=` + token + `"></script>`
}

// run runs JavaScript, awaits its promise and decodes its value.
func run(t *testing.T, ctx context.Context, js string, v any) {
	t.Helper()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`(async () => JSON.stringify(await (async () => { `+js+` })()) ?? 'null')()`, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: %v", js, err)
	}
	if v != nil {
		if err := json.Unmarshal([]byte(text), v); err != nil {
			t.Fatalf("%s: %s: %v", js, text, err)
		}
	}
}

// open navigates and waits until the page is admitted; it returns the source's id.
func (r *rig) open(ctx context.Context, url string) string {
	r.t.Helper()
	if err := chromedp.Do(ctx, chromedp.Navigate(url)); err != nil {
		r.t.Fatal(err)
	}
	return r.up(ctx)
}

// up waits until the page of a tab is admitted and returns its source's id.
func (r *rig) up(ctx context.Context) string {
	r.t.Helper()
	var st struct{ State, ID, LastFault string }
	natstest.Until(r.t, "the page connects", func() bool {
		run(r.t, ctx, `return globalThis.natscope ? natscope.status() : {}`, &st)
		return st.State == "up"
	})
	return st.ID
}

// duplicate opens a copy of a tab as a browser does: same session storage.
func duplicate(t *testing.T, ctx context.Context) context.Context {
	t.Helper()
	targets := chromedp.WaitNewTarget(ctx, func(i *target.Info) bool { return i.Type == "page" })
	run(t, ctx, `open(location.href)`, nil)
	select {
	case id := <-targets:
		copied, cancel := chromedp.NewContext(ctx, chromedp.WithTargetID(id))
		t.Cleanup(cancel)
		return copied
	case <-time.After(20 * time.Second):
		t.Fatal("the copy did not open")
		return nil
	}
}
