package query

import (
	"context"
	"errors"
	"time"
)

// The pauses before a watch that could not be asked is asked again.
const (
	followMin = 250 * time.Millisecond
	followMax = 5 * time.Second
)

// Follow asks a watch again and again and calls f with every event in order,
// until ctx ends, f returns an error, or the question is refused; it returns
// that error. While nobody answers it keeps asking: what happened meanwhile comes
// then, or an event of the kind reset says that it cannot. after is called, if it
// is not nil, with the mark behind the events that f has seen.
func Follow(ctx context.Context, api API, q WatchRequest, f func(Event) error, after func(Mark)) error {
	q.WaitMS = int(MaxWait / time.Millisecond)
	pause := followMin
	for {
		a, err := api.Watch(ctx, q)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrUnavailable), errors.Is(err, ErrTimeout), errors.Is(err, ErrBusy):
			if q.After == "" && pause == followMin {
				// Nobody was there from the start: the asker should know.
				return err
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(pause):
			}
			pause = min(2*pause, followMax)
			continue
		case err != nil:
			return err
		}
		pause = followMin
		for i := range a.Events {
			if err := f(a.Events[i]); err != nil {
				return err
			}
		}
		q.After = a.Next
		if after != nil {
			after(a.Next)
		}
	}
}
