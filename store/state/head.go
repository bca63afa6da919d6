package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/source"
	"github.com/natscope/natscope/subjects/tree"
)

// Version is the version of the layout that this package reads and writes.
const Version = 1

// ErrDamaged says that a saved state cannot be read: fold what the stream has instead.
var ErrDamaged = errors.New("state: damaged")

// HeadPart is the part that holds a Head.
const HeadPart = "head"

// The key under which a space keeps its Cursor.
const (
	CursorSource subjects.SourceID = "_space"
	CursorPart   string            = "cursor"
)

// Stream identifies the record stream that a state was folded from. A stream
// that was deleted and made again has the same name and counts from 1 again,
// so the time of its creation belongs to its identity.
type Stream struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
}

// Same reports whether two streams are one.
func (s Stream) Same(o Stream) bool { return s.Name == o.Name && s.Created.Equal(o.Created) }

// Cursor says that the state of every source covers the stream up to Covered.
type Cursor struct {
	Version int                `json:"version"`
	Stream  Stream             `json:"stream"`
	Covered subjects.StreamSeq `json:"covered"`
}

// Head is what is saved of a source beside its shards.
type Head struct {
	Version int    `json:"version"`
	Name    string `json:"name"`
	Stream  Stream `json:"stream"`
	// Covered is the sequence of the last message that the state includes.
	Covered    subjects.StreamSeq  `json:"covered"`
	Element    tree.BackendNodeID  `json:"element"`
	Generation subjects.Generation `json:"generation"`
	// Connected says whether the source lived; GoneAt is when it went otherwise.
	Connected  bool                          `json:"connected"`
	GoneAt     time.Time                     `json:"goneAt,omitzero"`
	LastT      float64                       `json:"lastT"`
	Late       uint64                        `json:"late,omitempty"`
	Unknown    uint64                        `json:"unknown,omitempty"`
	Life       source.State                  `json:"life"`
	Planes     map[subjects.Plane]fold.Plane `json:"planes"`
	Tree       Tree                          `json:"tree"`
	Requests   Ring                          `json:"requests"`
	Console    Ring                          `json:"console"`
	History    Ring                          `json:"history"`
	FaultCount uint64                        `json:"faultCount,omitempty"`
	Faults     []fold.Fault                  `json:"faults,omitempty"`
}

// Tree is what is saved of a tree beside its nodes.
type Tree struct {
	Profile   tree.Profile `json:"profile,omitempty"`
	Revision  uint64       `json:"revision"`
	Registry  string       `json:"registry,omitempty"`
	Truncated bool         `json:"truncated,omitempty"`
	Commit    uint64       `json:"commit,omitempty"`
	Detached  bool         `json:"detached,omitempty"`
	// Root is the id of the root, 0 without a tree; Nodes counts the nodes.
	Root  tree.NodeID `json:"root,omitempty"`
	Nodes int         `json:"nodes"`
	// Parts holds, for every shard, in how many keys it is kept; 0 for an empty
	// shard. There is a power of two of shards.
	Parts []int `json:"parts,omitempty"`
}

// Ring is what is saved of a list whose entries are numbered from 1 and leave
// in the order in which they came. Shard k holds the numbers from k*size+1 to
// (k+1)*size, in slot k modulo the number of slots.
type Ring struct {
	// Count is the number of the newest entry, Evicted that of the newest that left.
	Count   uint64 `json:"count"`
	Evicted uint64 `json:"evicted"`
	// Parts holds, for every slot, in how many keys it is kept.
	Parts []int `json:"parts,omitempty"`
}

// The numbers of entries in one shard of a ring.
const (
	requestsPerShard = 64
	entriesPerShard  = 100
	commitsPerShard  = 20
)

// The most that a head may claim, so that a damaged one cannot make its reader allocate without end.
const (
	maxTreeShards = 1024
	maxSlots      = 1 << 16
	maxParts      = 4096
)

// ParseHead reads a head. The error wraps ErrDamaged.
func ParseHead(data []byte) (Head, error) {
	var h Head
	if err := json.Unmarshal(data, &h); err != nil {
		return Head{}, fmt.Errorf("%w: head: %w", ErrDamaged, err)
	}
	if h.Version != Version {
		return Head{}, fmt.Errorf("%w: head has layout version %d, this program reads version %d", ErrDamaged, h.Version, Version)
	}
	if h.Covered == 0 || h.Element == 0 || !subjects.IsToken(string(h.Generation)) {
		return Head{}, fmt.Errorf("%w: head without covered sequence, element or generation", ErrDamaged)
	}
	n := len(h.Tree.Parts)
	if n > maxTreeShards || n&(n-1) != 0 || h.Tree.Nodes < 0 {
		return Head{}, fmt.Errorf("%w: head names %d tree shards", ErrDamaged, n)
	}
	for _, r := range []Ring{h.Requests, h.Console, h.History} {
		if r.Evicted > r.Count || len(r.Parts) > maxSlots {
			return Head{}, fmt.Errorf("%w: head has a ring of %d slots, %d of %d entries evicted", ErrDamaged, len(r.Parts), r.Evicted, r.Count)
		}
	}
	for _, l := range [][]int{h.Tree.Parts, h.Requests.Parts, h.Console.Parts, h.History.Parts} {
		for _, p := range l {
			if p < 0 || p > maxParts {
				return Head{}, fmt.Errorf("%w: head names a shard of %d parts", ErrDamaged, p)
			}
		}
	}
	return h, nil
}

// Names returns the names of all parts that belong to the head, without its own.
func (h *Head) Names() []string {
	var out []string
	for _, l := range []struct {
		kind  string
		parts []int
	}{{"t", h.Tree.Parts}, {"n", h.Requests.Parts}, {"c", h.Console.Parts}, {"h", h.History.Parts}} {
		for i, n := range l.parts {
			for p := range n {
				out = append(out, partName(l.kind, i, p))
			}
		}
	}
	return out
}

// partName names one key of a shard.
func partName(kind string, shard, part int) string {
	name := kind + "." + strconv.Itoa(shard)
	if part > 0 {
		name += "." + strconv.Itoa(part)
	}
	return name
}
