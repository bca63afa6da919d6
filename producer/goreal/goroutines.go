package goreal

import (
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/natscope/natscope/producer/goreal/internal/mirror"
)

// Goroutine is one goroutine of the program, as the global goroutines of the Console shows it.
type Goroutine struct {
	ID int
	// State is what it does or waits for, Wait since when and whether it is locked to a thread.
	State, Wait string
	// Top is the innermost function, CreatedBy where it was started.
	Top, CreatedBy string
	Stack          []Frame
}

// Frame is one function of a goroutine's stack.
type Frame struct {
	Func, File string
	Line       int
}

// Location makes the frame a link to its source.
func (f Frame) Location() (file string, line int) { return f.File, f.Line }

const (
	// maxDump is the most bytes of stacks that are read.
	maxDump = 32 << 20
	// maxStackFrames is how many frames of one goroutine are kept.
	maxStackFrames = 100
)

// exposeOwn exposes what the realm itself has to show.
func (r *Realm) exposeOwn() {
	_ = r.Expose("goroutines", Snapshot(func() any { return listGoroutines() }), nil)
}

// listGoroutines reads the stacks of all goroutines. The program stands still meanwhile, for about a microsecond each.
func listGoroutines() []Goroutine {
	buf := make([]byte, 256<<10)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) || len(buf) >= maxDump {
			return parseGoroutines(string(buf[:n]))
		}
		buf = make([]byte, 2*len(buf))
	}
}

func parseGoroutines(dump string) (out []Goroutine) {
	for block := range strings.SplitSeq(dump, "\n\n") {
		if g, ok := parseGoroutine(strings.Split(strings.TrimSpace(block), "\n")); ok {
			out = append(out, g)
		}
	}
	return out
}

// parseGoroutine reads "goroutine 7 [chan receive, 2 minutes]:" and pairs of function and place.
func parseGoroutine(lines []string) (g Goroutine, ok bool) {
	head, ok := strings.CutPrefix(lines[0], "goroutine ")
	if !ok {
		return g, false
	}
	id, state, _ := strings.Cut(head, " ")
	if g.ID, _ = strconv.Atoi(id); g.ID == 0 {
		return g, false
	}
	if i, j := strings.IndexByte(state, '['), strings.LastIndexByte(state, ']'); i >= 0 && j > i {
		g.State, g.Wait, _ = strings.Cut(state[i+1:j], ", ")
	}
	for i := 1; i+1 < len(lines); i += 2 {
		f := Frame{Func: lines[i]}
		place := strings.TrimSpace(lines[i+1])
		if k := strings.LastIndex(place, " +0x"); k > 0 {
			place = place[:k]
		}
		if k := strings.LastIndexByte(place, ':'); k > 0 {
			f.File = place[:k]
			f.Line, _ = strconv.Atoi(place[k+1:])
		}
		if by, ok := strings.CutPrefix(f.Func, "created by "); ok {
			by, _, _ = strings.Cut(by, " in goroutine")
			g.CreatedBy = mirror.ShortFunc(by) + " " + filepath.Base(f.File) + ":" + strconv.Itoa(f.Line)
			continue
		}
		if k := strings.LastIndexByte(f.Func, '('); k > 0 {
			f.Func = f.Func[:k]
		}
		f.Func = mirror.ShortFunc(f.Func)
		if len(g.Stack) < maxStackFrames {
			g.Stack = append(g.Stack, f)
		}
	}
	if len(g.Stack) > 0 {
		g.Top = g.Stack[0].Func
	}
	return g, true
}
