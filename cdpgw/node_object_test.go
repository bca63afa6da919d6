package cdpgw

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/natscope/natscope/subjects/realm"
)

// shownProperties lists properties as "name=description".
func shownProperties(r getPropertiesResult) string {
	var out []string
	for _, p := range r.Result {
		text := p.Value.Description
		if text == "" {
			text = string(p.Value.Value)
		}
		mark := ""
		if p.Value.ObjectID != "" {
			mark = ">"
		}
		out = append(out, p.Name+"="+text+mark)
	}
	return strings.Join(out, " ")
}

func (c *client) open(id ObjectID) getPropertiesResult {
	c.t.Helper()
	var r getPropertiesResult
	c.call("Runtime.getProperties", map[string]any{"objectId": id, "ownProperties": true}, &r)
	return r
}

func property(t *testing.T, r getPropertiesResult, name string) remoteObject {
	t.Helper()
	for _, p := range r.Result {
		if p.Name == name {
			return p.Value
		}
	}
	t.Fatalf("there is no %s in %s", name, shownProperties(r))
	return remoteObject{}
}

// The Properties pane shows a component's values, and what is below them is asked of the page.
func TestNodeObjects(t *testing.T) {
	m := editableShop(t)
	s, server := scripted(t, m)
	c := dial(t, server, "dev")
	id := c.node("Cart")
	var resolved struct{ Object remoteObject }
	c.call("DOM.resolveNode", map[string]any{"nodeId": id}, &resolved)
	if o := resolved.Object; o.Subtype != "node" || o.Description != "Cart" {
		t.Errorf("%+v", o)
	}
	values := c.open(resolved.Object.ObjectID)
	if got := shownProperties(values); got != `a b="x" count=2 fixed=1 items=Object> label="2" more=Object> on=true text="two things"` {
		t.Error(got)
	}
	var accessors getPropertiesResult
	c.call("Runtime.getProperties", map[string]any{"objectId": resolved.Object.ObjectID, "accessorPropertiesOnly": true}, &accessors)
	if len(accessors.Result) != 0 {
		t.Errorf("%+v", accessors)
	}
	answers := map[string]string{
		`["items"]`:             `{"first":{"__natscope":"dehydrated","type":"array","preview":"Array(2) [1, {…}]","size":2},"n":1}`,
		`["items","first"]`:     `{"__natscope":"partial","size":300,"value":[1,{"__natscope":"dehydrated","type":"map","preview":"Map(1)","size":1}]}`,
		`["items","first",1]`:   `{"__natscope":"map","entries":[["k",{"__natscope":"dehydrated","type":"object","preview":"{a: 1}","size":1}]]}`,
		`["items","first",1,0]`: `{"a":1}`,
	}
	s.set(func(x sent) (any, error) {
		p, err := realm.ParseParams[realm.InspectParams](json.RawMessage(x.params))
		if err != nil || x.method != realm.MethodInspect || p.ID != 2 || p.Limit == 0 {
			return nil, errors.Join(realm.ErrMalformed, err)
		}
		path, _ := json.Marshal(p.Path)
		if answers[string(path)] == "" {
			return realm.InspectResult{}, nil
		}
		return realm.InspectResult{Value: json.RawMessage(answers[string(path)])}, nil
	})
	items := c.open(property(t, values, "items").ObjectID)
	if got := shownProperties(items); got != "first=Array(2) [1, {…}]> n=1" {
		t.Error(got)
	}
	first := c.open(property(t, items, "first").ObjectID)
	if got := shownProperties(first); got != "0=1 1=Map(1)> length=300" || len(first.InternalProperties) != 1 {
		t.Errorf("%s, %+v", got, first.InternalProperties)
	}
	entries := c.open(property(t, first, "1").ObjectID)
	if got := shownProperties(entries); got != "k={a: 1}>" {
		t.Error(got)
	}
	inner := property(t, entries, "k").ObjectID
	if got := shownProperties(c.open(inner)); got != "a=1" {
		t.Error(got)
	}
	delete(answers, `["items","first",1,0]`)
	if e := c.fails("Runtime.getProperties", map[string]any{"objectId": inner, "ownProperties": true}, codeServer); !strings.Contains(e.Message, "not there any more") {
		t.Error(e.Message)
	}
	// The node of the object, by which DevTools finds its way back.
	var known struct{ NodeID NodeID }
	c.call("DOM.requestNode", map[string]any{"objectId": resolved.Object.ObjectID}, &known)
	if known.NodeID != id {
		t.Errorf("node %d, want %d", known.NodeID, id)
	}
	c.call("Overlay.highlightNode", map[string]any{"objectId": resolved.Object.ObjectID}, nil)
	// Without the page there is what was recorded, one level deep.
	m.Presence("page", false)
	if got := shownProperties(c.open(property(t, values, "items").ObjectID)); got != "first=Array(1) [1]> n=1" {
		t.Error(got)
	}
	if e := c.fails("Runtime.getProperties", map[string]any{"objectId": inner}, codeServer); !strings.Contains(e.Message, "not connected") {
		t.Error(e.Message)
	}
	c.sync()
	c.valid()
}

func TestNodeObjectsThatAreNone(t *testing.T) {
	_, server := serve(t, editableShop(t))
	c := dial(t, server, "dev")
	if e := c.fails("DOM.resolveNode", map[string]any{"nodeId": c.node("host")}, codeServer); e.Message != noObject {
		t.Error(e.Message)
	}
	for _, id := range []string{"node:page:1", "node:none:1", "node:page:x", "node:page", "node:PAGE:1", "value:page:1", "value:page:1:!", "value:page:1:WzBd", "value:page:1:W10", "node:page:99999999999999999999"} {
		c.fails("Runtime.getProperties", map[string]any{"objectId": id}, codeServer)
		c.fails("DOM.requestNode", map[string]any{"objectId": id}, codeServer)
	}
}

func FuzzNodeObject(f *testing.F) {
	f.Add(string(nodeObject{source: "page", backend: 7}.id()))
	f.Add(string(nodeObject{source: "page", backend: 7, path: []realm.Step{{Name: "a"}, {Index: 3, Indexed: true}}}.id()))
	f.Fuzz(func(t *testing.T, id string) {
		o, ok := parseNodeObject(ObjectID(id))
		if !ok {
			return
		}
		if again, ok := parseNodeObject(o.id()); !ok || fmt.Sprint(again) != fmt.Sprint(o) {
			t.Fatalf("%q became %+v, and then %+v", id, o, again)
		}
	})
}

// What DevTools has no command for is there for scripts.
func TestRealmMethods(t *testing.T) {
	m := editableShop(t)
	s, server := scripted(t, m)
	s.set(func(x sent) (any, error) {
		if x.method == realm.MethodStoreGlobal {
			return realm.StoreGlobalResult{Name: "$r"}, nil
		}
		return nil, nil
	})
	c := dial(t, server, "dev")
	id := c.node("Cart")
	var r realm.StoreGlobalResult
	c.call("Natscope.storeGlobal", map[string]any{"nodeId": id, "symbol": "items"}, &r)
	c.call("Natscope.logNode", map[string]any{"nodeId": id}, nil)
	c.call("Natscope.openInEditor", map[string]any{"nodeId": id}, nil)
	want := `page tree.storeGlobal {"id":2,"symbol":"items"}` + "\n" + `page tree.log {"id":2}` + "\n" + `page tree.open {"loc":"/src/Cart.js:12:5"}`
	if got := told(s.until(t, "all", func([]sent) bool { return true })); got != want || r.Name != "$r" {
		t.Errorf("%s, %+v", got, r)
	}
	c.fails("Natscope.openInEditor", map[string]any{"nodeId": c.node("App")}, codeServer)
	c.fails("Natscope.logNode", map[string]any{"nodeId": c.node("host")}, codeServer)
	if len(s.audited) != 2 {
		t.Errorf("%d records are in the audit, want those of storeGlobal and open", len(s.audited))
	}
}
