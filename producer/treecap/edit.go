package treecap

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/natscope/natscope/subjects/tree"
)

// ErrUnknownNode says that a tree has no component of a node id: it was closed, or never was one.
var ErrUnknownNode = errors.New("treecap: no such component")

// ErrNotWritable says that a component has no setter for a value. The text around it names those that it has.
var ErrNotWritable = errors.New("treecap: not writable")

// ErrRefused says that a setter did not take a value. The text around it is the setter's reason.
var ErrRefused = errors.New("treecap: refused")

// ErrBusy says that an edit was not tried because earlier ones still run. Try again later.
var ErrBusy = errors.New("treecap: earlier edits still run")

// ErrTimeout says that a setter did not return in time. Whether it changed the
// value is not known; it still runs, and holds up further edits of its component.
var ErrTimeout = errors.New("treecap: the setter did not return in time")

// setter changes one value.
type setter struct {
	name string
	set  func(json.RawMessage) error
}

// Writable lets people change the value with the given name: a field, a map's
// entry or a Computed value. A name that is none of them is shown as undefined,
// for settings that can only be written. T is what the setter takes: the new
// value is decoded as encoding/json does it, and as people type it: a number, a
// boolean or JSON in a string is taken for what it says, a time.Duration as
// "1.5s". With T json.RawMessage the setter gets the JSON as it came.
//
// set runs in a goroutine of the tree, so it takes the locks that the change
// needs. Its error is the reason that people read. The value is read again after
// it, if any goroutine may do that: with Locked, Snapshot or slog.LogValuer.
// Otherwise the owner calls Update.
func Writable[T any](name string, set func(T) error) ComponentOption {
	return componentOption(func(c *Component) {
		if name := cleanName(name, ""); name != "" && set != nil {
			c.setters = append(c.setters, setter{name, func(raw json.RawMessage) error {
				v, err := decode[T](raw)
				if err != nil {
					return err
				}
				return set(v)
			}})
		}
	})
}

// decode makes a T of JSON that a person may have typed.
func decode[T any](raw json.RawMessage) (v T, err error) {
	if p, ok := any(&v).(*json.RawMessage); ok {
		*p = slices.Clone(raw)
		return v, nil
	}
	raw = bytes.TrimSpace(raw)
	var text string
	isText := bytes.HasPrefix(raw, []byte{'"'}) && json.Unmarshal(raw, &text) == nil
	if p, ok := any(&v).(*time.Duration); ok {
		if !isText {
			text = string(raw)
		}
		*p, err = time.ParseDuration(strings.TrimSpace(text))
		if err != nil {
			err = fmt.Errorf("%.100q is no duration: use one such as 1.5s or 200ms", text)
		}
		return v, err
	}
	// null leaves most types as they are, which nobody means.
	if string(raw) != "null" || canBeNil(reflect.TypeFor[T]().Kind()) {
		if json.Unmarshal(raw, &v) == nil {
			return v, nil
		}
	}
	var other T
	if isText && json.Unmarshal([]byte(text), &other) == nil && strings.TrimSpace(text) != "null" {
		return other, nil
	}
	if r := reflect.ValueOf(&other).Elem(); r.Kind() == reflect.String && !isText && json.Valid(raw) {
		r.SetString(string(raw))
		return other, nil
	}
	return other, fmt.Errorf("%.100s is no %s", raw, reflect.TypeFor[T]())
}

func canBeNil(k reflect.Kind) bool {
	return k == reflect.Pointer || k == reflect.Map || k == reflect.Slice || k == reflect.Interface
}

const (
	// maxEdits is how many setters of one tree run at a time.
	maxEdits = 32
	// editRoom is how long an edit waits for earlier ones.
	editRoom = time.Second
)

// Edit changes a value of a component by its setter, and returns when that has
// returned or the producer's limit for commands (subjects.Limits.Command) has
// passed. The setter runs in a goroutine of its own, one for each component at a
// time, for which it waits a second at most, and its panics are contained. value is JSON. The error wraps
// ErrUnknownNode, ErrNotWritable, ErrRefused, ErrBusy or ErrTimeout.
func (t *Tree) Edit(id tree.NodeID, name string, value json.RawMessage) error {
	ctx, cancel := context.WithTimeout(context.Background(), t.p.Limits().Command)
	defer cancel()
	return t.edit(ctx, id, name, value)
}

// edit is Edit with a deadline of its own. Behind edits that still run it waits a
// second and no longer: whoever typed should hear soon that nothing was tried.
func (t *Tree) edit(ctx context.Context, id tree.NodeID, name string, value json.RawMessage) error {
	c, s, err := t.setter(id, name)
	if err != nil {
		return err
	}
	if !json.Valid(value) {
		return fmt.Errorf("%w: node %d: %s: the new value is not JSON", ErrRefused, id, s.name)
	}
	soon, cancel := context.WithTimeout(ctx, editRoom)
	defer cancel()
	for _, room := range []chan struct{}{c.editing, t.edits} {
		select {
		case room <- struct{}{}:
			continue
		default:
		}
		select {
		case room <- struct{}{}:
		case <-soon.Done():
			if room == t.edits {
				<-c.editing
			}
			return fmt.Errorf("%w: node %d: %s was left as it is; try again later", ErrBusy, id, s.name)
		}
	}
	done := make(chan error, 1)
	value = slices.Clone(value)
	go func() {
		err := errors.New("the setter ended its goroutine")
		defer func() {
			<-t.edits
			<-c.editing
			done <- err
		}()
		err = c.set(s, value)
	}()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("%w: node %d: %s: %w", ErrRefused, id, s.name, err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: node %d: %s", ErrTimeout, id, s.name)
	}
}

// setter finds the setter of a value.
func (t *Tree) setter(id tree.NodeID, name string) (*Component, setter, error) {
	t.mu.Lock()
	c := t.components[id]
	closed := t.closed
	t.mu.Unlock()
	if c == nil || closed {
		return nil, setter{}, fmt.Errorf("%w: node %d: read the tree again", ErrUnknownNode, id)
	}
	if i := slices.IndexFunc(c.setters, func(s setter) bool { return s.name == name }); i >= 0 {
		return c, c.setters[i], nil
	}
	names := make([]string, len(c.setters))
	for i, s := range c.setters {
		names[i] = strconv.Quote(s.name)
	}
	if len(names) == 0 {
		return nil, setter{}, fmt.Errorf("%w: node %d: %.100q: nothing of this component can be edited", ErrNotWritable, id, name)
	}
	return nil, setter{}, fmt.Errorf("%w: node %d: %.100q: it has %s", ErrNotWritable, id, name, cutText(strings.Join(names, ", "), maxValue))
}

// set runs a setter and shows what came of it.
func (c *Component) set(s setter, value json.RawMessage) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the setter panicked: %s", readable(r))
		}
	}()
	if err := s.set(value); err != nil {
		return errors.New(readable(err))
	}
	if c.safe() {
		c.Update()
	}
	return nil
}
