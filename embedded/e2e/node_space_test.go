package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The program that is debugged in the target of the space: a file of its own, one of a library, and a thread.
const (
	floorScript = `const {Worker} = require('node:worker_threads');
const lib = require('./lib.js');
globalThis.results = []; globalThis.beats = 0;
function work(order) {
  let price = order.total;
  if (!globalThis.done) debugger;
  const tax = lib.tax(price);
  return price + tax;
}
setInterval(() => {
  beats++;
  results.push(work({ id: beats, total: beats * 100 }));
}, 250);
new Worker('globalThis.packed = 0; setInterval(function pack() { packed++; }, 100)', { eval: true, name: 'packer' });
`
	libScript = `exports.tax = function tax(price) {
  const rate = 0.25;
  return price * rate;
};
`
)

// sourcesPanel is a DevTools at a program that is debugged, with the Sources panel in front.
type sourcesPanel struct{ *goConsole }

// step presses a key of the debugger and waits until the top frame reads as wanted.
func (c *sourcesPanel) step(key string, modifiers chromedp.Modifier, want string) {
	c.t.Helper()
	c.do(chromedp.KeyEvent(key, chromedp.KeyModifiers(modifiers)))
	c.poll("a step to "+want, func() (bool, string) {
		all := c.texts(".call-frame-item")
		return len(all) > 0 && strings.Contains(all[0], want), strings.Join(all, "\n")
	})
}

// startFloor runs the program under natscope and opens the target of the space.
func startFloor(t *testing.T, script string) (*process, *sourcesPanel) {
	t.Helper()
	p := start(t)
	file := nodeFile(t, "floor.js", script)
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "lib.js"), []byte(libScript), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "run", "--nats", p.NATS, "--", "node", file)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() })
	poll(t, "program and thread are there", func() (bool, string) {
		out, _, _ := natscope(t, "", "ls", "--nats", p.NATS)
		return strings.Contains(out, "floor.js") && strings.Contains(out, "packer"), out
	})
	return p, &sourcesPanel{&goConsole{devtools: openDevTools(t, browser(t), p.DevTools)}}
}

// TestDebugNodeInTheSpace is a person who debugs one of the programs of a space.
func TestDebugNodeInTheSpace(t *testing.T) {
	_, c := startFloor(t, floorScript)
	c.panel("sources")
	c.waitText(".paused-message, .paused-status", "Debugger paused")
	c.waitText(".call-frame-item", "work")
	c.waitText(".thread-item", "floor.js", "paused")
	for _, row := range c.texts(".thread-item") {
		if strings.Contains(row, "packer") && strings.Contains(row, "paused") {
			t.Errorf("the thread is said to be paused too: %s", row)
		}
	}
	c.waitText(".scope-chain-sidebar-pane-section, .object-properties-section", "price")

	// The Console is in the frame that is selected: it sees and changes what is local there.
	c.panel("console")
	c.waitFor("the prompt", ".cm-content")
	c.run("order.total / order.id", "100")
	c.run("price = 4000", "4000")
	c.settle()
	c.screenshot("node-space-console")
	c.panel("sources")
	c.step(kb.F10, 0, "floor.js:7")
	c.waitText(".object-properties-section", "price: 4000")
	c.step(kb.F11, 0, "tax")
	c.step(kb.F10, 0, "lib.js:3")
	c.step(kb.F11, chromedp.ModifierShift, "work")
	c.step(kb.F10, 0, "floor.js:8")
	c.settle()
	c.screenshot("node-space-sources")
	c.panel("console")
	c.run("globalThis.done = true", "true")
	c.panel("sources")
	c.do(chromedp.KeyEvent(kb.F8))
	c.poll("the program runs", func() (bool, string) {
		seen := strings.Join(c.texts(".paused-message, .paused-status"), "\n")
		return seen == "", seen
	})
	c.panel("console")
	c.run("results.includes(5000)", "true")
	c.noErrors()
}
