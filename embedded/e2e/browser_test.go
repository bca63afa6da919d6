package e2e

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

var update = flag.Bool("update", false, "renew the screenshots in docs/images")

// chromium finds the browser; without one the tests fail, since skipping them would hide the main job.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("no Chromium or Chrome on this machine: run scripts/test, which installs one")
	return ""
}

// browser starts a headless Chromium that ends with the test.
func browser(t *testing.T) context.Context {
	t.Helper()
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium(t)),
		chromedp.NoSandbox,
		chromedp.UserDataDir(t.TempDir()),
		chromedp.WindowSize(1500, 950),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-features", "Translate,OptimizationHints,MediaRouter"),
	)
	alloc, cancelAlloc := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(cancelAlloc)
	ctx, cancel := chromedp.NewContext(alloc, chromedp.WithErrorf(func(string, ...any) {}))
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	return ctx
}

// page is one tab.
type page struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	errors []string // uncaught exceptions of the page
}

// open opens an address in a new tab.
func open(t *testing.T, browser context.Context, url string) *page {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	p := &page{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, p.listen); err != nil {
		t.Fatal(err)
	}
	p.do(chromedp.EmulateViewport(1500, 950), chromedp.Navigate(url))
	return p
}

// do carries out actions and fails the test when they do not end in time.
func (p *page) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	get(p, chromedp.Steps(actions...))
}

// get carries out an action and returns its value.
func get[T any](p *page, action chromedp.Action[T]) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 30*time.Second)
	defer cancel()
	v, err := chromedp.Run(ctx, action)
	if err != nil {
		p.t.Fatal(err)
	}
	return v
}

// eval evaluates an expression in the page and decodes its JSON value.
func eval[T any](p *page, expr string) T {
	p.t.Helper()
	return get(p, chromedp.Evaluate[T](expr))
}

// poll waits until f reports true. Otherwise it fails the test with what f last
// said, and saves what the tab shows as failure.png.
func (p *page) poll(what string, f func() (bool, string)) {
	p.t.Helper()
	if last, ok := wait(f); !ok {
		p.screenshot("failure")
		p.t.Fatalf("%s: not within 30 s; last seen:\n%s", what, last)
	}
}

// poll waits until f reports true, and fails the test with what it last said.
func poll(t *testing.T, what string, f func() (bool, string)) {
	t.Helper()
	if last, ok := wait(f); !ok {
		t.Fatalf("%s: not within 30 s; last seen:\n%s", what, last)
	}
}

// wait calls f until it reports true or 30 s have passed, and returns what it last said.
func wait(f func() (bool, string)) (string, bool) {
	deadline := time.Now().Add(30 * time.Second)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	last := ""
	for time.Now().Before(deadline) {
		ok, seen := f()
		if ok {
			return seen, true
		}
		last = seen
		<-tick.C
	}
	return last, false
}

// screenshot saves what the tab shows in test-results, and with -update as an image of the documentation.
func (p *page) screenshot(name string) {
	p.t.Helper()
	png := get(p, chromedp.CaptureScreenshot())
	dirs := []string{"../../test-results"}
	if *update {
		dirs = append(dirs, "../../docs/images")
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			p.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
}
