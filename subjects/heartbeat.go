package subjects

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ErrHeartbeat says that a message on a heartbeat subject is not a heartbeat.
var ErrHeartbeat = errors.New("subjects: malformed heartbeat")

// Beat is the body of a heartbeat.
type Beat struct {
	// Version is the contract version.
	Version int `json:"version"`
	// Generation is the generation that lives.
	Generation Generation `json:"generation"`
	// T is the time of the beat on the source's clock, in milliseconds.
	T float64 `json:"t"`
	// Seqs holds the number of the newest record of each plane that has any.
	Seqs map[Plane]Seq `json:"seqs,omitempty"`
	// Dropped holds how many records of each plane, and of bodies under "body", were lost so far.
	Dropped map[Plane]uint64 `json:"dropped,omitempty"`
}

// maxBeat is the most bytes of a heartbeat: it has a few numbers for each plane.
const maxBeat = 16 << 10

// ParseBeat parses a heartbeat. The error wraps ErrHeartbeat, and ErrVersion
// where another version of the contract is the cause. Unknown fields are ignored,
// unknown planes are returned like the others.
func ParseBeat(data []byte) (Beat, error) {
	var b Beat
	if len(data) > maxBeat {
		return Beat{}, fmt.Errorf("%w: %d bytes, the limit is %d", ErrHeartbeat, len(data), maxBeat)
	}
	if err := json.Unmarshal(data, &b); err != nil {
		return Beat{}, fmt.Errorf("%w: %w", ErrHeartbeat, err)
	}
	if b.Version != Version {
		return Beat{}, fmt.Errorf("%w: %w: version %d, this reader has version %d", ErrHeartbeat, ErrVersion, b.Version, Version)
	}
	if err := checkToken("generation", string(b.Generation)); err != nil {
		return Beat{}, fmt.Errorf("%w: %w", ErrHeartbeat, err)
	}
	if b.T < -MaxT || b.T > MaxT {
		return Beat{}, fmt.Errorf("%w: t is %v, not a time in milliseconds", ErrHeartbeat, b.T)
	}
	return b, nil
}
