package ingest

import "time"

// maxMessageBytes bounds one message: a body chunk in base64, or a batch of records, and then some.
const maxMessageBytes = 1 << 20

// pageRate is the most that one page may send, for long and at once. The client
// keeps itself below it; it stops a page that does not.
type pageRate struct {
	records, burstRecords float64
	bytes, burstBytes     float64
}

// defaultRate lets a page send at once what it queued while it was offline.
var defaultRate = pageRate{
	records: 20000, burstRecords: 100000,
	bytes: 64 << 20, burstBytes: 128 << 20,
}

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
