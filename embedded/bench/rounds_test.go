package bench

import (
	"slices"
	"testing"
	"time"
)

// sample collects one figure of many rounds.
type sample []float64

func (s *sample) add(v float64) { *s = append(*s, v) }

// quantile returns the value that the share q of all values does not exceed.
func (s sample) quantile(q float64) float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func (s sample) median() float64 { return s.quantile(0.5) }

// over returns the median of the ratios of s to other, round by round: the
// machine's speed drifts, and a pair of neighbours drifts least.
func (s sample) over(other sample) float64 {
	var ratios sample
	for i := range min(len(s), len(other)) {
		ratios.add(s[i] / other[i])
	}
	return ratios.median()
}

// more is over for the differences.
func (s sample) more(other sample) float64 {
	var differences sample
	for i := range min(len(s), len(other)) {
		differences.add(s[i] - other[i])
	}
	return differences.median()
}

// rate is how many per second n in d are.
func rate(n int, d time.Duration) float64 { return float64(n) / d.Seconds() }

// until polls until f is true, and fails the benchmark after patience.
func until(b testing.TB, what string, f func() bool) {
	b.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !f(); <-tick.C {
		if time.Now().After(deadline) {
			b.Fatalf("gave up waiting until %s", what)
		}
	}
}

// silent ends the figure of a benchmark that reports its own.
func silent(b *testing.B) { b.ReportMetric(0, "ns/op") }
