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

// ParseBeat parses a heartbeat. The error wraps ErrHeartbeat.
func ParseBeat(data []byte) (Beat, error) {
	var b Beat
	if err := json.Unmarshal(data, &b); err != nil {
		return Beat{}, fmt.Errorf("%w: %w", ErrHeartbeat, err)
	}
	if b.Version != Version {
		return Beat{}, fmt.Errorf("%w: %w: version %d, this reader has version %d", ErrHeartbeat, ErrVersion, b.Version, Version)
	}
	if err := checkToken("generation", string(b.Generation)); err != nil {
		return Beat{}, fmt.Errorf("%w: %w", ErrHeartbeat, err)
	}
	return b, nil
}
