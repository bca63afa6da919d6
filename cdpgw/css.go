package cdpgw

import (
	"maps"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/natscope/natscope/subjects/tree"
	"github.com/natscope/natscope/subjects/value"
)

// cssMethods put a component's values into the Styles pane, and keep the rest of CSS quiet.
var cssMethods = map[string]method{
	"CSS.enable":                           constant(empty{}),
	"CSS.disable":                          constant(empty{}),
	"CSS.trackComputedStyleUpdates":        constant(empty{}),
	"CSS.trackComputedStyleUpdatesForNode": constant(empty{}),
	"CSS.takeComputedStyleUpdates":         constant(map[string][]NodeID{"nodeIds": {}}),
	"CSS.getComputedStyleForNode":          constant(map[string]any{"computedStyle": []empty{}, "extraFields": map[string]bool{"isAppearanceBase": false}}),
	"CSS.getInlineStylesForNode":           constant(empty{}),
	"CSS.getAnimatedStylesForNode":         constant(empty{}),
	"CSS.getPlatformFontsForNode":          constant(map[string][]empty{"fonts": {}}),
	"CSS.getEnvironmentVariables":          constant(map[string]empty{"environmentVariables": {}}),
	"CSS.getMatchedStylesForNode":          on((*session).cssGetMatchedStylesForNode),
}

// matchedStyles is the answer that fills the Styles pane.
type matchedStyles struct {
	MatchedCSSRules   []ruleMatch `json:"matchedCSSRules"`
	PseudoElements    []empty     `json:"pseudoElements"`
	Inherited         []empty     `json:"inherited"`
	CSSKeyframesRules []empty     `json:"cssKeyframesRules"`
}

type ruleMatch struct {
	Rule              cssRule `json:"rule"`
	MatchingSelectors []int   `json:"matchingSelectors"`
}

type cssRule struct {
	SelectorList selectorList `json:"selectorList"`
	Origin       string       `json:"origin"`
	Style        cssStyle     `json:"style"`
}

type selectorList struct {
	Selectors []cssText `json:"selectors"`
	Text      string    `json:"text"`
}

type cssText struct {
	Text string `json:"text"`
}

type cssStyle struct {
	CSSProperties    []cssProperty `json:"cssProperties"`
	ShorthandEntries []empty       `json:"shorthandEntries"`
}

// cssProperty is one line of a rule.
type cssProperty struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// cssGetMatchedStylesForNode answers with a rule for each kind of value that a
// component has, and one with the place where it is defined.
func (s *session) cssGetMatchedStylesForNode(p nodeParams) (any, error) {
	out := matchedStyles{MatchedCSSRules: []ruleMatch{}, PseudoElements: []empty{}, Inherited: []empty{}, CSSKeyframesRules: []empty{}}
	n, err := s.lookup(nodeParams{NodeID: p.NodeID})
	if err != nil {
		return nil, err
	}
	if n.place != placeTree {
		return out, nil
	}
	add := func(selector string, lines []cssProperty) {
		if len(lines) > 0 {
			out.MatchedCSSRules = append(out.MatchedCSSRules, ruleMatch{
				Rule:              cssRule{selectorList{[]cssText{{selector}}, selector}, "regular", cssStyle{lines, []empty{}}},
				MatchingSelectors: []int{0},
			})
		}
	}
	// Rules come by growing weight, and DevTools shows the heaviest first.
	add("source", sourceLines(n.entry.Loc))
	kinds := valueRules(n.entry)
	for _, kind := range slices.Backward(slices.Sorted(maps.Keys(kinds))) {
		add(kind, kinds[kind])
	}
	return out, nil
}

// valueRules lists the values of a component by their kind; those without one are its values.
func valueRules(e *tree.Entry) map[string][]cssProperty {
	out := make(map[string][]cssProperty)
	for _, name := range slices.Sorted(maps.Keys(e.Values)) {
		text := "(not readable)"
		if v, err := value.Parse(e.Values[name]); err == nil {
			text = value.Preview(v)
		}
		kind := or(e.ValueKinds[name], "values")
		out[kind] = append(out[kind], cssProperty{Name: or(name, `""`), Value: or(text, `""`)})
	}
	return out
}

// sourceLines says where a component is defined, with a link that opens an
// editor if the place is a file of this machine.
func sourceLines(loc string) []cssProperty {
	if loc == "" {
		return nil
	}
	out := []cssProperty{{Name: "defined-at", Value: loc}}
	if link := editorLink(loc); link != "" {
		out = append(out, cssProperty{Name: "open-in-editor", Value: `url("` + link + `")`})
	}
	return out
}

// editorLink returns an address that opens file:line in an editor which
// understands vscode:// addresses; empty for a place that is no absolute path.
func editorLink(loc string) string {
	file, line, column := loc, "", ""
	for range 2 {
		i := strings.LastIndexByte(file, ':')
		if i < 0 {
			break
		}
		if _, err := strconv.ParseUint(file[i+1:], 10, 31); err != nil {
			break
		}
		file, line, column = file[:i], file[i+1:], line
	}
	windows := len(file) > 2 && file[1] == ':' && (file[2] == '\\' || file[2] == '/')
	if windows {
		file = "/" + strings.ReplaceAll(file, `\`, "/")
	}
	if !path.IsAbs(file) {
		return ""
	}
	out := "vscode://file" + (&url.URL{Path: file}).EscapedPath()
	if line != "" {
		out += ":" + line
	}
	if column != "" {
		out += ":" + column
	}
	return strings.NewReplacer(`"`, "%22", `'`, "%27", "(", "%28", ")", "%29", `\`, "%5C").Replace(out)
}
