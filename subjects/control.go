package subjects

// Control requests that the store sends to a generation.
const (
	// ControlAdmitted says that a store folds the generation.
	ControlAdmitted = "admitted"
	// ControlResnapshot asks for the whole tree again, because records were lost.
	ControlResnapshot = "resnapshot"
	// ControlSuperseded says that a newer generation of another program took the
	// source's place while this one could not be heard. It opens again under another id.
	ControlSuperseded = "superseded"
	// ControlIDTaken says that another living program had this source's id first.
	// It opens again under another id.
	ControlIDTaken = "id-taken"
	// ControlReopen says that the id belongs to this program although a newer
	// generation was there, or, where After is its own generation, that no reader
	// has its opening record. It opens again under the same id, as a generation after After.
	ControlReopen = "reopen"
)

// ControlMessage is the body of a control request.
type ControlMessage struct {
	// Kind is one of the Control constants. Receivers answer an unknown one with an error.
	Kind string `json:"kind"`
	// Reason is a sentence for people.
	Reason string `json:"reason,omitempty"`
	// After is, with ControlReopen, the generation that the next one must be newer than.
	After Generation `json:"after,omitempty"`
}

// ControlAnswer is the body of the answer to a control request.
type ControlAnswer struct {
	// OK says that the request was carried out or is under way. With
	// ControlIDTaken, ControlSuperseded and ControlReopen it says that the
	// generation which was asked does not answer any more.
	OK bool `json:"ok"`
	// Error says why not.
	Error string `json:"error,omitempty"`
}
