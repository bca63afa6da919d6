// Package network holds requests: the payloads of the net plane and their fold
// into one state per request.
//
// It owns the life of a request, from its start to exactly one ending, and how
// many requests are kept. It must not know subjects, NATS, CDP's wire messages,
// or where bodies are stored. It starts no goroutine; a State is not safe for
// concurrent use.
package network

import (
	"encoding/json"
	"errors"
	"fmt"
)

// The topics of the net plane, in the order in which a request passes them.
const (
	// TopicStart carries a Start, as soon as the request begins.
	TopicStart = "start"
	// TopicRequestBodyEnd carries a BodyEnd: the request body was read to its end.
	TopicRequestBodyEnd = "requestBodyEnd"
	// TopicResponse carries a Response: the headers have come.
	TopicResponse = "response"
	// TopicDataReceived carries a DataReceived.
	TopicDataReceived = "dataReceived"
	// TopicMessage carries a Message: one server-sent event or WebSocket frame.
	TopicMessage = "message"
	// TopicEnd carries an End: the response was read, or given up after its headers.
	TopicEnd = "end"
	// TopicError carries an Error: the request failed before headers came.
	TopicError = "error"
)

// ErrPayload says that a net record is malformed. The text around it names the field.
var ErrPayload = errors.New("network: malformed payload")

// RequestID names one request in its generation. It is also a level of the
// subjects of its bodies: 1 to 64 bytes of a-z, 0-9, "_" and "-".
type RequestID string

// Header is one header line: name and value, in the order and spelling of the wire, nothing merged.
type Header [2]string

// Direction says who made a request.
type Direction string

// The directions of requests. Readers treat an unknown one as Outgoing.
const (
	// Outgoing requests were made by the source.
	Outgoing Direction = "out"
	// Incoming requests were served by the source.
	Incoming Direction = "in"
)

// Frame is one line of a stack.
type Frame struct {
	// Function is the function's full name.
	Function string `json:"function"`
	// URL is the file or script.
	URL string `json:"url"`
	// Line and Column count from 1; 0 means unknown.
	Line   int `json:"line"`
	Column int `json:"column,omitempty"`
}

// Start opens a request.
type Start struct {
	ID        RequestID `json:"id"`
	Direction Direction `json:"direction,omitempty"`
	Method    string    `json:"method"`
	URL       string    `json:"url"`
	Headers   []Header  `json:"headers,omitempty"`
	// Type is what asked: "fetch", "xhr", "eventsource", "websocket", "ping" (a
	// beacon), or what the browser loaded by itself: "document", "script",
	// "stylesheet", "image", "font", "media"; "other" for everything else.
	Type string `json:"type,omitempty"`
	// HasBody says that a request body follows or may follow.
	HasBody bool `json:"hasBody,omitempty"`
	// BodyBytes is the announced size of the request body, -1 if unknown.
	BodyBytes int64 `json:"bodyBytes,omitempty"`
	// DocumentURL is the page that asked.
	DocumentURL string `json:"documentURL,omitempty"`
	// Stack is where the request was made, innermost first.
	Stack []Frame `json:"stack,omitempty"`
	// Trace is the traceparent that the request carries.
	Trace string `json:"trace,omitempty"`
	// Route is the pattern that an incoming request was matched with, as "GET /orders/{id}".
	Route string `json:"route,omitempty"`
	// Client is who made an incoming request: an address with its port.
	Client string `json:"client,omitempty"`
	// RedirectOf is the request of the same generation whose response sent the
	// client here. That request is told whole before, and this one has an id,
	// bodies and an ending of its own.
	RedirectOf RequestID `json:"redirectOf,omitempty"`
}

// BodyEnd says how much of a request body passed.
type BodyEnd struct {
	ID RequestID `json:"id"`
	// Bytes is the size of the whole body, Captured how much of it was kept.
	Bytes    int64 `json:"bytes"`
	Captured int64 `json:"captured"`
	// Truncated says that Captured is less than what passed.
	Truncated bool `json:"truncated,omitempty"`
	// Redacted says that the source's rules changed or withheld what was kept.
	// Captured then counts what was kept, which need not be as long as what passed.
	Redacted bool `json:"redacted,omitempty"`
}

// Timing holds the phases of a request in milliseconds after its start; -1 means that the phase did not occur.
type Timing struct {
	DNSStart     float64 `json:"dnsStart"`
	DNSEnd       float64 `json:"dnsEnd"`
	ConnectStart float64 `json:"connectStart"`
	ConnectEnd   float64 `json:"connectEnd"`
	TLSStart     float64 `json:"tlsStart"`
	TLSEnd       float64 `json:"tlsEnd"`
	SendStart    float64 `json:"sendStart"`
	SendEnd      float64 `json:"sendEnd"`
	// HeadersStart is the first byte of the response, HeadersEnd the end of its headers.
	HeadersStart float64 `json:"headersStart"`
	HeadersEnd   float64 `json:"headersEnd"`
}

// maxPhase bounds the times of phases, in milliseconds: more than any request takes.
const maxPhase = 1e12

// clamp makes phases that no request can have into phases that did not occur, so
// that nothing computed with them is infinite.
func (t *Timing) clamp() {
	if t == nil {
		return
	}
	for _, p := range []*float64{
		&t.DNSStart, &t.DNSEnd, &t.ConnectStart, &t.ConnectEnd, &t.TLSStart, &t.TLSEnd,
		&t.SendStart, &t.SendEnd, &t.HeadersStart, &t.HeadersEnd,
	} {
		if !(*p >= 0 && *p <= maxPhase) {
			*p = -1
		}
	}
}

// TLS is what is known of the encrypted connection of a response.
type TLS struct {
	// Version is "TLS 1.3", …; Cipher the name of the cipher suite; Group that of the key exchange.
	Version string `json:"version"`
	Cipher  string `json:"cipher,omitempty"`
	Group   string `json:"group,omitempty"`
	// Subject, Issuer and Names (alternative names) are those of the peer's certificate.
	Subject string   `json:"subject,omitempty"`
	Issuer  string   `json:"issuer,omitempty"`
	Names   []string `json:"names,omitempty"`
	// ValidFrom and ValidTo are the certificate's, in seconds since the Unix epoch.
	ValidFrom float64 `json:"validFrom,omitempty"`
	ValidTo   float64 `json:"validTo,omitempty"`
}

// Response tells the headers of a response.
type Response struct {
	ID         RequestID `json:"id"`
	Status     int       `json:"status"`
	StatusText string    `json:"statusText,omitempty"`
	Headers    []Header  `json:"headers,omitempty"`
	// URL is where the response came from, when that is not the request's URL.
	URL string `json:"url,omitempty"`
	// MIMEType is the media type without parameters.
	MIMEType string `json:"mimeType,omitempty"`
	// Charset is the charset parameter of the media type.
	Charset string `json:"charset,omitempty"`
	// Protocol is "http/1.1", "h2", …
	Protocol string `json:"protocol,omitempty"`
	// RemoteIP and RemotePort are the peer's address.
	RemoteIP   string `json:"remoteIP,omitempty"`
	RemotePort int    `json:"remotePort,omitempty"`
	// Reused says that an idle connection was used.
	Reused bool `json:"reused,omitempty"`
	// RequestHeaders are the headers that were sent, when more is known than at the start.
	RequestHeaders []Header `json:"requestHeaders,omitempty"`
	Timing         *Timing  `json:"timing,omitempty"`
	// TLS is nil for a connection that is not encrypted, or not known to be.
	TLS *TLS `json:"tls,omitempty"`
	// HasBody says that body bytes may follow.
	HasBody bool `json:"hasBody,omitempty"`
	// Route is that of an incoming request, when the start did not know it:
	// a router tells it behind what captures.
	Route string `json:"route,omitempty"`
}

// DataReceived tells that response bytes came.
type DataReceived struct {
	ID RequestID `json:"id"`
	// Bytes counts decoded bytes, Wire those on the wire if known.
	Bytes int64 `json:"bytes"`
	Wire  int64 `json:"wire,omitempty"`
}

// Message is one server-sent event or one WebSocket frame.
type Message struct {
	ID RequestID `json:"id"`
	// Sent says that the source sent it.
	Sent bool `json:"sent,omitempty"`
	// Event and EventID are those of a server-sent event.
	Event   string `json:"event,omitempty"`
	EventID string `json:"eventId,omitempty"`
	// Opcode is that of a WebSocket frame: 1 text, 2 bytes, 8 close, 9 ping, 10 pong.
	Opcode int `json:"opcode,omitempty"`
	// Code is the status of a close frame, whose reason is Data.
	Code int `json:"code,omitempty"`
	// Data is the text, or base64 of the bytes if Base64 is set.
	Data   string `json:"data"`
	Base64 bool   `json:"base64,omitempty"`
	// Bytes is the size of the whole message when Data is only its beginning.
	Bytes int64 `json:"bytes,omitempty"`
	// Retry is the time in milliseconds after which a server-sent event tells its client to connect again.
	Retry int64 `json:"retry,omitempty"`
}

// End closes a request whose headers have come.
type End struct {
	ID RequestID `json:"id"`
	// Bytes counts the decoded bytes that passed, Wire those on the wire if known, Captured what was kept.
	Bytes    int64 `json:"bytes"`
	Wire     int64 `json:"wire,omitempty"`
	Captured int64 `json:"captured"`
	// Truncated says that Captured is less than what passed.
	Truncated bool `json:"truncated,omitempty"`
	// Error says why the body ended early; empty when it was read to its end.
	Error string `json:"error,omitempty"`
	// Canceled says that the application gave up reading.
	Canceled bool `json:"canceled,omitempty"`
	// Redacted says that the source's rules changed or withheld what was kept, as in BodyEnd.
	Redacted bool `json:"redacted,omitempty"`
	// Trailers are the header lines that came after the body.
	Trailers []Header `json:"trailers,omitempty"`
}

// Error closes a request that got no headers.
type Error struct {
	ID RequestID `json:"id"`
	// Text is the cause.
	Text string `json:"text"`
	// Canceled says that the application gave up.
	Canceled bool `json:"canceled,omitempty"`
}

func decode(topic string, data json.RawMessage, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrPayload, topic, err)
	}
	return nil
}

// validID reports whether id can stand in a subject.
func validID(id RequestID) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for i := 0; i < len(id); i++ {
		c := id[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return true
}
