package fold

import (
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/tree"
)

// Kind says what a Change is about.
type Kind int

// The kinds of changes.
const (
	// SourceAdded means that Source is new; its descriptor follows with SourceOpened.
	SourceAdded Kind = iota + 1
	// SourceOpened means that Source began a new generation.
	SourceOpened
	// SourceUpdated means that Source's descriptor changed within its generation,
	// or whether limits cut branches off its tree.
	SourceUpdated
	// SourceClosed means that Source's generation said goodbye.
	SourceClosed
	// SourceRemoved means that Source was evicted.
	SourceRemoved
	// PresenceChanged means that Source.Connected changed.
	PresenceChanged
	// TreeChanged carries one change of Source's tree.
	TreeChanged
	// RequestChanged carries one change of a request.
	RequestChanged
	// ConsoleAdded carries one console entry.
	ConsoleAdded
	// FaultAdded carries one fault.
	FaultAdded
	// EventPublished carries one record of the event plane, which is not kept.
	EventPublished
)

// Change is one difference that a message made. Exactly the field that belongs to Kind is set.
type Change struct {
	// Kind says what changed.
	Kind Kind
	// Source is the source that changed; it is set for every kind.
	Source *Source
	// Tree is set for TreeChanged.
	Tree tree.Change
	// Request is set for RequestChanged.
	Request *network.Change
	// Console is set for ConsoleAdded.
	Console *console.Entry
	// Fault is set for FaultAdded.
	Fault *Fault
	// Event is set for EventPublished.
	Event *subjects.Record
	// SameRealm says, for SourceOpened, that the live objects of the generation before are still there.
	SameRealm bool
}

// FaultKind classifies a fault.
type FaultKind string

// The kinds of faults.
const (
	// FaultMalformed is a frame or record that could not be read; it changed nothing.
	FaultMalformed FaultKind = "malformed"
	// FaultGap means that records are missing that the producer did publish.
	FaultGap FaultKind = "gap"
	// FaultDropped means that the producer's queue overflowed.
	FaultDropped FaultKind = "dropped"
	// FaultTree means that the tree cannot be followed until a snapshot comes.
	FaultTree FaultKind = "tree"
	// FaultNotice means that the source itself told of something, such as another program that wanted its id.
	FaultNotice FaultKind = "notice"
	// FaultUnopened means that the records of a generation begin without its open.
	FaultUnopened FaultKind = "unopened"
)

// Fault is something that went wrong with a source's records.
type Fault struct {
	// Number counts the faults of a source, from 1.
	Number uint64 `json:"number"`
	// T is the wall-clock time of the source's last record before it, in milliseconds since the Unix epoch; 0 if there was none.
	T float64 `json:"t"`
	// Kind classifies it.
	Kind FaultKind `json:"kind"`
	// Plane is the plane whose records it is about.
	Plane subjects.Plane `json:"plane,omitempty"`
	// Text is a sentence for people, at most about 500 bytes long.
	Text string `json:"text"`
}
