package ingest

import (
	"testing"
	"time"
)

func TestBucketRefillsUpToItsBurst(t *testing.T) {
	now := time.Now()
	b := newBucket(10, 100, now)
	if !b.take(100, now) || b.take(1, now) {
		t.Error("a full bucket holds exactly its burst")
	}
	now = now.Add(time.Second)
	if !b.take(10, now) || b.take(1, now) {
		t.Error("a second brings exactly the rate")
	}
	now = now.Add(time.Hour)
	if b.take(101, now) || !b.take(100, now) {
		t.Error("an hour brings no more than the burst")
	}
	if b.take(1, now.Add(-time.Hour)) {
		t.Error("a clock that goes back brings something")
	}
}
