package cdpgw

import (
	"encoding/json"
	"strconv"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/value"
)

type getPropertiesParams struct {
	ObjectID                 ObjectID `json:"objectId"`
	OwnProperties            bool     `json:"ownProperties"`
	AccessorPropertiesOnly   bool     `json:"accessorPropertiesOnly"`
	NonIndexedPropertiesOnly bool     `json:"nonIndexedPropertiesOnly"`
}

type getPropertiesResult struct {
	Result             []propertyDescriptor `json:"result"`
	InternalProperties []internalProperty   `json:"internalProperties,omitempty"`
}

type propertyDescriptor struct {
	Name         string       `json:"name"`
	Value        remoteObject `json:"value"`
	Writable     bool         `json:"writable"`
	Configurable bool         `json:"configurable"`
	Enumerable   bool         `json:"enumerable"`
	IsOwn        bool         `json:"isOwn"`
}

type internalProperty struct {
	Name  string       `json:"name"`
	Value remoteObject `json:"value"`
}

// recordedProperties opens a recorded value: one level, as it was recorded. It has no accessors.
func (s *session) recordedProperties(p getPropertiesParams) (any, error) {
	if o, ok := parseNodeObject(p.ObjectID); ok {
		return s.nodeProperties(o, p)
	}
	path, ok := parseObject(p.ObjectID)
	if !ok {
		return nil, failf("Could not find object with given id")
	}
	raw, err := s.recordedValue(path)
	if err != nil {
		return nil, err
	}
	v, err := value.Parse(raw)
	if err != nil {
		return nil, failf("The recorded value cannot be read: %v", err)
	}
	if p.AccessorPropertiesOnly {
		return getPropertiesResult{Result: []propertyDescriptor{}}, nil
	}
	if path.entries {
		return entryProperties(v, path)
	}
	out := getPropertiesResult{Result: properties(v, p.NonIndexedPropertiesOnly)}
	if v.Kind == value.Map || v.Kind == value.Set || v.Kind == value.URLSearchParams {
		out.InternalProperties = append(out.InternalProperties, internalProperty{"[[Entries]]", entriesObject(v, path)})
	}
	if v.Partial {
		out.InternalProperties = append(out.InternalProperties, internalProperty{"[[Recorded]]",
			textObject("the first " + strconv.Itoa(recordedCount(v)) + " of " + strconv.Itoa(v.Size) + " entries")})
	}
	return out, nil
}

// recordedValue finds the encoded value that a path names.
func (s *session) recordedValue(path objectPath) (json.RawMessage, error) {
	src := s.source(path.source)
	if src == nil {
		return nil, failf("The source of this object is gone.")
	}
	e := entryOf(src, path.order)
	switch {
	case e == nil:
		return nil, failf("This object belongs to a console line that is no longer kept.")
	case path.arg == exceptionArg && e.Exception != nil && len(e.Exception.Value) > 0:
		return e.Exception.Value, nil
	case path.arg >= 0 && e.Message != nil && path.arg < len(e.Message.Args):
		return e.Message.Args[path.arg], nil
	}
	return nil, failf("Could not find object with given id")
}

// entryOf returns a console entry by its number, nil if it is not kept any more.
func entryOf(src *fold.Source, order uint64) *console.Entry {
	entries := src.Console.Entries
	if len(entries) == 0 || order < entries[0].Order {
		return nil
	}
	// The kept entries are numbered without holes.
	if i := order - entries[0].Order; i < uint64(len(entries)) {
		return entries[i]
	}
	return nil
}

// recordedRef returns how the live value of a recorded one is found; false when its realm does not keep it.
func (s *session) recordedRef(path objectPath, m realm.Method) (objectRef, bool, error) {
	src := s.source(path.source)
	if src == nil {
		return objectRef{}, false, nil
	}
	e := entryOf(src, path.order)
	var ref console.Ref
	arg := path.arg
	switch {
	case e == nil:
	case arg == exceptionArg && e.Exception != nil:
		ref, arg = e.Exception.Ref, 0
	case arg >= 0 && e.Message != nil:
		ref = e.Message.Ref
	}
	if ref == 0 || s.gateway.hub.contextOf(src.ID, e.Generation) == 0 {
		return objectRef{}, false, nil
	}
	at, err := s.liveRealm(src, realm.MethodResolveArgument)
	if err != nil || !at.can(m) {
		return objectRef{}, false, nil
	}
	return objectRef{at: at, find: realm.MethodResolveArgument, was: path.id(),
		params: realm.ResolveArgumentParams{Ref: ref, Arg: arg, ObjectGroup: recordGroup}}, true, nil
}

// properties lists the own properties of a value.
func properties(v value.Value, noIndexes bool) []propertyDescriptor {
	out := []propertyDescriptor{}
	add := func(name string, x remoteObject, enumerable bool) {
		out = append(out, propertyDescriptor{Name: name, Value: x, Enumerable: enumerable, IsOwn: true})
	}
	if v.Kind == value.Array {
		for i, x := range v.Items {
			if !noIndexes {
				add(strconv.Itoa(i), objectOf(x), true)
			}
		}
		add("length", numberObject(strconv.Itoa(max(v.Size, len(v.Items)))), false)
	}
	if v.Kind == value.Map || v.Kind == value.Set {
		add("size", numberObject(strconv.Itoa(max(v.Size, len(v.Items), len(v.Entries)))), false)
	}
	if v.Kind == value.Error {
		add("name", textObject(v.Name), false)
		add("message", textObject(v.Text), false)
		if v.Stack != "" {
			add("stack", textObject(v.Stack), false)
		}
	}
	for _, f := range v.Fields {
		add(f.Name, objectOf(f.Value), true)
	}
	return out
}

// entriesObject is the list of a container's entries.
func entriesObject(v value.Value, path objectPath) remoteObject {
	path.entries, path.entry = true, -1
	n := len(v.Items) + len(v.Entries)
	return remoteObject{Type: "object", Subtype: "array", ClassName: "Array", Description: "Array(" + strconv.Itoa(n) + ")", ObjectID: path.id()}
}

// entryProperties opens the list of entries, or one entry of it.
func entryProperties(v value.Value, path objectPath) (any, error) {
	entries := v.Entries
	for _, x := range v.Items {
		entries = append(entries, value.Entry{Value: x})
	}
	out := getPropertiesResult{Result: []propertyDescriptor{}}
	add := func(name string, x remoteObject) {
		out.Result = append(out.Result, propertyDescriptor{Name: name, Value: x, Enumerable: true, IsOwn: true})
	}
	keyed := v.Kind != value.Set
	if path.entry >= 0 {
		if path.entry >= len(entries) {
			return nil, failf("Could not find object with given id")
		}
		if keyed {
			add("key", objectOf(entries[path.entry].Key))
		}
		add("value", objectOf(entries[path.entry].Value))
		return out, nil
	}
	for i, e := range entries {
		path.entry = i
		text := previewValue(e.Value, objectOf(e.Value))
		if keyed {
			text = "{" + previewValue(e.Key, objectOf(e.Key)) + " => " + text + "}"
		}
		add(strconv.Itoa(i), remoteObject{Type: "object", Subtype: "internal#entry", ClassName: "Object", Description: text, ObjectID: path.id()})
	}
	return out, nil
}

func recordedCount(v value.Value) int { return len(v.Items) + len(v.Fields) + len(v.Entries) }
