package replica

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

// TestHedge: a question that gets lost costs a moment and not the whole patience.
func TestHedge(t *testing.T) {
	answered := errors.New("answered")
	for _, lost := range []int64{0, 1, 3} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var asked, running atomic.Int64
		start := time.Now()
		_, err := hedge(ctx, time.Millisecond, func(ctx context.Context) (int, error) {
			running.Add(1)
			defer running.Add(-1)
			if asked.Add(1) <= lost {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return 0, answered
		})
		if !errors.Is(err, answered) || asked.Load() <= lost || running.Load() != 0 {
			t.Errorf("%d questions were lost: %v after %d questions, %d still run", lost, err, asked.Load(), running.Load())
		}
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("%d questions were lost: it took %v", lost, d)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := hedge(ctx, time.Millisecond, func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("nobody answers: %v", err)
	}
}
