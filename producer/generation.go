package producer

import (
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/natscope/natscope/subjects"
)

// generations makes the ids of this process strictly increasing, even in one
// millisecond and when the wall clock steps back.
var generations = clock{entropy: ulid.Monotonic(rand.Reader, 0)}

type clock struct {
	// mu guards all below.
	mu      sync.Mutex
	last    uint64
	entropy ulid.MonotonicReader
}

// maxClock is the latest time that a foreign generation may push this process's
// generations to, in milliseconds since 1970: the year 5138. Beyond it somebody's
// clock is broken, and no time would be left for those who come later.
const maxClock = 100_000_000_000_000

// beyond makes all later ids larger than g.
func (c *clock) beyond(g subjects.Generation) error {
	id, err := ulid.ParseStrict(strings.ToUpper(string(g)))
	if err != nil {
		return fmt.Errorf("generation %.64q is no ULID, so none can follow it: %w", g, err)
	}
	if id.Time() >= maxClock {
		return fmt.Errorf("generation %s is of the year %d: set the clock of the program that made it", g, ulid.Time(id.Time()).Year())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(c.last, id.Time()+1)
	return nil
}

// next returns a ULID in lower case that is larger than all before it.
func (c *clock) next(now time.Time) subjects.Generation {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(c.last, ulid.Timestamp(now))
	for {
		id, err := ulid.New(c.last, c.entropy)
		if err == nil {
			return subjects.Generation(strings.ToLower(id.String()))
		}
		// The random part of this millisecond is used up.
		c.last++
	}
}
