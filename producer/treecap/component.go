package treecap

import (
	"encoding/json"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/natscope/natscope/subjects/tree"
)

// ComponentOption sets something of a component when it is registered. Every
// Option is one.
type ComponentOption interface{ apply(*Component) }

func (o Option) apply(c *Component) { o(c.node) }

// componentOption is an option that only components have.
type componentOption func(*Component)

func (o componentOption) apply(c *Component) { o(c) }

// Component is a live Go value that is shown as a node. Its methods are safe for
// concurrent use and never wait for another goroutine, save for a lock of a kind
// that cannot be tried (see Locked). After Close, or once the node was removed,
// they do nothing.
type Component struct {
	node *Node
	// What the options said; it does not change after Register.
	guard    sync.Locker
	snapshot func() any
	computed []computed
	setters  []setter
	// watching is who looks at a component that wants to know, nil for most.
	watching *watching
	// reading makes sure that one goroutine reads at a time.
	reading atomic.Int32
	// editing holds one token while a setter of the component runs; nil without setters.
	editing chan struct{}

	// All below is guarded by node.t.mu.

	// value is the live value; nil once the component is closed.
	value any
	// shown is what readers see of the value.
	shown shown
	// retry is not nil while another reading is due, delay is how long it waits.
	retry *time.Timer
	delay time.Duration
}

// computed is a value that a function tells.
type computed struct {
	name string
	get  func() any
}

// Register shows a long-lived Go value as a child of parent, or of the root when
// parent is nil, and returns its component. The value's parts become the node's
// values: the exported fields of a struct, or of the struct that a pointer leads
// to, and the entries of a map; anything else is one value named "value". Strings,
// numbers, booleans, times and errors also become attributes: the first few of
// them, long ones cut. The node says where Register was called, unless Loc says
// otherwise.
//
// The value is read by Register and by each Update, in their goroutine, one
// level deep: only what lies inside of it is read. What other pointers lead to
// is named and not read, since nobody knows who else writes to it, and so is a
// map, unless Locked or Snapshot says how to read it safely. The types of
// sync/atomic are loaded, those of sync are left out, and so is a field with the
// tag `natscope:"-"`. A value that implements slog.LogValuer says itself what is
// shown of it: the attributes of its LogValue.
//
// Close removes the component. The tree holds on to the value until then, for
// Tree.Object.
func (t *Tree) Register(parent *Node, name string, value any, options ...ComponentOption) *Component {
	if parent == nil {
		parent = t.root
	}
	c := &Component{value: value, node: &Node{t: parent.t, name: cleanName(name, "component"), loc: caller(2)}}
	for _, o := range options {
		o.apply(c)
	}
	c.node.t.inspects.Do(c.node.t.serveInspect)
	if len(c.setters) > 0 {
		c.editing = make(chan struct{}, 1)
		c.node.t.serve.Do(c.node.t.serveEdits)
	}
	if c.watching != nil {
		c.computed = append(c.computed, computed{watchedValue, c.looked})
		c.watching.told = func() {
			if c.safe() {
				c.Update()
			}
		}
		c.node.t.watches.Do(c.node.t.serveWatch)
	}
	c.node.component = c
	parent.attach(c.node)
	c.Update()
	return c
}

// caller is the file:line of a caller, skip calls up.
func caller(skip int) string {
	_, file, line, ok := runtime.Caller(skip)
	if !ok {
		return ""
	}
	return cutText(file+":"+strconv.Itoa(line), maxValue)
}

// Computed shows a value that get tells, such as a size that is no field, behind
// the others. get runs with each Update, without Locked's lock; a panic in it is
// shown in place of the value. What it returns is read like a registered value
// without a lock.
func Computed(name string, get func() any) ComponentOption {
	return componentOption(func(c *Component) {
		if name := cleanName(name, ""); name != "" && get != nil {
			c.computed = append(c.computed, computed{name, get})
		}
	})
}

// Snapshot shows what read returns in place of the registered value, which stays
// the node's live object. read runs with each Update, in any goroutine and without
// Locked's lock, and returns something that nobody changes any more, such as a
// copy: it may be, or hold, a map.
func Snapshot(read func() any) ComponentOption {
	return componentOption(func(c *Component) { c.snapshot = read })
}

// Locked names the lock that guards the value and its maps: it is held while the value is
// read, for short. A *sync.RWMutex is locked for reading. A lock that is taken is
// not waited for: the value is then read soon after. So Update may be called with
// the lock held. The exception are locks without TryLock, such as the result of
// RLocker, for which Update waits; give the *sync.RWMutex instead.
func Locked(lock sync.Locker) ComponentOption {
	return componentOption(func(c *Component) { c.guard = lock })
}

// Node returns the node that shows the component, for children, attributes and
// text. An attribute that is set there hides a value's of the same name.
func (c *Component) Node() *Node { return c.node }

// Add appends a child to the component's node, as Node.Add does.
func (c *Component) Add(name string, options ...Option) *Node { return c.node.Add(name, options...) }

// Close takes the component, with everything below it, out of the tree, for good,
// and lets go of the value.
func (c *Component) Close() { c.node.Remove() }

// The states of Component.reading.
const (
	idle int32 = iota
	busy
	// again says that something changed while the value was read.
	again
)

// maxReadings is how often one Update reads the value when it changes meanwhile.
const maxReadings = 3

// Update reads the value again and shows what changed. Call it after a change, in
// the goroutine that may read the value, or with any lock when Locked named it.
// Updates that come at once are merged.
func (c *Component) Update() {
	for !c.reading.CompareAndSwap(idle, busy) {
		if c.reading.CompareAndSwap(busy, again) || c.reading.Load() == again {
			return
		}
	}
	for range maxReadings {
		done := c.read()
		if c.reading.CompareAndSwap(busy, idle) {
			if !done {
				c.later()
			}
			return
		}
		c.reading.Store(busy)
	}
	c.reading.Store(idle)
	// A goroutine of the tree may read only what is safe to read anywhere.
	if c.safe() {
		c.later()
	}
}

// safe reports whether any goroutine may read the value.
func (c *Component) safe() bool {
	v, _ := c.live()
	return c.guard != nil || c.snapshot != nil || v == nil || isLogValuer(v) || isScalar(reflect.TypeOf(v).Kind())
}

// live returns the value; false once nobody sees it any more.
func (c *Component) live() (any, bool) {
	t := c.node.t
	t.mu.Lock()
	defer t.mu.Unlock()
	return c.value, !t.closed && c.node.state != gone && c.node.state != beyond
}

// read reads the value once; false means that its lock was taken.
func (c *Component) read() bool {
	v, ok := c.live()
	if !ok {
		return true
	}
	s := scratches.Get().(*scratch)
	defer s.free()
	if !c.collect(s, v) {
		return false
	}
	s.compute(c.computed, c.watching != nil)
	s.complete(c.setters)
	s.encode(c.node.t.maxNode)
	c.show(s)
	return true
}

// collect reads the fields of the value, or of its snapshot; false means that its lock was taken.
func (c *Component) collect(s *scratch, v any) (ok bool) {
	defer func() {
		// The lock's own methods may panic too.
		if r := recover(); r != nil {
			s.threw(r)
			ok = true
		}
	}()
	if c.snapshot != nil {
		s.read(contained(c.snapshot), true)
		return true
	}
	if isLogValuer(v) {
		s.read(v, true)
		return true
	}
	unlock, ok := try(c.guard)
	if !ok {
		return false
	}
	defer unlock()
	s.read(v, c.guard != nil)
	return true
}

// show makes what was read the node's content.
func (c *Component) show(s *scratch) {
	c.node.change(func() bool {
		c.delay = 0
		if c.shown.same(s) {
			return false
		}
		c.shown = s.take(c.setters)
		// Components of one type have the same kinds.
		if t := c.node.t; maps.Equal(c.shown.kinds, t.kinds) {
			c.shown.kinds = t.kinds
		} else {
			t.kinds = c.shown.kinds
		}
		return true
	})
}

// maxDelay is how long a value whose lock is always taken goes unread.
const maxDelay = time.Second

// later makes sure that the value is read again soon.
func (c *Component) later() {
	t := c.node.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.retry != nil || t.closed || c.node.state == gone || c.node.state == beyond {
		return
	}
	c.delay = min(max(2*c.delay, t.interval), maxDelay)
	c.retry = time.AfterFunc(c.delay, func() {
		t.mu.Lock()
		c.retry = nil
		t.mu.Unlock()
		c.Update()
	})
}

// release lets go of the value. The caller holds t.mu.
func (c *Component) release() {
	c.value, c.shown = nil, shown{}
	if c.watching != nil {
		c.node.t.unwatch(c.watching)
	}
	if c.retry != nil {
		c.retry.Stop()
		c.retry = nil
	}
}

// nothing is the unlock of no lock.
func nothing() {}

// try takes a lock without waiting, where that can be done.
func try(l sync.Locker) (unlock func(), ok bool) {
	switch l := l.(type) {
	case nil:
		return nothing, true
	case *sync.RWMutex:
		if l.TryRLock() {
			return l.RUnlock, true
		}
		return nil, false
	case interface{ TryLock() bool }:
		if l.TryLock() {
			return l.(sync.Locker).Unlock, true
		}
		return nil, false
	}
	l.Lock()
	return l.Unlock, true
}

// Object returns the live value that a node's ObjectRef names; false when its
// component is closed, or the reference is none of this tree. Who reads the value
// must know how to do that safely.
func (t *Tree) Object(ref tree.ObjectRef) (any, bool) {
	id, ok := t.parseRef(ref)
	if !ok {
		return nil, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.components[id]
	if c == nil {
		return nil, false
	}
	return c.value, true
}

// shown is what readers see of a component's value. Its parts are never changed
// in place, so that records in the making can use them.
type shown struct {
	// raw holds the names and encoded values one behind the other; the values are parts of it.
	raw      []byte
	values   map[string]json.RawMessage
	kinds    map[string]string
	attrs    []tree.Attr
	writable []string
}

// onto adds what is shown to a node as it travels. The node's own attributes win.
func (s *shown) onto(w *tree.Node) {
	w.Values, w.ValueKinds, w.Writable = s.values, s.kinds, s.writable
	if len(s.attrs) == 0 {
		return
	}
	own := len(w.Attrs)
	w.Attrs = slices.Grow(slices.Clip(w.Attrs), len(s.attrs))
	for _, a := range s.attrs {
		if !slices.ContainsFunc(w.Attrs[:own], func(b tree.Attr) bool { return b.Name == a.Name }) {
			w.Attrs = append(w.Attrs, a)
		}
	}
}
