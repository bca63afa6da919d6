package shop

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// fakeClient stands for natscope's script: it keeps what components tell, and uncaught errors.
const fakeClient = `
const shown = new Map();
let next = 1, updates = 0, removed = 0;
const errors = [];
addEventListener("error", (e) => errors.push(String(e.error)));
addEventListener("unhandledrejection", (e) => errors.push(String(e.reason)));
globalThis.natscope = {
  component(name, values, parent) {
    const id = next++;
    shown.set(id, { name, values: structuredClone(values), parent: parent?.id ?? 0 });
    return {
      id,
      update(v) { updates++; Object.assign(shown.get(id).values, structuredClone(v)); },
      remove() { removed++; shown.delete(id); },
    };
  },
};
globalThis.natscopeReady = Promise.resolve(globalThis.natscope);
globalThis.seen = () => ({
  paths: [...shown].map(([id]) => { let p = []; for (let n = shown.get(id); n; n = shown.get(n.parent)) p.unshift(n.name); return p.join(" > "); }),
  updates, removed, errors,
});
dispatchEvent(new Event("natscope:ready"));
`

// seen is what the fake script saw.
type seen struct {
	Paths            []string
	Updates, Removed int
	Errors           []string
}

// browser starts a headless Chromium that ends with the test.
func browser(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("no Chromium on this machine (%v): install the package chromium", err)
	}
	alloc, cancelAlloc := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
	)...)
	t.Cleanup(cancelAlloc)
	ctx, cancel := chromedp.NewContext(alloc, chromedp.WithErrorf(func(string, ...any) {}))
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	return ctx
}

// tab is one open page.
type tab struct {
	t   *testing.T
	ctx context.Context
}

func visit(t *testing.T, browser context.Context, url string) tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx, chromedp.Navigate(url)); err != nil {
		t.Fatal(err)
	}
	return tab{t, ctx}
}

// eval evaluates an expression in the page.
func eval[T any](p tab, expr string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 20*time.Second)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expr))
	if err != nil {
		p.t.Fatalf("%s: %v", expr, err)
	}
	return v
}

// until waits until an expression is true in the page.
func (p tab) until(expr string) {
	p.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !eval[bool](p, "!!("+expr+")") {
		if time.Now().After(deadline) {
			p.t.Fatalf("not within 20 s: %s, in\n%s", expr, eval[string](p, "document.body.innerText"))
		}
		<-tick.C
	}
}

func (p tab) click(id string) {
	p.t.Helper()
	eval[any](p, fmt.Sprintf("document.getElementById(%q).click()", id))
}

// shopping buys something and tries the buttons.
func (p tab) shopping() {
	p.t.Helper()
	p.until(`document.querySelectorAll("#products .row").length === 5`)
	p.click("auto") // no customer of its own
	eval[any](p, `document.querySelector("#products button").click(); document.querySelector("#products button").click()`)
	p.until(`document.querySelector("#cart").innerText.includes("2 × ")`)
	p.click("order")
	p.until(`document.querySelector("#status").innerText.match(/Order \d+ placed/)`)
	p.until(`document.querySelectorAll("#cart .row").length === 0 && document.querySelector("#order").disabled`)
	p.click("fail")
	p.until(`document.querySelector("#status").innerText.includes("payment provider")`)
	p.click("slow")
	p.until(`document.querySelector("#status").innerText.includes("The report is here")`)
	p.until(`document.querySelector("#ticker").innerText.match(/[1-9]\d* price changes/)`)
}

func TestPageInABrowser(t *testing.T) {
	client := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		w.Header().Set("Access-Control-Allow-Origin", "*")
		io.WriteString(w, fakeClient)
	}))
	defer client.Close()
	b := browser(t)
	for _, c := range []struct{ name, script string }{
		{"without natscope", ""},
		{"natscope cannot be reached", "http://127.0.0.1:1/client.js?token=x"},
		{"with natscope", client.URL + "/client.js?token=x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, Options{ClientScript: c.script, Interval: 50 * time.Millisecond})
			p := visit(t, b, s.URL())
			p.shopping()
			if c.script != client.URL+"/client.js?token=x" {
				return
			}
			p.checkSeen()
			if dir := os.Getenv("SHOP_SCREENSHOT"); dir != "" {
				p.screenshot(filepath.Join(dir, "shop.png"))
			}
			p.click("throw")
			p.until(`seen().errors.length === 1 && seen().errors[0].includes("pressed the button")`)
		})
	}
}

// checkSeen looks at the components that the fake script saw.
func (p tab) checkSeen() {
	p.t.Helper()
	got := eval[seen](p, "seen()")
	for _, want := range []string{"App", "App > Ticker", "App > ProductList", "App > ProductList > ProductCard", "App > Cart"} {
		if !slices.Contains(got.Paths, want) {
			p.t.Errorf("no component %s in %s", want, strings.Join(got.Paths, ", "))
		}
	}
	if slices.Contains(got.Paths, "App > Cart > CartItem") {
		p.t.Error("a cart item is left after the order")
	}
	if got.Updates < 10 || got.Removed != 1 || len(got.Errors) > 0 {
		p.t.Errorf("%d updates, %d removed, errors %v", got.Updates, got.Removed, got.Errors)
	}
}

func (p tab) screenshot(path string) {
	p.t.Helper()
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(path, png, 0o644)
	}
	if err != nil {
		p.t.Error(err)
	}
}
