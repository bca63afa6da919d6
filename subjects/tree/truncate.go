package tree

import "math"

// Truncate cuts a tree down to the limits, in place, and returns how many nodes
// it took away; producers then say that the snapshot is truncated. It removes
// complete trailing branches: of the nodes in document order it keeps the
// first, as many as fit, and of a branch that is too deep it keeps what is not.
// So every node that stays has its parent, and in a tree of ProfileCordis every
// Fiber that stays has its Context. The root always stays. The tree must be
// valid otherwise: nothing else is repaired.
func Truncate(p Profile, root *Node, l Limits) (dropped int) {
	l = l.of(p)
	c := cutter{profile: p, room: l.Nodes, depth: l.Depth}
	if c.room <= 0 {
		c.room = math.MaxInt
	}
	before := count(root)
	c.below(root, rise(p, root.Kind))
	return before - c.kept
}

// cutter walks a tree in document order.
type cutter struct {
	profile Profile
	// room is how many nodes may stay, kept how many do; full says that one found no room.
	room, depth, kept int
	full              bool
}

// keeps reports whether a node below the given level stays, and cuts what is below it.
func (c *cutter) keeps(n *Node, above int) bool {
	level, need := above+rise(c.profile, n.Kind), 1
	deepest := level
	if c.profile == ProfileCordis && n.Kind == KindFiber {
		// Its Context must find room too.
		need, deepest = 2, level+1
	}
	if deepest > c.depth {
		return false
	}
	if c.kept+need > c.room {
		c.full = true
		return false
	}
	c.below(n, level)
	return true
}

// below counts a node that stays and cuts what is below it.
func (c *cutter) below(n *Node, level int) {
	c.kept++
	kept := 0
	for i := range n.Children {
		if c.full {
			break
		}
		if c.keeps(&n.Children[i], level) {
			if i != kept {
				n.Children[kept] = n.Children[i]
			}
			kept++
		}
	}
	clear(n.Children[kept:])
	n.Children = n.Children[:kept]
}

// count returns the number of nodes of a tree of any depth.
func count(root *Node) int {
	total := 0
	todo := []*Node{root}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		total++
		for i := range n.Children {
			todo = append(todo, &n.Children[i])
		}
	}
	return total
}
