package subjects

import (
	"bytes"
	"errors"
	"testing"
)

func TestAnswersInPieces(t *testing.T) {
	for _, size := range []int{0, 1, 9, 10, 11, 20, 25, maxChunks * 2} {
		data := bytes.Repeat([]byte("x"), size)
		limit := 10
		if size > 100 {
			limit = 1
		}
		pieces := SplitAnswer(data, limit)
		if !bytes.Equal(bytes.Join(pieces, nil), data) || len(pieces) > maxChunks {
			t.Errorf("%d bytes came as %d pieces of another text", size, len(pieces))
		}
		for i := range pieces {
			c, err := ParseChunk(Header{HeaderChunk: {Chunk{i + 1, len(pieces)}.String()}})
			if err != nil || c.Index != i+1 || c.Count != len(pieces) {
				t.Fatalf("piece %d: %+v, %v", i, c, err)
			}
		}
	}
	if c, err := ParseChunk(nil); err != nil || c != (Chunk{1, 1}) {
		t.Errorf("%+v, %v", c, err)
	}
	for _, bad := range []string{"1", "0/1", "2/1", "-1/2", "1/70000", "a/b", "1/", "/1", "1/2/3"} {
		if _, err := ParseChunk(Header{HeaderChunk: {bad}}); !errors.Is(err, ErrChunk) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
