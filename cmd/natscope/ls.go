package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/natscope/natscope/query"
)

func newLs() *cobra.Command {
	var f askFlags
	var watch bool
	var state string
	c := f.command("ls [source...]", "List the programs", `Lists the programs of a space: whether they live, and how much is known of each.
Sources are named by id, by name, or by a pattern such as 'orders*'.`, cobra.ArbitraryArgs, func(a *asker, args []string) error {
		q := query.SourcesRequest{Sources: args, State: state}
		if watch {
			return a.again(args, []string{query.EventSource}, func() error { return a.ls(q) })
		}
		return a.ls(q)
	})
	c.ValidArgsFunction = f.sourceNames
	c.Flags().BoolVarP(&watch, "watch", "w", false, "print again whenever a program comes, goes or changes")
	c.Flags().StringVar(&state, "state", "", "only connected or disconnected programs")
	return c
}

func (a *asker) ls(q query.SourcesRequest) error {
	var all query.SourcesAnswer
	for {
		x, err := ask(a, a.Sources, q)
		if err != nil {
			return err
		}
		x.Sources = append(all.Sources, x.Sources...)
		if all = x; all.Next == "" {
			break
		}
		q.After = all.Next
	}
	if a.json {
		return a.value(all)
	}
	if all.Waiting != "" {
		a.printf("%s\n", a.paint(yellow, "This may be old: the gateway waits for "+harmless(all.Waiting, false)+"."))
	}
	if len(all.Sources) == 0 {
		a.printf("No programs in space %s yet. Start one with a producer; natscope doctor says what is missing.\n", all.Space)
		return nil
	}
	t := a.table(1, "SOURCE", "NAME", "KIND", "STATE", "RUNTIME", "NODES", "REQUESTS", "FAILED", "LOGS", "ERRORS", "FAULTS", "LOST")
	for _, s := range all.Sources {
		st := cell{s.State, green}
		if s.State != query.StateConnected {
			st.style = dim
		}
		t.add(cell{string(s.ID), cyan}, cell{s.Name, plainStyle}, cell{s.Kind, plainStyle}, st, cell{s.Runtime, plainStyle},
			cell{count(s.Nodes), plainStyle}, cell{count(s.Requests), plainStyle}, cell{count(s.Failed), red}, cell{count(s.Messages), plainStyle},
			cell{count(s.Errors), red}, cell{count(s.Faults), yellow}, cell{count(s.Lost), yellow})
	}
	t.print()
	return nil
}

// again prints, and prints again whenever something happened that kinds name.
// On a terminal each print takes the place of the one before.
func (a *asker) again(sources, kinds []string, print func() error) error {
	clear := func() {
		if a.terminal && !a.json {
			a.printf("\x1b[H\x1b[2J")
		}
	}
	after := query.Now
	for {
		// The mark comes first: what happens while this prints is printed next.
		m, err := ask(a, a.Watch, query.WatchRequest{Sources: sources, Kinds: kinds, After: after, Last: -1})
		if err != nil {
			return err
		}
		clear()
		if err := print(); err != nil {
			return err
		}
		if a.err != nil {
			return a.err
		}
		for {
			if m, err = a.Watch(a.ctx, query.WatchRequest{Sources: sources, Kinds: kinds, After: m.Next, WaitMS: 20_000}); err != nil {
				return err
			}
			if len(m.Events) > 0 {
				break
			}
			if a.ctx.Err() != nil {
				return nil
			}
		}
		after = m.Next
		if !a.terminal && !a.json {
			fmt.Fprintln(a.w)
		}
	}
}
