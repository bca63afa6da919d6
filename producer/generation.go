package producer

import (
	"crypto/rand"
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
