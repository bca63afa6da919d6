package bench

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// The environment through which a test binary learns that it is a source of its own.
const (
	sourceURL  = "NATSCOPE_BENCH_URL"
	sourceRate = "NATSCOPE_BENCH_RATE"
)

func TestMain(m *testing.M) {
	if os.Getenv(sourceRate) != "" {
		os.Exit(beSource())
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "the benchmarks left goroutines behind:", err)
			code = 1
		}
	}
	os.Exit(code)
}
