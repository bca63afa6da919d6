package cdpgw

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/network"
)

type consoleCalledEvent struct {
	Type       string         `json:"type"`
	Args       []remoteObject `json:"args"`
	ContextID  ContextID      `json:"executionContextId"`
	Timestamp  float64        `json:"timestamp"`
	StackTrace *stackTrace    `json:"stackTrace,omitempty"`
	Context    string         `json:"context,omitempty"`
}

type exceptionThrownEvent struct {
	Timestamp float64          `json:"timestamp"`
	Details   exceptionDetails `json:"exceptionDetails"`
}

type exceptionDetails struct {
	ExceptionID  uint64        `json:"exceptionId"`
	Text         string        `json:"text"`
	LineNumber   int           `json:"lineNumber"`
	ColumnNumber int           `json:"columnNumber"`
	URL          string        `json:"url,omitempty"`
	StackTrace   *stackTrace   `json:"stackTrace,omitempty"`
	Exception    *remoteObject `json:"exception,omitempty"`
	ContextID    ContextID     `json:"executionContextId,omitempty"`
}

type stackTrace struct {
	CallFrames []callFrame `json:"callFrames"`
}

type callFrame struct {
	FunctionName string   `json:"functionName"`
	ScriptID     ScriptID `json:"scriptId"`
	URL          string   `json:"url"`
	LineNumber   int      `json:"lineNumber"`
	ColumnNumber int      `json:"columnNumber"`
}

// consoleTypes are the types of messages that DevTools knows and that mean the
// same when several sources share a console.
var consoleTypes = map[string]bool{
	"log": true, "debug": true, "info": true, "error": true, "warning": true, "dir": true, "dirxml": true, "table": true, "trace": true,
	"startGroup": true, "startGroupCollapsed": true, "endGroup": true, "assert": true, "count": true, "timeEnd": true, "profile": true, "profileEnd": true,
}

// replayConsole sends what the sources kept, in the order of the wall clock.
func (s *session) replayConsole() {
	type line struct {
		src   *fold.Source
		entry *console.Entry
	}
	var lines []line
	for _, src := range s.sources() {
		for _, e := range src.Console.Entries {
			if e.Order > s.runtime.discarded[src.ID] {
				lines = append(lines, line{src, e})
			}
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.entry.Wall, b.entry.Wall) })
	for _, l := range lines {
		s.send(consoleEvent(s.gateway.hub, l.src, l.entry))
	}
}

// runtimeDiscardConsoleEntries makes this connection, and no other, forget what was said so far.
func (s *session) runtimeDiscardConsoleEntries(empty) (any, error) {
	s.runtime.discarded = make(map[subjects.SourceID]uint64)
	for _, src := range s.sources() {
		s.runtime.discarded[src.ID] = src.Console.Count
	}
	return nil, nil
}

// consoleEvent returns the event of one console entry.
func consoleEvent(h *hub, src *fold.Source, e *console.Entry) []byte {
	id := h.contextOf(src.ID, e.Generation)
	if e.Exception != nil {
		return encodeEvent("Runtime.exceptionThrown", exceptionThrownEvent{Timestamp: e.Wall, Details: exceptionOf(src, e, id)})
	}
	ev := consoleCalledEvent{
		Type: e.Message.Type, ContextID: id, Timestamp: e.Wall,
		StackTrace: stackOf(src.ID, e.Message.Stack), Context: src.Name() + "#1", Args: []remoteObject{},
	}
	if !consoleTypes[ev.Type] {
		ev.Type = "log"
	}
	for i, raw := range e.Message.Args {
		ev.Args = append(ev.Args, recorded(raw, objectPath{source: src.ID, order: e.Order, arg: i}))
	}
	if e.Message.Type == "clear" {
		// One source must not clear the lines of the others.
		ev.Type, ev.Args = "info", []remoteObject{textObject("The console of " + src.Name() + " was cleared.")}
	}
	return encodeEvent("Runtime.consoleAPICalled", ev)
}

func exceptionOf(src *fold.Source, e *console.Entry, id ContextID) exceptionDetails {
	x := e.Exception
	d := exceptionDetails{
		ExceptionID: e.Order, Text: x.Text, URL: fileURL(x.URL), LineNumber: max(x.Line-1, 0), ColumnNumber: max(x.Column-1, 0),
		StackTrace: stackOf(src.ID, x.Stack), ContextID: id,
	}
	if d.Text == "" {
		d.Text = "Uncaught"
	}
	if len(x.Value) > 0 {
		v := recorded(x.Value, objectPath{source: src.ID, order: e.Order, arg: exceptionArg})
		d.Exception = &v
	}
	return d
}

// stackOf converts a stack of a source; the protocol counts lines and columns from 0.
func stackOf(id subjects.SourceID, frames []network.Frame) *stackTrace {
	if len(frames) == 0 {
		return nil
	}
	st := &stackTrace{CallFrames: make([]callFrame, len(frames))}
	for i, f := range frames {
		address := fileURL(f.URL)
		st.CallFrames[i] = callFrame{FunctionName: f.Function, ScriptID: scriptOf(id, address), URL: address, LineNumber: max(f.Line-1, 0), ColumnNumber: max(f.Column-1, 0)}
	}
	return st
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
