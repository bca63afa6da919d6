package bench

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// The environment through which a test binary learns that it is a source of its own.
const (
	sourceWay = "NATSCOPE_BENCH_WAY"
	sourceURL = "NATSCOPE_BENCH_URL"
)

func TestMain(m *testing.M) {
	if way := os.Getenv(sourceWay); way != "" {
		if err := beSource(way, os.Getenv(sourceURL)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
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
