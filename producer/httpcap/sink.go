package httpcap

import (
	"encoding/json"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/redact"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// sink is what the capture needs of a producer. All methods are safe for
// concurrent use, return at once and copy what they are given.
type sink interface {
	Now() float64
	Limits() subjects.Limits
	RecordAt(plane subjects.Plane, topic string, t float64, data json.RawMessage)
	Lost(plane subjects.Plane, n uint64)
	Redactor() *redact.Redactor
	Body(id network.RequestID, d subjects.Direction) bodySink
}

// bodySink takes one body. Write and End are called by one goroutine at a time.
type bodySink interface {
	Write(chunk []byte)
	End(reason string, total int64)
	Captured() int64
	Truncated() bool
}

// producerSink adapts a producer: only the type of Body differs.
type producerSink struct{ *producer.Producer }

// Body starts the capture of one body.
func (s producerSink) Body(id network.RequestID, d subjects.Direction) bodySink {
	return s.Producer.Body(id, d)
}

// uncaptured stands for a body of which only the size is told.
type uncaptured struct{}

func (uncaptured) Write([]byte)      {}
func (uncaptured) End(string, int64) {}
func (uncaptured) Captured() int64   { return 0 }
func (uncaptured) Truncated() bool   { return true }
