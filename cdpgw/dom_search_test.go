package cdpgw

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/source"
	"github.com/natscope/natscope/subjects/tree"
)

type nodeIDs struct{ NodeIDs []NodeID }

// find searches and returns the names of what was found, in order.
func (c *client) find(query string) string {
	c.t.Helper()
	var r searchResult
	c.call("DOM.performSearch", map[string]any{"query": query, "includeUserAgentShadowDOM": true}, &r)
	if r.ResultCount == 0 {
		return ""
	}
	var ids nodeIDs
	c.call("DOM.getSearchResults", map[string]any{"searchId": r.SearchID, "fromIndex": 0, "toIndex": r.ResultCount}, &ids)
	return c.names(ids.NodeIDs)
}

// names describes nodes by their names, and components by their id too.
func (c *client) names(ids []NodeID) string {
	c.t.Helper()
	var out []string
	for _, id := range ids {
		var d struct{ Node *domNode }
		c.call("DOM.describeNode", map[string]any{"nodeId": id}, &d)
		name := d.Node.NodeName
		if i := slices.Index(d.Node.Attributes, "id"); i >= 0 {
			name += "#" + d.Node.Attributes[i+1]
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

// forest is a space with two hosts and a page whose components are numbered.
func forest(t testing.TB) *memory {
	m := newMemory(t, subjects.Limits{})
	id := func(n int) []tree.Attr {
		return []tree.Attr{{Name: "id", Value: fmt.Sprint(n)}, {Name: "class", Value: "part big"}}
	}
	m.open("a", gen1, source.Descriptor{Name: "a", Kind: source.KindHost})
	m.open("p", gen1, source.Descriptor{Name: "p", Kind: source.KindClient})
	m.open("b", gen1, source.Descriptor{Name: "b", Kind: source.KindHost})
	m.snapshot("a", gen1, 1, &tree.Node{ID: 1, Name: "App", Attrs: id(1), Children: []tree.Node{
		{ID: 2, Name: "Row", Attrs: id(2), Text: "Grüße", Children: []tree.Node{{ID: 3, Name: "Cell", Attrs: append(id(3), tree.Attr{Name: "State", Value: "Open"})}}},
		{ID: 4, Name: "Row", Kind: "row2", Attrs: id(4)},
		{ID: 5, Name: "my-part", Attrs: id(5)},
		{ID: 6, Name: "svelte:self", Attrs: id(6)},
	}})
	m.snapshot("b", gen1, 1, &tree.Node{ID: 1, Name: "App", Attrs: id(7), Children: []tree.Node{{ID: 2, Name: "Row", Attrs: id(8)}}})
	m.snapshot("p", gen1, 1, &tree.Node{ID: 1, Name: "Page", Attrs: id(9), Children: []tree.Node{{ID: 2, Name: "Row", Attrs: id(10)}}})
	return m
}

func TestSearch(t *testing.T) {
	_, server := serve(t, forest(t))
	for query, want := range map[string]string{
		// Text: names, attributes, texts; case does not matter.
		"row": "Row#2 Row#4 Row#8 Row#10", "<row": "Row#2 Row#4 Row#8 Row#10", "<Row>": "Row#2 Row#4 Row#8 Row#10", "</row>": "Row#2 Row#4 Row#8 Row#10",
		"<ro>": "", "ow>": "Row#2 Row#4 Row#8 Row#10", "grüße": "#text", "row2": "Row#4", "my-part": "my_part#5", "GRÜSSE": "",
		`id="10"`: "Row#10", `"10"`: "Row#10", "OPEN": "Cell#3", "<host": "host host", "  open  ": "Cell#3", "nothing": "", "": "", "<": "",
		// CSS.
		"#7": "App#7", `[id="7"]`: "App#7", "host[name]": "host host", "App > Row": "Row#2 Row#4 Row#8", "Page Row": "Row#10", "row + row": "Row#4",
		"Row:has(Cell)": "Row#2", ".part:not(Row)": "App#1 Cell#3 my_part#5 svelte:self#6 App#7 Page#9", "Cell, Page": "Cell#3 Page#9", "[state=Open]": "Cell#3",
		`svelte\:self`: "svelte:self#6", ":root": "workspace", "Row:nth-child(2)": "Row#4",
		// XPath.
		"//Row": "Row#2 Row#4 Row#8 Row#10", "/workspace/host/App/Row[2]": "Row#4", "//Row[@id='8']/..": "App#7", "//Cell/@State": "Cell#3",
		"//Row/text()": "#text", "//*[contains(@class,'part')][@id>8]": "Page#9 Row#10", "//Cell/ancestor::host": "host", "//Row[1] | //Cell": "Row#2 Cell#3 Row#8 Row#10",
		"//Row/following-sibling::*": "Row#4 my_part#5 svelte:self#6", "//svelte:self": "svelte:self#6", "//App/Row[last()]": "Row#4 Row#8", "count(//Row)": "", "//Row[text()='Grüße']": "Row#2",
		// Neither: only text.
		"//Row[": "", "host[": "", "::": "", "//": "", "@@@": "", "(((((": "", ">>": "", "]": "", "Row:unknown": "", "//Row[foo()]": "",
	} {
		c := dial(t, server, "dev")
		c.call("DOM.getDocument", nil, nil)
		if got := c.find(query); got != want {
			t.Errorf("%q finds %q, want %q", query, got, want)
		}
		c.valid()
	}
}

// What is found of a disconnected source, or was removed meanwhile, does not break the results.
func TestSearchResultsThatAreGone(t *testing.T) {
	m := forest(t)
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	c.call("DOM.getDocument", nil, nil)
	var r searchResult
	c.call("DOM.performSearch", map[string]string{"query": "<Row"}, &r)
	m.ops("a", gen1, 2, tree.Op{Op: tree.OpRemove, ID: 2})
	m.Presence("p", false)
	m.Remove("b")
	var ids nodeIDs
	c.call("DOM.getSearchResults", map[string]any{"searchId": r.SearchID, "fromIndex": 0, "toIndex": r.ResultCount}, &ids)
	if len(ids.NodeIDs) != 4 || ids.NodeIDs[0] != 0 || ids.NodeIDs[1] == 0 || ids.NodeIDs[2] != 0 || ids.NodeIDs[3] == 0 {
		t.Errorf("ids %v", ids.NodeIDs)
	}
	c.fails("DOM.getSearchResults", map[string]any{"searchId": r.SearchID, "fromIndex": 1, "toIndex": 9}, codeServer)
	c.fails("DOM.getSearchResults", map[string]any{"searchId": r.SearchID, "fromIndex": -1, "toIndex": 1}, codeServer)
	c.call("DOM.discardSearchResults", map[string]any{"searchId": r.SearchID}, nil)
	c.fails("DOM.getSearchResults", map[string]any{"searchId": r.SearchID, "fromIndex": 0, "toIndex": 1}, codeServer)
	c.valid()
}

// A client that never gives searches back has its oldest ones forgotten.
func TestSearchesAreBounded(t *testing.T) {
	g, server := serve(t, forest(t))
	c := dial(t, server, "dev")
	c.call("DOM.getDocument", nil, nil)
	var first, last searchResult
	c.call("DOM.performSearch", map[string]string{"query": "row"}, &first)
	for range 2 * maxSearches {
		c.call("DOM.performSearch", map[string]string{"query": "row"}, &last)
	}
	c.fails("DOM.getSearchResults", map[string]any{"searchId": first.SearchID, "fromIndex": 0, "toIndex": 1}, codeServer)
	c.call("DOM.getSearchResults", map[string]any{"searchId": last.SearchID, "fromIndex": 0, "toIndex": 1}, nil)
	if n := len(g.hub.all()[0].dom.searches.found); n != maxSearches {
		t.Errorf("%d searches are kept, want %d", n, maxSearches)
	}
}

// The target, not the space, is what is searched.
func TestSearchStaysInTheTarget(t *testing.T) {
	_, server := serve(t, forest(t))
	c := dial(t, server, "dev/b")
	c.call("DOM.getDocument", nil, nil)
	if got := c.find("//Row"); got != "Row#8" {
		t.Errorf("found %q", got)
	}
}

// A selector that would look at everything for everything is refused, and a path
// that does is stopped; the client hears of it and has what the text finds.
func TestSearchThatWouldTakeForEver(t *testing.T) {
	m := grown(t, 100000, 99999)
	g, err := New(Options{State: m})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Close(t.Context()) }()
	s := offline(g, target{space: "dev"})
	defer s.conn.cancel()
	d := &docCopy{}
	s.during(func() { s.copyInto(d) })
	d.show()
	for _, query := range []string{"* ~ Row ~ *", ":has(:has(x))", ":has(:contains('x'))", "Row:nth-child(2) ~ Row"} {
		if _, slow := d.search(t.Context(), query); !slow {
			t.Errorf("%q was tried", query)
		}
	}
	for _, query := range []string{"App Row[n='7']", "Row:has(x)", "a b > c + d, e f", `[n="a ~ b ~ c"]`} {
		if _, slow := d.search(t.Context(), query); slow {
			t.Errorf("%q was not tried", query)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	begin := time.Now()
	if _, slow := d.search(ended, "//Row[count(//Row[count(//Row) > 1]) > 1]"); !slow || time.Since(begin) > 2*matchWait {
		t.Errorf("the path was not stopped, after %v", time.Since(begin))
	}
}

func TestQuerySelector(t *testing.T) {
	_, server := serve(t, forest(t))
	c := dial(t, server, "dev")
	var doc documentResult
	c.call("DOM.getDocument", nil, &doc)
	query := func(method string, below NodeID, sel string) string {
		var r struct {
			NodeID  NodeID
			NodeIDs []NodeID
		}
		c.call(method, map[string]any{"nodeId": below, "selector": sel}, &r)
		if r.NodeID != 0 {
			r.NodeIDs = []NodeID{r.NodeID}
		}
		return c.names(r.NodeIDs)
	}
	if got := query("DOM.querySelector", doc.Root.NodeID, "Row"); got != "Row#2" {
		t.Errorf("the first Row is %q", got)
	}
	if got := query("DOM.querySelectorAll", doc.Root.NodeID, "host Row"); got != "Row#2 Row#4 Row#8" {
		t.Errorf("all rows are %q", got)
	}
	var page struct{ NodeID NodeID }
	c.call("DOM.querySelector", map[string]any{"nodeId": doc.Root.NodeID, "selector": "client"}, &page)
	if got := query("DOM.querySelectorAll", page.NodeID, "workspace Row, client"); got != "Row#10" {
		t.Errorf("below the page are %q", got)
	}
	if got := query("DOM.querySelector", doc.Root.NodeID, "Nothing"); got != "" {
		t.Errorf("nothing is %q", got)
	}
	if got := query("DOM.querySelectorAll", doc.Root.NodeID, "Nothing"); got != "" {
		t.Errorf("nothing is %q", got)
	}
	for _, sel := range []string{"", "[", "//Row", strings.Repeat("a", 2*maxQuery)} {
		c.fails("DOM.querySelector", map[string]any{"nodeId": doc.Root.NodeID, "selector": sel}, codeServer)
	}
	c.fails("DOM.querySelector", map[string]any{"nodeId": 9999, "selector": "Row"}, codeServer)
	c.valid()
}

func TestFlattenedDocument(t *testing.T) {
	_, server := serve(t, forest(t))
	c := dial(t, server, "dev")
	var before documentResult
	c.call("DOM.getDocument", nil, &before)
	var flat struct{ Nodes []*domNode }
	c.call("DOM.getFlattenedDocument", map[string]any{"depth": -1, "pierce": true}, &flat)
	seen := make(map[NodeID]bool)
	for i, n := range flat.Nodes {
		if len(n.Children) > 0 || i > 0 && !seen[n.ParentID] || seen[n.NodeID] {
			t.Errorf("node %d (%s) has children, or comes before its parent %d", n.NodeID, n.NodeName, n.ParentID)
		}
		seen[n.NodeID] = true
	}
	if len(flat.Nodes) != 17 || flat.Nodes[0].NodeName != "#document" {
		t.Errorf("%d nodes, the first %s", len(flat.Nodes), flat.Nodes[0].NodeName)
	}
	c.fails("DOM.getAttributes", map[string]any{"nodeId": before.Root.NodeID}, codeServer)
	var classes struct{ ClassNames []string }
	c.call("DOM.collectClassNamesFromSubtree", map[string]any{"nodeId": flat.Nodes[0].NodeID}, &classes)
	if strings.Join(classes.ClassNames, " ") != "part big" {
		t.Errorf("classes %v", classes.ClassNames)
	}
	c.valid()
}

// $0 to $4 are the nodes that were selected last, whatever became of the document.
func TestInspectedNodes(t *testing.T) {
	m := forest(t)
	g, server := serve(t, m)
	c := dial(t, server, "dev")
	c.sync() // the session is there
	selected := func() string {
		s := g.hub.all()[0]
		var out []string
		s.live(func() {
			for i := range maxInspected + 1 {
				if n, ok := s.inspected(i); ok {
					out = append(out, fmt.Sprint(n.name(), i))
				}
			}
		})
		return strings.Join(out, " ")
	}
	pick := func(sel string) {
		var doc documentResult
		c.call("DOM.getDocument", nil, &doc)
		var r struct{ NodeID NodeID }
		c.call("DOM.querySelector", map[string]any{"nodeId": doc.Root.NodeID, "selector": sel}, &r)
		c.call("DOM.setInspectedNode", map[string]any{"nodeId": r.NodeID}, nil)
	}
	if got := selected(); got != "" {
		t.Errorf("before anything was selected: %q", got)
	}
	for _, sel := range []string{"workspace", "host", "clients", "Row", "Row", "Cell", "Page"} {
		pick(sel)
	}
	if got := selected(); got != "Page0 Cell1 Row2 clients3 host4" {
		t.Errorf("selected: %q", got)
	}
	m.ops("a", gen1, 2, tree.Op{Op: tree.OpRemove, ID: 3})
	c.call("DOM.disable", nil, nil)
	if got := selected(); got != "Page0 Row2 clients3 host4" {
		t.Errorf("after one of them is gone: %q", got)
	}
	c.fails("DOM.setInspectedNode", map[string]any{"nodeId": 12345}, codeServer)
}

// FuzzSearch feeds the readers of queries with what people and programs may type.
func FuzzSearch(f *testing.F) {
	for _, q := range []string{"row", "//Row[@id='8']/..", "App > Row:has(Cell)", "[", "((", "a:not(b~c)", "//*[position()<3]|//@id", "ä\x00", `"x"`, "//Row[-1]", "1 div 0", "id('x')"} {
		f.Add(q)
	}
	m := forest(f)
	g, err := New(Options{State: m})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = g.Close(context.Background()) })
	s := offline(g, target{space: "dev"})
	d := &docCopy{}
	s.during(func() { s.copyInto(d) })
	d.show()
	f.Fuzz(func(t *testing.T, query string) {
		found, _ := d.search(t.Context(), query)
		for _, h := range found {
			if h.id == documentID {
				t.Errorf("%q finds the document", query)
			}
		}
	})
}

// No text grows by more than a half in small letters, so that a short one need not be looked at.
func TestSmallLettersAreNotMuchLonger(t *testing.T) {
	for r := range unicode.MaxRune + 1 {
		if text := string(r); 2*len(strings.ToLower(text)) > 3*len(text) {
			t.Errorf("%q becomes %q", text, strings.ToLower(text))
		}
	}
	for text, part := range map[string]string{"Ⱥ": "ⱥ", "xȺȺ": "ⱥⱥ", "GRÜSSE": "grüsse", "a": "a"} {
		if !contains(text, part) {
			t.Errorf("%q does not contain %q", text, part)
		}
	}
}
