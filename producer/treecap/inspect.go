package treecap

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/tree"
	"github.com/natscope/natscope/subjects/value"
)

const (
	// maxOpened is how many entries of one value an inspection reads.
	maxOpened = 2000
	// maxOpenedBytes is about how large its answer gets.
	maxOpenedBytes = 512 << 10
	// inspectWait is how long it waits for the lock of a value.
	inspectWait = time.Second
	// inspectPause is the time between two tries to take it.
	inspectPause = 5 * time.Millisecond
)

// serveInspect makes the source answer the command that opens a value.
func (t *Tree) serveInspect() { t.p.OnCommand(string(realm.MethodInspect), t.onInspect) }

// onInspect carries the command out.
func (t *Tree) onInspect(ctx context.Context, params json.RawMessage) (any, error) {
	p, err := realm.ParseParams[realm.InspectParams](params)
	if err != nil {
		return nil, err
	}
	v, err := t.Inspect(ctx, p.ID, p.Path, p.Limit)
	return realm.InspectResult{Value: v}, err
}

// Inspect reads what a path leads to in a component's value: first the name of a
// value as readers see it, then fields, keys and places inside of it. It reads
// the live value, with Locked's lock, one level deep and at most limit entries
// (0 means value.MaxEntries); nil when nothing is there. What pointers lead to is
// not read here either, nor what is hidden by a tag or by LogValue.
//
// Only a value that any goroutine may read can be opened deeper than it was
// shown: one with Locked, Snapshot or slog.LogValuer. For others the error wraps
// realm.ErrRefused and says so; it wraps realm.ErrBusy while the lock is taken.
func (t *Tree) Inspect(ctx context.Context, id tree.NodeID, path []realm.Step, limit int) (json.RawMessage, error) {
	t.mu.Lock()
	c := t.components[id]
	closed := t.closed
	t.mu.Unlock()
	if c == nil || closed || len(path) == 0 {
		return nil, nil
	}
	if !c.safe() {
		return c.recorded(path)
	}
	v, ok, err := c.open(ctx, path, min(max(limit, value.MaxEntries), maxOpened))
	if err != nil || !ok {
		return nil, err
	}
	raw := value.Encode(v)
	for len(raw) > maxOpenedBytes && fewer(&v) {
		raw = value.Encode(v)
	}
	if len(raw) > maxOpenedBytes {
		raw = value.Encode(shorten(v))
	}
	return raw, nil
}

// fewer leaves out the second half of a container's entries; false when nothing can be left out.
func fewer(v *value.Value) bool {
	n := len(v.Items) + len(v.Fields) + len(v.Entries)
	if n < 2 {
		return false
	}
	v.Size, v.Partial = max(v.Size, n), true
	v.Items = v.Items[:(len(v.Items)+1)/2]
	v.Fields = v.Fields[:(len(v.Fields)+1)/2]
	v.Entries = v.Entries[:(len(v.Entries)+1)/2]
	return true
}

// recorded answers from what readers were sent.
func (c *Component) recorded(path []realm.Step) (json.RawMessage, error) {
	t := c.node.t
	t.mu.Lock()
	defer t.mu.Unlock()
	raw := c.shown.values[path[0].Name]
	if raw != nil && len(path) > 1 {
		return nil, fmt.Errorf("%w: only the goroutine that owns %q may read it, so it is shown as its last Update found it; register it with treecap.Locked or treecap.Snapshot to open what is inside", realm.ErrRefused, c.node.name)
	}
	return slices.Clone(raw), nil
}

// open reads what a path leads to; false when nothing is there.
func (c *Component) open(ctx context.Context, path []realm.Step, most int) (out value.Value, ok bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, ok, err = value.Value{Kind: value.Threw, Text: readable(p)}, true, nil
		}
	}()
	live, alive := c.live()
	if !alive {
		return value.Value{}, false, nil
	}
	r := reader{maps: true, most: most}
	switch {
	case c.snapshot != nil:
		live = c.snapshot()
	case isLogValuer(live):
	default:
		unlock, err := c.lock(ctx)
		if err != nil {
			return value.Value{}, false, err
		}
		defer unlock()
		r.maps = c.guard != nil
	}
	if x, ok := r.named(live, path[0].Name); ok {
		out, ok = r.follow(x, path[1:])
		return out, ok, nil
	}
	for _, f := range c.computed {
		if f.name == path[0].Name {
			r.maps = false
			out, ok = r.follow(reflect.ValueOf(f.get()), path[1:])
			return out, ok, nil
		}
	}
	return value.Value{}, false, nil
}

// lock takes the value's lock, and waits a little for one that is taken.
func (c *Component) lock(ctx context.Context) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, inspectWait)
	defer cancel()
	for {
		if unlock, ok := try(c.guard); ok {
			return unlock, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: the lock of %q is taken; ask again", realm.ErrBusy, c.node.name)
		case <-time.After(inspectPause):
		}
	}
}

// named finds a value by the name that read gives it.
func (r reader) named(v any, name string) (reflect.Value, bool) {
	if l, ok := v.(slog.LogValuer); ok {
		logged := slog.AnyValue(l).Resolve()
		if logged.Kind() == slog.KindGroup {
			return attrNamed(logged.Group(), name, 0)
		}
		return reflect.ValueOf(logged), name == "value"
	}
	x := reflect.ValueOf(v)
	for range maxPointers {
		if x.Kind() != reflect.Pointer || x.IsNil() || isKnown(x.Type()) {
			break
		}
		x = x.Elem()
	}
	switch {
	case !x.IsValid():
		return x, false
	case x.Kind() == reflect.Struct && !isKnown(x.Type()) && !isAtomic(x.Type()):
		return fieldNamed(x, name)
	case x.Kind() == reflect.Map && r.maps && !x.IsNil():
		for it := x.MapRange(); it.Next(); {
			// Names of entries are cleaned when they become values.
			if k := it.Key(); cleanName(r.pairName(k), "(empty)") == name {
				return it.Value(), true
			}
		}
		return x, false
	}
	return x, name == "value"
}

func attrNamed(group []slog.Attr, name string, level int) (reflect.Value, bool) {
	for _, a := range group {
		v := a.Value.Resolve()
		if key := cleanName(a.Key, ""); key == name && key != "" {
			return reflect.ValueOf(v), true
		} else if key == "" && v.Kind() == slog.KindGroup && level < maxInline {
			if x, ok := attrNamed(v.Group(), name, level+1); ok {
				return x, true
			}
		}
	}
	return reflect.Value{}, false
}

func fieldNamed(x reflect.Value, name string) (reflect.Value, bool) {
	for _, f := range visible(x.Type()) {
		if f.name == name {
			return x.Field(f.index), true
		}
	}
	return reflect.Value{}, false
}

// follow takes the steps of a path and reads where they end.
func (r reader) follow(x reflect.Value, path []realm.Step) (value.Value, bool) {
	for _, step := range path {
		var ok bool
		if x, ok = r.step(x, step); !ok {
			return value.Value{}, false
		}
	}
	if !x.IsValid() {
		return value.Value{Kind: value.Null}, true
	}
	return r.value(x, 0), true
}

// step goes one step into a value, where value would show one: what hides behind
// a pointer, or behind LogValue, stays there.
func (r reader) step(x reflect.Value, s realm.Step) (reflect.Value, bool) {
	for range maxPointers {
		switch {
		case !x.IsValid() || canBeNil(x.Kind()) && x.IsNil():
			return x, false
		case x.Kind() == reflect.Interface:
			x = x.Elem()
			continue
		case x.CanInterface() && isAtomic(x.Type()):
			next, ok := load(x)
			if !ok {
				return x, false
			}
			x = next
			continue
		}
		break
	}
	if logged, ok := loggedOf(x); ok {
		if logged.Kind() == slog.KindGroup {
			return attrNamed(logged.Group(), s.Name, 0)
		}
		return r.step(reflect.ValueOf(logged.Any()), s)
	}
	if raw, ok := rawOf(x); ok {
		var v any
		if json.Unmarshal(raw, &v) != nil {
			return x, false
		}
		return reader{maps: true, most: r.most}.step(reflect.ValueOf(v), s)
	}
	if _, known := wellKnown(x); known {
		return x, false
	}
	switch x.Kind() {
	case reflect.Struct:
		if isLock(x.Type()) || s.Indexed {
			return x, false
		}
		return fieldNamed(x, s.Name)
	case reflect.Slice, reflect.Array:
		if !s.Indexed || s.Index >= x.Len() || x.Type().Elem().Kind() == reflect.Uint8 {
			return x, false
		}
		return x.Index(s.Index), true
	case reflect.Map:
		return r.entry(x, s)
	}
	return x, false
}

// entry finds an entry of a map: by its key if that is a string, by its place in order if not.
func (r reader) entry(x reflect.Value, s realm.Step) (reflect.Value, bool) {
	named := x.Type().Key().Kind() == reflect.String
	if !r.maps || named == s.Indexed {
		return x, false
	}
	if named {
		for it := x.MapRange(); it.Next(); {
			if strings.ToValidUTF8(it.Key().String(), "\ufffd") == s.Name {
				return it.Value(), true
			}
		}
		return x, false
	}
	if pairs := r.pairs(x, s.Index+1); s.Index < len(pairs) {
		return pairs[s.Index].value, true
	}
	return x, false
}

// loggedOf returns what a value says of itself by slog.
func loggedOf(x reflect.Value) (slog.Value, bool) {
	if !x.CanInterface() {
		return slog.Value{}, false
	}
	t := x.Type()
	switch {
	case t == reflect.TypeFor[slog.Value]():
		return x.Interface().(slog.Value).Resolve(), true
	case t == reflect.TypeFor[[]slog.Attr]():
		return slog.GroupValue(x.Interface().([]slog.Attr)...), true
	case t.Implements(logValuerType) && t.Kind() != reflect.Pointer && !holdsLock(t):
		return slog.AnyValue(x.Interface()).Resolve(), true
	}
	return slog.Value{}, false
}

func rawOf(x reflect.Value) (json.RawMessage, bool) {
	if !x.CanInterface() || x.Type() != reflect.TypeFor[json.RawMessage]() {
		return nil, false
	}
	return x.Interface().(json.RawMessage), true
}
