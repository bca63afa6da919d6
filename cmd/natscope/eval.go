package main

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/natscope/natscope/query"
)

// errThrew says that an expression threw; what it threw was printed.
var errThrew = errors.New("the expression threw")

func newEval() *cobra.Command {
	var f askFlags
	var q query.EvaluateRequest
	c := f.command("eval source expression...", "Evaluate an expression in a program", `Has a program evaluate an expression, as the Console of DevTools does: JavaScript, also
in Go programs that expose their values. It is audited, save with --pure, which refuses
whatever could change anything. The exit code is 1 when the expression throws.`, cobra.MinimumNArgs(2), func(a *asker, args []string) error {
		q := q
		q.Source, q.Expression = args[0], strings.Join(args[1:], " ")
		q.TimeoutMS = int(f.timeout.Milliseconds())
		q.ByValue = q.ByValue || a.json
		a.timeout += 3e9 // The program is told to stop before the asker gives up.
		r, err := ask(a, a.Evaluate, q)
		if err != nil {
			return err
		}
		switch {
		case a.json:
			err = a.value(r)
		case r.Exception != "":
			a.printf("%s\n", a.paint(red, harmless(r.Exception, true)))
		case q.ByValue && len(r.Value) > 0:
			a.printf("%s\n", harmless(string(r.Value), true))
		default:
			a.printf("%s\n", harmless(r.Text, true))
		}
		if r.Exception != "" {
			return errThrew
		}
		return err
	})
	c.ValidArgsFunction = f.sourceNames
	c.Flags().BoolVar(&q.Pure, "pure", false, "refuse what could change anything, such as calls and assignments")
	c.Flags().BoolVar(&q.ByValue, "by-value", false, "print the whole result as JSON")
	return c
}

func newEdit() *cobra.Command {
	var f askFlags
	return f.command("edit node name value", "Change a value of a node in a program", `Has a program change one value of a node: those that natscope tree --values shows as
editable. The value is JSON; what is no JSON is taken as a text. It is audited.`, cobra.ExactArgs(3), func(a *asker, args []string) error {
		v := json.RawMessage(args[2])
		if !json.Valid(v) {
			v, _ = json.Marshal(args[2]) // A text is always JSON.
		}
		r, err := ask(a, a.Edit, query.EditRequest{ID: query.NodeID(args[0]), Name: args[1], Value: v})
		if err != nil {
			return err
		}
		if a.json {
			return a.value(r)
		}
		a.printf("%s took it.\n", shortID(r.ID))
		return nil
	})
}
