package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// find types a query into the search of the Elements panel and waits for what it counts.
func (d *devtools) find(query, matches string) {
	d.t.Helper()
	const field = "#search-input-field, .search-replace input, input.search-replace"
	if !eval[bool](d.page, js("ns.all("+quote(field)+").some(ns.shown)")) {
		d.do(chromedp.KeyEvent("f", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
		d.waitFor("the search field", field)
	}
	d.clickN(field, "", 3)
	d.do(chromedp.KeyEvent("a", chromedp.KeyModifiers(chromedp.ModifierCtrl)), chromedp.KeyEvent(kb.Backspace))
	d.key(query)
	d.key(kb.Enter)
	d.waitText(".search-results-matches, .search-replace", matches)
}

// TestSearchAndEditTheDemo does what a newcomer does with the demo: looks for
// things in ways that they know from web pages, and changes the running shop.
func TestSearchAndEditTheDemo(t *testing.T) {
	p := start(t, "--demo")
	b := browser(t)
	shop := open(t, b, p.Demo)
	d := openDevTools(t, b, p.DevTools)
	d.panel("elements")
	d.waitTree("<host", `name="shop"`)

	// What was never expanded is found: by selector, by path, by text.
	d.find(`item[SKU=mug]`, "1 of 1")
	d.poll("the item is selected", func() (bool, string) { s := d.selected(); return s == "item", s })
	d.waitTree("<item", `SKU="mug"`)
	d.find(`//App/Cart`, "1 of 1")
	d.poll("the cart is selected", func() (bool, string) { s := d.selected(); return s == "Cart", s })
	d.find("Gooseneck", " of ")
	d.settle()
	d.screenshot("search")
	d.key(kb.Escape)

	// Elements come and go below what was opened, and it stays open.
	rows := func() string { return strings.Join(d.tree(), "\n") }
	d.expand("workers")
	before := rows()
	d.poll("the workers change", func() (bool, string) { now := rows(); return now != before, now })
	for _, tag := range []string{"service", "inventory", "workers", "App"} {
		if !expanded(d.tree(), tag) {
			t.Errorf("<%s> has closed:\n%s", tag, rows())
		}
	}

	// A Go value: the page hears of the price that was typed.
	d.editAttribute("pricing", "Paused", "true")
	d.waitAttribute("pricing", "Paused", "true")
	d.editAttribute("item", "Cents", "4321")
	d.waitAttribute("item", "Cents", "4321")
	text := func() string { return eval[string](shop, "document.body.innerText") }
	shop.poll("the page shows the price", func() (bool, string) { s := text(); return strings.Contains(s, "43.21"), s })
	d.editAttribute("item", "Stock", "5000")
	d.poll("what is refused comes back", func() (bool, string) { s := d.attributeOf("item", "Stock"); return s != "5000" && s != "", s })

	// The page: its customer stops, and what was picked there is selected here.
	d.editAttribute("App", "shopping", "false")
	shop.poll("the customer stops", func() (bool, string) {
		return !eval[bool](shop, "document.getElementById('auto').checked"), "still shopping"
	})
	d.click(`[aria-label^="Select an element in the page"]`, "")
	at := eval[struct{ X, Y float64 }](shop, `(() => { const r = document.querySelector('#products .row').getBoundingClientRect(); return {x: r.x + 20, y: r.y + r.height / 2}; })()`)
	shop.poll("the page picks", func() (bool, string) {
		shop.do(chromedp.MouseEvent("mouseMoved", at.X+40, at.Y), chromedp.MouseEvent("mouseMoved", at.X, at.Y))
		s := eval[string](shop, `document.querySelector('natscope-overlay')?.shadowRoot.lastElementChild.textContent ?? ''`)
		return strings.HasPrefix(s, "ProductCard"), s
	})
	shop.do(chromedp.MouseClickXY(at.X, at.Y))
	d.poll("what was picked is selected", func() (bool, string) { s := d.selected(); return s == "ProductCard", s })

	// The process is read while it is open, and was not before.
	d.waitTree("<process", `watched="false"`)
	d.expand("process")
	d.waitTree("<process", `watched="true"`)
	d.expand("goroutines")
	d.waitTree("<group", "state=", "count=")
	d.click(".webkit-html-tag-name", "=goroutines")
	d.settle()
	d.screenshot("process")
	d.noErrors()
}
