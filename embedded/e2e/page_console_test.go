package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/natscope/natscope/embedded"
	"github.com/natscope/natscope/subjects"
)

// pageConsole is the Console of DevTools at a page. It is used as that of a Go program.
type pageConsole struct{ *goConsole }

// openConsole opens the Console of a DevTools and chooses a context.
func openConsole(d *devtools, context string) *pageConsole {
	d.t.Helper()
	d.panel("console")
	d.waitFor("the prompt", ".cm-content")
	c := &pageConsole{&goConsole{devtools: d}}
	c.choose(context)
	// What the demo's service says again and again would move what is clicked on.
	d.poll("the filter", func() (bool, string) {
		now := strings.Join(d.texts(".toolbar-input-prompt"), "\n")
		if strings.Contains(now, "workers.go") {
			return true, ""
		}
		d.click(".toolbar-input-prompt", "")
		if _, err := chromedp.Call(d.ctx, input.InsertText, input.InsertTextParams{Text: "-url:workers.go"}); err != nil {
			d.t.Fatal(err)
		}
		return false, now
	})
	return c
}

// run evaluates an expression as a person does, and waits for the answer below
// it. What the fleet says meanwhile stands between.
func (c *pageConsole) run(expression string, want ...string) {
	c.t.Helper()
	// The blank keeps the completions closed, which Enter would take.
	c.write(expression + " ")
	c.key(kb.Enter)
	asked := strings.Join(strings.Fields(expression), " ")
	c.poll(expression, func() (bool, string) {
		below := eval[[]string](c.page, js(`(() => {
		  const all = ns.all('.console-message-wrapper').filter(ns.shown);
		  const at = all.findLastIndex(e => e.querySelector('.console-user-command') && ns.text(e) === `+quote(asked)+`);
		  return at < 0 ? [] : all.slice(at + 1).map(ns.text);
		})()`))
		for _, s := range below {
			if containsAll(s, want) {
				return true, ""
			}
		}
		return false, strings.Join(below, "\n")
	})
}

// quiet ends what the demo's page does by itself, so that the Console keeps still.
func quiet(p *page) {
	p.t.Helper()
	p.poll("the page is connected", func() (bool, string) {
		s := eval[string](p, `globalThis.natscope?.status().state ?? 'none'`)
		return s == "up", s
	})
	eval[bool](p, `document.querySelector('#auto').click(), true`)
}

// menu chooses an item of the menu of an element.
func (p *page) menu(selector, has, item string) {
	p.t.Helper()
	// A menu of the frontend's own can be read, that of the browser cannot.
	eval[bool](p, "InspectorFrontendAPI.setUseSoftMenu(true), true")
	p.poll("the menu of "+has+" has "+item, func() (bool, string) {
		at := eval[*struct{ X, Y float64 }](p, js("ns.center("+quote(selector)+", "+quote(has)+")"))
		if at == nil {
			return false, "not there"
		}
		p.do(chromedp.MouseClickXY(at.X, at.Y, chromedp.ButtonType(input.MouseButtonRight)))
		seen := strings.Join(p.texts(".soft-context-menu-item"), "\n")
		return strings.Contains(seen, item), seen
	})
	p.click(".soft-context-menu-item", item)
}

// open opens the first closed row of an object whose text begins with name,
// until a row reads as wanted.
func (c *pageConsole) open(name string, want ...string) {
	c.t.Helper()
	const rows = "li[role=treeitem]"
	c.poll(fmt.Sprintf("open %s to see %q", name, want), func() (bool, string) {
		all := c.texts(rows)
		for _, r := range all {
			if containsAll(r, want) {
				return true, ""
			}
		}
		c.clickRow(rows, name)
		return false, strings.Join(all, "\n")
	})
}

// TestPageConsole is a person who looks into the demo's page from the Console:
// its values, its errors, its components and its scripts.
func TestPageConsole(t *testing.T) {
	p := start(t, "--demo")
	b := browser(t)
	shop := open(t, b, p.Demo)
	quiet(shop)
	c := openConsole(openDevTools(t, b, p.DevTools), "Storefront")
	c.clearConsole()

	c.run("document.title", "Storefront")
	c.run("let a = 1")
	c.run("let a = await Promise.resolve(41); a + 1", "42")
	c.run("[1, 2].map(x => {\n  return x * 2;\n})", "2, 4")
	c.run("location.reload.call(null)", "TypeError", "Illegal invocation")
	c.run("fetch('/api/fail').then(r => r.status)", "Promise")
	c.run("await (await fetch('/api/products')).json()", "(5) [{")
	c.run("null.nothing", "Cannot read properties of null")
	c.settle()
	c.screenshot("page-console")

	seeCompletions(c)
	seeObjects(c)
	seePageErrors(shop, c)
	seeSelection(c)
	seeNoBreakpoints(c)
	c.noErrors()
}

// seeCompletions completes names of the page, and evaluates nothing ahead.
func seeCompletions(c *pageConsole) {
	c.t.Helper()
	c.clearConsole()
	c.write("document.quer")
	c.key("y")
	c.waitText(".cm-tooltip-autocomplete li", "querySelectorAll")
	c.settle()
	c.screenshot("page-completion")
	c.key(kb.Escape)
	c.clear()
}

// seeObjects opens an object as far as it goes, and runs its accessors only when they are clicked.
func seeObjects(c *pageConsole) {
	c.t.Helper()
	c.clearConsole()
	c.run("globalThis.reads = 0; globalThis.thing = {get price() { reads++; return 350 }, stock: new Map([['tea', {left: 3}]]), where: document.querySelector('#cart'), [Symbol('mark')]: 1}; thing", "stock: Map(1)")
	c.click(".object-properties-section-root-element", "stock: Map")
	c.open("stock", "[[Entries]]")
	c.open("[[Entries]]", `"tea"`)
	c.waitText("li[role=treeitem]", "where", "div#cart")
	c.waitText("li[role=treeitem]", "Symbol(mark)", "1")
	c.settle()
	c.screenshot("page-object")
	c.run("reads", "0")
	c.click(".object-value-calculate-value-button", "")
	c.waitText("li[role=treeitem]", "price", "350")
	c.run("reads", "1")

	// What is stored is the object itself.
	c.page.menu("li[role=treeitem]", "stock: Map", "Store as global variable")
	c.waitText(".console-message-wrapper", "temp1")
	c.run("temp1 === thing", "true")

	// What the page's own console was given is the page's object.
	c.clearConsole()
	c.run("globalThis.live = {n: 1, deep: {list: [1, 2, 3]}}; console.log('given', live); live.n = 2", "2")
	c.waitText(".console-message-wrapper", "given", "deep")
	c.click(".object-properties-section-root-element", "n: 1")
	c.open("deep", "list: (3) [1, 2, 3]")
	c.waitText("li[role=treeitem]", "n: 2")
	c.settle()
	c.screenshot("page-live")
	// A table is a table: what it was given is told with its columns, which are there when the page is gone.
	c.clearConsole()
	c.run("console.table([{name: 'tea', price: 3}, {name: 'mug', price: 12.5, stock: {left: 2}}])", "undefined")
	c.waitFor("a table", ".data-grid")
	c.poll("the table has its rows and columns", func() (bool, string) {
		seen := strings.Join(c.texts(".data-grid"), "\n")
		return containsAll(seen, []string{"(index)", "name", "price", "stock", "tea", "mug", "12.5"}), seen
	})
	c.settle()
	c.screenshot("page-table")
}

// seePageErrors looks at an error that the page threw, whose link leads into the page's own script.
func seePageErrors(shop *page, c *pageConsole) {
	c.t.Helper()
	c.clearConsole()
	eval[bool](shop, `document.querySelector('#throw').click(), true`)
	c.waitText(".console-error-level", "somebody pressed the button", "page.js:")
	c.settle()
	c.screenshot("page-error")
	c.click(".console-error-level .devtools-link", "page.js:")
	c.waitText(".cm-line", "somebody pressed the button")
	c.settle()
	c.screenshot("page-source")
}

// seeSelection selects a component in Elements, which is $0 in the Console.
func seeSelection(c *pageConsole) {
	c.t.Helper()
	c.panel("elements")
	c.expand("clients", "client", "page", "App")
	c.click(".webkit-html-tag-name", "=Ticker")
	c.poll("the ticker is selected", func() (bool, string) { s := c.selected(); return s == "Ticker", s })
	c.panel("console")
	c.clearConsole()
	c.run("$0", "Ticker")
	c.settle()
	c.screenshot("page-selected")
}

// seeNoBreakpoints tries to stop a page.
func seeNoBreakpoints(c *pageConsole) {
	c.t.Helper()
	c.panel("sources")
	c.waitText(".cm-line", "somebody pressed the button")
	c.click(".cm-lineNumbers .cm-gutterElement", "=242")
	c.panel("console")
	c.waitText(".console-message-wrapper", "No breakpoint was set: Storefront", "natscope attach")
	c.settle()
	c.screenshot("page-breakpoint")
}

// TestConsoleOfAPageThatForbidsEval says so, and shows what the page has.
func TestConsoleOfAPageThatForbidsEval(t *testing.T) {
	x := startLive(t)
	client := x.ClientScript()
	host := client[:strings.Index(client[len("http://"):], "/")+len("http://")]
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Security-Policy", "script-src 'unsafe-inline' "+host+"; connect-src "+strings.Replace(host, "http", "ws", 1))
		fmt.Fprintf(w, "<!doctype html><title>Strict</title><link rel=icon href=data:,><script type=module src=%q></script>", client)
	}))
	defer web.Close()
	b := browser(t)
	p := open(t, b, web.URL)
	p.poll("the page is connected", func() (bool, string) {
		s := eval[string](p, `globalThis.natscope?.status().state ?? 'none'`)
		return s == "up", s
	})
	c := openConsole(openDevTools(t, b, x.DevTools()), "Strict")
	c.run("1 + 1", "EvalError", "Content-Security-Policy of this page forbids eval")
	eval[bool](p, `console.log('said by', { strict: true }), true`)
	c.waitText(".console-message-wrapper", "said by", "strict: true")
	c.click(".object-properties-section-root-element", "strict: true")
	c.waitText("li[role=treeitem]", "[[Prototype]]")
	c.settle()
	c.screenshot("page-strict")
	c.noErrors()
}

// TestOnePageInTwoGateways is two people at one page, each at a gateway of their
// own, and one of them in two windows: each has their own objects and names of
// the Console, and what one changes the others see.
func TestOnePageInTwoGateways(t *testing.T) {
	p := start(t, "--demo")
	other, err := embedded.Start(t.Context(), embedded.Options{HTTPAddr: "127.0.0.1:0", NATS: p.NATS, Storage: subjects.Storage{Memory: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := other.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	b := browser(t)
	shop := open(t, b, p.Demo)
	quiet(shop)
	var all []*pageConsole
	for i, url := range []string{p.DevTools, p.DevTools, other.DevTools()} {
		d := openDevTools(t, b, url)
		c := openConsole(d, "Storefront")
		c.clearConsole()
		c.run(fmt.Sprintf("globalThis.seen = (globalThis.seen ?? 0) + 1; ({mine: %d, list: [%d]})", i, i), fmt.Sprintf("mine: %d", i))
		all = append(all, c)
	}
	for i, c := range all {
		c.run("seen", "3")
		c.click(".object-properties-section-root-element", "mine:")
		c.open("list", fmt.Sprintf("0: %d", i))
		c.noErrors()
	}
	eval[bool](shop, `console.log('said to everybody'), true`)
	for _, c := range all {
		c.waitText(".console-message-wrapper", "said to everybody")
	}
	all[2].settle()
	all[2].screenshot("page-other-gateway")
}
