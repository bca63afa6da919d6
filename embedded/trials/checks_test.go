package trials

import (
	"fmt"
	"slices"
	"testing"

	"github.com/natscope/natscope/subjects/tree"
)

// recorder is a test that only notes that it failed.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

// TestChecksCanFail makes sure that the comparisons of the trials see what they are there to see.
func TestChecksCanFail(t *testing.T) {
	for _, c := range []struct {
		name                string
		got                 []uint64
		step, last, dropped uint64
		good                bool
	}{
		{"all", []uint64{1, 2, 3}, 1, 3, 0, true},
		{"every second", []uint64{2, 4}, 2, 5, 0, true},
		{"dropped and counted", []uint64{1, 4}, 1, 4, 2, true},
		{"lost", []uint64{1, 3}, 1, 3, 0, false},
		{"lost at the end", []uint64{1, 2}, 1, 3, 0, false},
		{"lost more than was counted", []uint64{1}, 1, 4, 2, false},
		{"counted more than was lost", []uint64{1, 2, 3}, 1, 3, 1, false},
		{"twice", []uint64{1, 2, 2, 3}, 1, 3, 0, false},
		{"out of order", []uint64{1, 3, 2}, 1, 3, 0, false},
		{"nothing", nil, 1, 1, 0, false},
	} {
		r := &recorder{TB: t}
		series(r, c.name, c.got, c.step, c.last, c.dropped)
		if (len(r.errors) == 0) != c.good {
			t.Errorf("%s: %q", c.name, r.errors)
		}
	}
	if got := missingOf([]uint64{2, 6}, 2, 9); !slices.Equal(got, []uint64{4, 8}) {
		t.Errorf("missing: %v", got)
	}
	for _, c := range [][2][]string{{{"a"}, {"b"}}, {{"a"}, nil}, {nil, {"a"}}, {{"a", "b"}, {"b", "a"}}} {
		if differ(c[0], c[0]) != "" || differ(c[0], c[1]) == "" {
			t.Errorf("%q and %q", c[0], c[1])
		}
	}
	before := map[string]tree.BackendNodeID{"a": 1, "b": 2}
	for _, after := range []map[string]tree.BackendNodeID{{"a": 1}, {"a": 1, "b": 3}, {"a": 1, "b": 2, "c": 3}} {
		if differentNodes(before, before) != "" || differentNodes(before, after) == "" {
			t.Errorf("%v and %v", before, after)
		}
	}
}
