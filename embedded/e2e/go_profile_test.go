package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestGoTables is console.table of what Go programs have: the columns are the fields.
func TestGoTables(t *testing.T) {
	c := startGoConsole(t)
	c.table("Object.values(depot.Parcels).slice(0, 3)", []string{"ID", "To", "Weight", "State", "Tags"}, "House 2")
	c.table("depot.Routes", []string{"Value"}, "north")
	c.table("depot.Parcels", []string{"ID", "To", "Weight"}, "House 11")
	c.settle()
	c.screenshot("go-tables")
	c.clearConsole()
	c.table("goroutines", []string{"ID", "State", "Wait", "Top", "CreatedBy"}, "goreal")
	c.settle()
	c.screenshot("go-table-goroutines")
	c.table("depot.Long", []string{"ID", "To"}, "rows")
	c.noErrors()
}

// table shows a value as a table, and waits for its columns and a text in it.
func (c *goConsole) table(expression string, columns []string, want string) {
	c.t.Helper()
	tables := func() (out []string) {
		for _, m := range c.texts(".console-message-wrapper") {
			if strings.Contains(m, "(index)") {
				out = append(out, m)
			}
		}
		return out
	}
	before := len(tables())
	c.write("console.table(" + expression + ") ")
	c.key(kb.Enter)
	c.poll("the table of "+expression, func() (bool, string) {
		all := tables()
		if len(all) <= before {
			return false, strings.Join(c.texts(".console-message-wrapper"), "\n")
		}
		last := all[len(all)-1]
		return containsAll(last, append(columns, want)), last
	})
}

// TestGoConsoleByHand is what people do in the Console beside typing one line.
func TestGoConsoleByHand(t *testing.T) {
	c := startGoConsole(t)
	// A value of a line becomes a variable of the Console.
	c.run("depot.Parcels[7]", "House 7")
	c.menu(".object-properties-section-root-element", "Parcel", "Store as global variable")
	c.waitText(".console-message-wrapper", "temp1")
	c.run("temp1.Weight * 10", "35")
	c.run("temp1 === depot.Parcels[7]", "true")

	// A source that is not whole yet goes on in the next line.
	c.write("function heavy(p, limit) {\nreturn p.Weight > limit\n}")
	c.poll("several lines in the prompt", func() (bool, string) {
		n := eval[int](c.page, js("ns.all('.cm-editor.cm-focused .cm-line').length"))
		return n >= 3, fmt.Sprint(n, c.texts(".cm-content"))
	})
	before := len(c.texts(".console-user-command-result"))
	c.key(kb.Enter)
	c.poll("the function is defined", func() (bool, string) {
		all := c.texts(".console-user-command-result")
		return len(all) > before, strings.Join(all, "\n")
	})
	c.run("Object.values(depot.Parcels).filter(p => heavy(p, 5)).length", "1")

	// A live expression follows the program, which nothing tells of the change.
	c.click("[aria-label='Create live expression'] button, [aria-label='Create live expression']", "")
	c.waitFor("the live expression", ".console-pin")
	c.settle()
	c.do(chromedp.KeyEvent("depot.Parcels[3].To"))
	c.do(chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	c.waitText(".console-pin", "House 3")
	c.depot.mu.Lock()
	c.depot.Parcels[3].To = "Harbour"
	c.depot.mu.Unlock()
	c.waitText(".console-pin", "Harbour")
	c.settle()
	c.screenshot("go-by-hand")
	c.noErrors()
}

// TestGoBreakpoint is a person who sets a breakpoint in a Go file: the reason why
// there is none is in the Console.
func TestGoBreakpoint(t *testing.T) {
	c := startGoConsole(t)
	c.panel("sources")
	c.do(chromedp.KeyEvent("p", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	c.settle()
	c.do(chromedp.KeyEvent("goconsole_test.go"))
	c.poll("the file is found", func() (bool, string) {
		all := c.texts("[role=option], .filtered-list-widget-item")
		return len(all) > 0 && strings.Contains(all[0], "goconsole_test.go"), strings.Join(all, "\n")
	})
	c.key(kb.Enter)
	c.waitText(".cm-content", "package e2e")
	c.click(".cm-lineNumbers .cm-gutterElement", "=14")
	c.panel("console")
	c.waitText(".console-error-level", "No breakpoint was set: depot", "dlv attach")
	c.settle()
	c.screenshot("go-breakpoint")
	c.noErrors()
}

// TestGoProfiles records a CPU profile and takes a heap snapshot of a Go program
// in its own target, as a person does.
func TestGoProfiles(t *testing.T) {
	i, depot := startDepot(t)
	var address string
	poll(t, "the program's node target is listed", func() (bool, string) {
		var list []struct{ Type, Title, DevtoolsFrontendURL string }
		data := fetch(t, i.HTTP()+"/json/list")
		if err := json.Unmarshal(data, &list); err != nil {
			return false, err.Error()
		}
		for _, e := range list {
			if e.Type == "node" {
				address = e.DevtoolsFrontendURL
			}
		}
		return address != "", string(data)
	})
	done := make(chan struct{})
	defer close(done)
	go weigh(depot, done)
	d := &devtools{open(t, browser(t), address)}
	d.waitFor("the DevTools frontend", "#tab-timeline")
	d.settle()
	d.panel("timeline")
	d.click("button, devtools-button", "Record")
	d.waitText("button, devtools-button", "Stop")
	<-time.After(2 * time.Second) // the length of the profile
	d.click("button, devtools-button", "Stop")
	d.click("[role=tab]", "Bottom-up")
	d.waitText(".data-grid, .timeline-tree-view", "weigh")
	d.settle()
	d.screenshot("go-profile")

	d.panel("heap-profiler")
	// The button is there before it does anything.
	d.poll("a snapshot with parcels", func() (bool, string) {
		if seen := d.texts(".heap-snapshot-view, .data-grid"); strings.Contains(strings.Join(seen, " "), "Parcel") {
			return true, ""
		}
		if rows := d.texts(".profile-tree-sidebar-section, [aria-label^='Heap snapshots']"); len(rows) == 0 && len(d.texts(".heap-snapshot-view")) == 0 {
			d.click("button, devtools-button", "Take snapshot")
		}
		<-time.After(3 * time.Second)
		return false, strings.Join(d.texts(".heap-snapshot-view, .data-grid"), "\n")
	})
	d.settle()
	d.screenshot("go-heap")
	d.noErrors()
}

// weigh keeps a processor busy, so that a profile has something to show.
func weigh(d *Depot, done <-chan struct{}) {
	for total := 0.0; ; {
		select {
		case <-done:
			return
		default:
		}
		for range 100 {
			for _, p := range d.Long[:10000] {
				total += math.Sqrt(p.Weight)
			}
		}
		if math.IsNaN(total) {
			panic("weights are numbers")
		}
		<-time.After(time.Millisecond)
	}
}
