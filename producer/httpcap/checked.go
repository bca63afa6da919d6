package httpcap

import (
	"sync/atomic"

	"github.com/natscope/natscope/producer/redact"
	"github.com/natscope/natscope/subjects"
)

const (
	// maxChecked is how much of one body waits to be checked against rules, in bytes.
	maxChecked = 4 << 20
	// maxChecking is how much of all bodies of the process waits, in bytes.
	maxChecking = 64 << 20
)

// checking counts the bytes that wait to be checked.
var checking atomic.Int64

// endBody ends a body of which total bytes passed, and tells what was kept of it.
func endBody(b bodySink, reason string, total int64) (captured int64, truncated, redacted bool) {
	if c, ok := b.(*checkedBody); ok {
		redacted = c.finish(reason, total)
		return c.Captured(), c.Truncated(), redacted
	}
	if reason == subjects.BodyComplete && b.Captured() < total {
		reason = subjects.BodyTruncated
	}
	b.End(reason, total)
	captured = b.Captured()
	return captured, b.Truncated() || captured < total, false
}

// checkedBody keeps a body until all of it is known, and then tells what the
// rules leave of it. One that is too large, or that ended early, is withheld: a
// secret may be in the part that is missing, or go across the cut.
type checkedBody struct {
	bodySink
	rules       *redact.Redactor
	contentType string
	encoded     bool

	data     []byte
	withheld bool
}

// Write keeps the next bytes.
func (b *checkedBody) Write(p []byte) {
	if b.withheld {
		return
	}
	if len(b.data)+len(p) > maxChecked || checking.Add(int64(len(p))) > maxChecking {
		if len(b.data)+len(p) <= maxChecked {
			checking.Add(-int64(len(p)))
		}
		b.withhold()
		return
	}
	b.data = append(b.data, p...)
}

func (b *checkedBody) withhold() {
	checking.Add(-int64(len(b.data)))
	b.data, b.withheld = nil, true
}

// finish tells what the rules leave and reports whether that differs from what passed.
func (b *checkedBody) finish(reason string, total int64) (redacted bool) {
	// A panic below must not count its bytes for ever.
	defer b.withhold()
	if b.withheld || reason != subjects.BodyComplete || int64(len(b.data)) < total {
		b.withheld = b.withheld || total > 0
		b.bodySink.End(subjects.BodyTruncated, total)
		return total > 0
	}
	out, changed, ok := b.rules.Body(b.contentType, b.encoded, b.data)
	if !ok {
		b.withheld = true
		b.bodySink.End(subjects.BodyTruncated, total)
		return true
	}
	b.bodySink.Write(out)
	size := int64(len(out))
	if b.bodySink.Captured() < size {
		reason = subjects.BodyTruncated
	}
	b.bodySink.End(reason, size)
	return changed
}

// Truncated implements bodySink.
func (b *checkedBody) Truncated() bool { return b.withheldBody() || b.bodySink.Truncated() }

func (b *checkedBody) withheldBody() bool { return b.withheld && b.bodySink.Captured() == 0 }
