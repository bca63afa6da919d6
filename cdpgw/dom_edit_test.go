package cdpgw

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/tree"
)

func TestParseAttributes(t *testing.T) {
	for text, want := range map[string]string{
		``: ``, `a="1"`: `a=1`, `a='1 2'  b=3 c`: `a=1 2|b=3|c=`, ` a = "x" `: `a=x`, `a="&quot;&lt;&amp;amp;"`: `a="<&amp;`,
		`a="open`: `a=open`, `="x"`: `"x"=`, `a=`: `a=`, "a=1\tb=2\n": `a=1|b=2`, `a==b`: `a==b`,
	} {
		var got []string
		for _, a := range parseAttributes(text) {
			got = append(got, a.Name+"="+a.Value)
		}
		if s := strings.Join(got, "|"); s != want {
			t.Errorf("%q: %q, want %q", text, s, want)
		}
	}
}

func FuzzParseAttributes(f *testing.F) {
	for _, s := range []string{`a="1" b='2' c=3 d`, `=`, `a==`, "\x00=\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, a := range parseAttributes(text) {
			if a.Name == "" || strings.ContainsAny(a.Name, " \t\r\n\f=") {
				t.Fatalf("%q has an attribute with the name %q", text, a.Name)
			}
		}
	})
}

func TestTyped(t *testing.T) {
	for _, c := range []struct{ now, shown, text, want string }{
		{`"a"`, "a", "5", `"5"`}, {`"a"`, "a", ` "q" `, `" \"q\" "`}, {`5`, "5", " 7 ", "7"}, {`5`, "5", "-1.5e3", "-1.5e3"},
		{`5`, "5", "five", ""}, {`5`, "5", "", ""}, {`5`, "5", `"5"`, ""}, {`5`, "5", "null", ""}, {`true`, "true", "false", "false"}, {`true`, "true", "yes", ""},
		{`null`, "null", "x", `"x"`}, {`null`, "null", `{"a":1}`, `{"a":1}`}, {``, "", "[1]", "[1]"},
		{`[1]`, "Array(1) [1]", "[2]", "[2]"}, {`[1]`, "Array(1) [1]", "2,", ""},
		{`{"__natscope":"number","value":"NaN"}`, "NaN", "1", "1"}, {`{"__natscope":"bigint","value":"9"}`, "9n", "10", "10"}, {`{"__natscope":"bigint","value":"9"}`, "9n", "10n", ""},
		{`{"__natscope":"string","head":"abc","length":20000}`, "abc…", "abcd…", ""}, {`{"__natscope":"string","head":"abc","length":20000}`, "abc…", "new", `"new"`},
		{`{"__natscope":"map"}`, "", "1", ""},
		// The beginning of a long text, edited and given back, must not become the whole one.
		{`"abcdef"`, "abc… (6 characters)", "xbc… (6 characters)", ""}, {`"abcdef"`, "abc… (6 characters)", "whole", `"whole"`}, {`"abcdef"`, "abc…", "xbc…", ""},
		{`{"__natscope":"string","head":"abc","length":20000}`, "abc… (20000 characters)", "xbc… (20000 characters)", ""}, {``, "abc… (6 characters)", "x… (6 characters)", ""},
		// A text may have such an end of its own.
		{`"Loading…"`, "Loading…", "Saving…", `"Saving…"`}, {`"a… (b)"`, "a… (b)", "c… (b)", `"c… (b)"`},
	} {
		got, err := typed(c.text, json.RawMessage(c.now), c.shown)
		if string(got) != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q over %s: %s, %v; want %s", c.text, c.now, got, err, c.want)
		}
	}
}

// An edit reaches the program as the value that it has, and comes back as what the program made of it.
func TestEdits(t *testing.T) {
	m := editableShop(t)
	s, server := scripted(t, m)
	c := dial(t, server, "dev")
	id := c.node("Cart")
	for _, x := range []struct{ method, params, want string }{
		{"DOM.setAttributesAsText", `"name":"count","text":"count=\"3\""`, `{"id":2,"symbol":"count","value":3}`},
		{"DOM.setAttributesAsText", `"name":"label","text":"label=\"3\""`, `{"id":2,"symbol":"label","value":"3"}`},
		{"DOM.setAttributesAsText", `"name":"on","text":"count=\"2\" on=false"`, `{"id":2,"symbol":"on","value":false}`},
		{"DOM.setAttributesAsText", `"name":"","text":"items=[]"`, `{"id":2,"symbol":"items","value":[]}`},
		{"DOM.setAttributeValue", `"name":"a_b","value":"y"`, `{"id":2,"symbol":"a b","value":"y"}`},
	} {
		var params map[string]any
		if err := json.Unmarshal([]byte("{"+x.params+"}"), &params); err != nil {
			t.Fatal(err)
		}
		params["nodeId"] = id
		c.call(x.method, params, nil)
		all := s.until(t, x.want, func(all []sent) bool { return len(all) > 0 && all[len(all)-1].params == x.want })
		if last := all[len(all)-1]; last.source != "page" || last.method != realm.MethodEdit || last.session.Gateway != "gw" {
			t.Errorf("%+v", last)
		}
	}
	// What was not changed is not sent.
	n := len(s.until(t, "all", func([]sent) bool { return true }))
	c.call("DOM.setAttributesAsText", map[string]any{"nodeId": id, "name": "count", "text": `count="2"`}, nil)
	if all := s.until(t, "all", func([]sent) bool { return true }); len(all) != n {
		t.Errorf("%+v", all[n:])
	}
	// The program's own change shows; here it makes 30 of 3.
	from := c.count()
	s.set(func(x sent) (any, error) {
		m.ops("page", gen2, 2, tree.Op{Op: tree.OpUpdate, Node: childless(cart("30", `"2"`, "{}").Children[0])})
		return nil, nil
	})
	c.call("DOM.setAttributeValue", map[string]any{"nodeId": id, "name": "count", "value": "3"}, nil)
	var e attributeModifiedEvent
	c.event(from, "DOM.attributeModified", &e)
	if e.NodeID != id || e.Name != "count" || e.Value != "30" {
		t.Errorf("%+v", e)
	}
	c.valid()
}

// A program that takes an edit and changes nothing gets its value shown again.
func TestEditWithoutEffect(t *testing.T) {
	m := editableShop(t)
	_, server := scripted(t, m)
	c := dial(t, server, "dev")
	id := c.node("Cart")
	from := c.count()
	c.call("DOM.setAttributeValue", map[string]any{"nodeId": id, "name": "count", "value": "3"}, nil)
	var e attributeModifiedEvent
	c.event(from, "DOM.attributeModified", &e)
	if e.NodeID != id || e.Value != "2" {
		t.Errorf("%+v", e)
	}
	// The text of a node is the value text.
	var doc documentResult
	c.call("DOM.getDocument", map[string]int{"depth": -1}, &doc)
	text := byName(byName(doc.Root, "Cart"), "#text").NodeID
	from = c.count()
	c.call("DOM.setNodeValue", map[string]any{"nodeId": text, "value": "none"}, nil)
	var d characterDataModifiedEvent
	c.event(from, "DOM.characterDataModified", &d)
	if d.NodeID != text || d.CharacterData != "two things" {
		t.Errorf("%+v", d)
	}
}

// A refused edit is an error that says why, in the Log too, and the value as it is.
func TestRefusedEdits(t *testing.T) {
	m := editableShop(t)
	m.Presence("billing", false)
	s, server := scripted(t, m)
	c := dial(t, server, "dev")
	c.call("Log.enable", nil, nil)
	var doc documentResult
	c.call("DOM.getDocument", map[string]int{"depth": -1}, &doc)
	element := byName(doc.Root, "Cart").NodeID
	s.set(func(sent) (any, error) {
		return nil, errors.Join(&realm.Error{Code: realm.CodeFailed, Message: "count must be even"})
	})
	refuse := func(method string, params map[string]any, why string) {
		t.Helper()
		from := c.count()
		e := c.fails(method, params, codeServer)
		if !strings.Contains(e.Message, why) {
			t.Errorf("%s %v: %q does not say %q", method, params, e.Message, why)
		}
		var l entryAddedEvent
		c.event(from, "Log.entryAdded", &l)
		if l.Entry.Level != "error" || !strings.Contains(l.Entry.Text, why) {
			t.Errorf("%+v", l)
		}
	}
	from := c.count()
	refuse("DOM.setAttributesAsText", map[string]any{"nodeId": element, "name": "count", "text": `count="3"`}, "count of <Cart> was not changed: count must be even")
	var e attributeModifiedEvent
	c.event(from, "DOM.attributeModified", &e)
	if e.Name != "count" || e.Value != "2" {
		t.Errorf("%+v", e)
	}
	refuse("DOM.setAttributesAsText", map[string]any{"nodeId": element, "name": "fixed", "text": `fixed="3"`}, "what can be: count, label")
	refuse("DOM.setAttributesAsText", map[string]any{"nodeId": element, "name": "count", "text": ``}, "cannot be removed")
	refuse("DOM.setAttributesAsText", map[string]any{"nodeId": element, "name": "count", "text": `other="1"`}, "not another name")
	refuse("DOM.setAttributesAsText", map[string]any{"nodeId": element, "name": "count", "text": `count=5 label=6`}, "one value at a time")
	refuse("DOM.setAttributesAsText", map[string]any{"nodeId": element, "name": "", "text": `fresh=1`}, "cannot be changed from here")
	refuse("DOM.setAttributeValue", map[string]any{"nodeId": element, "name": "count", "value": "many"}, "it takes a number")
	refuse("DOM.removeAttribute", map[string]any{"nodeId": element, "name": "count"}, "cannot be removed")
	refuse("DOM.setAttributeValue", map[string]any{"nodeId": byName(doc.Root, "Route").NodeID, "name": "path", "value": "x"}, "nothing of it can be")
	for name, params := range map[string]map[string]any{
		"a source": {"nodeId": byName(doc.Root, "host").NodeID, "name": "name", "value": "x"}, "a text": {"nodeId": byName(doc.Root, "#text").NodeID, "name": "name", "value": "x"},
		"an unknown node": {"nodeId": 99999, "name": "a", "value": "b"},
	} {
		if e := c.fails("DOM.setAttributeValue", params, codeServer); e.Message == "" {
			t.Error(name)
		}
	}
	m.Presence("page", false)
	refuse("DOM.setAttributeValue", map[string]any{"nodeId": element, "name": "count", "value": "3"}, "not connected")
	c.sync()
	c.valid()
}

// A gateway without a way to the sources says so.
func TestEditWithoutCommander(t *testing.T) {
	_, server := serve(t, editableShop(t))
	c := dial(t, server, "dev")
	if e := c.fails("DOM.setAttributeValue", map[string]any{"nodeId": c.node("Cart"), "name": "count", "value": "3"}, codeServer); !strings.Contains(e.Message, "without a connection") {
		t.Error(e.Message)
	}
}
