package treecap_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/natscope/natscope/producer/treecap"
	"github.com/natscope/natscope/subjects"
)

// job is a component of the usual size.
type job struct {
	Name    string
	State   level
	Done    int
	Failed  int
	Ratio   float64
	Timeout time.Duration
}

func BenchmarkRegister(b *testing.B) {
	r := newRig(b, subjects.Limits{})
	tr := treecap.New(r.p, treecap.Options{Interval: time.Hour})
	j := &job{Name: "import", Timeout: time.Second}
	b.ReportAllocs()
	for b.Loop() {
		tr.Register(nil, "job", j).Close()
	}
}

func BenchmarkUpdate(b *testing.B) {
	for name, change := range map[string]int{"unchanged": 0, "changed": 1} {
		b.Run(name, func(b *testing.B) {
			r := newRig(b, subjects.Limits{})
			tr := treecap.New(r.p, treecap.Options{Interval: time.Hour})
			j := &job{Name: "import", Timeout: time.Second}
			var mu sync.Mutex
			c := tr.Register(nil, "job", j, treecap.Locked(&mu))
			b.ReportAllocs()
			for b.Loop() {
				mu.Lock()
				j.Done += change
				mu.Unlock()
				c.Update()
			}
		})
	}
}

// BenchmarkMemory reports what one registered value costs while it is registered, its node included.
func BenchmarkMemory(b *testing.B) {
	r := newRig(b, subjects.Limits{})
	tr := treecap.New(r.p, treecap.Options{Interval: time.Hour})
	const n = 10000
	jobs := make([]job, n)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	components := make([]*treecap.Component, n)
	for b.Loop() {
		before := heap()
		for i := range jobs {
			components[i] = tr.Register(nil, "job", &jobs[i])
		}
		b.ReportMetric(float64(heap()-before)/n, "B/value")
		for _, c := range components {
			c.Close()
		}
	}
}
