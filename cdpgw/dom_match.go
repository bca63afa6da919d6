package cdpgw

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
)

// A search finds a node by three ways at once, as Chrome's does: by text, as a
// CSS selector, and as an XPath. What cannot be read as one of the latter two is
// only looked for as text.

const (
	// maxQuery is how many bytes of a query are read as a selector or path.
	maxQuery = 1 << 10
	// matchWait is how long the nodes of a document may be tried.
	matchWait = 3 * time.Second
	// maxSteps is how many nodes the test of one node may look at in the worst case.
	maxSteps = 100_000_000
)

// errTooSlow says that a selector or path is not worth what it would cost.
var errTooSlow = errors.New("it would take too long in a document of this size")

// marks says which nodes of a copy were found.
type marks []bool

// text marks what contains a text: names ("<name" finds elements by the start of
// their name), attributes (name="value", and "value" in quotes for a whole one),
// and texts. Case does not matter.
func (d *docCopy) text(query string, found marks) {
	q := strings.ToLower(query)
	tag, start := strings.CutPrefix(q, "<")
	tag, end := strings.CutSuffix(tag, ">")
	tag = strings.TrimPrefix(tag, "/")
	whole, quoted := unquote(q)
	pair := strings.Contains(q, "=")
	byName := known(func(name string) bool {
		name = strings.ToLower(name)
		return strings.Contains(name, q) || start && tag != "" && (end && name == tag || !end && strings.HasPrefix(name, tag)) ||
			!start && end && tag != "" && strings.HasSuffix(name, tag)
	})
	byAttributeName := known(func(name string) bool { return contains(name, q) })
	byAttribute := func(name, value string) bool {
		return byAttributeName.of(name) || contains(value, q) || quoted && strings.EqualFold(value, whole) || pair && contains(name+`="`+value+`"`, q)
	}
	for i := range d.nodes {
		c := &d.nodes[i]
		switch c.nodeType() {
		case documentNode:
			continue
		case textNode:
			found[i] = found[i] || contains(c.text, q)
			continue
		}
		if byName.of(c.name) {
			found[i] = true
			continue
		}
		for _, a := range c.attrs {
			if byAttribute(a.Name, a.Value) {
				found[i] = true
				break
			}
		}
	}
}

// contains reports whether a text contains another one that is in small letters.
// No letter grows by more than a half when it becomes small.
func contains(text, lower string) bool {
	return 2*len(lower) <= 3*len(text) && strings.Contains(strings.ToLower(text), lower)
}

// names remembers what is true of names. A document has many nodes and few names,
// and mostly that of the node before.
type names[T any] struct {
	f     func(string) T
	all   map[string]T
	last  string
	value T
}

func known[T any](f func(string) T) *names[T] {
	n := &names[T]{f: f, all: make(map[string]T), value: f("")}
	n.all[""] = n.value
	return n
}

func (n *names[T]) of(name string) T {
	if name == n.last {
		return n.value
	}
	v, ok := n.all[name]
	if !ok {
		v = n.f(name)
		n.all[name] = v
	}
	n.last, n.value = name, v
	return v
}

// unquote returns what stands between quotes.
func unquote(q string) (string, bool) {
	if len(q) > 2 && (q[0] == '"' || q[0] == '\'') && q[len(q)-1] == q[0] {
		return q[1 : len(q)-1], true
	}
	return "", false
}

// plainWord reports whether a query is a name and nothing else: as a selector
// and as a path it finds nothing that it does not find as a text.
func plainWord(q string) bool {
	return !strings.ContainsFunc(q, func(r rune) bool { return strings.ContainsRune(" \t\n\"'#.:*[]()>+~,|/@=<$!", r) })
}

// selector compiles a CSS selector.
func selector(query string) (out cascadia.SelectorGroup, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it cannot be read: %v", p)
		}
	}()
	if len(query) > maxQuery {
		return nil, fmt.Errorf("it is longer than %d bytes", maxQuery)
	}
	return cascadia.ParseGroup(query)
}

// css marks, below the node at a place, the elements that a selector matches; at most limit of them.
func (d *docCopy) css(ctx context.Context, query string, below int32, limit int, found marks) error {
	sel, err := selector(query)
	if err != nil {
		return err
	}
	if !d.affordable(query) {
		return errTooSlow
	}
	deadline := time.Now().Add(matchWait)
	kept := mirrors.Get().(*[]html.Node)
	defer mirrors.Put(kept)
	mirror := d.mirror(*kept)
	*kept = mirror
	defer clear(mirror)
	for i := below + 1; i < d.nodes[below].end; i++ {
		if i%512 == 0 && (ctx.Err() != nil || time.Now().After(deadline)) {
			return errTooSlow
		}
		if mirror[i].Type == html.ElementNode && sel.Match(&mirror[i]) {
			found[i] = true
			if limit--; limit == 0 {
				return nil
			}
		}
	}
	return nil
}

// affordable reports whether the test of one node by a selector ends soon. The
// library cannot be stopped, and each combinator makes it look at all ancestors or
// siblings, each :has at all that is below, for each node that it looked at before.
func (d *docCopy) affordable(query string) bool {
	steps := 1.0
	quote, inside := rune(0), 0
	before := ' ' // the last character that is no blank
	blank := false
	for i, r := range query {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
			continue
		case r == '"' || r == '\'':
			quote = r
		case r == '[':
			inside++
		case r == ']':
			inside--
		}
		if inside > 0 {
			continue
		}
		switch {
		case r == ' ' || r == '\t' || r == '\n':
			blank = true
			continue
		case r == '~':
			steps *= float64(d.width)
		case blank && !strings.ContainsRune(">+~,)", r) && !strings.ContainsRune(">+~,(", before):
			steps *= float64(d.depth)
		}
		if r == ':' {
			switch name := strings.ToLower(query[i:]); {
			case strings.HasPrefix(name, ":has"), strings.HasPrefix(name, ":contains"), strings.HasPrefix(name, ":matches"):
				steps *= float64(len(d.nodes))
			case strings.HasPrefix(name, ":nth"), strings.HasPrefix(name, ":only"), strings.HasPrefix(name, ":first"), strings.HasPrefix(name, ":last"):
				steps *= float64(d.width)
			}
		}
		before, blank = r, false
	}
	return steps <= maxSteps
}

// mirrors keeps the memory of mirrors for the next search.
var mirrors = sync.Pool{New: func() any { return new([]html.Node) }}

// mirror returns the document as the library's nodes, at the same places, in
// room, which holds zero nodes, if that is large enough.
func (d *docCopy) mirror(room []html.Node) []html.Node {
	out := room[:min(len(d.nodes), cap(room))]
	if len(out) < len(d.nodes) {
		out = make([]html.Node, len(d.nodes))
	}
	lower, lowerKey := known(strings.ToLower), known(strings.ToLower)
	var attrs []html.Attribute // names are compared in small letters, as selectors have them
	for i := range d.nodes {
		c, m := &d.nodes[i], &out[i]
		switch c.nodeType() {
		case documentNode:
			m.Type = html.DocumentNode
		case textNode:
			m.Type, m.Data = html.TextNode, c.text
		default:
			m.Type, m.Data = html.ElementNode, lower.of(c.name)
			if len(attrs) < len(c.attrs) {
				attrs = make([]html.Attribute, max(4096, len(c.attrs)))
			}
			m.Attr, attrs = attrs[:len(c.attrs):len(c.attrs)], attrs[len(c.attrs):]
			for k, a := range c.attrs {
				m.Attr[k].Key, m.Attr[k].Val = lowerKey.of(a.Name), a.Value
			}
		}
		if int(c.end) > i+1 {
			m.FirstChild = &out[i+1]
		}
		if c.prev >= 0 {
			m.PrevSibling = &out[c.prev]
			m.PrevSibling.NextSibling = m
		}
		if c.parent >= 0 {
			m.Parent = &out[c.parent]
			m.Parent.LastChild = m
		}
	}
	return out
}
