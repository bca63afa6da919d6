package replica

import (
	"context"
	"sync"
	"time"
)

// hedgeEvery is how long one question waits alone. A stream or a cluster without
// a leader answers nothing, also later: what was asked in that time is lost.
const hedgeEvery = 500 * time.Millisecond

// hedge asks, and asks once more every so often until the first answer comes, of
// whatever kind, without giving up the questions before: a server that is only
// slow will answer one of them. ctx has a deadline and ends all of them. ask must
// do no harm when it is called several times at once.
func hedge[T any](ctx context.Context, every time.Duration, ask func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithCancel(ctx)
	type answer struct {
		v   T
		err error
	}
	answers := make(chan answer, 1)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		asking.Go(func() {
			v, err := ask(ctx)
			select {
			case answers <- answer{v, err}:
			default: // Another one was first.
			}
		})
		select {
		case a := <-answers:
			return a.v, a.err
		case <-tick.C:
		}
	}
}
