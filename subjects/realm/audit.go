package realm

import "encoding/json"

// Audit is one command that can change a program, as it was asked for. It is
// written before the command is sent.
type Audit struct {
	// Time is when, in milliseconds since the Unix epoch.
	Time float64 `json:"time"`
	// Gateway and Session are the way on which it came.
	Gateway string `json:"gateway"`
	Session string `json:"session,omitempty"`
	// Who describes the asker, such as the address of a DevTools.
	Who string `json:"who,omitempty"`
	// Source and Generation are whom it was for.
	Source     string `json:"source"`
	Generation string `json:"generation"`
	// Method is the command.
	Method Method `json:"method"`
	// Params are its parameters, absent when they are longer than MaxAuditParams.
	Params json.RawMessage `json:"params,omitempty"`
	// Omitted is how many bytes of parameters were left out for their length.
	Omitted int `json:"omitted,omitempty"`
}

// MaxAuditParams is how many bytes of parameters an audit record keeps.
const MaxAuditParams = 16 << 10

// Bound leaves out parameters that are too long.
func (a Audit) Bound() Audit {
	if len(a.Params) > MaxAuditParams {
		a.Params, a.Omitted = nil, len(a.Params)
	}
	return a
}
