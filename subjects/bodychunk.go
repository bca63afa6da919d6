package subjects

import (
	"fmt"
	"strconv"
)

// The reasons for which a captured body ends, as HeaderEnd carries them.
const (
	// BodyComplete means that every byte was captured and published.
	BodyComplete = "complete"
	// BodyTruncated means that the body went on beyond the capture limit, or that chunks were dropped under pressure.
	BodyTruncated = "truncated"
	// BodyAborted means that the application or the peer stopped the transfer.
	BodyAborted = "aborted"
)

// maxBody bounds offsets and sizes of bodies, so that sums of them cannot overflow.
const maxBody = 1 << 62

// BodyChunk describes one message of the body stream. The message's data are
// raw bytes of the body. The last message of a body has End set and may be empty.
type BodyChunk struct {
	// Offset is where the bytes belong in the body.
	Offset int64
	// End is empty for all but the last message, which carries a reason.
	End string
	// Total is the size of the whole body as far as the producer knows it, -1 if it does not; only with End.
	Total int64
}

// Header returns the headers of the chunk's message.
func (c BodyChunk) Header() Header {
	h := Header{
		HeaderVersion: {strconv.Itoa(Version)},
		HeaderOffset:  {strconv.FormatInt(c.Offset, 10)},
	}
	if c.End != "" {
		h[HeaderEnd] = []string{c.End}
		if c.Total >= 0 {
			h[HeaderTotal] = []string{strconv.FormatInt(c.Total, 10)}
		}
	}
	return h
}

// ParseBodyChunk reads the headers of a body message. The error wraps ErrFrame
// or ErrVersion. An unknown reason in End is returned as it is; readers treat it
// as BodyAborted.
func ParseBodyChunk(h Header) (BodyChunk, error) {
	var c BodyChunk
	if v := h.Get(HeaderVersion); v != strconv.Itoa(Version) {
		if _, err := strconv.ParseUint(v, 10, 32); err != nil {
			return c, fmt.Errorf("%w: header %s is %.40q, not a number", ErrFrame, HeaderVersion, v)
		}
		return c, fmt.Errorf("%w: the body chunk has version %s, this reader has version %d", ErrVersion, v, Version)
	}
	off, err := headerUint(h, HeaderOffset)
	if err != nil {
		return c, err
	}
	if off > maxBody {
		return c, fmt.Errorf("%w: body offset %d", ErrFrame, off)
	}
	c.Offset = int64(off)
	if c.End = h.Get(HeaderEnd); c.End == "" {
		return c, nil
	}
	if h.Get(HeaderTotal) == "" {
		c.Total = -1
		return c, nil
	}
	total, err := headerUint(h, HeaderTotal)
	if err != nil {
		return BodyChunk{}, err
	}
	if total > maxBody {
		return BodyChunk{}, fmt.Errorf("%w: body total %d", ErrFrame, total)
	}
	c.Total = int64(total)
	return c, nil
}
