package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// frontendDir is the published package of a built frontend of DevTools.
func frontendDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("testdata/frontend/node_modules/@react-native/debugger-frontend")
	if err == nil {
		_, err = os.Stat(dir)
	}
	if err != nil {
		t.Fatalf("the npm packages of this test are missing; run scripts/test, or npm ci in embedded/e2e/testdata/frontend: %v", err)
	}
	return dir
}

// shownRows are the names of the rows that the page of sources shows.
func shownRows(p *page) []string {
	return eval[[]string](p, `[...document.querySelectorAll('tr.row')].filter(r => !r.hidden).map(r => r.querySelector('.name').textContent)`)
}

// TestSourcesPage: the page of sources, as a person uses it who has a token, a
// keyboard and any browser: sources appear and go by themselves, their traffic and
// history are seen, and a click opens DevTools.
func TestSourcesPage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	out, err := exec.Command(binary, "token", "me", "--role", "debug", "--file", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(string(out))
	s := start(t, "--demo", "--tokens", file, "--frontend", frontendDir(t))
	b := browser(t)
	open(t, b, s.Demo)
	p := open(t, b, s.HTTP+"/t/"+token)
	p.poll("both sources are there", func() (bool, string) {
		rows := strings.Join(shownRows(p), "|")
		return strings.Contains(rows, "shop") && strings.Count(rows, "|") == 1, rows
	})
	if at := eval[string](p, `location.pathname`); at != "/t/"+token+"/" {
		t.Errorf("the page is at %s, so that its links lose the token", at)
	}
	p.poll("traffic is seen", func() (bool, string) {
		line := eval[string](p, `document.querySelector('svg path')?.getAttribute('d') ?? ''`)
		return strings.Count(line, "L") > 5, line
	})
	// The keyboard: down to the first row, its history, the filter and back.
	p.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	p.poll("the history is seen", func() (bool, string) {
		text := eval[string](p, `document.querySelector('td.detail')?.innerText ?? ''`)
		return strings.Contains(text, "Changes of its tree") && strings.Contains(text, "changed"), text
	})
	p.screenshot("sources")
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
		return err
	}))
	p.screenshot("sources-dark")
	p.do(chromedp.KeyEvent("/"), chromedp.KeyEvent("client"))
	p.poll("the filter leaves the page", func() (bool, string) {
		rows := shownRows(p)
		return len(rows) == 1, strings.Join(rows, "|")
	})
	p.do(chromedp.KeyEvent(kb.Escape))
	p.poll("Escape clears the filter", func() (bool, string) { rows := shownRows(p); return len(rows) == 2, strings.Join(rows, "|") })
	link := eval[string](p, `new URL(document.querySelector('#all .open').getAttribute('href'), location.href).href`)
	if !strings.Contains(link, "/t/"+token+"/frontend/devtools_app.html?ws=") || !strings.Contains(link, "/t/"+token+"/devtools/page/dev") {
		t.Errorf("the link to open is %s", link)
	}
	if outside := eval[[]string](p, `performance.getEntriesByType('resource').map(e => e.name).filter(n => !n.startsWith(location.origin))`); len(outside) > 0 {
		t.Errorf("the page loads what is not its own: %v", outside)
	}
	if len(p.errors) > 0 {
		t.Errorf("the page has errors: %v", p.errors)
	}
	d := &devtools{open(t, b, link)}
	d.waitFor("the frontend that is served here", "#tab-elements")
	d.poll("its Elements show the sources", func() (bool, string) {
		text := eval[string](d.page, pierce+`; ns.all('.elements-tree-outline').map(ns.text).join(' ')`)
		return strings.Contains(text, "workspace") && strings.Contains(text, "shop"), text
	})
	d.screenshot("frontend")
}
