package cdpgw

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/css"
)

func TestStylesShowValues(t *testing.T) {
	_, server := serve(t, editableShop(t))
	c := dial(t, server, "dev")
	var doc documentResult
	c.call("DOM.getDocument", map[string]int{"depth": -1}, &doc)
	styles := func(name string) string {
		t.Helper()
		var raw json.RawMessage
		c.call("CSS.getMatchedStylesForNode", map[string]any{"nodeId": byName(doc.Root, name).NodeID}, &raw)
		if err := json.Unmarshal(raw, &css.GetMatchedStylesForNodeResult{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var out matchedStyles
		if err := json.Unmarshal(raw, &out); err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, m := range out.MatchedCSSRules {
			b.WriteString(m.Rule.SelectorList.Text + " {")
			for _, p := range m.Rule.Style.CSSProperties {
				b.WriteString(" " + p.Name + ": " + p.Value + ";")
			}
			b.WriteString(" }\n")
		}
		return b.String()
	}
	want := `source { defined-at: /src/Cart.js:12:5; open-in-editor: url("vscode://file/src/Cart.js:12:5"); }
values { a b: "x"; fixed: 1; label: "2"; more: {}; on: true; text: "two things"; }
state { count: 2; }
prop { items: {first: Array(1), n: 1}; }
`
	if got := styles("Cart"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	for _, name := range []string{"#document", "host", "#text", "Router"} {
		if got := styles(name); got != "" {
			t.Errorf("%s has the styles %s", name, got)
		}
	}
	if e := c.fails("CSS.getMatchedStylesForNode", map[string]any{"nodeId": 4711}, codeServer); e.Message == "" {
		t.Error("no reason")
	}
}

// Case C7: whatever is selected, the Styles pane gets answers that it can read, and no errors.
func TestSelectingAnythingIsNoError(t *testing.T) {
	_, server := serve(t, editableShop(t))
	c := dial(t, server, "dev")
	var doc documentResult
	c.call("DOM.getDocument", map[string]int{"depth": -1}, &doc)
	c.call("CSS.enable", nil, nil)
	seen := make(map[string]bool)
	var visit func(n *domNode)
	visit = func(n *domNode) {
		seen[n.NodeName] = true
		for method, out := range map[string]any{
			"CSS.getMatchedStylesForNode": &css.GetMatchedStylesForNodeResult{}, "CSS.getComputedStyleForNode": &css.GetComputedStyleForNodeResult{},
			"CSS.getInlineStylesForNode": &css.GetInlineStylesForNodeResult{}, "CSS.getPlatformFontsForNode": &css.GetPlatformFontsForNodeResult{},
		} {
			c.call(method, map[string]any{"nodeId": n.NodeID}, out)
		}
		for _, child := range n.Children {
			visit(child)
		}
	}
	visit(doc.Root)
	for _, name := range []string{"#document", "workspace", "host", "clients", "Cart", "#text"} {
		if !seen[name] {
			t.Errorf("no %s was selected", name)
		}
	}
	c.valid()
}

func TestEditorLinks(t *testing.T) {
	for loc, want := range map[string]string{
		"/a/b.go:12": "vscode://file/a/b.go:12", "/a/b.go": "vscode://file/a/b.go", "/a b/c(1).go:3:4": "vscode://file/a%20b/c%281%29.go:3:4",
		`C:\src\x.go:7`: "vscode://file/C:/src/x.go:7", "src/x.svelte:3": "", "": "", ":": "", "http://x/y.js:1": "", `/a"b'.go:1`: "vscode://file/a%22b%27.go:1",
	} {
		if got := editorLink(loc); got != want {
			t.Errorf("%s: %s, want %s", loc, got, want)
		}
	}
}
