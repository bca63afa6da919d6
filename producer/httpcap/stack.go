package httpcap

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/natscope/natscope/subjects/network"
)

const (
	// maxFrames is how many frames of a stack are recorded.
	maxFrames = 32
	// maxDepth is how many frames are looked at, those of net/http and of this package included.
	maxDepth = 64
	// maxCached bounds the table of resolved frames. A program has a bounded
	// number of call sites; the bound is for the unusual one.
	maxCached = 16384
)

// frame is one resolved frame of a stack, encoded once for all records that name it.
type frame struct {
	json []byte
	// hidden frames are machinery that tells nothing about who made a request.
	hidden bool
}

// frames maps program counters to resolved frames; cached counts them.
var (
	frames sync.Map // uintptr -> *frame
	cached atomic.Int64
)

// callers appends the frames that lead to the calling RoundTrip, innermost
// first, without those of net/http and of this package.
func callers(dst []*frame) []*frame {
	var pcs [maxDepth]uintptr
	n := runtime.Callers(2, pcs[:])
	for _, pc := range pcs[:n] {
		f := resolve(pc)
		if f.hidden {
			continue
		}
		if dst = append(dst, f); len(dst) == maxFrames {
			break
		}
	}
	return dst
}

// resolve returns the frame of one return address. runtime.Callers gives inlined
// functions addresses of their own, so one address is one frame.
func resolve(pc uintptr) *frame {
	if f, ok := frames.Load(pc); ok {
		return f.(*frame)
	}
	rf, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	f := &frame{hidden: hiddenFunction(rf.Function)}
	if !f.hidden {
		e := encoder{}
		e.frame(network.Frame{Function: rf.Function, URL: rf.File, Line: rf.Line})
		f.json = e.b
	}
	if cached.Load() < maxCached {
		cached.Add(1)
		frames.Store(pc, f)
	}
	return f
}

// hiddenFunction reports whether a function belongs to net/http, to this package or to the runtime's start of a goroutine.
func hiddenFunction(name string) bool {
	switch {
	case name == "", name == "runtime.goexit", name == "runtime.main":
		return true
	}
	return strings.HasPrefix(name, "net/http.") || strings.HasPrefix(name, "net/http/") ||
		strings.HasPrefix(name, "github.com/natscope/natscope/producer/httpcap.") || strings.HasPrefix(name, "github.com/natscope/natscope/producer/httpcap/")
}
