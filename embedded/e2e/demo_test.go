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
	open(t, b, p.Demo)
	d := openDevTools(t, b, p.DevTools)
	seeElements(d)
	seeNetwork(d)
	seeLive(d)
	seeConsole(d)
	d.noErrors()
}

func seeElements(d *devtools) {
	d.t.Helper()
	d.panel("elements")
	d.waitTree("<host", `name="shop"`)
	d.expand("host", "service", "workers")
	d.waitTree("<worker", "jobs=")
	// Workers come and go, and the tree stays open while they do.
	before := strings.Join(d.tree(), "\n")
	d.poll("the workers change", func() (bool, string) {
		now := strings.Join(d.tree(), "\n")
		return now != before, now
	})
	d.waitTree("<worker", "jobs=")
	d.expand("clients", "client", "page", "App", "Cart")
	d.waitTree("<CartItem")
	d.settle()
	d.screenshot("elements")
}

func seeNetwork(d *devtools) {
	d.t.Helper()
	d.panel("network")
	const row = "tr.data-grid-data-grid-node"
	for _, want := range []string{"products", "orders", "slow", "fail", "stream"} {
		d.waitText(row, want)
	}
	d.waitText(row, "products", "200")
	d.waitText(row, "fail", "500")
	d.settle()
	d.screenshot("network")
	for _, name := range []string{"products", "slow"} {
		// The list grows while it is clicked on, so look which row was hit.
		d.poll("select "+name, func() (bool, string) {
			d.click(row+" td.name-column", "="+name)
			selected := d.texts(row + ".selected td.name-column")
			return len(selected) == 1 && selected[0] == name, strings.Join(selected, "\n")
		})
		d.click("#tab-response", "")
		d.waitText(".cm-content", `"name"`)
	}
	d.settle()
	d.screenshot("network-response")
}

// seeLive looks at the demo's WebSocket and its stream of events while they run.
func seeLive(d *devtools) {
	d.t.Helper()
	d.closeRequest()
	d.firstRequests()
	d.openRequest("kitchen", "101", "web-socket-frames")
	d.waitText("tr", `"state":"cooking"`)
	d.waitText("tr", `"cents":`)
	d.settle()
	d.screenshot("network-kitchen")
	d.closeRequest()
	d.firstRequests()
	d.openRequest("stream", "200", "eventSource")
	d.waitText("tr", "price", `"sku":`)
	d.settle()
	d.screenshot("network-stream")
	d.closeRequest()
}

// firstRequests scrolls the list to its beginning: rows out of sight are not there.
func (d *devtools) firstRequests() {
	d.t.Helper()
	eval[bool](d.page, js(`(() => {
	  for (const e of ns.all('.data-container')) e.scrollTop = 0;
	  return true;
	})()`))
}

func seeConsole(d *devtools) {
	d.t.Helper()
	d.panel("console")
	d.waitText(".console-message-wrapper", "order placed")
	d.waitText(".console-message-wrapper", "Order placed")
	d.settle()
	d.screenshot("console")
}
