package realm

import (
	"encoding/json"
	"fmt"

	"github.com/natscope/natscope/subjects/tree"
)

// The events of a session.
const (
	// EventPicked ends a pick: Picked.
	EventPicked = "picked"
	// EventHighlighted tells over which node the pointer is during a pick: Highlighted.
	EventHighlighted = "highlighted"
)

// RevealTopic is the topic of the event plane by which a source shows one of its
// nodes to everybody who looks: Reveal.
const RevealTopic = "natscope.reveal"

// Event is what a realm tells one session.
type Event struct {
	// Event is one of the Event constants, or a group, a dot and an event of the
	// protocol of DevTools, whose parameters are Data then. Readers ignore unknown ones.
	Event string `json:"event"`
	// T is when it happened, in milliseconds on the source's clock.
	T float64 `json:"t"`
	// Lost is how many events of this session were lost just before this one, since too many waited.
	Lost uint64 `json:"lost,omitempty"`
	// Data is the payload, which belongs to Event.
	Data json.RawMessage `json:"data,omitempty"`
}

// Picked is the node that a person picked.
type Picked struct {
	// ID is the node; 0 means that the person gave up, or picked what is no node.
	ID tree.NodeID `json:"id"`
}

// Highlighted is the node under the pointer.
type Highlighted struct {
	// ID is the node; 0 means none.
	ID tree.NodeID `json:"id"`
}

// Reveal is the node that a source wants to be seen.
type Reveal struct {
	// ID is the node.
	ID tree.NodeID `json:"id"`
}

// MaxEvent is the most bytes of an event.
const MaxEvent = 1 << 20

// ParseEvent parses an event. The error wraps ErrMalformed. Unknown fields are ignored.
func ParseEvent(data []byte) (Event, error) {
	var e Event
	if len(data) > MaxEvent {
		return Event{}, fmt.Errorf("%w: an event of %d bytes, the limit is %d", ErrMalformed, len(data), MaxEvent)
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return Event{}, fmt.Errorf("%w: event: %w", ErrMalformed, err)
	}
	if e.Event == "" {
		return Event{}, fmt.Errorf("%w: event: its name is empty", ErrMalformed)
	}
	return e, nil
}
