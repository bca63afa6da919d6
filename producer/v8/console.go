package v8

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/value"
)

// The bounds of reading the values of console messages.
const (
	// readsPerSecond is how many objects are read in the program, readsAtOnce how many in one burst.
	readsPerSecond = 200
	readsAtOnce    = 2000
	// readWithin bounds one reading, and slowRead is what it may take: objects of a
	// shape that took longer are not read again.
	readWithin = 2 * time.Second
	slowRead   = 20 * time.Millisecond
	// maxShapes is how many shapes of large objects are remembered.
	maxShapes = 512
	// maxBehind is how many messages may wait while objects are still read.
	maxBehind = 256
	// maxFrames is how many frames of a stack are kept, maxArgs how many arguments.
	maxFrames = 50
	maxArgs   = 100
	// releaseEvery is after how many messages their objects are let go of.
	releaseEvery = 64
)

// consoleReader makes records of console messages and exceptions.
type consoleReader struct {
	x *observer
	// tokens is how many objects may be read now, filled when they were last counted.
	tokens float64
	filled time.Time
	// large has the shapes of objects that took too long to read.
	large map[string]bool
	// held counts messages whose objects the engine still keeps for this connection.
	held int
}

// stackTrace is an engine's stack.
type stackTrace struct {
	CallFrames []struct {
		FunctionName string `json:"functionName"`
		URL          string `json:"url"`
		Line         int    `json:"lineNumber"`
		Column       int    `json:"columnNumber"`
	} `json:"callFrames"`
}

// frames turns an engine's stack into that of a record.
func (s *stackTrace) frames() []network.Frame {
	if s == nil {
		return nil
	}
	var out []network.Frame
	for _, f := range s.CallFrames[:min(len(s.CallFrames), maxFrames)] {
		out = append(out, network.Frame{Function: cut(f.FunctionName, 256), URL: cut(f.URL, 4096), Line: f.Line + 1, Column: f.Column + 1})
	}
	return out
}

// isEcho reports whether a message is one that Node's console made of a call
// that was told already: what it prints for console.table is another console.log.
func (s *stackTrace) isEcho() bool {
	return s != nil && len(s.CallFrames) > 0 && s.CallFrames[0].URL == "node:internal/console/constructor"
}

// message records a call of a console method.
func (c *consoleReader) message(e event, behind int) {
	var m struct {
		Type      string         `json:"type"`
		Args      []remoteObject `json:"args"`
		Timestamp float64        `json:"timestamp"`
		Context   string         `json:"context"`
		Stack     *stackTrace    `json:"stackTrace"`
	}
	if json.Unmarshal(e.params, &m) != nil || m.Type == "profile" || m.Type == "profileEnd" {
		return
	}
	if m.Timestamp = c.when(m.Timestamp, e); c.known(m.Timestamp) || m.Stack.isEcho() {
		return
	}
	out := console.Message{Type: m.Type, Args: make([]json.RawMessage, 0, len(m.Args)), Stack: m.Stack.frames(), Again: e.old}
	out.Logger, _, _ = strings.Cut(m.Context, "#")
	for i := range m.Args[:min(len(m.Args), maxArgs)] {
		out.Args = append(out.Args, value.Append(nil, c.read(&m.Args[i], behind)))
	}
	c.write(console.TopicMessage, m.Timestamp, out)
}

// exception records an exception that nobody caught.
func (c *consoleReader) exception(e event, behind int) {
	var m struct {
		Timestamp float64 `json:"timestamp"`
		Details   struct {
			Text      string        `json:"text"`
			Line      int           `json:"lineNumber"`
			Column    int           `json:"columnNumber"`
			URL       string        `json:"url"`
			Stack     *stackTrace   `json:"stackTrace"`
			Exception *remoteObject `json:"exception"`
		} `json:"exceptionDetails"`
	}
	if json.Unmarshal(e.params, &m) != nil {
		return
	}
	if m.Timestamp = c.when(m.Timestamp, e); c.known(m.Timestamp) {
		return
	}
	d := &m.Details
	out := console.Exception{Text: cut(d.Text, 4096), URL: cut(d.URL, 4096), Line: d.Line + 1, Column: d.Column + 1, Stack: d.Stack.frames(), Again: e.old}
	if d.Exception != nil {
		out.Value = value.Append(nil, c.read(d.Exception, behind))
	}
	c.write(console.TopicException, m.Timestamp, out)
}

// entry records what a browser itself says about a page.
func (c *consoleReader) entry(e event) {
	var m struct {
		Entry struct {
			Source    string      `json:"source"`
			Level     string      `json:"level"`
			Text      string      `json:"text"`
			Timestamp float64     `json:"timestamp"`
			URL       string      `json:"url"`
			Line      int         `json:"lineNumber"`
			Stack     *stackTrace `json:"stackTrace"`
			RequestID string      `json:"networkRequestId"`
		} `json:"entry"`
	}
	if json.Unmarshal(e.params, &m) != nil || c.known(m.Entry.Timestamp) {
		return
	}
	x := &m.Entry
	if x.Source == "worker" {
		return // A worker tells of itself.
	}
	out := console.Message{Type: x.Level, Logger: x.Source, Stack: x.Stack.frames(), Request: c.x.network.id(x.RequestID), Again: e.old}
	if x.Level == "verbose" {
		out.Type = "debug"
	}
	if out.Stack == nil && x.URL != "" {
		out.Stack = []network.Frame{{URL: cut(x.URL, 4096), Line: x.Line + 1}}
	}
	out.Args = []json.RawMessage{value.Append(nil, stringValue(x.Text))}
	c.write(console.TopicMessage, x.Timestamp, out)
}

// when is the time of a message. Deno tells none: one that comes is of now, and
// one that it kept is of before, if this program was observed before.
func (c *consoleReader) when(timestamp float64, e event) float64 {
	if timestamp == 0 && !(e.old && c.x.skipTill > 0) {
		return e.at
	}
	return timestamp
}

// known reports whether a message was recorded over an earlier connection.
func (c *consoleReader) known(timestamp float64) bool { return timestamp <= c.x.skipTill }

func (c *consoleReader) write(topic string, timestamp float64, payload any) {
	p := c.x.producer()
	if p == nil {
		return
	}
	data, err := json.Marshal(payload)
	if err != nil {
		return
	}
	p.RecordAt(subjects.PlaneConsole, topic, timestamp-c.x.origin, data)
	c.x.w.a.recorded(c.x.realm, timestamp)
	if c.held++; c.held >= releaseEvery {
		c.release()
	}
}

// release lets go of the objects of the messages so far. They belong to this connection only.
func (c *consoleReader) release() {
	if c.held == 0 {
		return
	}
	c.held = 0
	c.x.peer.start("Runtime.releaseObjectGroup", map[string]string{"objectGroup": "console"}, func(json.RawMessage, error) {})
}

// read makes a value of an argument: from what came with it, or, where that is
// not all that a record holds, of what the program has.
func (c *consoleReader) read(o *remoteObject, behind int) value.Value {
	v := o.shallow()
	if !o.isObject() || v.Kind == value.Error || v.Kind == value.Date || v.Kind == value.RegExp || v.Opaque || o.ObjectID == "" {
		return v
	}
	if o.Preview != nil && o.Preview.complete() || sizeOf(o.Description) > value.MaxEntries || o.Subtype == "proxy" || c.x.gone.Load() || behind > maxBehind {
		return v
	}
	shape := shapeOf(o)
	if c.large[shape] || !c.afford() {
		return v
	}
	begin := time.Now()
	props, err := c.properties(o.ObjectID)
	if err != nil {
		return v
	}
	var entries []propertyDescriptor
	for i := range props.Internal {
		if p := &props.Internal[i]; p.Name == "[[Entries]]" && p.Value != nil && p.Value.ObjectID != "" && (o.Subtype == "map" || o.Subtype == "set") {
			if inner, err := c.properties(p.Value.ObjectID); err == nil {
				entries = inner.Result
			}
		}
	}
	if time.Since(begin) > slowRead && len(props.Result)+len(entries) > 2*value.MaxEntries {
		c.avoid(shape)
	}
	return o.opened(props.Result, entries)
}

// properties reads an object, one level deep. No getter is called, and nothing is compiled.
func (c *consoleReader) properties(id string) (p properties, err error) {
	ctx, cancel := context.WithTimeout(c.x.w.a.ctx, readWithin)
	defer cancel()
	data, err := c.x.peer.call(ctx, "Runtime.getProperties", map[string]any{"objectId": id, "ownProperties": true, "generatePreview": true})
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	return p, err
}

// afford takes the right to read one object.
func (c *consoleReader) afford() bool {
	now := time.Now()
	if c.filled.IsZero() {
		c.tokens = readsAtOnce
	} else {
		c.tokens = min(c.tokens+now.Sub(c.filled).Seconds()*readsPerSecond, readsAtOnce)
	}
	c.filled = now
	if c.tokens < 1 {
		return false
	}
	c.tokens--
	return true
}

// shapeOf names objects that are alike: those of one class with the same first properties.
func shapeOf(o *remoteObject) string {
	var b strings.Builder
	b.WriteString(o.ClassName)
	if o.Preview != nil {
		for _, p := range o.Preview.Properties {
			b.WriteByte(0)
			b.WriteString(p.Name)
		}
	}
	return b.String()
}

// avoid notes a shape that is too large to read.
func (c *consoleReader) avoid(shape string) {
	if len(c.large) >= maxShapes {
		c.large = nil
	}
	if c.large == nil {
		c.large = make(map[string]bool)
	}
	c.large[shape] = true
}
