package cdpgw

import (
	"bytes"
	"encoding/json"
	"sync"
)

var encoders = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxPooled is the largest buffer that is used again.
const maxPooled = 1 << 20

// outgoing is any message to a client.
type outgoing struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params any             `json:"params,omitempty"`
	Result any             `json:"result,omitempty"`
	Error  *protocolError  `json:"error,omitempty"`
	// SessionID goes back as it came, so that the client can match an error.
	SessionID string `json:"sessionId,omitempty"`
}

// empty is the result or the parameters that say nothing.
type empty struct{}

// encodeEvent returns an event as it goes on the wire. params must not be nil.
func encodeEvent(method string, params any) []byte {
	return encode(outgoing{Method: method, Params: params})
}

// encode returns the JSON of v: valid UTF-8 on one line.
func encode(v any) []byte {
	buf := encoders.Get().(*bytes.Buffer)
	buf.Reset()
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		// Only a value with a raw JSON part that is not JSON gets here; the client learns it rather than nothing.
		return encode(outgoing{Error: &protocolError{Code: codeServer, Message: "natscope could not encode its answer: " + err.Error()}})
	}
	out := bytes.TrimSuffix(buf.Bytes(), []byte{'\n'})
	if len(out) > maxPooled {
		// A large body is neither copied once more nor kept.
		return out
	}
	out = bytes.Clone(out)
	encoders.Put(buf)
	return out
}
