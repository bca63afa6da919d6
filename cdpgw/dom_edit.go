package cdpgw

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"slices"
	"strings"
	"time"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/tree"
	"github.com/natscope/natscope/subjects/value"
)

// DevTools edits are optimistic: while the answer is on its way, the row shows
// what was typed. An edit therefore ends with the true value in one of three
// ways: the program's own change of its tree; an error, with the value as it is;
// or, when the program took the edit and changed nothing, the value once more.

// editMethods change writable values of components.
var editMethods = map[string]method{
	"DOM.setAttributesAsText": on((*session).domSetAttributesAsText),
	"DOM.setAttributeValue":   on((*session).domSetAttributeValue),
	"DOM.removeAttribute":     on((*session).domRemoveAttribute),
	"DOM.setNodeValue":        on((*session).domSetNodeValue),
}

// settleWait is how long a program has to show what an edit did before the row shows the old value again.
const settleWait = 1500 * time.Millisecond

// edit is one change of one value, ready to be sent.
type edit struct {
	at     realmOf
	node   tree.NodeID
	symbol string
	value  json.RawMessage
	// backend and shown are what the client edited: an element and its attribute; shown is empty for a text.
	backend tree.BackendNodeID
	shown   string
	// before is what the client sees.
	before string
	// title names node and value for people.
	title string
}

type attributesParams struct {
	NodeID NodeID `json:"nodeId"`
	Text   string `json:"text"`
	Name   string `json:"name"`
	Value  string `json:"value"`
}

// domSetAttributesAsText takes what a person typed over an attribute, or behind the last one.
func (s *session) domSetAttributesAsText(p attributesParams) (any, error) {
	n, err := s.editable(p.NodeID, elementNode)
	if err != nil {
		return nil, err
	}
	now := s.attributes(n)
	changed := slices.DeleteFunc(parseAttributes(p.Text), func(a tree.Attr) bool {
		v, ok := attribute(now, a.Name)
		return ok && v == a.Value
	})
	switch typed := parseAttributes(p.Text); {
	case p.Name != "" && !slices.ContainsFunc(typed, func(a tree.Attr) bool { return a.Name == p.Name }):
		return nil, s.refused(n, p.Name, fmt.Sprintf("%s of <%s> can be given another value, but not another name, and it cannot be removed.", p.Name, n.name()))
	case len(changed) == 0:
		return nil, nil
	case len(changed) > 1:
		return nil, s.refused(n, changed[0].Name, "Change one value at a time.")
	}
	return s.edit(n, changed[0].Name, changed[0].Value)
}

func (s *session) domSetAttributeValue(p attributesParams) (any, error) {
	n, err := s.editable(p.NodeID, elementNode)
	if err != nil {
		return nil, err
	}
	return s.edit(n, p.Name, p.Value)
}

func (s *session) domRemoveAttribute(p attributesParams) (any, error) {
	n, err := s.editable(p.NodeID, elementNode)
	if err != nil {
		return nil, err
	}
	return nil, s.refused(n, p.Name, fmt.Sprintf("%s of <%s> cannot be removed: it is a value of the program.", p.Name, n.name()))
}

func (s *session) domSetNodeValue(p attributesParams) (any, error) {
	n, err := s.editable(p.NodeID, textNode)
	if err != nil {
		return nil, err
	}
	return s.edit(n, "", p.Value)
}

// editable finds a node that may be edited: a component, or its text.
func (s *session) editable(id NodeID, nodeType int) (node, error) {
	n, err := s.lookup(nodeParams{NodeID: id})
	switch {
	case err != nil:
		return node{}, err
	case n.nodeType() != nodeType:
		return node{}, failf("This node has no such part that can be edited.")
	case n.place != placeTree && n.place != placeText:
		return node{}, failf("%s", readOnly)
	}
	return n, nil
}

// edit sends the change of an attribute, or of a text if its name is empty.
func (s *session) edit(n node, shown, text string) (any, error) {
	e, err := s.planEdit(n, shown, text)
	if err != nil {
		return nil, s.refused(n, shown, err.Error())
	}
	return later(func(ctx context.Context) (any, error) { return s.sendEdit(ctx, e) }), nil
}

// planEdit finds out what a change means for the program.
func (s *session) planEdit(n node, shown, text string) (edit, error) {
	e := edit{node: n.entry.ID, symbol: realm.TextSymbol, backend: n.entry.Backend, shown: shown, before: n.entry.Text}
	label := "The text"
	if shown != "" {
		label = shown
		e.before, _ = attribute(s.attributes(n), shown)
		e.symbol = shown
		// The attribute's name may be the value's with some characters replaced.
		if i := slices.IndexFunc(n.entry.Writable, func(w string) bool { return attributeName(w) == shown }); i >= 0 {
			e.symbol = n.entry.Writable[i]
		}
	}
	element := elementName(n.entry.Name)
	e.title = fmt.Sprintf("%s of <%s>", label, element)
	if n.source.Tree.Detached {
		return edit{}, failf("%s is not connected; what is shown is its last state.", n.source.Name())
	}
	if !slices.Contains(n.entry.Writable, e.symbol) {
		can := "nothing of it can be"
		if len(n.entry.Writable) > 0 {
			can = "what can be: " + cut(strings.Join(n.entry.Writable, ", "), 300)
		}
		return edit{}, failf("%s cannot be changed from here; %s.", e.title, can)
	}
	var err error
	if e.at, err = s.reachable(n.source, realm.MethodEdit); err != nil {
		return edit{}, err
	}
	e.value, err = typed(text, n.entry.Values[e.symbol], e.before)
	if err != nil {
		return edit{}, failf("%s was not changed: %v", e.title, err)
	}
	return e, nil
}

// sendEdit asks the program and sees to it that the client shows the true value in the end.
func (s *session) sendEdit(ctx context.Context, e edit) (any, error) {
	if _, err := s.command(ctx, e.at, realm.MethodEdit, realm.EditParams{ID: e.node, Symbol: e.symbol, Value: e.value}); err != nil {
		text := fmt.Sprintf("%s was not changed: %v", e.title, err)
		s.live(func() {
			s.showTruth(e.at.source, e.backend, e.shown)
			s.complain(text)
		})
		return nil, failf("%s", text)
	}
	s.answerSlow(ctx, empty{})
	t := time.NewTimer(settleWait)
	defer t.Stop()
	select {
	case <-t.C:
		s.live(func() {
			// A change that came meanwhile was told already.
			if n, ok := s.find(e.backend, e.at.source); ok && s.shownValue(n, e.shown) == e.before {
				s.showTruth(e.at.source, e.backend, e.shown)
			}
		})
	case <-ctx.Done():
	}
	return answered{}, nil
}

// refused tells the client that an edit is not possible, and what the value is.
func (s *session) refused(n node, shown, text string) error {
	s.showTruth(n.source.ID, n.entry.Backend, shown)
	s.complain(text)
	return failf("%s", text)
}

// shownValue returns the text that the client should see of an attribute, or of the node's text.
func (s *session) shownValue(n node, shown string) string {
	if shown == "" {
		return n.entry.Text
	}
	v, _ := attribute(s.attributes(n), shown)
	return v
}

// showTruth tells the client what an edited attribute or text really is.
func (s *session) showTruth(src subjects.SourceID, backend tree.BackendNodeID, shown string) {
	n, ok := s.find(backend, src)
	known := s.dom.byNode[backend]
	if !ok || known == nil || n.place != placeTree {
		return
	}
	if shown == "" {
		if t := s.dom.byNode[backend|textBit]; t != nil {
			s.event("DOM.characterDataModified", characterDataModifiedEvent{NodeID: t.id, CharacterData: n.entry.Text})
		}
		return
	}
	if v, ok := attribute(s.attributes(n), shown); ok {
		s.event("DOM.attributeModified", attributeModifiedEvent{NodeID: known.id, Name: shown, Value: v})
		return
	}
	s.event("DOM.attributeRemoved", attributeRemovedEvent{NodeID: known.id, Name: shown})
}

// typed makes a value of what a person typed. What the value is now says what
// the text means: a text stays a text, whatever it looks like.
func typed(text string, now json.RawMessage, shown string) (json.RawMessage, error) {
	v := value.Value{Kind: value.Undefined}
	if len(now) > 0 {
		var err error
		if v, err = value.Parse(now); err != nil {
			return nil, fmt.Errorf("what it is now cannot be read: %w", err)
		}
	}
	// Whoever changed a letter of what is shown did not mean to lose the rest.
	if end := cutMark(shown); end != "" && strings.HasSuffix(text, end) && (v.Kind != value.String || v.Partial || v.Text != shown) {
		return nil, fmt.Errorf("only the beginning of it is shown; replace it with a whole value that does not end in %s", end)
	}
	trimmed := strings.TrimSpace(text)
	valid := json.Valid([]byte(trimmed))
	switch v.Kind {
	case value.String, value.Symbol, value.Date:
		return encode(text), nil
	case value.Number:
		if valid && strings.IndexByte("-0123456789", trimmed[0]) >= 0 {
			return json.RawMessage(trimmed), nil
		}
		return nil, fmt.Errorf("it takes a number, not %.80q", text)
	case value.Bool:
		if trimmed == "true" || trimmed == "false" {
			return json.RawMessage(trimmed), nil
		}
		return nil, fmt.Errorf("it takes true or false, not %.80q", text)
	case value.Undefined, value.Null:
		if valid {
			return json.RawMessage(trimmed), nil
		}
		return encode(text), nil
	}
	if !valid {
		return nil, fmt.Errorf("it takes JSON, such as [1, 2] or {\"a\": 1}, not %.80q", text)
	}
	return json.RawMessage(trimmed), nil
}

// cutMark returns what stands at the end of a text of which more was cut: "…", or
// "…" with the number of characters that the whole one has. Empty if nothing was cut.
func cutMark(shown string) string {
	i := strings.LastIndex(shown, "…")
	if i < 0 {
		return ""
	}
	count, ok := strings.CutPrefix(shown[i+len("…"):], " (")
	count, ends := strings.CutSuffix(count, " characters)")
	if !ok && count != "" || ok && (!ends || strings.Trim(count, "0123456789") != "") {
		return ""
	}
	return shown[i:]
}

// parseAttributes reads attributes as they stand in a tag, as leniently as a browser.
func parseAttributes(text string) []tree.Attr {
	const blank = " \t\r\n\f"
	var out []tree.Attr
	for rest := strings.TrimLeft(text, blank); rest != ""; rest = strings.TrimLeft(rest, blank) {
		end := strings.IndexAny(rest, blank+"=")
		if end == 0 {
			rest = rest[1:]
			continue
		}
		if end < 0 {
			end = len(rest)
		}
		a := tree.Attr{Name: rest[:end]}
		rest = strings.TrimLeft(rest[end:], blank)
		if strings.HasPrefix(rest, "=") {
			a.Value, rest = attributeValue(strings.TrimLeft(rest[1:], blank))
		}
		out = append(out, a)
	}
	return out
}

// attributeValue reads what follows the = of an attribute.
func attributeValue(rest string) (text, after string) {
	if rest == "" {
		return "", ""
	}
	stop := " \t\r\n\f"
	if rest[0] == '"' || rest[0] == '\'' {
		stop, rest = rest[:1], rest[1:]
	}
	end := strings.IndexAny(rest, stop)
	if end < 0 {
		return html.UnescapeString(rest), ""
	}
	return html.UnescapeString(rest[:end]), rest[end+1:]
}
