package cdpgw

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/tree"
	"github.com/natscope/natscope/subjects/value"
)

// The object of a component is its values by name. They are those that the
// source recorded, one level deep; what is below is asked of the source when
// somebody opens it. Its ids need no table of handles: they say where to look.

// The beginnings of ids of components and of values in them.
const (
	nodePrefix  = "node"
	valuePrefix = "value"
)

// nodeObject names a component, or a value of it when path is not empty.
type nodeObject struct {
	source  subjects.SourceID
	backend tree.BackendNodeID
	path    []realm.Step
}

func (o nodeObject) id() ObjectID {
	head := ":" + string(o.source) + ":" + strconv.FormatUint(uint64(o.backend), 10)
	if len(o.path) == 0 {
		return ObjectID(nodePrefix + head)
	}
	return ObjectID(valuePrefix + head + ":" + base64.RawURLEncoding.EncodeToString(encode(o.path)))
}

// below returns the id of what a step leads to.
func (o nodeObject) below(s realm.Step) nodeObject {
	o.path = append(slices.Clip(o.path), s)
	return o
}

// maxValuePath bounds how deep values are opened, as realms do.
const maxValuePath = 64

// parseNodeObject reads an id that nodeObject.id made.
func parseNodeObject(id ObjectID) (nodeObject, bool) {
	parts := strings.Split(string(id), ":")
	if len(parts) < 3 || !subjects.IsToken(parts[1]) {
		return nodeObject{}, false
	}
	backend, err := strconv.ParseUint(parts[2], 10, 53)
	if err != nil {
		return nodeObject{}, false
	}
	o := nodeObject{source: subjects.SourceID(parts[1]), backend: tree.BackendNodeID(backend)}
	switch {
	case parts[0] == nodePrefix && len(parts) == 3:
		return o, true
	case parts[0] == valuePrefix && len(parts) == 4:
		raw, err := base64.RawURLEncoding.DecodeString(parts[3])
		if err != nil || json.Unmarshal(raw, &o.path) != nil || len(o.path) == 0 || len(o.path) > maxValuePath || o.path[0].Indexed {
			return nodeObject{}, false
		}
		return o, true
	}
	return nodeObject{}, false
}

// component finds the component that an object belongs to.
func (s *session) component(o nodeObject) (*fold.Source, *tree.Entry, error) {
	src := s.source(o.source)
	if src == nil {
		return nil, nil, failf("The source of this object is gone.")
	}
	e := src.Tree.Backend(o.backend)
	if e == nil {
		return nil, nil, failf("The component of this object is not in the tree any more.")
	}
	return src, e, nil
}

// resolveParams name a node whose object is wanted.
type resolveParams struct {
	nodeParams
	ObjectGroup string `json:"objectGroup"`
}

// domResolveNode returns the object of a component: the live one where its realm
// has it, and else one of its recorded values.
func (s *session) domResolveNode(p resolveParams) (any, error) {
	n, err := s.lookup(p.nodeParams)
	if err != nil {
		return nil, err
	}
	if n.place != placeTree {
		return nil, failf("%s", noObject)
	}
	o := nodeObject{source: n.source.ID, backend: n.entry.Backend}
	recorded := map[string]remoteObject{"object": {Type: "object", Subtype: "node", ClassName: elementName(n.entry.Name), Description: elementName(n.entry.Name), ObjectID: o.id()}}
	at, err := s.liveRealm(n.source, realm.MethodResolveNode)
	if err != nil || n.source.Tree.Detached {
		return recorded, nil
	}
	ref := objectRef{at: at, find: realm.MethodResolveNode, params: realm.ResolveNodeParams{ID: n.entry.ID, ObjectGroup: p.ObjectGroup}}
	h := hitOf(n)
	return s.queued(at.realmOf, func(ctx context.Context, t *turn) (any, error) {
		raw, err := s.objectOf(ctx, ref, t.over)
		if err != nil {
			return recorded, nil
		}
		raw = s.translatorOf(at).translate(raw)
		var object struct {
			ObjectID ObjectID `json:"objectId"`
		}
		if json.Unmarshal(raw, &object) == nil && object.ObjectID != "" {
			s.realms.mu.Lock()
			remember(&s.realms.nodes, object.ObjectID, h)
			s.realms.mu.Unlock()
		}
		return realm.ObjectResult{Object: raw}, nil
	}), nil
}

// domRequestNode makes the node of an object known. A live object's node is asked of its realm.
func (s *session) domRequestNode(p nodeParams) (any, error) {
	if n, err := s.lookup(nodeParams{ObjectID: p.ObjectID}); err == nil {
		return s.nodeID(n)
	}
	ref, ok, err := s.object(p.ObjectID, realm.MethodNodeOf)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, failf("Object id doesn't reference a Node")
	}
	return s.queued(ref.at.realmOf, func(ctx context.Context, _ *turn) (any, error) {
		id, err := s.nodeOf(ctx, ref)
		if err != nil {
			return nil, err
		}
		return ending(s, func() (any, error) {
			src := s.source(ref.at.source)
			if src == nil || id == 0 {
				return nil, failf("Object id doesn't reference a Node")
			}
			e := src.Tree.Node(id)
			if e == nil {
				return nil, failf("The component of this object is not in the tree (any more).")
			}
			n := node{placeTree, src, e}
			s.realms.mu.Lock()
			remember(&s.realms.nodes, p.ObjectID, hitOf(n))
			s.realms.mu.Unlock()
			return s.nodeID(n)
		})
	}), nil
}

// nodeID makes a node known and returns its id.
func (s *session) nodeID(n node) (any, error) {
	known := s.pushPath(n)
	if known == nil {
		return nil, failf("Document needs to be requested first")
	}
	return map[string]NodeID{"nodeId": known.id}, nil
}

// nodeOf asks a realm for the node of an object; 0 is none.
func (s *session) nodeOf(ctx context.Context, ref objectRef) (tree.NodeID, error) {
	id, err := s.resolve(ctx, ref)
	if err != nil {
		return 0, err
	}
	params, err := json.Marshal(realm.NodeOfParams{ObjectID: id})
	if err != nil {
		return 0, err
	}
	raw, err := s.ask(ctx, ref.at, realm.MethodNodeOf, params, nil)
	var r realm.NodeOfResult
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	return r.ID, err
}

// nodeOfObject returns the node of an object that was asked for before.
func (s *session) nodeOfObject(id ObjectID) (node, bool) {
	s.realms.mu.Lock()
	h, ok := s.realms.nodes[id]
	s.realms.mu.Unlock()
	if !ok {
		return node{}, false
	}
	return s.find(h.id, h.source)
}

// nodeProperties opens a component, or a value in one.
func (s *session) nodeProperties(o nodeObject, p getPropertiesParams) (any, error) {
	src, e, err := s.component(o)
	if err != nil {
		return nil, err
	}
	if p.AccessorPropertiesOnly {
		return getPropertiesResult{Result: []propertyDescriptor{}}, nil
	}
	if len(o.path) == 0 {
		return getPropertiesResult{Result: componentProperties(o, e)}, nil
	}
	at, err := s.reachable(src, realm.MethodInspect)
	if err == nil && src.Tree.Detached {
		err = failf("%s is not connected; what is shown is its last state.", src.Name())
	}
	if err != nil {
		raw, ok := e.Values[o.path[0].Name]
		if len(o.path) > 1 || !ok {
			return nil, err
		}
		// The first level was recorded.
		return openedValue(o, raw, p.NonIndexedPropertiesOnly)
	}
	params := realm.InspectParams{ID: e.ID, Path: o.path, Limit: s.gateway.limits.Properties}
	return later(func(ctx context.Context) (any, error) {
		raw, err := s.command(ctx, at, realm.MethodInspect, params)
		if err != nil {
			return nil, err
		}
		var r realm.InspectResult
		if err := json.Unmarshal(raw, &r); err != nil || len(r.Value) == 0 {
			return nil, failf("This value is not there any more.")
		}
		return openedValue(o, r.Value, p.NonIndexedPropertiesOnly)
	}), nil
}

// componentProperties lists the values of a component.
func componentProperties(o nodeObject, e *tree.Entry) []propertyDescriptor {
	out := []propertyDescriptor{}
	for _, name := range slices.Sorted(maps.Keys(e.Values)) {
		x := textObject("natscope could not read this value")
		if v, err := value.Parse(e.Values[name]); err == nil {
			x = openable(o.below(realm.Step{Name: name}), v)
		}
		out = append(out, propertyDescriptor{Name: name, Value: x, Enumerable: true, IsOwn: true, Writable: slices.Contains(e.Writable, name)})
	}
	return out
}

// openable describes a value of a component; what has something inside can be opened.
func openable(o nodeObject, v value.Value) remoteObject {
	x := objectOf(v)
	switch {
	case v.Kind == value.Dehydrated && !v.Opaque:
		x.ObjectID = o.id()
	case v.Kind != value.Dehydrated && container(v.Kind):
		x.ObjectID, x.Preview = o.id(), previewOf(v, x)
	}
	return x
}

// openedValue lists what is inside a value.
func openedValue(o nodeObject, raw json.RawMessage, noIndexes bool) (any, error) {
	v, err := value.Parse(raw)
	if err != nil {
		return nil, failf("The value cannot be read: %v", err)
	}
	out := getPropertiesResult{Result: []propertyDescriptor{}}
	add := func(name string, step realm.Step, x value.Value) {
		out.Result = append(out.Result, propertyDescriptor{Name: name, Value: openable(o.below(step), x), Enumerable: true, IsOwn: true})
	}
	for i, x := range v.Items {
		if !noIndexes {
			add(strconv.Itoa(i), realm.Step{Index: i, Indexed: true}, x)
		}
	}
	for i, e := range v.Entries {
		add(previewValue(e.Key, objectOf(e.Key)), realm.Step{Index: i, Indexed: true}, e.Value)
	}
	for _, f := range v.Fields {
		add(f.Name, realm.Step{Name: f.Name}, f.Value)
	}
	if v.Kind == value.Array {
		out.Result = append(out.Result, propertyDescriptor{Name: "length", Value: numberObject(strconv.Itoa(max(v.Size, len(v.Items)))), IsOwn: true})
	}
	if v.Kind == value.Error {
		out.Result = append(out.Result, properties(v, noIndexes)...)
	}
	if v.Partial {
		out.InternalProperties = append(out.InternalProperties, internalProperty{"[[Loaded]]",
			textObject("the first " + strconv.Itoa(recordedCount(v)) + " of " + strconv.Itoa(v.Size) + " entries")})
	}
	return out, nil
}
