package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/natscope/natscope/embedded"
	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/treecap"
)

// pool is the part of a Go program that DevTools changes.
type pool struct {
	sync.Mutex
	Workers int
	Title   string
}

// grow is the pool's own rule about how many workers it has.
func (p *pool) grow(n int) error {
	p.Lock()
	defer p.Unlock()
	if n < 1 || n > 9 {
		return fmt.Errorf("a pool has 1 to 9 workers, not %d", n)
	}
	p.Workers = n
	return nil
}

func (p *pool) workers() int {
	p.Lock()
	defer p.Unlock()
	return p.Workers
}

// live runs natscope in this process, with a Go program in it and a page beside it.
type live struct {
	*embedded.Instance
	page string
	pool *pool
}

func startLive(t *testing.T) *live {
	t.Helper()
	i, err := embedded.Start(t.Context(), embedded.Options{HTTPAddr: "127.0.0.1:0", NATSAddr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	x := &live{Instance: i, pool: &pool{Workers: 3, Title: "packers"}}
	p, err := producer.Start(producer.Options{URL: i.NATS(), Service: "works", Instance: "1", Name: "works"})
	if err != nil {
		t.Fatal(err)
	}
	tr := treecap.New(p, treecap.Options{RootName: "service"})
	tr.Register(nil, "Pool", x.pool, treecap.Locked(x.pool), treecap.Writable("Workers", x.pool.grow))
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, counterPage, i.ClientScript())
	}))
	x.page = web.URL
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		tr.Close()
		if err := p.Close(ctx); err != nil {
			t.Error(err)
		}
		web.CloseClientConnections()
		web.Close()
		if err := i.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return x
}

// counterPage is a page with a component that can be edited and pointed at.
const counterPage = `<!doctype html><title>Counter</title><link rel=icon href=data:,>
<main style="position:absolute;left:40px;top:60px;width:400px;height:200px;background:#eee">
<button id=b style="position:absolute;left:20px;top:20px;width:120px;height:40px">1</button></main>
<script type=module>
addEventListener('natscope:ready', () => {
  const state = { count: 1, basket: { items: ['tea', { deep: [1, 2, 3] }] } };
  const button = document.querySelector('#b');
  const app = natscope.component('App', {}, undefined, { element: document.querySelector('main') });
  const counter = natscope.component('Counter', state, app, {
    element: button,
    loc: '/srv/counter.js:7',
    set: { count(v) {
      if (v %% 2 === 0) throw new RangeError('only odd numbers');
      state.count = v; button.textContent = v; counter.update(state);
    } },
  });
  globalThis.showCounter = () => natscope.reveal(counter);
});
</script>
<script type=module src=%q></script>`

// attributeOf returns the text of an attribute of the first row with a tag; empty if there is none.
func (d *devtools) attributeOf(tag, name string) string {
	d.t.Helper()
	return eval[string](d.page, js(fmt.Sprintf(`(() => {
	  const row = ns.all('li[role=treeitem]').find(r => ns.shown(r) && [...r.querySelectorAll('.webkit-html-tag-name')].some(e => e.textContent === %s));
	  const a = row && [...row.querySelectorAll('.webkit-html-attribute')].find(e => e.querySelector('.webkit-html-attribute-name')?.textContent === %s);
	  return a?.querySelector('.webkit-html-attribute-value')?.textContent.replace(/\u200b/g, '') ?? '';
	})()`, quote(tag), quote(name))))
}

// editAttribute types a value over that of an attribute.
func (d *devtools) editAttribute(tag, name, value string) {
	d.t.Helper()
	// A row may be drawn anew between two clicks, so look for the field and try again.
	d.poll("the field that takes "+name, func() (bool, string) {
		at := eval[*struct{ X, Y float64 }](d.page, js(fmt.Sprintf(`(() => {
		  if (ns.all('.editing').some(ns.shown)) return {x: -1, y: -1};
		  const row = ns.all('li[role=treeitem]').find(r => ns.shown(r) && [...r.querySelectorAll('.webkit-html-tag-name')].some(e => e.textContent === %s));
		  const a = row && [...row.querySelectorAll('.webkit-html-attribute')].find(e => e.querySelector('.webkit-html-attribute-name')?.textContent === %s);
		  const v = a?.querySelector('.webkit-html-attribute-value');
		  if (!v) return null;
		  v.scrollIntoView({block: 'nearest'});
		  const r = v.getBoundingClientRect();
		  return {x: r.x + r.width / 2, y: r.y + r.height / 2};
		})()`, quote(tag), quote(name))))
		switch {
		case at == nil:
			return false, "the attribute is not there"
		case at.X < 0:
			return true, ""
		}
		d.do(chromedp.MouseClickXY(at.X, at.Y), chromedp.MouseClickXY(at.X, at.Y, chromedp.ClickCount(2)))
		return false, "no field"
	})
	d.do(chromedp.KeyEvent(value), chromedp.KeyEvent(kb.Enter))
}

// waitAttribute waits until an attribute reads as wanted.
func (d *devtools) waitAttribute(tag, name, want string) {
	d.t.Helper()
	d.poll(fmt.Sprintf("%s of <%s> is %s", name, tag, want), func() (bool, string) {
		got := d.attributeOf(tag, name)
		return got == want, got
	})
}

// selected returns the tag of the selected row.
func (d *devtools) selected() string {
	d.t.Helper()
	return eval[string](d.page, js(`ns.all('li[role=treeitem].selected').filter(ns.shown).map(r => r.querySelector('.webkit-html-tag-name')?.textContent).filter(Boolean).join()`))
}

// TestEditPickAndHighlightInDevTools changes a Go program and a page from a
// real DevTools, and points at the page from both sides.
func TestEditPickAndHighlightInDevTools(t *testing.T) {
	x := startLive(t)
	b := browser(t)
	page := open(t, b, x.page)
	page.poll("the page is up", func() (bool, string) {
		return eval[bool](page, `globalThis.natscope?.status().state === 'up'`), "not yet"
	})
	d := openDevTools(t, b, x.DevTools())
	d.panel("elements")
	d.expand("host", "service")
	d.waitTree("<Pool", `Workers="3"`)

	// A Go program.
	d.editAttribute("Pool", "Workers", "5")
	d.poll("the program changes", func() (bool, string) { n := x.pool.workers(); return n == 5, fmt.Sprint(n) })
	d.waitAttribute("Pool", "Workers", "5")
	d.editAttribute("Pool", "Workers", "70")
	d.panel("console")
	d.waitText(".console-message-wrapper", "Workers of <Pool> was not changed", "1 to 9 workers, not 70")
	d.settle()
	d.screenshot("edit-refused")
	d.panel("elements")
	d.waitAttribute("Pool", "Workers", "5")
	if n := x.pool.workers(); n != 5 {
		t.Errorf("a refused edit made %d workers", n)
	}

	// A page.
	d.expand("clients", "client", "page", "App")
	d.waitTree("<Counter", `count="1"`)
	d.editAttribute("Counter", "count", "7")
	page.poll("the page changes", func() (bool, string) {
		s := eval[string](page, `document.querySelector('#b').textContent`)
		return s == "7", s
	})
	d.waitAttribute("Counter", "count", "7")
	d.editAttribute("Counter", "count", "8")
	d.waitAttribute("Counter", "count", "7")
	overlay := func() string {
		return eval[string](page, `document.querySelector('natscope-overlay')?.shadowRoot.lastElementChild.textContent ?? ''`)
	}
	// Hovering a row shows the element on the page.
	d.hover(".webkit-html-tag-name", "=Counter")
	page.poll("the box is on the page", func() (bool, string) { s := overlay(); return s == "Counter  120 × 40", s })
	d.hover("#tab-console", "")
	page.poll("the box is gone", func() (bool, string) { s := overlay(); return s == "", s })

	seeSidebars(d)

	// Picking in the page selects in DevTools.
	d.click(".webkit-html-tag-name", "=clients")
	d.click(`[aria-label^="Select an element in the page"]`, "")
	page.poll("the page picks", func() (bool, string) {
		page.do(chromedp.MouseEvent("mouseMoved", 300, 200), chromedp.MouseEvent("mouseMoved", 100, 100))
		s := overlay()
		return s == "Counter  120 × 40", s
	})
	page.do(chromedp.MouseClickXY(100, 100))
	d.poll("what was picked is selected", func() (bool, string) { s := d.selected(); return s == "Counter", s })

	// The page shows one of its components by itself.
	d.click(".webkit-html-tag-name", "=clients")
	d.poll("another row is selected", func() (bool, string) { s := d.selected(); return s == "clients", s })
	eval[any](page, `showCounter() ?? null`)
	d.poll("what the page reveals is selected", func() (bool, string) { s := d.selected(); return s == "Counter", s })
	d.noErrors()
}

// seeSidebars looks at the values of the selected component beside the tree.
func seeSidebars(d *devtools) {
	d.t.Helper()
	d.click(".webkit-html-tag-name", "=Counter")
	d.waitText(".styles-section", "values", "count", "7", "basket")
	d.waitText(".styles-section", "source", "/srv/counter.js:7", "vscode://file/srv/counter.js:7")
	d.settle()
	d.screenshot("styles")
	if bad := d.texts(".styles-section .not-parsed-ok, .styles-section .inactive"); len(bad) > 0 {
		d.t.Errorf("the Styles pane marks %s as wrong", strings.Join(bad, ", "))
	}
	// The Properties pane opens values as deep as the page goes.
	d.do(chromedp.KeyEvent("P", chromedp.KeyModifiers(chromedp.ModifierCtrl, chromedp.ModifierShift)))
	d.waitFor("the command menu", "[role=combobox], .filtered-list-widget")
	d.key("Show Properties")
	d.waitText(".filtered-list-widget [role=option], .filtered-list-widget-item", "Show Properties")
	d.key(kb.Enter)
	const rows = "li[role=treeitem]:has(.name-and-value)"
	d.waitText(rows, "count", "7")
	for _, step := range []struct{ open, see string }{{"basket", "items"}, {"items", "tea"}, {"1", "deep"}, {"deep", "length: 3"}} {
		d.poll("open "+step.open, func() (bool, string) {
			all := d.texts(rows)
			for _, r := range all {
				if strings.Contains(r, step.see) && !strings.HasPrefix(r, step.open) {
					return true, ""
				}
			}
			d.clickRow(rows, step.open)
			return false, strings.Join(all, "\n")
		})
	}
	d.settle()
	d.screenshot("properties")
}

// clickRow opens the first closed row whose text begins as wanted.
func (d *devtools) clickRow(rows, name string) {
	d.t.Helper()
	at := eval[*struct{ X, Y float64 }](d.page, js(fmt.Sprintf(`(() => {
	  const e = ns.all(%s).find(e => ns.shown(e) && e.classList.contains('parent') && !e.classList.contains('expanded') && ns.text(e).startsWith(%s));
	  if (!e) return null;
	  const r = e.getBoundingClientRect();
	  return {x: r.x + 8, y: r.y + r.height / 2};
	})()`, quote(rows), quote(name))))
	if at != nil {
		d.do(chromedp.MouseClickXY(at.X, at.Y))
	}
}

// hover moves the pointer over the first shown element that the selector finds and whose text contains has.
func (p *page) hover(selector, has string) {
	p.t.Helper()
	var at *struct{ X, Y float64 }
	p.poll("hover "+selector+" "+has, func() (bool, string) {
		at = eval[*struct{ X, Y float64 }](p, js("ns.center("+quote(selector)+", "+quote(has)+")"))
		return at != nil, "not there"
	})
	p.do(chromedp.MouseEvent("mouseMoved", at.X-1, at.Y), chromedp.MouseEvent("mouseMoved", at.X, at.Y))
}
