package cdpgw

import (
	"strconv"
	"strings"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
)

// livePrefix begins the ids of objects that a live realm holds for this connection.
const livePrefix = "o"

// liveAt is one generation of a source as a connection uses its realm.
type liveAt struct {
	realmOf
	// context is the generation's execution context: its number, which is never
	// used twice, marks the ids of the generation's objects.
	context ContextID
	// name is what people call the source.
	name string
	// capabilities are the source's.
	capabilities []string
}

// can reports whether the realm answers a method.
func (a liveAt) can(m realm.Method) bool { return realm.Supports(a.capabilities, m) }

// prefix begins the ids of the realm's objects; the realm's own id follows.
func (a liveAt) prefix() string {
	return livePrefix + ":" + string(a.source) + ":" + strconv.FormatInt(int64(a.context), 10) + ":"
}

// liveObject is an object id that liveAt.prefix made.
type liveObject struct {
	source  subjects.SourceID
	context ContextID
	id      realm.ObjectID
}

// parseLiveObject reads the id of a live object.
func parseLiveObject(id ObjectID) (liveObject, bool) {
	parts := strings.SplitN(string(id), ":", 4)
	if len(parts) != 4 || parts[0] != livePrefix || !subjects.IsToken(parts[1]) || parts[3] == "" {
		return liveObject{}, false
	}
	n, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return liveObject{}, false
	}
	return liveObject{subjects.SourceID(parts[1]), ContextID(n), realm.ObjectID(parts[3])}, true
}

// errOnlyShows is the answer of a gateway without a way to the sources.
func errOnlyShows() error {
	return failf("This gateway only shows what sources recorded: it was started without a connection to them.")
}

// liveRealm returns the live realm of a source for a method of sessions, or why there is none.
func (s *session) liveRealm(src *fold.Source, m realm.Method) (liveAt, error) {
	name := src.Name()
	x := s.gateway.hub.contexts[src.ID]
	switch {
	case s.gateway.realms == nil:
		return liveAt{}, errOnlyShows()
	case x == nil:
		return liveAt{}, failf("%s is not connected; what is shown is its last state.", name)
	}
	at := liveAt{realmOf{src.ID, x.generation}, x.id, name, src.Life.Descriptor.Capabilities}
	switch {
	case !at.can(realm.MethodOpenSession):
		return liveAt{}, failf("%s shows what it recorded, but cannot be asked: it serves no live realm. In a Go program, goreal.New does.", name)
	case !at.can(m):
		return liveAt{}, failf("%s does not support %s.", name, m)
	}
	return at, nil
}

// objectRef is an object that a command names: a live one, or one that has to be
// made live first.
type objectRef struct {
	at liveAt
	// id is the realm's, empty for one that has to be found by find with params.
	id     realm.ObjectID
	find   realm.Method
	params any
	// was is the id by which the client named it.
	was ObjectID
}

// errNoObject is Chrome's answer to an id of an object that is not there.
func errNoObject() error { return failf("Could not find object with given id") }

// object finds what an object id stands for. ok is false for what was recorded
// and cannot be made live; the error says why something live cannot be reached.
func (s *session) object(id ObjectID, m realm.Method) (ref objectRef, ok bool, err error) {
	if o, is := parseLiveObject(id); is {
		src := s.source(o.source)
		if src == nil {
			return ref, true, failf("Could not find object with given id: its source is gone.")
		}
		x := s.gateway.hub.contexts[o.source]
		if x == nil || x.id != o.context {
			return ref, true, failf("Could not find object with given id: it belonged to a run of %s that is over.", src.Name())
		}
		at, err := s.liveRealm(src, m)
		return objectRef{at: at, id: o.id, was: id}, true, err
	}
	if o, is := parseNodeObject(id); is && len(o.path) == 0 {
		src, e, err := s.component(o)
		if err != nil {
			return ref, true, err
		}
		if at, err := s.liveRealm(src, realm.MethodResolveNode); err == nil && at.can(m) && !src.Tree.Detached {
			return objectRef{at: at, find: realm.MethodResolveNode, params: realm.ResolveNodeParams{ID: e.ID, ObjectGroup: recordGroup}, was: id}, true, nil
		}
		return ref, false, nil
	}
	if path, is := parseObject(id); is && !path.entries {
		return s.recordedRef(path, m)
	}
	return ref, false, nil
}

// recordGroup is the group of objects that were made live because somebody opened
// a recorded one. No client knows it, so none releases it.
const recordGroup = "natscope-record"
