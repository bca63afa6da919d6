package engine

import (
	"context"
	"maps"
	"slices"

	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects/tree"
	"github.com/natscope/natscope/subjects/value"
)

// maxValueBytes is how large the encoding of one value in an answer may be.
const maxValueBytes = 16 << 10

// maxDepth is deeper than any tree.
const maxDepth = 1 << 20

// Tree implements query.API.
func (e *Engine) Tree(ctx context.Context, q query.TreeRequest) (query.TreeAnswer, error) {
	var out query.TreeAnswer
	var err error
	e.view(func(v view) { out, err = v.tree(ctx, q) })
	return out, err
}

func (v view) tree(ctx context.Context, q query.TreeRequest) (query.TreeAnswer, error) {
	src, from, err := v.treeStart(q)
	if err != nil {
		return query.TreeAnswer{}, err
	}
	t := &src.Tree
	out := query.TreeAnswer{
		Source: src.ID, Name: clean(src.Name(), maxURL), Generation: src.Generation, Live: live(src), Profile: t.Profile,
		Revision: t.Revision, Commit: t.History.Count, Truncated: t.Truncated, Total: t.Len(), Nodes: []query.Node{},
	}
	if from == nil {
		return out, nil
	}
	children := from.Children
	if q.After != "" {
		if children, err = v.behind(from, q.After); err != nil {
			return query.TreeAnswer{}, err
		}
	}
	p := picker{
		view: v, src: src, values: q.Values, depth: bound(q.Depth, maxDepth, maxDepth),
		budget: budget{ctx: ctx, left: bound(q.Nodes, query.DefaultTreeNodes, query.MaxTreeNodes)},
		bytes:  bound(q.Bytes, query.DefaultTreeBytes, query.MaxTreeBytes),
		shown:  make(map[*tree.Entry]int), parts: make(map[*tree.Entry]query.Node),
	}
	p.pick(from, children)
	p.list(&out, from, children, 0)
	return out, ctx.Err()
}

// treeStart finds the node that a question begins at, nil for a source without a tree.
func (v view) treeStart(q query.TreeRequest) (*fold.Source, *tree.Entry, error) {
	switch {
	case q.From != "":
		src, e, err := v.node(q.From)
		if err == nil && q.Source != "" && q.Source != string(src.ID) && q.Source != src.Name() {
			err = query.Errorf(query.ErrMalformed, "node %s belongs to %s, not to %.80q; leave source away", q.From, src.ID, q.Source)
		}
		return src, e, err
	case q.After != "":
		return nil, nil, query.Errorf(query.ErrMalformed, "after names a child, so from must name its parent")
	case q.Source == "":
		return nil, nil, query.Errorf(query.ErrMalformed, "give source, the id or name of a source, or from, the id of a node")
	}
	src, err := v.one(q.Source)
	if err != nil {
		return nil, nil, err
	}
	return src, src.Tree.Root, nil
}

// behind returns the children of a node that come after one of them.
func (v view) behind(from *tree.Entry, after query.NodeID) ([]*tree.Entry, error) {
	_, last, err := v.node(after)
	if err != nil {
		return nil, err
	}
	i := slices.Index(from.Children, last)
	if i < 0 {
		return nil, query.Errorf(query.ErrGone, "node %s is not a child of the node to begin at, or not any more; begin again without after", after)
	}
	return from.Children[i+1:], nil
}

// live reports whether the tree of a source is that of a program that can be asked about it.
func live(src *fold.Source) bool { return src.Connected && src.Tree.Root != nil && !src.Tree.Detached }

// node finds the node that an id names. The state's lock is held.
func (v view) node(id query.NodeID) (*fold.Source, *tree.Entry, error) {
	name, err := id.Parse()
	if err != nil {
		return nil, nil, err
	}
	src, err := v.named(name.Source, name.Epoch == 0)
	if err != nil {
		return nil, nil, err
	}
	e := src.Tree.Backend(name.Backend)
	if e == nil || name.Epoch != 0 && name.Epoch != v.epoch {
		return nil, nil, query.Errorf(query.ErrGone, "node %s is not in the tree of %s any more, or never was; read the tree again", id, src.ID)
	}
	return src, e, nil
}

// nodeID returns the id of a node.
func (v view) nodeID(src *fold.Source, e *tree.Entry) query.NodeID {
	return query.NodeName{Source: src.ID, Backend: e.Backend, Epoch: v.epoch}.ID()
}

// picker decides which nodes of a tree an answer has room for, level by level.
type picker struct {
	view
	src    *fold.Source
	values bool
	depth  int
	budget budget
	bytes  int
	// shown says how many of a node's children are picked, parts what is answered of picked nodes.
	shown map[*tree.Entry]int
	parts map[*tree.Entry]query.Node
}

func (p *picker) pick(from *tree.Entry, children []*tree.Entry) {
	if !p.take(from) {
		return
	}
	level := []*tree.Entry{from}
	for depth := 1; depth <= p.depth && len(level) > 0; depth++ {
		var next []*tree.Entry
		for _, parent := range level {
			below := parent.Children
			if parent == from {
				below = children
			}
			for _, c := range below {
				if !p.take(c) {
					return
				}
				p.shown[parent]++
				next = append(next, c)
			}
		}
		level = next
	}
}

func (p *picker) take(e *tree.Entry) bool {
	if !p.budget.spend() {
		return false
	}
	n := p.nodeOf(p.src, e, p.values)
	if p.bytes -= sizeOf(&n); p.bytes < 0 && len(p.parts) > 0 {
		return false
	}
	p.parts[e] = n
	return true
}

// list appends the picked nodes in the order of the document.
func (p *picker) list(out *query.TreeAnswer, e *tree.Entry, children []*tree.Entry, depth int) {
	n, ok := p.parts[e]
	if !ok {
		return
	}
	n.Depth, n.Shown = depth, p.shown[e]
	if n.Shown < len(children) {
		out.Cut++
	}
	out.Nodes = append(out.Nodes, n)
	for _, c := range children[:n.Shown] {
		p.list(out, c, c.Children, depth+1)
	}
}

// sizeOf estimates the JSON of a node.
func sizeOf(n *query.Node) int {
	size := 160 + 2*len(n.ID) + len(n.Name) + len(n.Kind) + len(n.Text) + len(n.Loc)
	for _, a := range n.Attrs {
		size += 8 + len(a.Name) + len(a.Value)
	}
	for i := range n.Values {
		x := &n.Values[i]
		size += 80 + len(x.Name) + len(x.Preview) + len(x.Value)
	}
	return size
}

// nodeOf makes the answer of a node.
func (v view) nodeOf(src *fold.Source, e *tree.Entry, values bool) query.Node {
	out := query.Node{
		ID: v.nodeID(src, e), Name: clean(e.Name, maxURL), Kind: clean(e.Kind, 200), Text: clean(e.Text, maxText), Loc: clean(e.Loc, maxURL), Children: len(e.Children),
	}
	if e.Parent != nil {
		out.Parent = v.nodeID(src, e.Parent)
	}
	for _, a := range e.Attrs {
		out.Attrs = append(out.Attrs, tree.Attr{Name: clean(a.Name, 200), Value: clean(a.Value, maxText)})
	}
	if values {
		out.Values = valuesOf(e, live(src))
	}
	return out
}

// valuesOf makes the answers of a node's values, in the order of their names.
func valuesOf(e *tree.Entry, live bool) []query.Value {
	out := []query.Value{}
	for _, name := range slices.Sorted(maps.Keys(e.Values)) {
		raw := e.Values[name]
		x := query.Value{Name: name, Kind: e.ValueKinds[name], Writable: live && slices.Contains(e.Writable, name), Value: raw}
		if v, err := value.Parse(raw); err == nil {
			x.Preview = value.Preview(v)
		}
		if len(raw) > maxValueBytes {
			x.Value, x.Omitted = nil, len(raw)
		}
		out = append(out, x)
	}
	return out
}
