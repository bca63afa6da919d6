package subjects

// Control requests that the store sends to a generation.
const (
	// ControlAdmitted says that a store folds the generation.
	ControlAdmitted = "admitted"
	// ControlResnapshot asks for the whole tree again, because records were lost.
	ControlResnapshot = "resnapshot"
	// ControlSuperseded says that a newer generation took the source's place.
	ControlSuperseded = "superseded"
	// ControlIDTaken says that another living program has this source's id.
	ControlIDTaken = "id-taken"
)

// ControlMessage is the body of a control request.
type ControlMessage struct {
	// Kind is one of the Control constants. Receivers answer an unknown one with an error.
	Kind string `json:"kind"`
	// Reason is a sentence for people.
	Reason string `json:"reason,omitempty"`
}

// ControlAnswer is the body of the answer to a control request.
type ControlAnswer struct {
	// OK says that the request was carried out or is under way.
	OK bool `json:"ok"`
	// Error says why not.
	Error string `json:"error,omitempty"`
}
