package goprof

import (
	"bytes"
	"errors"
	"fmt"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"
)

// ErrBusy says that the CPU profiler of the process runs already.
var ErrBusy = errors.New("goprof: the CPU profiler of the program runs already; there is one for the process")

// Script finds the script of a Go file, by the name that the compiler gave it.
type Script func(file string) (id, url string, ok bool)

// Profile is Profiler.Profile.
type Profile struct {
	Nodes      []*Node `json:"nodes"`
	StartTime  int64   `json:"startTime"`
	EndTime    int64   `json:"endTime"`
	Samples    []int   `json:"samples"`
	TimeDeltas []int64 `json:"timeDeltas"`
}

// Node is Profiler.ProfileNode.
type Node struct {
	ID        int       `json:"id"`
	CallFrame CallFrame `json:"callFrame"`
	HitCount  int       `json:"hitCount"`
	Children  []int     `json:"children,omitempty"`
	Ticks     []Tick    `json:"positionTicks,omitempty"`

	kids  map[string]*Node
	ticks map[int]int
}

// Tick is Profiler.PositionTickInfo.
type Tick struct {
	Line  int `json:"line"`
	Ticks int `json:"ticks"`
}

// CallFrame is Runtime.CallFrame. Lines and columns count from 0.
type CallFrame struct {
	FunctionName string `json:"functionName"`
	ScriptID     string `json:"scriptId"`
	URL          string `json:"url"`
	LineNumber   int    `json:"lineNumber"`
	ColumnNumber int    `json:"columnNumber"`
}

// Recording is a CPU profile under way.
type Recording struct {
	buf   bytes.Buffer
	start time.Time
}

// Start begins a CPU profile. The error wraps ErrBusy.
func Start() (*Recording, error) {
	r := &Recording{start: time.Now()}
	if err := pprof.StartCPUProfile(&r.buf); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return r, nil
}

// Cancel ends the recording.
func (r *Recording) Cancel() { pprof.StopCPUProfile() }

// Stop ends the recording and returns the profile. It waits for the runtime, up to a fifth of a second.
func (r *Recording) Stop(script Script) (*Profile, error) {
	pprof.StopCPUProfile()
	wall := time.Since(r.start)
	p, err := profile.Parse(&r.buf)
	if err != nil {
		return nil, fmt.Errorf("goprof: the runtime's profile cannot be read: %w", err)
	}
	return Convert(p, script, r.start, wall), nil
}

// maxSamples is how many samples a profile has; longer ones are thinned out.
const maxSamples = 200_000

// builder makes a profile.
type builder struct {
	out    *Profile
	script Script
}

func (b *builder) node(f CallFrame) *Node {
	n := &Node{ID: len(b.out.Nodes) + 1, CallFrame: f, kids: make(map[string]*Node), ticks: make(map[int]int)}
	b.out.Nodes = append(b.out.Nodes, n)
	return n
}

func special(name string) CallFrame {
	return CallFrame{FunctionName: name, ScriptID: "0", LineNumber: -1, ColumnNumber: -1}
}

// run is a stack with how often it was seen in a row.
type run struct {
	n     *Node
	count int64
	key   string
}

// Convert makes a profile of the runtime's. Go's profile says how often each
// stack was seen and not when: so equal stacks are laid side by side in the order
// of their functions, and what was idle comes at the end.
func Convert(p *profile.Profile, script Script, start time.Time, wall time.Duration) *Profile {
	b := &builder{out: &Profile{StartTime: start.UnixMicro(), Samples: []int{}, TimeDeltas: []int64{}}, script: script}
	root, program, idle, gc := b.node(special("(root)")), b.node(special("(program)")), b.node(special("(idle)")), b.node(special("(garbage collector)"))
	root.Children = []int{program.ID, idle.ID, gc.ID}
	period := max(p.Period/1000, 1)
	var runs []run
	total := int64(0)
	for _, s := range p.Sample {
		r := b.stack(s, root, gc)
		runs = append(runs, r)
		total += r.count
	}
	slices.SortStableFunc(runs, func(a, b run) int { return strings.Compare(a.key, b.key) })
	thin := max(1, (total+maxSamples-1)/maxSamples)
	at := int64(0)
	add := func(n *Node, d int64) {
		b.out.Samples = append(b.out.Samples, n.ID)
		b.out.TimeDeltas = append(b.out.TimeDeltas, d)
		at += d
	}
	for _, r := range runs {
		for left := r.count; left > 0; left -= thin {
			add(r.n, period*min(left, thin))
		}
	}
	for rest := wall.Microseconds() - at; rest > 0; rest = wall.Microseconds() - at {
		idle.HitCount++
		add(idle, min(rest, max(period, wall.Microseconds()/1000)))
	}
	add(program, 0)
	b.out.EndTime = b.out.StartTime + at
	for _, n := range b.out.Nodes {
		n.Ticks = sortedTicks(n.ticks)
	}
	return b.out
}

func sortedTicks(m map[int]int) (out []Tick) {
	for line, n := range m {
		out = append(out, Tick{line, n})
	}
	slices.SortFunc(out, func(a, b Tick) int { return a.Line - b.Line })
	return out
}

// stack finds or makes the nodes of a stack.
func (b *builder) stack(s *profile.Sample, root, gc *Node) run {
	n, fs := root, frames(s)
	if len(fs) > 0 && isCollector(fs[0].function) {
		n = gc
	}
	var key strings.Builder
	for _, f := range fs {
		k := f.function + "\x00" + f.file
		key.WriteString(k + "\x01")
		child := n.kids[k]
		if child == nil {
			child = b.node(callFrame(f, b.script))
			n.kids[k] = child
			n.Children = append(n.Children, child.ID)
		}
		n = child
	}
	count := s.Value[0]
	if len(fs) > 0 {
		n.ticks[int(fs[len(fs)-1].hit)] += int(count)
	}
	n.HitCount += int(count)
	return run{n, count, key.String()}
}

func isCollector(function string) bool {
	return function == "runtime.gcBgMarkWorker" || strings.HasPrefix(function, "runtime.bgsweep") || strings.HasPrefix(function, "runtime.bgscavenge")
}

// frame is one function of a stack.
type frame struct {
	function, file string
	// line is where the function begins, hit where it was.
	line, hit int64
}

// frames are the functions of a sample, outermost first, inlined ones too.
func frames(s *profile.Sample) (out []frame) {
	for _, l := range slices.Backward(s.Location) {
		for _, ln := range slices.Backward(l.Line) {
			if ln.Function != nil {
				out = append(out, frame{ln.Function.Name, ln.Function.Filename, ln.Function.StartLine, ln.Line})
			}
		}
	}
	return out
}

func callFrame(f frame, script Script) CallFrame {
	line := f.line
	if line == 0 {
		line = f.hit
	}
	c := CallFrame{FunctionName: f.function[strings.LastIndexByte(f.function, '/')+1:], ScriptID: "0", URL: f.file, LineNumber: max(int(line)-1, 0)}
	if script != nil {
		if id, url, ok := script(f.file); ok {
			c.ScriptID, c.URL = id, url
		}
	}
	return c
}
