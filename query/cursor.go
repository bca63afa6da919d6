package query

import (
	"encoding/base64"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/natscope/natscope/subjects/tree"
)

// Cursor is a place between two things of a list that spans sources: it says how
// far each source was read. It stays valid while sources come and go and old
// things are evicted. It is opaque, save for the two words Oldest and Newest.
type Cursor string

// The cursors that need no answer before them.
const (
	// Oldest stands before the oldest thing that is kept.
	Oldest Cursor = "oldest"
	// Newest stands behind the newest thing that is there.
	Newest Cursor = "newest"
)

// List says which list a Cursor belongs to.
type List byte

// The lists.
const (
	ListRequests List = 'r'
	ListConsole  List = 'c'
	ListFaults   List = 'f'
	ListHistory  List = 'h'
	ListSearch   List = 's'
)

// Position is a Cursor in its parts: for each source, by the id of its element,
// the number of the last thing behind the cursor. A source without an entry has
// everything before it.
type Position struct {
	List  List
	Epoch Epoch
	At    map[tree.BackendNodeID]uint64
}

// cursorVersion is the first byte of every cursor.
const cursorVersion = 1

// maxCursor bounds a cursor that is parsed, in bytes: room for ten thousand sources.
const maxCursor = 256 << 10

// elementBits says how many low bits of an element's id are mostly zero.
const elementBits = 15

// Cursor returns the position as it travels.
func (p Position) Cursor() Cursor {
	b := []byte{cursorVersion, byte(p.List)}
	b = binary.AppendUvarint(b, uint64(p.Epoch))
	last := uint64(0)
	for _, id := range slices.Sorted(maps.Keys(p.At)) {
		if p.At[id] == 0 {
			continue
		}
		// Rotated, so that the zeros at its end cost nothing.
		high, low := uint64(id)>>elementBits, uint64(id)&(1<<elementBits-1)
		b = binary.AppendUvarint(b, high-last)
		b = binary.AppendUvarint(b, low)
		b = binary.AppendUvarint(b, p.At[id])
		last = high
	}
	return Cursor(base64.RawURLEncoding.EncodeToString(b))
}

// Parse takes a cursor of a list apart; it must not be Oldest, Newest or empty.
// The error wraps ErrMalformed.
func (c Cursor) Parse(list List) (Position, error) {
	wrong := func() (Position, error) {
		return Position{}, Errorf(ErrMalformed, "cursor %.40q cannot be read; use one from an answer of the same kind, or %q or %q, or none", string(c), Oldest, Newest)
	}
	if len(c) > maxCursor {
		return wrong()
	}
	b, err := base64.RawURLEncoding.DecodeString(string(c))
	if err != nil || len(b) < 2 || b[0] != cursorVersion || List(b[1]) != list {
		return wrong()
	}
	b = b[2:]
	ok := true
	next := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			ok, b = false, nil
			return 0
		}
		b = b[n:]
		return v
	}
	p := Position{List: list, Epoch: Epoch(next()), At: make(map[tree.BackendNodeID]uint64)}
	last := uint64(0)
	for len(b) > 0 && ok {
		high, low, number := last+next(), next(), next()
		if high >= 1<<(53-elementBits) || low >= 1<<elementBits || high < last {
			return wrong()
		}
		p.At[tree.BackendNodeID(high<<elementBits|low)] = number
		last = high
	}
	if !ok || p.Epoch < 0 {
		return wrong()
	}
	return p, nil
}
