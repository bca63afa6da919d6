package proctree

import (
	"runtime"
	"strconv"
	"strings"
)

// stackDepth is how many frames the runtime tells of each goroutine.
const stackDepth = len(runtime.StackRecord{}.Stack0)

// maxStacks is how many different stacks are told apart.
const maxStacks = 5000

// count groups the goroutines of a profile. Most share their stack with others,
// so that few have to be looked up.
func (c *census) count(records []runtime.StackRecord) {
	stacks := make(map[[stackDepth]uintptr]int)
	for i := range records {
		if s := &records[i].Stack0; stacks[*s] > 0 || len(stacks) < maxStacks {
			stacks[*s]++
		} else {
			c.other++
		}
	}
	for s, n := range stacks {
		depth := 0
		for depth < len(s) && s[depth] != 0 {
			depth++
		}
		g, at := describe(s[:depth])
		c.add(g, n, at, 0)
	}
}

// describe finds out where a goroutine started and what it waits for.
func describe(stack []uintptr) (g group, at string) {
	g = group{site: "unknown"}
	frames := runtime.CallersFrames(stack)
	top := true
	for more := len(stack) > 0; more; {
		var f runtime.Frame
		if f, more = frames.Next(); f.Function == "" || f.Function == "runtime.goexit" {
			continue
		}
		name := text([]byte(f.Function))
		if g.state == "" {
			g.state = stateOf(name, top)
		}
		top = false
		if at == "" && isOwn(name) {
			at = name
		}
		g.site = name
	}
	if g.state == "" {
		g.state = "running"
	}
	if f := runtime.FuncForPC(entryOf(stack)); f != nil {
		file, line := f.FileLine(f.Entry())
		g.loc = text([]byte(file)) + ":" + strconv.Itoa(line)
	}
	if len(stack) == stackDepth {
		g.site, g.loc = "a deep stack", ""
	}
	if at == "" {
		at = g.site
	}
	return g, at
}

// entryOf is a place in the function in which the goroutine started: the last but runtime.goexit.
func entryOf(stack []uintptr) uintptr {
	for i := len(stack) - 1; i >= 0; i-- {
		if f := runtime.FuncForPC(stack[i] - 1); f != nil && f.Name() != "runtime.goexit" {
			return stack[i] - 1
		}
	}
	return 0
}

// waits tells the state of a goroutine by the function of the runtime in which it waits.
var waits = []struct{ prefix, state string }{
	{"runtime.chanrecv", "chan receive"}, {"runtime.chansend", "chan send"}, {"runtime.selectgo", "select"},
	{"runtime.block", "select (no cases)"}, {"runtime.netpollblock", "IO wait"}, {"internal/poll.runtime_pollWait", "IO wait"},
	{"time.Sleep", "sleep"}, {"runtime.notifyListWait", "sync.Cond.Wait"}, {"sync.runtime_notifyListWait", "sync.Cond.Wait"},
	{"sync.runtime_", "semacquire"}, {"internal/sync.runtime_", "semacquire"}, {"runtime.semacquire", "semacquire"}, {"syscall.", "syscall"},
}

// stateOf tells the state by a frame, empty when it does not say. The top frame
// of a goroutine that runs is none of the runtime's.
func stateOf(function string, top bool) string {
	for _, w := range waits {
		if strings.HasPrefix(function, w.prefix) {
			return w.state
		}
	}
	if top && !strings.HasPrefix(function, "runtime.") || isOwn(function) {
		return "running"
	}
	return ""
}
