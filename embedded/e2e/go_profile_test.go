package e2e

import (
	"strings"
	"testing"

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
