package agent

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/natscope/natscope/query"
)

// tool is one verb as agents call it.
type tool struct {
	name, verb string
	// more is what its description says beyond the verb's.
	more string
	// defaults are arguments that agents get when they give none: less than programs get.
	defaults map[string]any
	// less says how to ask for less.
	less string
	// show makes the text of an answer; nil means JSON.
	show func(answer any) string
}

// filterHelp tells of the filter language, with what it is about.
func filterHelp(fields string) string {
	return "filter is an expression over " + fields + ", with ==, !=, <, >, &&, ||, !, contains, startsWith, endsWith, matches (a regular expression) and in; texts stand in quotes."
}

const requestFields = "method, url, host, path, route, status, state, failed, error, type, mime, direction (in or out), duration (milliseconds), bytes, trace, source, age (seconds)"

var tools = []*tool{
	{name: "list_sources", verb: "sources", defaults: map[string]any{"limit": 50}, less: "use a smaller limit, or name the sources"},
	{
		name: "read_tree", verb: "tree", defaults: map[string]any{"nodes": 120, "bytes": 24 << 10}, show: showTree, less: "use fewer nodes, or leave values away",
		more: "The answer is an outline: name, kind, attributes, and the id in brackets, which is the from of a closer look.",
	},
	{
		name: "find_nodes", verb: "find", defaults: map[string]any{"limit": 20}, less: "use a smaller limit, or leave values away",
		more: filterHelp("name, kind, text, attrs.<name> (texts), values.<name>, loc, children, source"),
	},
	{name: "inspect_node", verb: "node", less: "read single values with read_values"},
	{name: "read_values", verb: "values", less: "name a value with path"},
	{name: "list_requests", verb: "requests", defaults: map[string]any{"limit": 20}, less: "use a smaller limit", more: filterHelp(requestFields)},
	{name: "inspect_request", verb: "request", less: "read its bodies with read_body"},
	{name: "read_body", verb: "body", defaults: map[string]any{"limit": 8 << 10}, less: "use a smaller limit", more: "When more is true, ask again with offset = offset + length."},
	{
		name: "read_console", verb: "console", defaults: map[string]any{"limit": 40}, less: "use a smaller limit, or leave values and stack away",
		more: filterHelp("text, level, type, logger, trace, loc, source, age (seconds)"),
	},
	{name: "read_history", verb: "history", defaults: map[string]any{"limit": 10}, less: "use a smaller limit, or name a node"},
	{name: "list_faults", verb: "faults", defaults: map[string]any{"limit": 20}, less: "use a smaller limit"},
	{name: "search", verb: "search", defaults: map[string]any{"limit": 10}, less: "use a smaller limit, or name kinds", more: filterHelp("the fields of all kinds, and what: request, console, node or value")},
	{
		name: "watch", verb: "watch", defaults: map[string]any{"last": -1, "waitMs": 5000}, less: "name kinds or sources",
		more: "Call it once to get a mark, do something, then call it with after = next to see what that caused.",
	},
	{name: "highlight_node", verb: "highlight", less: "name one node"},
	{
		name: "evaluate", verb: "evaluate", less: "leave byValue away, or evaluate a part of it",
		more: "It is audited. Say pure = true when you only want to look: what could change anything is refused then.",
	},
	{name: "edit_value", verb: "edit", less: "edit a part of it", more: "It is audited. inspect_node says which values can be edited, and shows afterwards what became of it."},
}

// showTree is a tree as an outline.
func showTree(answer any) string {
	t, ok := answer.(query.TreeAnswer)
	if !ok {
		return fmt.Sprint(answer)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s (source %s): %d nodes", t.Name, t.Source, t.Total)
	if !t.Live {
		b.WriteString(", not connected: this is its last state")
	}
	if t.Truncated {
		b.WriteString(", of which the program itself left some out")
	}
	b.WriteByte('\n')
	for i := range t.Nodes {
		n := &t.Nodes[i]
		indent := strings.Repeat("  ", n.Depth)
		b.WriteString(indent + "- " + word(n.Name))
		if n.Kind != "" {
			b.WriteString(" (" + word(n.Kind) + ")")
		}
		for _, a := range n.Attrs {
			b.WriteString(" " + word(a.Name) + "=" + strconv.Quote(a.Value))
		}
		if n.Text != "" {
			b.WriteString(" text=" + strconv.Quote(n.Text))
		}
		b.WriteString(" [" + string(n.ID) + "]")
		if n.Shown < n.Children {
			fmt.Fprintf(&b, " (%d of %d children shown)", n.Shown, n.Children)
		}
		b.WriteByte('\n')
		for _, v := range n.Values {
			b.WriteString(indent + "    " + word(v.Name) + " = " + v.Preview)
			if v.Writable {
				b.WriteString(" (can be edited)")
			}
			b.WriteByte('\n')
		}
	}
	if t.Cut > 0 {
		fmt.Fprintf(&b, "%d nodes have children that are not shown: read_tree with from = their id shows them.\n", t.Cut)
	}
	return b.String()
}

// word keeps a name from looking like something else in an outline.
func word(s string) string {
	if strings.ContainsAny(s, " \n\t\"[]()=") || s == "" {
		return strconv.Quote(s)
	}
	return s
}
