package natstest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects/tree"
)

// Dump writes down everything that a fold of records holds, one fact a line, so
// that two of them can be compared. Presence is left out: it is no part of the fold.
func Dump(t testing.TB, s *fold.Space) string {
	t.Helper()
	var b strings.Builder
	for _, src := range s.Sources() {
		line(t, &b, "source", src.ID, src.Element, src.Generation, src.Covered, src.LastT, src.Late, src.Unknown, src.FaultCount)
		line(t, &b, "life", src.Life)
		line(t, &b, "planes", src.Planes)
		for _, f := range src.Faults {
			line(t, &b, "fault", f)
		}
		line(t, &b, "tree", src.Tree.Profile, src.Tree.Revision, src.Tree.Registry, src.Tree.Truncated, src.Tree.Commit, src.Tree.Detached, src.Tree.Len())
		if src.Tree.Root != nil {
			src.Tree.Root.Walk(func(e *tree.Entry) bool {
				if src.Tree.Backend(e.Backend) != e {
					t.Errorf("node %d of %s is not found by its id", e.Backend, src.ID)
				}
				line(t, &b, strings.Repeat(" ", e.Depth())+"node", e.Backend, e.Node, len(e.Children))
				return true
			})
		}
		line(t, &b, "history", src.Tree.History.Count, src.Tree.History.Dropped)
		for _, c := range src.Tree.History.Commits {
			line(t, &b, "commit", c)
		}
		line(t, &b, "requests", src.Net.Started, src.Net.Evicted)
		for _, q := range src.Net.Requests {
			if src.Net.Get(q.Generation, q.ID()) != q {
				t.Errorf("request %s of %s is not found by its id", q.ID(), src.ID)
			}
			line(t, &b, "request", q)
		}
		line(t, &b, "console", src.Console.Count, src.Console.Evicted)
		for _, e := range src.Console.Entries {
			line(t, &b, "entry", e)
		}
	}
	return b.String()
}

func line(t testing.TB, b *strings.Builder, what string, values ...any) {
	t.Helper()
	b.WriteString(what)
	for _, v := range values {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteByte(' ')
		b.Write(data)
	}
	b.WriteByte('\n')
}

// Diff returns the first lines in which two dumps differ, or nothing.
func Diff(want, got string) string {
	if want == got {
		return ""
	}
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range w {
		if i >= len(g) || w[i] != g[i] {
			have := "nothing more"
			if i < len(g) {
				have = g[i]
			}
			return fmt.Sprintf("line %d of %d (got %d):\nwant %.600s\ngot  %.600s", i+1, len(w), len(g), w[i], have)
		}
	}
	return fmt.Sprintf("%d lines more than wanted, the first: %.600s", len(g)-len(w), g[len(w)])
}
