package cdpgw

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"time"

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
	held := make(map[subjects.SourceID]bool)
	for _, src := range s.sources() {
		if x := s.gateway.hub.contexts[src.ID]; x != nil && s.mayHaveChild(src) {
			held[src.ID] = true
		}
		for _, e := range src.Console.Entries {
			if e.Order > s.runtime.discarded[src.ID] && !(held[src.ID] && e.Generation == string(src.Generation)) {
				lines = append(lines, line{src, e})
			}
		}
	}
	if s.runtime.held = held; len(held) > 0 {
		s.replayLater()
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.entry.Wall, b.entry.Wall) })
	for _, l := range lines {
		s.consoleAdded(l.src, l.entry, func() [][]byte { return consoleEvents(s.gateway.hub, l.src, l.entry) })
	}
}

// childWait is how long after Runtime.enable a client may ask for child sessions.
const childWait = time.Second

// mayHaveChild reports whether the console output of a source's present run is,
// or may become, that of its child.
func (s *session) mayHaveChild(src *fold.Source) bool {
	at, ok := s.childRealm(src)
	return ok && at.can("debugger.enable") && !s.target.node
}

// replayLater sends what the present runs of sources said that may get a child:
// once it is clear that the client wants none, since the child's replay has it else.
func (s *session) replayLater() {
	s.slow.Go(func() {
		t := time.NewTimer(childWait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-s.conn.ctx.Done():
			return
		}
		s.during(func() {
			held := s.runtime.held
			s.runtime.held = nil
			for id := range held {
				src := s.source(id)
				if src == nil || !s.runtime.enabled || s.targets.bySource[id] != nil {
					continue
				}
				if s.debugger.enabled {
					s.announceAll(src)
				}
				for _, e := range src.Console.Entries {
					if e.Generation == string(src.Generation) && e.Order > s.runtime.discarded[id] {
						s.consoleAdded(src, e, func() [][]byte { return consoleEvents(s.gateway.hub, src, e) })
					}
				}
			}
		})
	})
}

// consoleAdded tells one console entry. DevTools has one stack of groups for a
// whole target. Where several sources share it, a group of one would swallow the
// lines of the others, so its lines come without. A source that has the Console
// for itself keeps its groups, and those that a generation left open end with it.
func (s *session) consoleAdded(src *fold.Source, e *console.Entry, shared func() [][]byte) {
	if c := s.childOf(src.ID); c != nil && c.debugs() && e.Generation == string(c.at.generation) {
		return // The child tells it.
	}
	if s.runtime.held[src.ID] && e.Generation == string(src.Generation) {
		return // It comes with the rest.
	}
	s.consoleTold(src.ID, e.Wall)
	if s.target.source != "" {
		if g := &s.runtime.groups; g.generation != e.Generation {
			for ; g.open > 0; g.open-- {
				s.event("Runtime.consoleAPICalled", consoleCalledEvent{
					Type: "endGroup", Args: []remoteObject{}, ContextID: s.gateway.hub.contextOf(src.ID, e.Generation), Timestamp: e.Wall,
				})
			}
			g.generation = e.Generation
		}
		if step := groupStep(e); step != 0 {
			s.runtime.groups.open = max(s.runtime.groups.open+step, 0)
			s.event("Runtime.consoleAPICalled", calledEvent(s.gateway.hub, src, e))
			return
		}
	}
	for _, m := range shared() {
		s.send(m)
	}
}

// groupState counts the groups that a generation of a source has open.
type groupState struct {
	generation string
	open       int
}

// groupStep is 1 for an entry that opens a group, -1 for one that ends one, 0 for all others.
func groupStep(e *console.Entry) int {
	if e.Message == nil {
		return 0
	}
	switch e.Message.Type {
	case "startGroup", "startGroupCollapsed":
		return 1
	case "endGroup":
		return -1
	}
	return 0
}

// runtimeDiscardConsoleEntries makes this connection, and no other, forget what was said so far.
func (s *session) runtimeDiscardConsoleEntries(empty) (any, error) {
	s.runtime.discarded = make(map[subjects.SourceID]uint64)
	for _, src := range s.sources() {
		s.runtime.discarded[src.ID] = src.Console.Count
	}
	return nil, nil
}

// consoleEvents returns the events of one console entry for targets with several sources.
func consoleEvents(h *hub, src *fold.Source, e *console.Entry) [][]byte {
	if e.Exception != nil {
		id := h.contextOf(src.ID, e.Generation)
		return [][]byte{encodeEvent("Runtime.exceptionThrown", exceptionThrownEvent{Timestamp: e.Wall, Details: exceptionOf(src, e, id)})}
	}
	ev := calledEvent(h, src, e)
	switch groupStep(e) {
	case 1:
		ev.Type, ev.Args = "log", groupTitle(ev.Args)
	case -1:
		return nil
	}
	return [][]byte{encodeEvent("Runtime.consoleAPICalled", ev)}
}

// groupTitle marks the title of a group that is shown as a line.
func groupTitle(args []remoteObject) []remoteObject {
	const mark = "▾ "
	var title string
	if len(args) == 0 || args[0].Type != "string" || json.Unmarshal(args[0].Value, &title) != nil {
		return append([]remoteObject{textObject(mark)}, args...)
	}
	return append([]remoteObject{textObject(mark + title)}, args[1:]...)
}

// calledEvent returns the event of one message.
func calledEvent(h *hub, src *fold.Source, e *console.Entry) consoleCalledEvent {
	ev := consoleCalledEvent{
		Type: e.Message.Type, ContextID: h.contextOf(src.ID, e.Generation), Timestamp: e.Wall,
		StackTrace: stackOf(src.ID, e.Generation, e.Message.Stack), Context: src.Name() + "#1", Args: []remoteObject{},
	}
	if !consoleTypes[ev.Type] {
		ev.Type = "log"
	}
	for i, raw := range e.Message.Args {
		ev.Args = append(ev.Args, recordedArg(raw, objectPath{source: src.ID, order: e.Order, arg: i}, e.Message.Ref))
	}
	if ev.Type == "table" {
		tabulate(ev.Args, e.Message.Args)
	}
	if o, ok := linkOf(src, e); ok {
		ev.Args = append(ev.Args, o)
	}
	if e.Message.Type == "clear" {
		// One source must not clear the lines of the others.
		ev.Type, ev.Args = "info", []remoteObject{textObject("The console of " + src.Name() + " was cleared.")}
	}
	return ev
}

func exceptionOf(src *fold.Source, e *console.Entry, id ContextID) exceptionDetails {
	x := e.Exception
	d := exceptionDetails{
		ExceptionID: e.Order, Text: x.Text, URL: fileURL(x.URL), LineNumber: max(x.Line-1, 0), ColumnNumber: max(x.Column-1, 0),
		StackTrace: stackOf(src.ID, e.Generation, x.Stack), ContextID: id,
	}
	if d.Text == "" {
		d.Text = "Uncaught"
	}
	if len(x.Value) > 0 {
		v := recordedArg(x.Value, objectPath{source: src.ID, order: e.Order, arg: exceptionArg}, x.Ref)
		d.Exception = &v
	}
	return d
}

// stackOf converts a stack of a source; the protocol counts lines and columns from 0.
func stackOf(id subjects.SourceID, generation string, frames []network.Frame) *stackTrace {
	if len(frames) == 0 {
		return nil
	}
	st := &stackTrace{CallFrames: make([]callFrame, len(frames))}
	for i, f := range frames {
		address := fileURL(f.URL)
		st.CallFrames[i] = callFrame{FunctionName: f.Function, ScriptID: scriptOf(id, generation, address), URL: address, LineNumber: max(f.Line-1, 0), ColumnNumber: max(f.Column-1, 0)}
	}
	return st
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
