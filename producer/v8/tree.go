package v8

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/client"
	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/tree"
)

// The nodes of a Cordis tree are objects of the program, so a session gets them in
// its own connection: what was put into the program tells which object a node
// stands for, and which node an object.

// maxBranded is how many objects of one answer are asked for their nodes.
const maxBranded = 16

// selectedName is how people at a console speak of the nodes that they selected.
var selectedName = regexp.MustCompile(`\$[0-4]\b`)

// hasTree reports whether the nodes of the source are objects of the program.
func (x *observer) hasTree() bool { return x.wantsInjection() && x.w.a.o.Inject.Cordis }

// treeCommand carries out a command about nodes, and reports whether it was one.
func (s *session) treeCommand(m realm.Method, params json.RawMessage, reply func(any, error)) bool {
	switch m {
	case realm.MethodResolveNode, realm.MethodNodeOf, realm.MethodInspected:
	default:
		return false
	}
	if !s.x.hasTree() {
		reply(nil, fmt.Errorf("%w: this program has no tree of its own objects", realm.ErrUnsupported))
		return true
	}
	switch m {
	case realm.MethodResolveNode:
		s.resolveNode(params, reply)
	case realm.MethodNodeOf:
		s.nodeOf(params, reply)
	case realm.MethodInspected:
		s.inspected(params, reply)
	}
	return true
}

// resolveNode gives the object of a node.
func (s *session) resolveNode(params json.RawMessage, reply func(any, error)) {
	p, err := realm.ParseParams[realm.ResolveNodeParams](params)
	if err != nil {
		reply(nil, err)
		return
	}
	s.command("Runtime.evaluate", encode(map[string]any{
		"expression": portExpression("live(" + strconv.FormatUint(uint64(p.ID), 10) + ")"), "objectGroup": p.ObjectGroup, "silent": true,
	}), func(result any, err error) {
		raw, _ := result.(producer.Verbatim)
		var r struct {
			Result map[string]json.RawMessage `json:"result"`
		}
		switch {
		case err != nil:
		case json.Unmarshal(raw, &r) != nil || r.Result["objectId"] == nil:
			err = fmt.Errorf("%w: node %d is not in the program any more", realm.ErrNotFound, p.ID)
		}
		if err != nil {
			reply(nil, err)
			return
		}
		r.Result["subtype"] = json.RawMessage(`"node"`)
		reply(realm.ObjectResult{Object: encode(r.Result)}, nil)
	})
}

// nodeOf tells which node an object stands for.
func (s *session) nodeOf(params json.RawMessage, reply func(any, error)) {
	p, err := realm.ParseParams[realm.NodeOfParams](params)
	if err != nil {
		reply(nil, err)
		return
	}
	s.nodesOf([]string{string(p.ObjectID)}, func(ids []tree.NodeID, err error) {
		if err != nil {
			reply(nil, err)
			return
		}
		reply(realm.NodeOfResult{ID: ids[0]}, nil)
	})
}

// nodesOf tells which nodes objects stand for, 0 for none. done is called once, with as many.
func (s *session) nodesOf(objects []string, done func([]tree.NodeID, error)) {
	arguments := make([]map[string]string, len(objects))
	for i, id := range objects {
		arguments[i] = map[string]string{"objectId": id}
	}
	s.command("Runtime.callFunctionOn", encode(map[string]any{
		"functionDeclaration": portFunction("nodeOf"), "objectId": objects[0], "arguments": arguments, "returnByValue": true, "silent": true,
	}), func(result any, err error) {
		raw, _ := result.(producer.Verbatim)
		var r struct {
			Result struct {
				Value []tree.NodeID `json:"value"`
			} `json:"result"`
		}
		ids := make([]tree.NodeID, len(objects))
		if err == nil && json.Unmarshal(raw, &r) == nil {
			copy(ids, r.Result.Value)
		}
		done(ids, err)
	})
}

// inspected remembers which nodes the person selected, the newest first.
func (s *session) inspected(params json.RawMessage, reply func(any, error)) {
	p, err := realm.ParseParams[realm.InspectedParams](params)
	if err != nil {
		reply(nil, err)
		return
	}
	s.mu.Lock()
	s.selected = append([]tree.NodeID{p.ID}, s.selected[:min(len(s.selected), 4)]...)
	s.mu.Unlock()
	reply(struct{}{}, nil)
}

// aroundSelected returns what to evaluate before and after an expression in which
// $0 to $4 stand for selected nodes; empty if it has none. Engines that are no
// browsers have these names, but nothing that they could stand for.
func (s *session) aroundSelected(method string, params json.RawMessage) (before, after json.RawMessage) {
	if method != "Runtime.evaluate" && method != "Debugger.evaluateOnCallFrame" || !s.x.hasTree() {
		return nil, nil
	}
	s.mu.Lock()
	selected := slices.Clone(s.selected)
	s.mu.Unlock()
	var p struct {
		Expression  string `json:"expression"`
		CommandLine bool   `json:"includeCommandLineAPI"`
	}
	if len(selected) == 0 || json.Unmarshal(params, &p) != nil || !p.CommandLine || !selectedName.MatchString(p.Expression) {
		return nil, nil
	}
	ids := make([]string, len(selected))
	for i, id := range selected {
		ids[i] = strconv.FormatUint(uint64(id), 10)
	}
	hide := func(call string) json.RawMessage {
		return encode(map[string]any{"expression": portExpression(call), "silent": true, "returnByValue": true})
	}
	return hide("select(" + strings.Join(ids, ",") + ")"), hide("restore()")
}

// portExpression is an expression that calls what was put into the program.
func portExpression(call string) string {
	name, _, _ := strings.Cut(call, "(")
	return "globalThis[Symbol.for('natscope.port')]?." + call + "\n//# sourceURL=" + client.Scheme + "call/" + name + ".js"
}

// branded are the methods whose answers show objects to people.
var branded = []string{"Runtime.evaluate", "Runtime.callFunctionOn", "Runtime.getProperties", "Runtime.awaitPromise", "Debugger.evaluateOnCallFrame"}

// brand marks the objects in an answer that stand for nodes, so that they can be
// shown in Elements, and then calls reply.
func (s *session) brand(method string, result json.RawMessage, reply func(any, error)) {
	if !s.x.hasTree() || !slices.Contains(branded, method) {
		reply(producer.Verbatim(result), nil)
		return
	}
	candidates := nodeLike(result)
	if len(candidates) == 0 {
		reply(producer.Verbatim(result), nil)
		return
	}
	s.nodesOf(candidates, func(ids []tree.NodeID, err error) {
		if err == nil {
			result = markNodes(result, candidates, ids)
		}
		reply(producer.Verbatim(result), nil)
	})
}

// answered is where an answer has objects: in its result, which getProperties answers as a list.
type answeredObject struct {
	Type        string `json:"type"`
	Class       string `json:"className"`
	Description string `json:"description"`
	ObjectID    string `json:"objectId"`
}

// mayBeNode reports whether an object may stand for a node, by what Cordis calls its own.
func (o *answeredObject) mayBeNode() bool {
	if o.Type != "object" || o.ObjectID == "" {
		return false
	}
	switch o.Class {
	case "Context", "Fiber":
		return true
	}
	return o.Description == "Proxy(Context)" || o.Description == "Proxy(Fiber)"
}

// nodeLike lists the objects of an answer that may stand for nodes.
func nodeLike(result json.RawMessage) []string {
	var r struct {
		Result json.RawMessage `json:"result"`
	}
	if json.Unmarshal(result, &r) != nil || len(r.Result) == 0 {
		return nil
	}
	var out []string
	if r.Result[0] == '{' {
		var o answeredObject
		if json.Unmarshal(r.Result, &o) == nil && o.mayBeNode() {
			out = append(out, o.ObjectID)
		}
		return out
	}
	var list []struct {
		Value answeredObject `json:"value"`
	}
	if json.Unmarshal(r.Result, &list) != nil {
		return nil
	}
	for _, p := range list {
		if p.Value.mayBeNode() && len(out) < maxBranded {
			out = append(out, p.Value.ObjectID)
		}
	}
	return out
}

// markNodes gives objects that stand for nodes the subtype of those.
func markNodes(result json.RawMessage, objects []string, ids []tree.NodeID) json.RawMessage {
	var top map[string]json.RawMessage
	if json.Unmarshal(result, &top) != nil {
		return result
	}
	mark := func(raw json.RawMessage) json.RawMessage {
		var o map[string]json.RawMessage
		var id string
		if json.Unmarshal(raw, &o) != nil || json.Unmarshal(o["objectId"], &id) != nil {
			return raw
		}
		if at := slices.Index(objects, id); at < 0 || ids[at] == 0 {
			return raw
		}
		o["subtype"] = json.RawMessage(`"node"`)
		return encode(o)
	}
	var list []map[string]json.RawMessage
	if json.Unmarshal(top["result"], &list) == nil {
		for _, p := range list {
			if p["value"] != nil {
				p["value"] = mark(p["value"])
			}
		}
		top["result"] = encode(list)
	} else {
		top["result"] = mark(top["result"])
	}
	return encode(top)
}

// encode makes JSON of what always can be.
func encode(v any) json.RawMessage {
	data, _ := json.Marshal(v)
	return data
}
