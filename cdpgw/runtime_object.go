package cdpgw

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/natscope/natscope/subjects/realm"
)

// The commands of Runtime that are about objects.
var objectMethods = map[string]method{
	"Runtime.getProperties":       on((*session).runtimeGetProperties),
	"Runtime.callFunctionOn":      on((*session).runtimeCallFunctionOn),
	"Runtime.awaitPromise":        onObject("runtime.awaitPromise", "promiseObjectId"),
	"Runtime.queryObjects":        onObject("runtime.queryObjects", "prototypeObjectId"),
	"Runtime.getExceptionDetails": onObject("runtime.getExceptionDetails", "errorObjectId"),
	"Runtime.releaseObject":       on((*session).runtimeReleaseObject),
	"Runtime.releaseObjectGroup":  on((*session).runtimeReleaseObjectGroup),
}

// errOtherWorld is V8's answer to a call with objects of two worlds.
func errOtherWorld() error {
	return failf("Argument should belong to the same JavaScript world as target object")
}

// errRecorded is the answer to a command that needs a live object and got a recorded one.
func errRecorded() error {
	return failf("This value was recorded by its program, and the object behind it is not there (any more): it can be looked at, but nothing can be called with it.")
}

// onObject is a method that goes to the realm of the object that a parameter names.
func onObject(m realm.Method, param string) method {
	return on(func(s *session, p rawParams) (any, error) {
		var id ObjectID
		if err := json.Unmarshal(p[param], &id); err != nil {
			return nil, invalidParams(param + ": a string was expected")
		}
		ref, ok, err := s.object(id, m)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, errRecorded()
		}
		return s.withObjects(ref.at, m, p, map[string]objectRef{param: ref}, nil)
	})
}

// withObjects sends a command about objects to their realm. members are the
// parameters that name one, arguments those of a call by their places.
func (s *session) withObjects(at liveAt, m realm.Method, p rawParams, members map[string]objectRef, arguments map[int]objectRef) (any, error) {
	if err := s.allowed(m, encode(p)); err != nil {
		return nil, err
	}
	return s.queued(at.realmOf, func(ctx context.Context, t *turn) (any, error) {
		defer t.lane.runs(m)()
		for again := false; ; again = true {
			params, recorded, err := s.bound(ctx, p, members, arguments)
			if err != nil {
				return nil, err
			}
			raw, err := s.ask(ctx, at, m, params, t.over)
			if err != nil && isGone(err) && len(recorded) > 0 && !again {
				// What was made live may have been released since.
				s.forgetResolved(recorded...)
				continue
			}
			if err != nil {
				return nil, err
			}
			return s.translatorOf(at).translate(raw), nil
		}
	}), nil
}

// bound puts the realm's ids in the place of the client's. recorded are those that were not live before.
func (s *session) bound(ctx context.Context, p rawParams, members map[string]objectRef, arguments map[int]objectRef) (_ json.RawMessage, recorded []objectRef, err error) {
	out := p.without("uniqueContextId", "contextId", "executionContextId")
	resolve := func(ref objectRef) (realm.ObjectID, error) {
		if ref.id == "" {
			recorded = append(recorded, ref)
		}
		id, err := s.resolve(ctx, ref)
		if err != nil && ref.id == "" && errors.Is(err, realm.ErrNotFound) {
			return "", errRecorded()
		}
		return id, err
	}
	for name, ref := range members {
		id, err := resolve(ref)
		if err != nil {
			return nil, recorded, err
		}
		out[name] = encode(id)
	}
	if len(arguments) > 0 {
		var list []rawParams
		if err := json.Unmarshal(p["arguments"], &list); err != nil {
			return nil, recorded, invalidParams("arguments: " + describeJSON(err))
		}
		for i, ref := range arguments {
			id, err := resolve(ref)
			if err != nil {
				return nil, recorded, err
			}
			list[i]["objectId"] = encode(id)
		}
		out["arguments"] = encode(list)
	}
	return encode(out), recorded, nil
}

// runtimeCallFunctionOn calls a function with objects of one realm. To whoever
// may only look it is only done if the realm can prove that it changes nothing.
func (s *session) runtimeCallFunctionOn(p rawParams) (any, error) {
	var call struct {
		contextParams
		ObjectID  ObjectID `json:"objectId"`
		Arguments []struct {
			ObjectID ObjectID `json:"objectId"`
		} `json:"arguments"`
	}
	if err := p.read(&call); err != nil {
		return nil, err
	}
	var at liveAt
	members, arguments := make(map[string]objectRef), make(map[int]objectRef)
	add := func(id ObjectID, put func(objectRef)) error {
		ref, ok, err := s.object(id, realm.MethodCallFunctionOn)
		switch {
		case err != nil:
			return err
		case !ok:
			return errRecorded()
		case at.context != 0 && at.context != ref.at.context:
			return errOtherWorld()
		}
		at = ref.at
		put(ref)
		return nil
	}
	var err error
	if call.ObjectID != "" {
		err = add(call.ObjectID, func(r objectRef) { members["objectId"] = r })
	} else {
		at, err = s.contextRealm(call.contextParams, realm.MethodCallFunctionOn)
	}
	for i, a := range call.Arguments {
		if err == nil && a.ObjectID != "" {
			err = add(a.ObjectID, func(r objectRef) { arguments[i] = r })
		}
	}
	if err != nil {
		return nil, err
	}
	if s.target.grant.Controls() {
		return s.withObjects(at, realm.MethodCallFunctionOn, p, members, arguments)
	}
	if at.can("debugger.enable") {
		// An engine runs it on the program's own thread, without a bound: a loop would never end.
		return nil, failf("%s", errOnlyLook)
	}
	p = p.without()
	p["throwOnSideEffect"] = json.RawMessage("true")
	result, err := s.withObjects(at, realm.MethodCallFunctionOn, p, members, arguments)
	if o, ok := result.(ordered); ok {
		run := o.run
		o.run = func(ctx context.Context) (any, error) {
			v, err := run(ctx)
			if raw, ok := v.(json.RawMessage); ok && threwSideEffect(raw) {
				return nil, failf("%s", errOnlyLook)
			}
			return v, err
		}
		return o, err
	}
	return result, err
}

// runtimeGetProperties opens an object: a live one at its realm, a recorded one
// there too as long as the realm has it, and else as it was recorded.
func (s *session) runtimeGetProperties(p rawParams) (any, error) {
	const m realm.Method = "runtime.getProperties"
	var q getPropertiesParams
	if err := p.read(&q); err != nil {
		return nil, err
	}
	if l, ok := parseLink(q.ObjectID); ok {
		return s.linkProperties(l, q.AccessorPropertiesOnly)
	}
	ref, ok, err := s.object(q.ObjectID, m)
	if err != nil {
		return nil, err
	}
	if !ok {
		return s.recordedProperties(q)
	}
	if ref.id != "" {
		return s.withObjects(ref.at, m, p, map[string]objectRef{"objectId": ref}, nil)
	}
	return s.livePropertiesOr(ref, m, p, q)
}

// livePropertiesOr opens a recorded object at its realm, or as it was recorded.
func (s *session) livePropertiesOr(ref objectRef, m realm.Method, p rawParams, q getPropertiesParams) (any, error) {
	result, err := s.withObjects(ref.at, m, p, map[string]objectRef{"objectId": ref}, nil)
	o, ok := result.(ordered)
	if err != nil || !ok {
		return s.recordedProperties(q)
	}
	run := o.run
	o.run = func(ctx context.Context) (any, error) {
		v, err := run(ctx)
		if err == nil || ctx.Err() != nil {
			return v, err
		}
		var recorded any
		s.during(func() { recorded, err = s.recordedProperties(q) })
		if f, ok := recorded.(later); ok && err == nil {
			return f(ctx)
		}
		return recorded, err
	}
	return o, nil
}

// runtimeReleaseObject lets go of an object. What was recorded is held by nobody.
func (s *session) runtimeReleaseObject(p struct {
	ObjectID ObjectID `json:"objectId"`
}) (any, error) {
	const m realm.Method = "runtime.releaseObject"
	o, ok := parseLiveObject(p.ObjectID)
	x := s.gateway.hub.contexts[o.source]
	if !ok || x == nil || x.id != o.context || s.gateway.realms == nil {
		return nil, nil
	}
	params, err := json.Marshal(map[string]realm.ObjectID{"objectId": o.id})
	if err != nil {
		return nil, err
	}
	return s.told(realmOf{o.source, x.generation}, m, params), nil
}

// told sends a command whose answer nobody needs, in its turn.
func (s *session) told(at realmOf, m realm.Method, params json.RawMessage) ordered {
	return s.queued(at, func(context.Context, *turn) (any, error) {
		s.gateway.realms.Tell(at.at(), s.id, m, params)
		return nil, nil
	})
}

// runtimeReleaseObjectGroup lets go of a group of objects, at every realm that this connection uses.
func (s *session) runtimeReleaseObjectGroup(p struct {
	ObjectGroup string `json:"objectGroup"`
}) (any, error) {
	const m realm.Method = "runtime.releaseObjectGroup"
	if s.gateway.realms == nil || len(s.realms.lanes) == 0 {
		return nil, nil
	}
	params, err := json.Marshal(map[string]string{"objectGroup": p.ObjectGroup})
	if err != nil {
		return nil, err
	}
	turns := make(map[realmOf]*turn, len(s.realms.lanes))
	for at := range s.realms.lanes {
		turns[at] = s.turn(at)
	}
	over := func() {
		for _, t := range turns {
			t.over()
		}
	}
	return ordered{over: over, run: func(ctx context.Context) (any, error) {
		defer over()
		for at, t := range turns {
			if err := t.wait(ctx); err != nil {
				return nil, err
			}
			s.gateway.realms.Tell(at.at(), s.id, m, params)
			t.over()
		}
		return nil, nil
	}}, nil
}
