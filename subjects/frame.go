package subjects

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/klauspost/compress/zstd"
)

// Version is the major version of this contract. Readers refuse frames of another one.
const Version = 1

// The headers of frames and body chunks.
const (
	// HeaderVersion carries Version.
	HeaderVersion = "Natscope-Version"
	// HeaderSeq carries the number of the first record of a frame.
	HeaderSeq = "Natscope-Seq"
	// HeaderCount carries the number of records of a frame.
	HeaderCount = "Natscope-Count"
	// HeaderDropped carries how many records the producer lost just before the frame. Absent means none.
	HeaderDropped = "Natscope-Dropped"
	// HeaderEncoding is absent for plain bodies, or "zstd".
	HeaderEncoding = "Natscope-Encoding"
	// HeaderOffset carries the offset of a body chunk in its body, in bytes.
	HeaderOffset = "Natscope-Offset"
	// HeaderEnd marks the last message of a body and carries why it ends: see the BodyEnd constants.
	HeaderEnd = "Natscope-End"
	// HeaderTotal carries, on the last message of a body, its whole size in bytes as far as it is known.
	HeaderTotal = "Natscope-Total"
	// HeaderChunk marks one of several messages that together are one answer to a command: see Chunk.
	HeaderChunk = "Natscope-Chunk"
	// HeaderWho carries, on a question that can change a program, who asks by its
	// own word. It is for the audit only and grants nothing.
	HeaderWho = "Natscope-Who"
)

// EncodingZstd is the only encoding of frame bodies besides none.
const EncodingZstd = "zstd"

// zstdFrom is the size from which a frame body is worth compressing, in bytes.
const zstdFrom = 4 << 10

// The most of a decoded frame that any reader accepts, whatever the producer's
// limits: it bounds what a small compressed frame can grow to.
const (
	maxFrameBytes   = 1 << 20
	maxFrameRecords = 2048
)

// ErrFrame says that a message on a record subject is not a valid frame. The reason is in the text around it.
var ErrFrame = errors.New("subjects: malformed frame")

// ErrVersion says that a frame is of another major version of the contract.
var ErrVersion = errors.New("subjects: other contract version")

// Header is the shape of NATS headers: the type nats.Header without the import.
type Header map[string][]string

// Get returns the first value of a header, or the empty string.
func (h Header) Get(key string) string {
	if v := h[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// Frame is one NATS message: a contiguous batch of records of one plane of one generation.
type Frame struct {
	// Seq numbers the first record.
	Seq Seq
	// Dropped is how many records the producer lost just before the first.
	Dropped uint64
	// Records holds the records in order; record i has the number Seq+i.
	Records []Record
}

// FrameInfo is what the headers of a frame say.
type FrameInfo struct {
	// Seq numbers the first record.
	Seq Seq
	// Count is the number of records.
	Count int
	// Dropped is how many records the producer lost just before the first.
	Dropped uint64
	// Encoding is empty or EncodingZstd.
	Encoding string
}

// frameEncoder and frameDecoder are safe for concurrent use as long as only the All methods are called.
var (
	frameEncoder, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	frameDecoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxFrameBytes+4096))
)

// EncodeFrame returns the headers and the body of the message that carries the
// given lines, each as AppendRecord made it. Large bodies are compressed.
func EncodeFrame(info FrameInfo, body []byte) (Header, []byte) {
	h, body := EncodePlainFrame(info, body)
	if len(body) >= zstdFrom {
		packed := frameEncoder.EncodeAll(body, make([]byte, 0, len(body)/4))
		if len(packed) < len(body) {
			h[HeaderEncoding] = []string{EncodingZstd}
			return h, packed
		}
	}
	return h, body
}

// EncodePlainFrame is EncodeFrame without compression: for a sender that has
// more to send than its processor can compress, and a network that can take it.
func EncodePlainFrame(info FrameInfo, body []byte) (Header, []byte) {
	h := Header{
		HeaderVersion: {strconv.Itoa(Version)},
		HeaderSeq:     {strconv.FormatUint(uint64(info.Seq), 10)},
		HeaderCount:   {strconv.Itoa(info.Count)},
	}
	if info.Dropped > 0 {
		h[HeaderDropped] = []string{strconv.FormatUint(info.Dropped, 10)}
	}
	return h, body
}

// ParseFrameInfo reads the headers of a frame. The error wraps ErrVersion or ErrFrame.
func ParseFrameInfo(h Header) (FrameInfo, error) {
	var info FrameInfo
	if v := h.Get(HeaderVersion); v != strconv.Itoa(Version) {
		if _, err := strconv.ParseUint(v, 10, 32); err != nil {
			return info, fmt.Errorf("%w: header %s is %.40q, not a number", ErrFrame, HeaderVersion, v)
		}
		return info, fmt.Errorf("%w: the frame has version %s, this reader has version %d", ErrVersion, v, Version)
	}
	seq, err := headerUint(h, HeaderSeq)
	if err != nil {
		return info, err
	}
	count, err := headerUint(h, HeaderCount)
	if err != nil {
		return info, err
	}
	if seq == 0 || count == 0 || count > maxFrameRecords {
		return info, fmt.Errorf("%w: seq %d with %d records; both start at 1 and a frame has at most %d", ErrFrame, seq, count, maxFrameRecords)
	}
	if seq+count < seq {
		return info, fmt.Errorf("%w: seq %d with %d records overflows", ErrFrame, seq, count)
	}
	if h.Get(HeaderDropped) != "" {
		if info.Dropped, err = headerUint(h, HeaderDropped); err != nil {
			return info, err
		}
	}
	info.Seq, info.Count, info.Encoding = Seq(seq), int(count), h.Get(HeaderEncoding)
	return info, nil
}

// DecodeFrame parses a message on a record subject. A frame is valid as a
// whole or not at all. The error wraps ErrFrame or ErrVersion. Unknown headers
// and unknown fields of records are ignored. The records do not share memory
// with body.
func DecodeFrame(h Header, body []byte) (Frame, error) {
	info, err := ParseFrameInfo(h)
	if err != nil {
		return Frame{}, err
	}
	switch info.Encoding {
	case "":
		if len(body) <= maxFrameBytes {
			body = bytes.Clone(body)
		}
	case EncodingZstd:
		if body, err = frameDecoder.DecodeAll(body, nil); err != nil {
			return Frame{}, fmt.Errorf("%w: zstd: %w", ErrFrame, err)
		}
	default:
		return Frame{}, fmt.Errorf("%w: unknown encoding %.40q", ErrFrame, info.Encoding)
	}
	if len(body) > maxFrameBytes {
		return Frame{}, fmt.Errorf("%w: %d bytes of records, the limit is %d", ErrFrame, len(body), maxFrameBytes)
	}
	f := Frame{Seq: info.Seq, Dropped: info.Dropped, Records: make([]Record, 0, info.Count)}
	topic := ""
	for len(body) > 0 {
		line, rest, _ := bytes.Cut(body, []byte{'\n'})
		body = rest
		if len(line) == 0 {
			continue
		}
		if len(f.Records) == info.Count {
			return Frame{}, fmt.Errorf("%w: more than the %d records that the header names", ErrFrame, info.Count)
		}
		r, err := parseRecord(line, topic)
		if err != nil {
			return Frame{}, fmt.Errorf("%w: record %d: %w", ErrFrame, len(f.Records), err)
		}
		topic = r.Topic
		f.Records = append(f.Records, r)
	}
	if len(f.Records) != info.Count {
		return Frame{}, fmt.Errorf("%w: %d records, the header says %d", ErrFrame, len(f.Records), info.Count)
	}
	return f, nil
}

func headerUint(h Header, key string) (uint64, error) {
	v, err := strconv.ParseUint(h.Get(key), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: header %s is %.40q, not a number", ErrFrame, key, h.Get(key))
	}
	return v, nil
}
