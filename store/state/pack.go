package state

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/klauspost/compress/zstd"
	"github.com/natscope/natscope/subjects/tree"
)

const (
	// partBytes is the size at which a shard is continued in another key. The
	// bucket takes 512 KiB.
	partBytes = 256 << 10
	// maxShard bounds what a shard may unpack to.
	maxShard = 256 << 20
)

// The coders are safe for concurrent use as long as only the All methods are called.
var (
	encoder, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	decoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxShard))
)

// placed is one line of a tree shard. The children are ids of the realm, the
// first as it is and the others as the distance to the one before, since
// neighbours were mostly made one after the other.
type placed struct {
	Backend  tree.BackendNodeID `json:"b"`
	Children []int64            `json:"c,omitempty"`
	Node     tree.Node          `json:"n"`
}

// distances packs the ids of children.
func distances(children []*tree.Entry) []int64 {
	if len(children) == 0 {
		return nil
	}
	out := make([]int64, len(children))
	last := int64(0)
	for i, c := range children {
		out[i] = int64(c.ID) - last
		last = int64(c.ID)
	}
	return out
}

// pack turns lines into the values of a shard's keys. No lines give no keys.
func pack[T any](lines []T) ([][]byte, error) {
	if len(lines) == 0 {
		return nil, nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for i := range lines {
		if err := enc.Encode(&lines[i]); err != nil {
			return nil, fmt.Errorf("state: line %d: %w", i, err)
		}
	}
	packed := encoder.EncodeAll(b.Bytes(), nil)
	var out [][]byte
	for len(packed) > partBytes {
		out = append(out, packed[:partBytes:partBytes])
		packed = packed[partBytes:]
	}
	return append(out, packed), nil
}

// unpack calls f with every line of a shard. The error wraps ErrDamaged, or is that of f.
func unpack[T any](parts map[string][]byte, kind string, shard, count int, f func(*T) error) error {
	if count == 0 {
		return nil
	}
	packed := parts[partName(kind, shard, 0)]
	if count > 1 {
		all := bytes.Clone(packed)
		for p := 1; p < count; p++ {
			all = append(all, parts[partName(kind, shard, p)]...)
		}
		packed = all
	}
	plain, err := decoder.DecodeAll(packed, nil)
	if err != nil {
		return fmt.Errorf("%w: shard %s.%d: %w", ErrDamaged, kind, shard, err)
	}
	for len(plain) > 0 {
		line, rest, _ := bytes.Cut(plain, []byte{'\n'})
		plain = rest
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			return fmt.Errorf("%w: shard %s.%d: %w", ErrDamaged, kind, shard, err)
		}
		if err := f(&v); err != nil {
			return err
		}
	}
	return nil
}
