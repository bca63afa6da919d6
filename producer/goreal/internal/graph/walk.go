package graph

import "github.com/natscope/natscope/producer/goreal/internal/mirror"

// Root is an exposed value.
type Root struct {
	Name  string
	Value mirror.Value
}

// Node is one value of the graph.
type Node struct {
	Value mirror.Value
	kind  int
	name  int
	size  int
	edges []edge
}

type edge struct{ kind, name, to int }

// V8's numbers of the kinds of nodes and edges.
const (
	kindArray, kindString, kindObject, kindClosure, kindSynthetic = 1, 2, 3, 5, 9
	edgeElement, edgeProperty, edgeInternal                       = 1, 2, 3
)

// Graph is what can be reached from roots.
type Graph struct {
	Nodes []Node
	// Unread counts values that were not read whole: their guard did not let
	// them, nothing guards a map, or they are too wide.
	Unread int
	// Cut says that there is more than the limit of nodes.
	Cut bool

	limit   int
	ids     map[mirror.Key]int
	strings map[string]int
	texts   []string
}

// maxEdges is how much one value can hold.
const maxEdges = 1_000_000

// Title is how the snapshot calls its root, which tells what it is: not the whole heap.
const Title = "(reachable from what the program exposed)"

// Walk finds everything that can be reached, at most limit values. stop ends it early.
func Walk(roots []Root, limit int, stop func() bool) *Graph {
	g := &Graph{limit: limit, ids: make(map[mirror.Key]int), strings: make(map[string]int)}
	g.add(Node{kind: kindSynthetic, name: g.text("")})
	g.add(Node{kind: kindSynthetic, name: g.text(Title)})
	g.Nodes[0].edges = []edge{{edgeElement, 1, 1}}
	for _, r := range roots {
		if to, ok := g.node(r.Value); ok {
			g.Nodes[1].edges = append(g.Nodes[1].edges, edge{edgeProperty, g.text(r.Name), to})
		}
	}
	for i := 2; i < len(g.Nodes); i++ {
		if i%1024 == 0 && stop() {
			break
		}
		g.expand(i)
	}
	if g.Cut {
		g.Nodes[1].name = g.text(Title + " (and more: it was cut)")
	}
	return g
}

// Slim lets go of everything but the values.
func (g *Graph) Slim() {
	for i := range g.Nodes {
		g.Nodes[i].edges = nil
	}
	g.ids, g.strings, g.texts = nil, nil, nil
}

func (g *Graph) add(n Node) int {
	g.Nodes = append(g.Nodes, n)
	return len(g.Nodes) - 1
}

func (g *Graph) text(s string) int {
	i, ok := g.strings[s]
	if !ok {
		i = len(g.texts)
		g.strings[s] = i
		g.texts = append(g.texts, s)
	}
	return i
}

// node finds or makes the node of a value; false if there are too many.
func (g *Graph) node(v mirror.Value) (int, bool) {
	k, ok := v.Place()
	if !ok {
		return 0, false
	}
	if i, ok := g.ids[k]; ok {
		return i, true
	}
	if len(g.Nodes) >= g.limit {
		g.Cut = true
		return 0, false
	}
	shape, name, size := v.Node()
	kind := map[mirror.Shape]int{mirror.ShapeObject: kindObject, mirror.ShapeArray: kindArray, mirror.ShapeString: kindString, mirror.ShapeClosure: kindClosure}[shape]
	i := g.add(Node{Value: v, kind: kind, name: g.text(name), size: size})
	g.ids[k] = i
	return i, true
}

func (g *Graph) expand(i int) {
	edges, more := g.Nodes[i].Value.Edges(maxEdges)
	if more {
		g.Unread++
	}
	for _, e := range edges {
		to, ok := g.node(e.To)
		if !ok {
			continue
		}
		x := edge{edgeProperty, 0, to}
		switch {
		case e.Key:
			x.kind, x.name = edgeInternal, g.text(e.Name)
		case e.Name == "":
			x.kind, x.name = edgeElement, e.Index
		default:
			x.name = g.text(e.Name)
		}
		g.Nodes[i].edges = append(g.Nodes[i].edges, x)
	}
}

// ID is the number of a node in the snapshot, by which DevTools asks for it.
func ID(node int) int { return 2*node + 1 }

// NodeOfID is the reverse of ID.
func NodeOfID(id int) int { return (id - 1) / 2 }
