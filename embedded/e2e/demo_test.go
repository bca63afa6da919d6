package e2e

import (
	"strings"
	"testing"
)

// TestDemoInDevTools is the main job: one command, a real service and a real
// page, and what a person sees of them in Elements, Network and Console.
func TestDemoInDevTools(t *testing.T) {
	p := start(t, "--demo")
	b := browser(t)
	shop := open(t, b, p.Demo)
	shop.waitText("body", "natscope")
	d := openDevTools(t, b, p.DevTools)

	t.Run("Elements", func(t *testing.T) {
		d.panel("elements")
		d.waitTree("<host", `name="shop"`)
		d.waitTree("<client", "title=")
		d.expand("host", "service", "workers")
		d.waitTree("<worker", "jobs=")
		// Workers come and go, and the tree stays open while they do.
		before := d.tree()
		poll(t, "the workers change", func() (bool, string) {
			now := d.tree()
			return strings.Join(now, "\n") != strings.Join(before, "\n"), strings.Join(now, "\n")
		})
		d.waitTree("<worker", "jobs=")
		d.expand("client", "App", "Cart")
		d.waitTree("<CartItem")
		d.settle()
		d.screenshot("elements")
	})

	t.Run("Network", func(t *testing.T) {
		d.panel("network")
		for _, want := range []string{"products", "orders", "slow", "fail", "stream"} {
			d.waitText("tr.data-grid-data-grid-node", want)
		}
		d.waitText("tr.data-grid-data-grid-node", "products", "200")
		d.waitText("tr.data-grid-data-grid-node", "fail", "500")
		d.click("tr.data-grid-data-grid-node td.name-column", "products")
		d.click("#tab-response", "")
		d.waitText(".cm-content", `"name"`)
		d.settle()
		d.screenshot("network")
	})

	t.Run("Console", func(t *testing.T) {
		d.panel("console")
		d.waitText(".console-message-wrapper", "order")
		d.waitText(".console-message-wrapper", "shop page")
		d.settle()
		d.screenshot("console")
	})
	d.noErrors()
}
