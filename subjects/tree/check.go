package tree

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/natscope/natscope/subjects/value"
)

// The most of one node. What fits is smaller than a frame, so that every node
// of a tree can travel again in a snapshot of many records.
const (
	// MaxAttrs is how many attributes a node may have.
	MaxAttrs = 256
	// MaxValues is how many values a node may have.
	MaxValues = 1000
	// MaxNodeBytes is how large a node may be as JSON, without its children.
	MaxNodeBytes = 448 << 10
)

// checker refuses subtrees that break the rules of their profile.
type checker struct {
	profile Profile
	limits  Limits
	// taken collects the nodes of the subtree.
	taken map[NodeID]*Node
	// exists holds the nodes of the tree that the subtree joins.
	exists map[NodeID]*Entry
	// cordis holds what only the cordis profile asks for; nil for others.
	cordis *cordisRules
}

// checkerOf returns a checker for a whole tree.
func checkerOf(p Profile, limits Limits) *checker {
	c := &checker{profile: p, limits: limits.of(p), taken: make(map[NodeID]*Node)}
	if p == ProfileCordis {
		c.cordis = newCordisRules(nil)
	}
	return c
}

// root checks a whole tree.
func (c *checker) root(n *Node) error {
	if c.cordis != nil && n.Kind != KindContext {
		return fmt.Errorf("%w: kind of the root %d is %.40q, a cordis tree begins with a %s", ErrPayload, n.ID, n.Kind, KindContext)
	}
	return c.node(n, 0)
}

// node checks a subtree whose parent is on the given level.
func (c *checker) node(n *Node, above int) error {
	level := above + rise(c.profile, n.Kind)
	switch {
	case n.ID == 0:
		return fmt.Errorf("%w: a node has no id", ErrPayload)
	case c.taken[n.ID] != nil || c.exists[n.ID] != nil:
		return fmt.Errorf("%w: node %d is there twice", ErrPayload, n.ID)
	case n.Name == "":
		return fmt.Errorf("%w: node %d has no name", ErrPayload, n.ID)
	case c.limits.Depth > 0 && level > c.limits.Depth:
		return fmt.Errorf("%w: node %d is %d levels deep, the limit is %d", ErrLimit, n.ID, level, c.limits.Depth)
	case c.limits.Nodes > 0 && len(c.taken)+len(c.exists) >= c.limits.Nodes:
		return fmt.Errorf("%w: more than %d nodes", ErrLimit, c.limits.Nodes)
	}
	if err := c.content(n, nil); err != nil {
		return err
	}
	if c.cordis != nil {
		if err := checkFamily(n); err != nil {
			return err
		}
	}
	c.taken[n.ID] = n
	for i := range n.Children {
		if err := c.node(&n.Children[i], level); err != nil {
			return err
		}
	}
	return nil
}

// content checks what a node carries beside its children. old is the entry that the node updates, if it does.
func (c *checker) content(n *Node, old *Entry) error {
	if c.cordis != nil {
		if err := c.cordis.content(n, old); err != nil {
			return err
		}
	}
	return checkContent(n)
}

// rise says how many levels a node is below its parent. A Fiber and the Context
// that it owns share a level, since they are one plugin.
func rise(p Profile, kind string) int {
	if p == ProfileCordis && kind == KindFiber {
		return 0
	}
	return 1
}

// level returns the level of an entry, by the rules of the tree's profile.
func (s *State) level(e *Entry) int {
	n := 0
	for ; e != nil; e = e.Parent {
		n += rise(s.Profile, e.Kind)
	}
	return n
}

// height returns how many levels a subtree takes, by the rules of the tree's profile.
func (s *State) height(e *Entry) int {
	h := 0
	for _, c := range e.Children {
		h = max(h, s.height(c))
	}
	return h + rise(s.Profile, e.Kind)
}

// checkContent refuses nodes that are too large or whose values are none. It
// brings values to the form in which they are stored and compared.
func checkContent(n *Node) error {
	switch {
	case len(n.Attrs) > MaxAttrs:
		return fmt.Errorf("%w: node %d has %d attrs, the limit is %d", ErrLimit, n.ID, len(n.Attrs), MaxAttrs)
	case len(n.Values) > MaxValues:
		return fmt.Errorf("%w: node %d has %d values, the limit is %d", ErrLimit, n.ID, len(n.Values), MaxValues)
	}
	if field, size := n.size(); size > MaxNodeBytes {
		return fmt.Errorf("%w: node %d has %d bytes, the limit is %d; most of them are in %s", ErrLimit, n.ID, size, MaxNodeBytes, field)
	}
	if err := checkValues(n); err != nil {
		return err
	}
	for i, name := range n.Writable {
		if _, ok := n.Values[name]; !ok {
			return fmt.Errorf("%w: node %d: writable names %.40q, which is none of its values", ErrPayload, n.ID, name)
		}
		if slices.Contains(n.Writable[:i], name) {
			return fmt.Errorf("%w: node %d: writable names %.40q twice", ErrPayload, n.ID, name)
		}
	}
	return nil
}

// checkValues refuses values that are not encoded values. Of several bad ones
// it names the first by name, so that every reader says the same.
func checkValues(n *Node) error {
	var bad string
	var failed error
	for name, raw := range n.Values {
		clean, err := checkValue(raw)
		switch {
		case err != nil && (failed == nil || name < bad):
			bad, failed = name, err
		case err == nil && len(clean) != len(raw):
			n.Values[name] = clean
		}
	}
	if failed != nil {
		return fmt.Errorf("%w: node %d: values: %.40q: %w", ErrPayload, n.ID, bad, failed)
	}
	return nil
}

// checkValue returns an encoded value without the space between its tokens:
// storage does not keep it, and what was stored must equal what comes again.
func checkValue(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 {
		return nil, fmt.Errorf("%w: it is empty", value.ErrMalformed)
	}
	if raw[0] != '{' && raw[0] != '[' {
		// Any other JSON is a value, and a decoder has read it already.
		return raw, nil
	}
	if _, err := value.Parse(raw); err != nil {
		return nil, err
	}
	if !bytes.ContainsAny(raw, " \t\r\n") {
		return raw, nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return nil, fmt.Errorf("%w: %w", value.ErrMalformed, err)
	}
	return b.Bytes(), nil
}

// size returns about how many bytes a node has as JSON without its children,
// and which field has the most. Each character counts as JSON writes it.
func (n *Node) size() (field string, size int) {
	most := 0
	add := func(name string, bytes int) {
		size += bytes
		if bytes > most {
			field, most = name, bytes
		}
	}
	add("kind", textSize(n.Kind))
	add("name", textSize(n.Name))
	add("text", textSize(n.Text))
	add("object", textSize(string(n.Object)))
	add("loc", textSize(n.Loc))
	bytes := 0
	for _, a := range n.Attrs {
		bytes += textSize(a.Name) + textSize(a.Value) + 4
	}
	add("attrs", bytes)
	bytes = 0
	for name, raw := range n.Values {
		bytes += textSize(name) + len(raw) + 2
	}
	add("values", bytes)
	bytes = 0
	for name, kind := range n.ValueKinds {
		bytes += textSize(name) + textSize(kind) + 2
	}
	add("valueKinds", bytes)
	add("writable", textsSize(n.Writable))
	add("snippets", textsSize(n.Snippets))
	return field, size + 160
}

func textsSize(list []string) int {
	n := 0
	for _, s := range list {
		n += textSize(s) + 1
	}
	return n
}

// textSize returns how many bytes a string takes as JSON, quotes included.
func textSize(s string) int {
	n := len(s) + 2
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t':
			n++
		case c < ' ' || c == '<' || c == '>' || c == '&':
			n += 5
		case c >= utf8.RuneSelf:
			// U+2028 and U+2029 are written as escapes of six bytes.
			if c == 0xe2 && i+2 < len(s) && s[i+1] == 0x80 && s[i+2]|1 == 0xa9 {
				n += 3
			}
		}
	}
	return n
}
