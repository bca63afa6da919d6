package subjects

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrChunk says that a piece of an answer makes no sense. The text around it says why.
var ErrChunk = errors.New("subjects: malformed piece of an answer")

// maxChunks bounds how many pieces an answer has.
const maxChunks = 1 << 16

// Chunk is the place of one message in an answer of several, which a server
// would not take as one. The pieces come in order, to the same reply subject.
type Chunk struct {
	// Index counts from 1 to Count.
	Index, Count int
}

// String returns the value of HeaderChunk.
func (c Chunk) String() string { return strconv.Itoa(c.Index) + "/" + strconv.Itoa(c.Count) }

// ParseChunk reads HeaderChunk; the whole answer, which has no such header, is
// piece 1 of 1. The error wraps ErrChunk.
func ParseChunk(h Header) (Chunk, error) {
	v := h.Get(HeaderChunk)
	if v == "" {
		return Chunk{1, 1}, nil
	}
	i, n, ok := strings.Cut(v, "/")
	index, err := strconv.Atoi(i)
	count, err2 := strconv.Atoi(n)
	if !ok || err != nil || err2 != nil || index < 1 || index > count || count > maxChunks {
		return Chunk{}, fmt.Errorf("%w: header %s is %.40q, want such as 1/3", ErrChunk, HeaderChunk, v)
	}
	return Chunk{index, count}, nil
}

// SplitAnswer cuts an answer into pieces of at most limit bytes, at least 1.
func SplitAnswer(data []byte, limit int) [][]byte {
	limit = max(limit, (len(data)+maxChunks-1)/maxChunks, 1)
	pieces := make([][]byte, 0, len(data)/limit+1)
	for len(data) > limit {
		pieces = append(pieces, data[:limit])
		data = data[limit:]
	}
	return append(pieces, data)
}
