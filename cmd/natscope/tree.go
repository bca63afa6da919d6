package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/natscope/natscope/query"
)

func newTree() *cobra.Command {
	var f askFlags
	var watch bool
	var q query.TreeRequest
	c := f.command("tree source|node", "Show what a program is made of", `Shows the tree of a program, or what is below one of its nodes: components, workers,
connections, routes. What does not fit is counted; ask for one of the nodes to see more.`, cobra.ExactArgs(1), func(a *asker, args []string) error {
		q := q
		if isNode(args[0]) {
			q.From = query.NodeID(args[0])
		} else {
			q.Source = args[0]
		}
		if watch {
			source := args[0]
			if n, err := q.From.Parse(); err == nil {
				source = string(n.Source)
			}
			return a.again([]string{source}, []string{query.EventCommit, query.EventSource}, func() error { return a.tree(q) })
		}
		return a.tree(q)
	})
	c.ValidArgsFunction = f.sourceNames
	fl := c.Flags()
	fl.BoolVarP(&watch, "watch", "w", false, "print again whenever the tree changes")
	fl.IntVarP(&q.Depth, "depth", "d", 0, "how many levels to show (default: as many as fit)")
	fl.IntVar(&q.Nodes, "nodes", query.DefaultTreeNodes, "how many nodes to show, at most 20000")
	fl.BoolVar(&q.Values, "values", false, "show the values of the nodes, too")
	return c
}

// isNode reports whether an argument is the id of a node, and not the name of a source.
func isNode(s string) bool {
	_, err := query.NodeID(s).Parse()
	return err == nil
}

func (a *asker) tree(q query.TreeRequest) error {
	q.Bytes = query.MaxTreeBytes
	t, err := ask(a, a.Tree, q)
	if err != nil {
		return err
	}
	if a.json {
		return a.value(t)
	}
	if len(t.Nodes) == 0 {
		a.printf("%s has no tree.\n", harmless(t.Name, false))
		return nil
	}
	if !t.Live {
		a.printf("%s\n", a.paint(dim, "The program is not connected; this is its last state."))
	}
	a.nodes(t.Nodes)
	if t.Cut > 0 {
		a.printf("%s\n", a.paint(dim, fmt.Sprintf("%d of %d nodes; natscope tree with the id of a node shows what is below it.", len(t.Nodes), t.Total)))
	}
	if t.Truncated {
		a.printf("%s\n", a.paint(yellow, "The program itself left branches out: its tree is over the limits."))
	}
	return nil
}

// node prints one node in a line, its values below it.
func (a *asker) node(n *query.Node) {
	indent := strings.Repeat("  ", n.Depth)
	a.printf("%s%s%s\n", indent, a.nodeLine(n), a.paint(dim, "  "+shortID(n.ID)))
	for _, v := range n.Values {
		flag := ""
		if v.Writable {
			flag = a.paint(dim, " (can be edited)")
		}
		a.printf("%s    %s = %s%s\n", indent, a.paint(blue, harmless(v.Name, false)), harmless(v.Preview, false), flag)
	}
}

// nodes prints nodes of a tree, and behind the last child that is shown how many there are besides.
func (a *asker) nodes(nodes []query.Node) {
	var open []*query.Node
	close := func(depth int) {
		for len(open) > 0 && open[len(open)-1].Depth >= depth {
			n := open[len(open)-1]
			open = open[:len(open)-1]
			if left := n.Children - n.Shown; left > 0 {
				a.printf("%s  %s\n", strings.Repeat("  ", n.Depth), a.paint(dim, "… "+strconv.Itoa(left)+" more"))
			}
		}
	}
	for i := range nodes {
		close(nodes[i].Depth)
		a.node(&nodes[i])
		open = append(open, &nodes[i])
	}
	close(0)
}

// nodeLine is a node in one line without its id.
func (a *asker) nodeLine(n *query.Node) string {
	out := a.paint(magenta, harmless(n.Name, false))
	if n.Kind != "" && n.Kind != n.Name {
		out += " " + a.paint(dim, harmless(n.Kind, false))
	}
	for _, at := range n.Attrs {
		out += " " + a.paint(yellow, harmless(at.Name, false)+"=") + harmless(attrText(at.Value), false)
	}
	if n.Text != "" {
		out += " " + harmless(cutTo(n.Text, 100), false)
	}
	return out
}

// attrText quotes a value of an attribute where it needs it.
func attrText(s string) string {
	if s == "" || strings.ContainsAny(s, " \t\n\"") {
		return strconv.Quote(cutTo(s, 100))
	}
	return cutTo(s, 100)
}

// shortID is a node's id without the stream, for people to type.
func shortID(id query.NodeID) string {
	short, _, _ := strings.Cut(string(id), ".")
	return short
}

func newNode() *cobra.Command {
	var f askFlags
	return f.command("node id", "Show one node with its values and changes", `Shows everything that is known of one node: where it is, its attributes and values,
and what changed of it lately. Ids are those that tree, find and history print.`, cobra.ExactArgs(1), func(a *asker, args []string) error {
		n, err := ask(a, a.Node, query.NodeRequest{ID: query.NodeID(args[0])})
		if err != nil {
			return err
		}
		if a.json {
			return a.value(n)
		}
		a.printf("%s\n%s\n", a.paint(dim, harmless(n.Path, false)), a.nodeLine(&n.Node))
		if !n.Live {
			a.printf("%s\n", a.paint(dim, "The program is not connected; this is its last state."))
		}
		if n.Loc != "" {
			a.printf("  at %s\n", harmless(n.Loc, false))
		}
		for _, v := range n.Values {
			a.printf("  %s = %s\n", a.paint(blue, harmless(v.Name, false)), harmless(v.Preview, false))
		}
		for _, ch := range n.Changes {
			a.printf("  %s  %s\n", a.paint(dim, clock(ch.Time)), a.changeText(&ch.Change))
		}
		return nil
	})
}

// find asks until everything was searched, or as many are found as were asked for.
func (a *asker) find(q query.FindRequest) (query.FindAnswer, error) {
	var all query.FindAnswer
	limit := q.Limit
	for {
		x, err := ask(a, a.FindNodes, q)
		if err != nil {
			return all, err
		}
		all.Nodes, all.Next = append(all.Nodes, x.Nodes...), x.Next
		if q.Limit = limit - len(all.Nodes); x.Next == "" || q.Limit <= 0 {
			return all, nil
		}
		q.After = x.Next
	}
}

func newFind() *cobra.Command {
	var f askFlags
	var q query.FindRequest
	var sources []string
	c := f.command("find [text]", "Find nodes in the trees of all programs", `Finds nodes by a text in their names, attributes, texts and values, or by an
expression: natscope find --filter "kind == 'worker' && attrs.state == 'stuck'".
The exit code is 3 when nothing is found.`, cobra.MaximumNArgs(1), func(a *asker, args []string) error {
		q := q
		q.Sources = sources
		if len(args) > 0 {
			q.Text = args[0]
		}
		if q.Text == "" && q.Filter == "" {
			return usageError(errors.New("say what to find: a text, or --filter with an expression"))
		}
		found, err := a.find(q)
		if err != nil {
			return err
		}
		if a.json {
			if err := a.value(found); err != nil {
				return err
			}
		} else {
			for i := range found.Nodes {
				n := &found.Nodes[i]
				a.printf("%s  %s\n  %s\n", a.paint(cyan, shortID(n.ID)), a.nodeLine(&n.Node), a.paint(dim, harmless(n.Path, false)))
			}
			if found.Next != "" {
				a.printf("%s\n", a.paint(dim, "There are more; use --limit."))
			}
		}
		if len(found.Nodes) == 0 {
			return errNothing
		}
		return nil
	})
	fl := c.Flags()
	fl.StringArrayVar(&sources, "source", nil, "only in this source (repeatable; * stands for any text)")
	fl.StringVar(&q.Filter, "filter", "", "an expression that nodes must fulfil; docs/query.md has the language")
	fl.IntVarP(&q.Limit, "limit", "n", query.DefaultLimit, "how many nodes to show")
	fl.BoolVar(&q.Values, "values", false, "with -o json: the values of the nodes, too")
	_ = c.RegisterFlagCompletionFunc("source", f.sourceNames) // It fails only for a flag that is not there.
	return c
}
