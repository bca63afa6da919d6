package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// cordisStore is a program that uses Cordis and does not know of natscope: a
// service that asks another machine, and a plugin that answers with what it says.
const cordisStore = `import http from 'node:http';
import { Context, Service } from '@deepseek-ai/cordis';

class Stock extends Service {
  constructor(ctx) { super(ctx, 'stock'); }
  async left(sku) {
    const res = await fetch(process.env.WAREHOUSE + '/left/' + sku);
    return res.json();
  }
}

const web = {
  name: 'web',
  inject: ['stock'],
  apply(ctx) {
    const server = http.createServer(async (req, res) => {
      let asked = '';
      for await (const piece of req) asked += piece;
      const { sku } = JSON.parse(asked);
      res.setHeader('access-control-allow-origin', '*').setHeader('content-type', 'application/json');
      res.end(JSON.stringify({ sku, stock: await ctx.stock.left(sku) }));
    });
    ctx.effect(() => {
      server.listen(0, '127.0.0.1', () => console.log('listens on', server.address().port));
      return () => server.close();
    }, 'http server');
    ctx.plugin({ name: 'carts', apply() {} });
    globalThis.web = ctx;
  },
};

const root = new Context();
root.plugin(Stock);
root.plugin(web);
`

// cordisPage is a page with Cordis of its own, which asks the program. %s are an
// import map, the address of the client, and that of its plugin.
const cordisPage = `<!doctype html><title>Checkout</title><link rel=icon href=data:,>
<script type=importmap>%s</script>
<script type=module src=%q></script>
<h1>Checkout</h1><pre id=answer></pre>
<script type=module>
import { Context } from '@deepseek-ai/cordis';
import * as natscope from %q;
const root = new Context();
root.plugin({ name: 'basket', apply(ctx) { globalThis.basket = ctx; ctx.plugin({ name: 'badge', apply() {} }); } });
root.plugin(natscope, { details: true });
globalThis.order = async at => {
  const res = await fetch(at + '/orders?shop=1', { method: 'POST', body: JSON.stringify({ sku: 'teapot' }) });
  return document.querySelector('#answer').textContent = await res.text();
};
</script>`

// clientPackages is where the packages of the JavaScript client are, Cordis among them.
func clientPackages(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../producer/client/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "@deepseek-ai/cordis/lib/index.js")); err != nil {
		t.Fatalf("this test needs the packages of the client; run npm ci in producer/client: %v", err)
	}
	return dir
}

// startCordisStore runs the program as people run it with natscope, and returns its address.
func startCordisStore(t *testing.T, p *process, warehouse string) (url string) {
	t.Helper()
	file := nodeFile(t, "store.mjs", cordisStore)
	if err := os.Symlink(clientPackages(t), filepath.Join(filepath.Dir(file), "node_modules")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "run", "--nats", p.NATS, "--inject", "network,cordis-details", "--", "node", file)
	cmd.Env = append(os.Environ(), "WAREHOUSE="+warehouse)
	said, errors := &lockedBuffer{}, &lockedBuffer{}
	cmd.Stdout, cmd.Stderr = said, errors
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() })
	poll(t, "the program listens", func() (bool, string) {
		_, port, _ := strings.Cut(said.String(), "listens on ")
		port, _, whole := strings.Cut(port, "\n")
		url = "http://127.0.0.1:" + port
		return whole, said.String() + errors.String()
	})
	return url
}

// TestCordisOfNodeBesideAPage is a person who looks at a shop in one window: a
// program in Node that does not know of natscope, and a page of it, both with Cordis.
func TestCordisOfNodeBesideAPage(t *testing.T) {
	p := start(t)
	warehouse := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"left":12,"shelf":%q}`, filepath.Base(r.URL.Path)+"-7")
	}))
	t.Cleanup(warehouse.Close)
	store := startCordisStore(t, p, warehouse.URL)

	mux := http.NewServeMux()
	mux.Handle("GET /modules/", http.StripPrefix("/modules/", http.FileServer(http.Dir(clientPackages(t)))))
	client, _, _ := strings.Cut(p.Client, "/client.js")
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, cordisPage, `{"imports":{"@deepseek-ai/cordis":"/modules/@deepseek-ai/cordis/lib/index.js","@deepseek-ai/cosmokit":"/modules/@deepseek-ai/cosmokit/lib/index.js"}}`,
			p.Client, client+"/client/plugin.js")
	})
	shop := httptest.NewServer(mux)
	t.Cleanup(shop.Close)
	b := browser(t)
	page := open(t, b, shop.URL)
	page.poll("the page is connected", func() (bool, string) {
		s := eval[string](page, `globalThis.order && globalThis.natscope?.status().state || 'none'`)
		return s == "up", s
	})

	c := &pageConsole{&goConsole{devtools: openDevTools(t, b, p.DevTools)}}
	seeCordisTrees(c)
	seeCordisObjects(c)
	seeCordisRequests(c, page, store)
	c.noErrors()
}

// expandAll opens everything below the row with a tag, until a row reads as wanted.
func (d *devtools) expandAll(tag string, want ...string) {
	d.t.Helper()
	d.waitTree("<" + tag + " ")
	d.poll(fmt.Sprintf("below <%s> is %q", tag, want), func() (bool, string) {
		rows := d.tree()
		for _, r := range rows {
			if containsAll(r, want) {
				return true, ""
			}
		}
		d.menu(".webkit-html-tag-name", "="+tag, "Expand recursively")
		d.settle()
		return false, strings.Join(rows, "\n")
	})
}

// selectRow selects a row of Elements by what it reads.
func (d *devtools) selectRow(has string) {
	d.t.Helper()
	d.poll("the row with "+has+" is selected", func() (bool, string) {
		selected := strings.Join(d.texts(".elements-tree-outline li.selected"), "\n")
		if strings.Contains(selected, has) {
			return true, ""
		}
		d.click(".elements-tree-outline li", has)
		return false, selected
	})
}

// inContext waits until the Console is in the context of what is selected.
func (c *pageConsole) inContext(name string) {
	c.t.Helper()
	c.panel("console")
	c.waitFor("the prompt", ".cm-content")
	c.waitText(".console-main-toolbar .soft-dropdown", name)
}

// seeCordisTrees looks at both runtimes in Elements.
func seeCordisTrees(c *pageConsole) {
	c.t.Helper()
	c.panel("elements")
	c.waitTree("<host", `name="store.mjs"`)
	c.expandAll("host", "<Fiber", `plugin="carts"`, `state="active"`)
	c.waitTree("<Fiber", `plugin="Stock"`, `services="stock"`)
	c.waitTree("<Fiber", `plugin="web"`)
	c.expand("clients")
	c.waitTree("<client", `name="Checkout"`)
	c.expandAll("client", "<Fiber", `plugin="badge"`, `state="active"`)
	c.waitTree("<Fiber", `plugin="basket"`)
	rows := c.tree()
	at := func(has string) int {
		return slices.IndexFunc(rows, func(r string) bool { return strings.Contains(r, has) })
	}
	order := []int{at("<host"), at(`"Stock"`), at(`"web"`), at(`"carts"`), at("<clients"), at("<client "), at(`"basket"`), at(`"badge"`)}
	if !slices.IsSorted(order) || order[0] < 0 {
		c.t.Errorf("the program's tree is not in <host>, or the page's not in <clients>:\n%s", strings.Join(rows, "\n"))
	}
	c.settle()
	c.screenshot("node-cordis")
}

// seeCordisObjects asks both for what is selected in Elements: it is their own object, and it lives.
func seeCordisObjects(c *pageConsole) {
	c.t.Helper()
	c.selectRow(`plugin="web"`)
	c.inContext("store.mjs")
	c.run("$0", "<Fiber", `plugin="web"`)
	c.run("$0.ctx === web && $0.constructor.name", "Fiber")
	c.run("web.fiber", "<Fiber", `plugin="web"`)
	c.run("await $0.ctx.stock.left('mug')", "left: 12", "mug-7")
	c.run("web.plugin({ name: 'gifts', apply() {} }).uid", "4")
	c.settle()
	c.screenshot("node-cordis-console")
	c.panel("elements")
	c.waitTree("<Fiber", `plugin="gifts"`, `state="active"`)
	c.selectRow(`plugin="basket"`)
	c.inContext("Checkout")
	c.run("$0.ctx === basket && document.title", "Checkout")
}

// seeCordisRequests follows a request from the page into the program and on to the next machine.
func seeCordisRequests(c *pageConsole, shop *page, store string) {
	c.t.Helper()
	c.panel("network")
	c.waitText(networkRow, "mug", "200")
	eval[bool](shop, `order(`+quote(store)+`), true`)
	shop.waitText("#answer", "teapot-7")
	const orders = "orders?shop=1"
	c.waitText(networkRow, orders, "200", "fetch", "(index):")
	c.waitText(networkRow, orders, "200", "document", "incoming from 127.0.0.1:")
	c.waitText(networkRow, "teapot", "200", "fetch", "store.mjs:7")
	c.waitText(networkRow, "mug", "200", "fetch", "store.mjs:7")
	c.settle()
	c.screenshot("node-cordis-network")
	c.openRequest(orders, "document", "headers-component")
	c.waitText(".network-item-view", "/orders?shop=1", "POST", "200 OK", "content-type application/json")
	c.settle()
	c.screenshot("node-cordis-incoming")
	c.click("#tab-payload", "")
	c.waitText(".network-item-view", "sku", "teapot")
	c.click("#tab-response", "")
	c.waitText(".cm-content", `"sku":"teapot"`, `"shelf":"teapot-7"`)
	c.closeRequest()
	c.openRequest("teapot", "fetch", "headers-component")
	c.waitText(".network-item-view", "/left/teapot", "200 OK")
	c.settle()
	c.screenshot("node-cordis-outgoing")
	c.click("#tab-response", "")
	c.waitText(".cm-content", `{"left":12,"shelf":"teapot-7"}`)
	c.closeRequest()
}
