package goprof

import (
	"bytes"
	"fmt"
	"runtime"
	"runtime/metrics"
	"runtime/pprof"

	"github.com/google/pprof/profile"
)

// Usage is the result of Runtime.getHeapUsage, in bytes.
type Usage struct {
	UsedSize         uint64 `json:"usedSize"`
	TotalSize        uint64 `json:"totalSize"`
	EmbedderHeapUsed uint64 `json:"embedderHeapUsedSize"`
	BackingStorage   uint64 `json:"backingStorageSize"`
}

// HeapUsage tells the use of memory as the runtime counts it: objects, and all
// that it has from the system.
func HeapUsage() Usage {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return Usage{UsedSize: s[0].Value.Uint64(), TotalSize: s[1].Value.Uint64() - s[2].Value.Uint64()}
}

// SampledHeap is HeapProfiler.SamplingHeapProfile.
type SampledHeap struct {
	Head    *SampledNode `json:"head"`
	Samples []Sample     `json:"samples"`
}

// SampledNode is HeapProfiler.SamplingHeapProfileNode.
type SampledNode struct {
	CallFrame CallFrame      `json:"callFrame"`
	SelfSize  float64        `json:"selfSize"`
	ID        int            `json:"id"`
	Children  []*SampledNode `json:"children"`

	kids map[string]*SampledNode
}

// Sample is HeapProfiler.SamplingHeapProfileSample.
type Sample struct {
	Size    float64 `json:"size"`
	NodeID  int     `json:"nodeId"`
	Ordinal float64 `json:"ordinal"`
}

// Allocations is what the program allocated up to now, as the runtime sampled it.
type Allocations struct{ p *profile.Profile }

// Allocated reads the allocations up to now. It collects garbage, so that they are up to date.
func Allocated() (*Allocations, error) {
	runtime.GC()
	var b bytes.Buffer
	if err := pprof.Lookup("allocs").WriteTo(&b, 0); err != nil {
		return nil, fmt.Errorf("goprof: allocations: %w", err)
	}
	p, err := profile.Parse(&b)
	if err != nil {
		return nil, fmt.Errorf("goprof: allocations: %w", err)
	}
	return &Allocations{p}, nil
}

// Since tells what was allocated since an earlier time, in bytes by function.
func (a *Allocations) Since(earlier *Allocations, script Script) (*SampledHeap, error) {
	before := earlier.p.Copy()
	before.Scale(-1)
	p, err := profile.Merge([]*profile.Profile{a.p, before})
	if err != nil {
		return nil, fmt.Errorf("goprof: allocations: %w", err)
	}
	return sampledHeap(p, "alloc_space", script), nil
}

func sampledHeap(p *profile.Profile, kind string, script Script) *SampledHeap {
	at := 0
	for i, t := range p.SampleType {
		if t.Type == kind {
			at = i
		}
	}
	made := 1
	newNode := func(f CallFrame) *SampledNode {
		n := &SampledNode{CallFrame: f, ID: made, Children: []*SampledNode{}, kids: make(map[string]*SampledNode)}
		made++
		return n
	}
	out := &SampledHeap{Head: newNode(special("(root)")), Samples: []Sample{}}
	for _, s := range p.Sample {
		if s.Value[at] <= 0 {
			continue
		}
		n := out.Head
		for _, f := range frames(s) {
			k := f.function + "\x00" + f.file
			child := n.kids[k]
			if child == nil {
				child = newNode(callFrame(f, script))
				n.kids[k] = child
				n.Children = append(n.Children, child)
			}
			n = child
		}
		n.SelfSize += float64(s.Value[at])
		out.Samples = append(out.Samples, Sample{float64(s.Value[at]), n.ID, float64(len(out.Samples) + 1)})
	}
	return out
}
