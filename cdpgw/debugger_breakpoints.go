package cdpgw

import (
	"fmt"
	"slices"
	"strings"

	"github.com/natscope/natscope/store/fold"
)

// noPause is what a client is told that wants to stop a program that has no debugger.
const noPause = "These programs cannot be paused here: a Go program has no debugger that DevTools could use (delve is one), and a page is debugged in its own DevTools. Programs started with natscope run or attached with natscope attach have breakpoints."

// maxRefused is how many breakpoints of one connection are told of in the Console.
const maxRefused = 100

// whyNoBreak is why a program cannot be stopped, with what to do instead.
func whyNoBreak(src *fold.Source) string {
	if !strings.HasPrefix(src.Life.Descriptor.Runtime, "go") {
		return "No breakpoint was set: " + src.Name() + " cannot be stopped here. A page is debugged in its own DevTools; programs started with natscope run or attached with natscope attach have breakpoints."
	}
	attach := "dlv attach"
	if src.Life.Descriptor.PID != 0 {
		attach = fmt.Sprintf("dlv attach %d", src.Life.Descriptor.PID)
	}
	if src.Life.Descriptor.Hostname != "" {
		attach += " on " + src.Life.Descriptor.Hostname
	}
	return "No breakpoint was set: " + src.Name() + " is a Go program, which cannot be stopped from DevTools. Stop it with delve (" + attach + "), or evaluate what you want to see in the Console while it runs."
}

// refuseBreakpoint answers a breakpoint in a file. DevTools shows the refusal
// nowhere and sets its breakpoints again whenever it connects, so the reason is
// told once for each place, and only where the file is one of a program that the
// connection told of: the files of others are their own sessions' matter.
func (s *session) refuseBreakpoint(address string, line int) (any, error) {
	for _, src := range s.sources() {
		id := scriptOf(src.ID, string(src.Generation), address)
		if _, known := s.debugger.known[id]; !known || id == "" {
			continue
		}
		text := whyNoBreak(src)
		place := fmt.Sprintf("%s:%d", address, line)
		if !s.debugger.refused[place] && len(s.debugger.refused) < maxRefused {
			if s.debugger.refused == nil {
				s.debugger.refused = make(map[string]bool)
			}
			s.debugger.refused[place] = true
			s.complain(text)
		}
		return nil, failf("%s", text)
	}
	return nil, failf("%s", noPause)
}

// unresolved is the answer to a breakpoint in a file that is not loaded.
type unresolved struct {
	BreakpointID string  `json:"breakpointId"`
	Locations    []empty `json:"locations"`
}

// debuggerSetBreakpointByURL refuses: nothing can be paused here. DevTools asks all
// sessions, though, and takes a breakpoint away from all when one of them refuses:
// where programs with debuggers have children, a breakpoint in a file that is not
// known here is one of theirs, and waits here for a file that does not come.
func (s *session) debuggerSetBreakpointByURL(p struct {
	URL   string `json:"url"`
	Regex string `json:"urlRegex"`
	Line  int    `json:"lineNumber"`
}) (any, error) {
	if !s.knowsFile(p.URL) && slices.ContainsFunc(s.sources(), s.mayHaveChild) {
		return unresolved{fmt.Sprintf("unresolved:%d:%s", p.Line, p.URL+p.Regex), []empty{}}, nil
	}
	return s.refuseBreakpoint(p.URL, p.Line)
}

// knowsFile reports whether the connection was told of a file outside of children.
func (s *session) knowsFile(address string) bool {
	return slices.ContainsFunc(s.sources(), func(src *fold.Source) bool {
		id := scriptOf(src.ID, string(src.Generation), address)
		_, known := s.debugger.known[id]
		return known && id != ""
	})
}

// debuggerSetBreakpoint refuses as debuggerSetBreakpointByURL does.
func (s *session) debuggerSetBreakpoint(p struct {
	Location struct {
		ScriptID ScriptID `json:"scriptId"`
		Line     int      `json:"lineNumber"`
	} `json:"location"`
}) (any, error) {
	return s.refuseBreakpoint(s.debugger.known[p.Location.ScriptID], p.Location.Line)
}

// debuggerPause refuses, too. DevTools waits for the pause without a word.
func (s *session) debuggerPause(empty) (any, error) {
	text := noPause
	if sources := s.sources(); len(sources) == 1 {
		text = strings.Replace(whyNoBreak(sources[0]), "No breakpoint was set: ", "Nothing was paused: ", 1)
	}
	s.complain(text)
	return nil, failf("%s", text)
}
