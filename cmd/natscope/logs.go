package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/natscope/natscope/query"
)

func newLogs() *cobra.Command {
	var f listFlags
	var level string
	var since time.Duration
	c := f.command("logs [source...]", "Show log lines, console calls and exceptions", `Shows what programs logged, all in one list in order of time. With -f it goes on with
what comes.`, cobra.ArbitraryArgs, func(a *asker, args []string) error {
		if f.follow {
			if level != "" {
				f.filter = both(f.filter, levelFilter(level))
			}
			if since > 0 {
				f.filter = both(f.filter, fmt.Sprintf("age <= %v", since.Seconds()))
			}
			return a.events(&f, args, query.EventConsole, func(e query.Event) error { return a.logLine(e.Console) })
		}
		var from time.Time
		if since > 0 {
			from = time.Now().Add(-since)
		}
		list, err := newest(&f, args, func(p query.Page) ([]query.ConsoleEntry, query.Paged, error) {
			x, err := ask(a, a.Console, query.ConsoleRequest{Page: p, Level: level, Since: from})
			return x.Entries, x.Paged, err
		})
		if err != nil {
			return err
		}
		if a.json {
			return a.value(list)
		}
		for i := range list {
			if err := a.logLine(&list[i]); err != nil {
				return err
			}
		}
		return nil
	})
	f.registerList(c, 100)
	c.Flags().StringVar(&level, "level", "", "least level: debug, info, warning or error")
	c.Flags().DurationVar(&since, "since", 0, "only lines that are not older, such as 5m")
	return c
}

// levelFilter is the expression for a least level.
func levelFilter(level string) string {
	all := []string{"debug", "info", "warning", "error"}
	for i, l := range all {
		if l == level {
			return "level in ['" + strings.Join(all[i:], "', '") + "']"
		}
	}
	return "level == '" + strings.ReplaceAll(level, "'", "") + "'"
}

func (a *asker) logLine(e *query.ConsoleEntry) error {
	if a.json {
		return a.line(e)
	}
	s := map[string]style{"error": red, "warning": yellow, "debug": dim}[e.Level]
	text := strings.TrimRight(harmless(e.Text, true), "\n")
	// Lines that follow stand below the first.
	text = strings.ReplaceAll(text, "\n", "\n    ")
	a.printf("%s  %s  %s  %s\n", a.paint(dim, clock(e.Time)), a.paint(s, fmt.Sprintf("%-7s", e.Level)), a.paint(cyan, harmless(string(e.Source), false)), a.paint(s, text))
	return a.err
}

func newFaults() *cobra.Command {
	var f listFlags
	c := f.command("faults [source...]", "List what went wrong with the records of programs", `Lists gaps, losses and malformed records: where they are, what is shown is not complete.`,
		cobra.ArbitraryArgs, func(a *asker, args []string) error {
			line := func(x *query.Fault) error {
				if a.json {
					return a.line(x)
				}
				a.printf("%s  %s  %s  %s\n", a.paint(dim, clock(x.Time)), a.paint(cyan, string(x.Source)), a.paint(yellow, x.Kind), harmless(x.Text, false))
				return a.err
			}
			if f.follow {
				return a.events(&f, args, query.EventFault, func(e query.Event) error { return line(e.Fault) })
			}
			list, err := newest(&f, args, func(p query.Page) ([]query.Fault, query.Paged, error) {
				x, err := ask(a, a.Faults, query.FaultsRequest{Page: p})
				return x.Faults, x.Paged, err
			})
			if err != nil {
				return err
			}
			if a.json {
				return a.value(list)
			}
			for i := range list {
				if err := line(&list[i]); err != nil {
					return err
				}
			}
			return nil
		})
	f.registerList(c, 100)
	return c
}

func newHistory() *cobra.Command {
	var f listFlags
	c := f.command("history [source...|node]", "Show what changed in the trees, from what to what", `Shows the commits of the trees in order of time: what came and went, and for each changed
value or attribute what it was and what it became. With the id of a node it shows that
node alone. With -f it goes on with what comes.`, cobra.ArbitraryArgs, func(a *asker, args []string) error {
		var q query.HistoryRequest
		if len(args) == 1 && isNode(args[0]) {
			q.Node, args = query.NodeID(args[0]), nil
			if f.follow {
				return usageError(fmt.Errorf("--follow goes with sources, not with a node"))
			}
		}
		if f.follow {
			return a.events(&f, args, query.EventCommit, func(e query.Event) error { return a.commit(e.Commit) })
		}
		list, err := newest(&f, args, func(p query.Page) ([]query.Commit, query.Paged, error) {
			q.Page = p
			x, err := ask(a, a.History, q)
			return x.Commits, x.Paged, err
		})
		if err != nil {
			return err
		}
		if a.json {
			return a.value(list)
		}
		for i := range list {
			if err := a.commit(&list[i]); err != nil {
				return err
			}
		}
		return nil
	})
	f.registerList(c, 20)
	return c
}

// maxShownChanges is how many changes of a commit people see.
const maxShownChanges = 20

func (a *asker) commit(c *query.Commit) error {
	if a.json {
		return a.line(c)
	}
	note := ""
	if c.Snapshot {
		note = a.paint(dim, "  whole tree")
	}
	a.printf("%s  %s %s%s\n", a.paint(dim, clock(c.Time)), a.paint(cyan, harmless(string(c.Source), false)), a.paint(bold, fmt.Sprintf("commit %d", c.Number)), note)
	shown := c.Changes[:min(len(c.Changes), maxShownChanges)]
	for i := range shown {
		a.printf("  %s  %s\n", a.changeText(&shown[i]), a.paint(dim, shortID(shown[i].Node)))
	}
	if left := len(c.Changes) - len(shown) + c.Left; left > 0 {
		a.printf("  %s\n", a.paint(dim, fmt.Sprintf("… %d more changes", left)))
	}
	return a.err
}

// changeText is a change in one line.
func (a *asker) changeText(c *query.Change) string {
	sign, s := map[string]string{"add": "+", "remove": "-", "move": ">", "update": "~"}[c.Op], map[string]style{"add": green, "remove": red}[c.Op]
	out := a.paint(s, sign+" "+harmless(c.Name, false))
	if c.Nodes > 1 {
		out += a.paint(dim, fmt.Sprintf(" (%d nodes)", c.Nodes))
	}
	switch {
	case c.Symbol != "":
		out += "." + a.paint(blue, harmless(c.Symbol, false))
	case c.Part != "":
		out += " " + a.paint(blue, c.Part)
	}
	if len(c.From) > 0 || len(c.To) > 0 {
		out += ": " + arrow(c.From, c.To)
	}
	return out
}

// arrow shows a value before and after.
func arrow(from, to json.RawMessage) string {
	return harmless(preview(from), false) + " → " + harmless(preview(to), false)
}
