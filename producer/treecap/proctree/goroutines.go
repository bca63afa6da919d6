package proctree

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"

	"github.com/natscope/natscope/producer/treecap"
)

const (
	// maxTraced is how many goroutines are read by stopping the program.
	maxTraced = 500
	// maxTrace is how large the text of that gets, in bytes.
	maxTrace = 2 << 20
	// maxProfiled is how many goroutines are read at all: about 26 MB of stacks.
	maxProfiled = 100000
	// maxShown is how many groups are shown.
	maxShown = 200
)

// goroutines shows the groups of goroutines.
type goroutines struct {
	node  *treecap.Node
	nodes map[group]*treecap.Node
	// how says what the site of the groups is.
	how string
	// buf and records are kept from one reading to the next.
	buf     []byte
	records []runtime.StackRecord
}

func newGoroutines(parent *treecap.Node) *goroutines {
	return &goroutines{node: parent.Add("goroutines"), nodes: make(map[group]*treecap.Node)}
}

func (g *goroutines) refresh() {
	n := runtime.NumGoroutine()
	g.node.Set("count", n)
	c := newCensus()
	switch {
	case n <= maxTraced && g.trace(c, n):
		g.show(c, "createdBy")
	case n <= maxProfiled && g.profile(c, n):
		g.show(c, "startedIn")
	default:
		g.show(newCensus(), "")
		g.node.Set("more", fmt.Sprintf("%d goroutines are too many to look at", n))
	}
}

// trace reads about n goroutines from their traces; false when those are too long.
func (g *goroutines) trace(c *census, n int) bool {
	for want := max(64<<10, n<<11); ; want *= 2 {
		if len(g.buf) < want {
			g.buf = make([]byte, min(want, maxTrace))
		}
		if got := runtime.Stack(g.buf, true); got < len(g.buf) {
			c.parse(g.buf[:got])
			return true
		}
		if len(g.buf) == maxTrace {
			return false
		}
	}
}

// profile reads about n goroutines from the profile; false when they became too many meanwhile.
func (g *goroutines) profile(c *census, n int) bool {
	for range 3 {
		if want := n + n/8 + 64; len(g.records) < want {
			g.records = make([]runtime.StackRecord, want)
		}
		var ok bool
		if n, ok = runtime.GoroutineProfile(g.records); ok {
			c.count(g.records[:n])
			return true
		}
	}
	return false
}

// show brings the nodes in line with a census, the largest groups first. how says
// what the groups' site is.
func (g *goroutines) show(c *census, how string) {
	keys := make([]group, 0, len(c.groups))
	for k := range c.groups {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b group) int {
		return cmp.Or(cmp.Compare(c.groups[b].count, c.groups[a].count), cmp.Compare(a.site, b.site), cmp.Compare(a.loc, b.loc), cmp.Compare(a.state, b.state))
	})
	more := c.other
	for _, k := range keys[min(len(keys), maxShown):] {
		more += c.groups[k].count
		delete(c.groups, k)
	}
	for k, n := range g.nodes {
		if c.groups[k] == nil || how != g.how {
			n.Remove()
			delete(g.nodes, k)
		}
	}
	g.how = how
	for _, k := range keys[:min(len(keys), maxShown)] {
		n := g.nodes[k]
		if n == nil {
			n = g.node.Add("group", treecap.Loc(k.loc), treecap.Attr(how, k.site), treecap.Attr("state", k.state))
			g.nodes[k] = n
		}
		s := c.groups[k]
		n.Set("count", s.count)
		n.Set("at", s.where())
		if s.longest > 0 {
			n.Set("longest", s.longest)
		} else {
			n.Unset("longest")
		}
	}
	if more > 0 {
		g.node.Set("more", fmt.Sprintf("%d goroutines of other groups", more))
	} else {
		g.node.Unset("more")
	}
}
