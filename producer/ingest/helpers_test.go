package ingest

import (
	"strconv"
	"testing"

	"github.com/natscope/natscope/producer/internal/natstest"
)

func natstestUntil(t *testing.T, what string, f func() bool) {
	t.Helper()
	natstest.Until(t, what, f)
}

func itoa(n uint64) string { return strconv.FormatUint(n, 10) }
