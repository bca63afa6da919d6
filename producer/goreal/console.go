package goreal

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/natscope/natscope/producer/goreal/internal/js"
	"github.com/natscope/natscope/producer/goreal/internal/mirror"
	"github.com/natscope/natscope/producer/goreal/internal/remote"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/value"
)

const (
	// maxCalls is of how many calls of the console the live arguments are kept, maxAge for how long.
	maxCalls = 1000
	maxAge   = 10 * time.Minute
)

// keeper keeps the live arguments of the newest calls of the console, while
// somebody could ask for them.
type keeper struct {
	inUse func() bool

	mu    sync.Mutex // guards all below
	last  uint64
	calls []keptCall
}

type keptCall struct {
	ref  uint64
	at   time.Time
	args []mirror.Object
}

// keep returns the number under which arguments can be asked for; 0 while nobody could.
func (k *keeper) keep(args []mirror.Object) uint64 {
	if !k.inUse() {
		return 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last++
	now := time.Now()
	drop := max(len(k.calls)+1-maxCalls, 0)
	for drop < len(k.calls) && now.Sub(k.calls[drop].at) > maxAge {
		drop++
	}
	clear(k.calls[:drop])
	k.calls = append(k.calls[drop:], keptCall{k.last, now, args})
	return k.last
}

// get returns one argument of a call.
func (k *keeper) get(ref uint64, arg int) (mirror.Object, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.calls) == 0 || ref < k.calls[0].ref || ref > k.last {
		return nil, false
	}
	c := k.calls[ref-k.calls[0].ref]
	if arg < 0 || arg >= len(c.args) || time.Since(c.at) > maxAge {
		return nil, false
	}
	return c.args[arg], true
}

func (k *keeper) clear() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls = nil
}

// attrs is a map that its maker gives away, such as slogcap's attributes.
type attrs interface{ Immutable() bool }

// Keep keeps the arguments of a log line alive for a while, so that they can be
// expanded live where the line is shown, and returns the number by which they
// are found; 0 while no session is open, when nothing is kept. They are read
// without a guard other than the locks inside of them.
func (r *Realm) Keep(args ...any) console.Ref {
	if !r.inUse() {
		return 0
	}
	list := make([]mirror.Object, len(args))
	for i, a := range args {
		list[i] = mirror.Of(a, nil)
		if x, ok := a.(attrs); ok && x.Immutable() {
			list[i] = mirror.OfFrozen(a)
		}
	}
	return console.Ref(r.calls.keep(list))
}

// console records a call of the console, which is shown as every other line of the program.
func (r *Realm) console(typ string, args []mirror.Object, stack []remote.Frame) {
	if r.p == nil {
		return
	}
	m := console.Message{Type: typ, Args: make([]json.RawMessage, len(args)), Logger: "console", Stack: recordFrames(stack)}
	for i, a := range args {
		if typ == "table" && i == 0 {
			m.Args[i] = value.Append(nil, tabled(a))
			continue
		}
		m.Args[i] = value.Append(nil, encoded(a))
	}
	m.Ref = console.Ref(r.calls.keep(args))
	r.record(console.TopicMessage, m)
}

// uncaught records an exception of a timer or a callback.
func (r *Realm) uncaught(x *remote.Exception) {
	if r.p == nil || x.Value == nil {
		return
	}
	e := console.Exception{Text: x.Text, Value: value.Append(nil, value.Value{Kind: value.Error, Name: x.Value.ClassName, Text: x.Value.Description}), URL: x.URL, Line: x.Line + 1, Column: x.Column + 1}
	if x.Stack != nil {
		e.Stack = recordFrames(x.Stack.Frames)
	}
	r.record(console.TopicException, e)
}

func (r *Realm) record(topic string, payload any) {
	if data, err := json.Marshal(payload); err == nil {
		r.p.RecordAt(subjects.PlaneConsole, topic, r.p.Now(), data)
	}
}

func recordFrames(fs []remote.Frame) (out []network.Frame) {
	for _, f := range fs {
		url := f.URL
		if url == "" && f.Script != "" && f.Script != "0" {
			url = "VM" + f.Script
		}
		out = append(out, network.Frame{Function: f.Function, URL: url, Line: f.Line + 1, Column: f.Column + 1})
	}
	return out
}

// encoded is a value as records carry it, made of what is shown of it: so it is
// read under its guard, and no deeper.
func encoded(o mirror.Object) value.Value {
	out := o.Remote(nil, true)
	switch out.Type {
	case "undefined":
		return value.Value{Kind: value.Undefined}
	case "string":
		var s string
		_ = json.Unmarshal(out.Value, &s)
		return value.Of(s)
	case "number", "boolean":
		return scalarValue(out)
	case "bigint":
		return value.Value{Kind: value.BigInt, Text: strings.TrimSuffix(out.UnserializableValue, "n")}
	case "symbol":
		return value.Value{Kind: value.Symbol, Text: out.Description}
	case "function":
		name, _, _ := strings.Cut(strings.TrimPrefix(out.Description, "function "), "(")
		return value.Value{Kind: value.Function, Name: name}
	}
	switch out.Subtype {
	case "null":
		return value.Value{Kind: value.Null}
	case "error":
		name, message, _ := strings.Cut(out.Description, ": ")
		head, stack, _ := strings.Cut(message, "\n")
		if stack != "" {
			stack = out.Description
		}
		return value.Value{Kind: value.Error, Name: name, Text: head, Stack: stack}
	case "date", "node":
		return value.Of(out.Description)
	}
	return containerValue(out)
}

func scalarValue(o remote.Object) value.Value {
	text := o.UnserializableValue
	if text == "" {
		text = string(o.Value)
	}
	if o.Type == "boolean" {
		return value.Value{Kind: value.Bool, Text: text}
	}
	return value.Value{Kind: value.Number, Text: text}
}

// containerValue makes a container of a preview.
func containerValue(o remote.Object) value.Value {
	p := o.Preview
	if p == nil {
		return value.Of(o.Description)
	}
	v := value.Value{Kind: value.Instance, Name: o.ClassName, Partial: p.Overflow}
	if o.ClassName == "Object" {
		v.Kind, v.Name = value.Object, ""
	}
	switch {
	case o.Subtype == "array":
		v.Kind, v.Name = value.Array, ""
		for _, x := range p.Properties {
			if _, err := strconv.Atoi(x.Name); err == nil {
				v.Items = append(v.Items, propertyValue(x))
			}
		}
	case len(p.Entries) > 0:
		v.Kind, v.Name = value.Map, ""
		for _, e := range p.Entries {
			k := value.Value{Kind: value.Undefined}
			if e.Key != nil {
				k = value.Of(e.Key.Description)
			}
			v.Entries = append(v.Entries, value.Entry{Key: k, Value: value.Of(e.Value.Description)})
		}
	default:
		for _, x := range p.Properties {
			v.Fields = append(v.Fields, value.Field{Name: x.Name, Value: propertyValue(x)})
		}
	}
	v.Size = max(len(v.Items), len(v.Entries), len(v.Fields))
	if v.Partial {
		v.Size = max(v.Size+1, sizeIn(o.Description))
	}
	return v
}

// sizeIn is the length at the end of a description such as Array(1000); 0 if there is none.
func sizeIn(description string) int {
	i := strings.LastIndexByte(description, '(')
	if i < 0 {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSuffix(description[i+1:], ")"))
	return n
}

// propertyValue makes a value of the preview of a property.
func propertyValue(p remote.PropertyPreview) value.Value {
	switch p.Type {
	case "undefined":
		return value.Value{Kind: value.Undefined}
	case "string":
		return value.Of(p.Value)
	case "boolean":
		return value.Value{Kind: value.Bool, Text: p.Value}
	case "number":
		if f, err := strconv.ParseFloat(p.Value, 64); err == nil {
			return value.Of(f)
		}
		return value.Of(p.Value)
	case "bigint":
		return value.Value{Kind: value.BigInt, Text: strings.TrimSuffix(p.Value, "n")}
	case "function":
		return value.Value{Kind: value.Function, Name: p.Name}
	}
	if p.Subtype == "null" {
		return value.Value{Kind: value.Null}
	}
	name := "object"
	if p.Subtype == "array" || p.Subtype == "map" || p.Subtype == "set" {
		name = p.Subtype
	}
	return value.Value{Kind: value.Dehydrated, Name: name, Text: p.Value, Opaque: true}
}

type objectResult struct {
	Object remote.Object `json:"object"`
}

// resolveConsole is console.resolve: the live argument of a line.
func resolveConsole(c *command, p realm.ResolveArgumentParams) {
	o, ok := c.s.r.calls.get(uint64(p.Ref), p.Arg)
	if !ok {
		c.reply(nil, fmt.Errorf("%w: the arguments of the line are not kept any more; at most %d lines are, for %s", realm.ErrNotFound, maxCalls, maxAge))
		return
	}
	c.show(o, p.ObjectGroup)
}

// show replies with an object, where it may be read.
func (c *command) show(o mirror.Object, group string) {
	if !js.OfEngine(o) {
		c.read(func() { c.reply(objectResult{o.Remote(c.s.lens(group), true)}, nil) })
		return
	}
	c.evaluate(0, func(e engine) {
		if c.owned(e, o) {
			c.reply(objectResult{o.Remote(c.s.lens(group), true)}, nil)
		}
	})
}

type inspectRequest struct {
	Object remote.Object   `json:"object"`
	Hints  json.RawMessage `json:"hints"`
	// ExecutionContextID is always the realm's own.
	ExecutionContextID int `json:"executionContextId"`
}

// inspect asks the session's DevTools to show a value. It runs on the evaluator.
func (s *session) inspect(o mirror.Object, hints string) {
	s.out.Emit("runtime.inspectRequested", inspectRequest{o.Remote(s.lens("console"), false), json.RawMessage(hints), 1})
}
