package tree

import "sync"

// The size of a pool of texts.
const (
	// sharedTexts is how many texts a pool remembers.
	sharedTexts = 1024
	// sharedBytes is the longest text that is worth remembering, in bytes.
	sharedBytes = 64
)

// texts lets equal texts of nodes share their memory: large trees are made of
// few kinds of nodes, and every decoded name has memory of its own. It forgets
// a text when another one takes its place, so names that are all different cost
// nothing but the look.
type texts [sharedTexts]string

var textsPool = sync.Pool{New: func() any { return new(texts) }}

// borrowTexts returns a pool, which goes back with free.
func borrowTexts() *texts { return textsPool.Get().(*texts) }

func (t *texts) free() { textsPool.Put(t) }

// one returns a text that equals s.
func (t *texts) one(s string) string {
	if len(s) == 0 || len(s) > sharedBytes {
		return s
	}
	// FNV-1a. Whoever makes texts collide on purpose only loses what they could have shared.
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	p := &t[h%sharedTexts]
	if *p != s {
		*p = s
	}
	return *p
}

func (t *texts) all(list []string) {
	for i := range list {
		list[i] = t.one(list[i])
	}
}

// node makes the texts of n, and of all below it, shared ones. It writes into
// the slices of the nodes, so nobody else may have them yet.
func (t *texts) node(n *Node) {
	n.Kind, n.Name, n.Loc = t.one(n.Kind), t.one(n.Name), t.one(n.Loc)
	for i := range n.Attrs {
		a := &n.Attrs[i]
		a.Name, a.Value = t.one(a.Name), t.one(a.Value)
	}
	t.all(n.Writable)
	t.all(n.Snippets)
	for i := range n.Children {
		t.node(&n.Children[i])
	}
}
