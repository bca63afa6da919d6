package proctree

import (
	"fmt"
	"math"
	"runtime/metrics"

	"github.com/natscope/natscope/producer/treecap"
)

// shownMetrics are the attributes of the memory node.
var shownMetrics = []struct{ attr, name string }{
	{"heap", "/memory/classes/heap/objects:bytes"},
	{"goal", "/gc/heap/goal:bytes"},
	{"stacks", "/memory/classes/heap/stacks:bytes"},
	{"total", "/memory/classes/total:bytes"},
	{"limit", "/gc/gomemlimit:bytes"},
	{"gogc", "/gc/gogc:percent"},
	{"collections", "/gc/cycles/total:gc-cycles"},
}

// memory shows what the runtime knows of the heap. Reading it stops nothing.
type memory struct {
	node    *treecap.Node
	samples []metrics.Sample
}

func newMemory(parent *treecap.Node) *memory {
	m := &memory{node: parent.Add("memory"), samples: make([]metrics.Sample, len(shownMetrics))}
	for i, s := range shownMetrics {
		m.samples[i].Name = s.name
	}
	return m
}

func (m *memory) refresh() {
	metrics.Read(m.samples)
	for i, s := range m.samples {
		if s.Value.Kind() != metrics.KindUint64 {
			continue // this version of Go does not have it
		}
		switch n, attr := s.Value.Uint64(), shownMetrics[i].attr; {
		case n == math.MaxInt64 || n == math.MaxUint64:
			m.node.Set(attr, "off")
		case attr == "collections":
			m.node.Set(attr, n)
		case attr == "gogc":
			m.node.Set(attr, fmt.Sprintf("%d%%", n))
		default:
			m.node.Set(attr, size(n))
		}
	}
}

// size writes a number of bytes with three digits, so that it does not change for every byte.
func size(n uint64) string {
	f := float64(n)
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	i := 0
	for ; f >= 1000 && i < len(units)-1; i++ {
		f /= 1024
	}
	switch {
	case i == 0 || f >= 100:
		return fmt.Sprintf("%.0f %s", f, units[i])
	case f >= 10:
		return fmt.Sprintf("%.1f %s", f, units[i])
	}
	return fmt.Sprintf("%.2f %s", f, units[i])
}
