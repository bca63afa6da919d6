package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// openFile opens a file by its name, as a person does who knows it.
func (c *sourcesPanel) openFile(name, text string) {
	c.t.Helper()
	tries := 0
	c.poll(name+" is open", func() (bool, string) {
		now := strings.Join(c.texts(".cm-content"), "\n")
		if strings.Contains(now, text) {
			return true, ""
		}
		if tries%20 == 0 {
			c.do(chromedp.KeyEvent("p", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
			c.waitFor("the box to open a file", ".filtered-list-widget")
			if _, err := chromedp.Call(c.ctx, input.InsertText, input.InsertTextParams{Text: name}); err != nil {
				c.t.Fatal(err)
			}
			c.waitText(".filtered-list-widget-item, .filtered-list-widget-item-wrapper", name)
			c.key(kb.Enter)
		}
		tries++
		return false, now
	})
}

// gutter clicks a line number of the open file.
func (c *sourcesPanel) gutter(line int, modifiers chromedp.Modifier) {
	c.t.Helper()
	var at *struct{ X, Y float64 }
	c.poll(fmt.Sprint("line number ", line), func() (bool, string) {
		at = eval[*struct{ X, Y float64 }](c.page, js(fmt.Sprintf("ns.center('.cm-lineNumbers .cm-gutterElement', '=%d')", line)))
		return at != nil, "not there"
	})
	c.do(chromedp.MouseClickXY(at.X, at.Y, chromedp.ButtonModifiers(modifiers)))
}

// condition fills in the dialog of a breakpoint's condition or a logpoint's message.
func (c *sourcesPanel) condition(text string) {
	c.t.Helper()
	c.waitFor("the dialog of a breakpoint", ".cm-conditionalBreakpoint, .edit-breakpoint-dialog, .sources-edit-breakpoint-dialog")
	if _, err := chromedp.Call(c.ctx, input.InsertText, input.InsertTextParams{Text: text}); err != nil {
		c.t.Fatal(err)
	}
	c.settle()
	c.screenshot("node-space-condition")
	c.key(kb.Enter)
}

// breakpoints waits until the sidebar lists that many breakpoints.
func (c *sourcesPanel) breakpoints(n int) {
	c.t.Helper()
	c.poll(fmt.Sprint(n, " breakpoints"), func() (bool, string) {
		all := c.texts(".breakpoint-item")
		return len(all) == n, strings.Join(all, "\n")
	})
}

// pausedAt waits until the program is paused and its top frame reads as wanted.
func (c *sourcesPanel) pausedAt(want string) {
	c.t.Helper()
	c.waitText(".paused-message, .paused-status", "breakpoint")
	c.poll("a pause at "+want, func() (bool, string) {
		all := c.texts(".call-frame-item")
		return len(all) > 0 && strings.Contains(all[0], want), strings.Join(all, "\n")
	})
}

// resume goes on and waits until the program runs.
func (c *sourcesPanel) resume() {
	c.t.Helper()
	c.do(chromedp.KeyEvent(kb.F8))
	c.poll("the program runs", func() (bool, string) {
		seen := strings.Join(c.texts(".paused-message, .paused-status"), "\n")
		return seen == "", seen
	})
}

// TestBreakpointsInTheSpace clicks line numbers of a program of the space: what is
// set is hit each time, and what is taken away is hit no more.
func TestBreakpointsInTheSpace(t *testing.T) {
	_, c := startFloor(t, strings.Replace(floorScript, "  if (!globalThis.done) debugger;\n", "", 1))
	c.panel("sources")
	c.openFile("floor.js", "order.total")
	for range 5 {
		c.gutter(6, 0)
		c.breakpoints(1)
		c.pausedAt("floor.js:6")
		c.gutter(6, 0)
		c.breakpoints(0)
		c.resume()
	}

	c.gutter(7, chromedp.ModifierCtrl)
	c.condition("order.id % 7 === 0")
	c.breakpoints(1)
	c.pausedAt("floor.js:7")
	c.panel("console")
	c.waitFor("the prompt", ".cm-content")
	c.run("order.id % 7", "0")
	c.panel("sources")
	c.gutter(7, 0)
	c.breakpoints(0)
	c.resume()

	c.gutter(7, chromedp.ModifierCtrl|chromedp.ModifierShift)
	c.condition("'order', order.id, 'costs', price")
	c.breakpoints(1)
	c.panel("console")
	c.waitText(".console-message-wrapper", "order", "costs", "floor.js:7")
	c.settle()
	c.screenshot("node-space-logpoint")
	c.noErrors()
}
