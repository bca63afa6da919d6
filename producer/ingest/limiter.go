package ingest

import "time"

// The most that one page may send. The client keeps itself below these; they
// stop a page that does not. A burst must hold what a page has queued while it
// was offline.
const (
	// maxMessageBytes bounds one message: a body chunk in base64, or a batch of records, and then some.
	maxMessageBytes = 1 << 20
	// recordsPerSecond and burstRecords bound the records of one page.
	recordsPerSecond = 20000
	burstRecords     = 100000
	// bytesPerSecond and burstBytes bound the bytes of one page.
	bytesPerSecond = 64 << 20
	burstBytes     = 128 << 20
)

// bucket is a token bucket. It is not safe for concurrent use.
type bucket struct {
	rate, burst float64
	tokens      float64
	last        time.Time
}

func newBucket(rate, burst float64, now time.Time) bucket {
	return bucket{rate: rate, burst: burst, tokens: burst, last: now}
}

// take takes n tokens and reports whether they were there.
func (b *bucket) take(n float64, now time.Time) bool {
	if d := now.Sub(b.last).Seconds(); d > 0 {
		b.tokens = min(b.burst, b.tokens+d*b.rate)
		b.last = now
	}
	if b.tokens < n {
		return false
	}
	b.tokens -= n
	return true
}
