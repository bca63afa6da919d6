package query

import (
	"time"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// RequestsRequest asks for captured requests.
type RequestsRequest struct {
	Page
	Failed bool `json:"failed,omitempty" jsonschema:"only those that failed or have a status of 400 or more, or one of gRPC that is not 0"`
}

// RequestsAnswer lists requests in the order of their starts.
type RequestsAnswer struct {
	Requests []RequestSummary `json:"requests" jsonschema:"the requests, the oldest first"`
	Paged
}

// RequestSummary is what a list says of a request.
type RequestSummary struct {
	ID         RequestID         `json:"id" jsonschema:"names the request for good"`
	Source     subjects.SourceID `json:"source" jsonschema:"id of the source that made or served it"`
	Number     uint64            `json:"number" jsonschema:"place among the requests of the source, from 1"`
	Direction  network.Direction `json:"direction" jsonschema:"out if the source made it, in if the source served it"`
	Time       time.Time         `json:"time" jsonschema:"when it began"`
	Method     string            `json:"method" jsonschema:"method"`
	URL        string            `json:"url" jsonschema:"address, cut to 2000 bytes"`
	Status     int               `json:"status,omitempty" jsonschema:"status of the response; absent while there is none"`
	State      string            `json:"state" jsonschema:"running, finished, truncated, failed, canceled, or gone if the source went first"`
	Error      string            `json:"error,omitempty" jsonschema:"why it failed or was cut"`
	Type       string            `json:"type,omitempty" jsonschema:"what asked: fetch, xhr, eventsource, websocket, document, other"`
	MIMEType   string            `json:"mimeType,omitempty" jsonschema:"media type of the response"`
	DurationMS float64           `json:"durationMs" jsonschema:"from start to end, or to the last sign of a running one, in milliseconds"`
	Bytes      int64             `json:"bytes" jsonschema:"decoded bytes of the response body"`
	Messages   int               `json:"messages,omitempty" jsonschema:"server-sent events or WebSocket frames that are kept"`
	Route      string            `json:"route,omitempty" jsonschema:"pattern that a served request was matched with"`
	RedirectOf RequestID         `json:"redirectOf,omitempty" jsonschema:"the request whose response led here"`
	Trace      string            `json:"trace,omitempty" jsonschema:"traceparent that the request carries"`
}

// RequestRequest asks for one request in full.
type RequestRequest struct {
	ID RequestID `json:"id" jsonschema:"id of the request"`
}

// MaxAnswerMessages is how many messages an answer to RequestRequest has, the newest ones.
const MaxAnswerMessages = 100

// RequestAnswer is one request in full, without its bodies.
type RequestAnswer struct {
	RequestSummary
	FullURL         string           `json:"fullUrl" jsonschema:"address, not cut"`
	StatusText      string           `json:"statusText,omitempty" jsonschema:"reason behind the status"`
	Protocol        string           `json:"protocol,omitempty" jsonschema:"http/1.1, h2 and so on"`
	Remote          string           `json:"remote,omitempty" jsonschema:"address of the other end"`
	Reused          bool             `json:"reused,omitempty" jsonschema:"an idle connection was used"`
	TLS             string           `json:"tls,omitempty" jsonschema:"version and cipher of an encrypted connection"`
	Client          string           `json:"client,omitempty" jsonschema:"who made a served request"`
	RequestHeaders  []network.Header `json:"requestHeaders" jsonschema:"header lines of the request, pairs of name and value"`
	ResponseHeaders []network.Header `json:"responseHeaders" jsonschema:"header lines of the response, pairs of name and value"`
	RequestBody     BodyInfo         `json:"requestBody" jsonschema:"what is known of the body that was sent"`
	ResponseBody    BodyInfo         `json:"responseBody" jsonschema:"what is known of the body that came back"`
	Timing          []Phase          `json:"timing,omitempty" jsonschema:"phases of the request in order"`
	Stack           []string         `json:"stack,omitempty" jsonschema:"where it was made, innermost first"`
	MessageList     []RequestMessage `json:"messageList,omitempty" jsonschema:"the newest server-sent events or WebSocket frames, at most 100"`
	MessagesLost    uint64           `json:"messagesLost,omitempty" jsonschema:"older messages that are not in messageList"`
}

// BodyInfo says what is known of a body without reading it.
type BodyInfo struct {
	Bytes     int64 `json:"bytes" jsonschema:"size of the body in bytes as far as known; -1 if unknown"`
	Captured  int64 `json:"captured" jsonschema:"how many bytes of it were captured"`
	Truncated bool  `json:"truncated,omitempty" jsonschema:"not all of it was captured"`
	Redacted  bool  `json:"redacted,omitempty" jsonschema:"the source's rules changed or withheld what was captured"`
	Ended     bool  `json:"ended" jsonschema:"nothing more of it will come"`
}

// Phase is one phase of a request.
type Phase struct {
	Name string  `json:"name" jsonschema:"dns, connect, tls, send, wait or receive"`
	MS   float64 `json:"ms" jsonschema:"how long it took in milliseconds"`
}

// RequestMessage is one server-sent event or WebSocket frame.
type RequestMessage struct {
	Time   time.Time `json:"time" jsonschema:"when"`
	Sent   bool      `json:"sent,omitempty" jsonschema:"the source sent it"`
	Event  string    `json:"event,omitempty" jsonschema:"name of a server-sent event"`
	Opcode int       `json:"opcode,omitempty" jsonschema:"opcode of a WebSocket frame"`
	Data   string    `json:"data" jsonschema:"text, or base64 of bytes; cut to 4000 bytes"`
	Base64 bool      `json:"base64,omitempty" jsonschema:"data is base64"`
	Bytes  int       `json:"bytes" jsonschema:"size of data before it was cut"`
}

// The bounds of a range of a body, in bytes.
const (
	DefaultBodyBytes = 64 << 10
	MaxBodyBytes     = 512 << 10
)

// BodyRequest asks for a range of a captured body.
type BodyRequest struct {
	ID        RequestID `json:"id" jsonschema:"id of the request"`
	Direction string    `json:"direction,omitempty" jsonschema:"response if not given, or request"`
	Offset    int64     `json:"offset,omitempty" jsonschema:"first byte"`
	Limit     int64     `json:"limit,omitempty" jsonschema:"most bytes; 65536 if not given, at most 524288"`
	Wait      bool      `json:"wait,omitempty" jsonschema:"wait for the end of a body that still runs, as long as a question may take"`
	Raw       bool      `json:"raw,omitempty" jsonschema:"answer the bytes as they were captured: neither decompressed nor turned into UTF-8"`
}

// BodyAnswer is a range of a body.
type BodyAnswer struct {
	ID        RequestID `json:"id" jsonschema:"id of the request"`
	Direction string    `json:"direction" jsonschema:"response or request"`
	MIMEType  string    `json:"mimeType,omitempty" jsonschema:"media type"`
	Text      string    `json:"text,omitempty" jsonschema:"the range as text, when it is text"`
	Base64    string    `json:"base64,omitempty" jsonschema:"the range as base64, when it is not text"`
	Decoded   string    `json:"decoded,omitempty" jsonschema:"what was undone to make the bytes readable: a compression, a charset"`
	Offset    int64     `json:"offset" jsonschema:"first byte of the range in the readable body"`
	Length    int64     `json:"length" jsonschema:"bytes of the range"`
	Size      int64     `json:"size" jsonschema:"bytes of the readable body that are there, which offset and length count in"`
	Captured  int64     `json:"captured" jsonschema:"bytes of the body that were captured so far"`
	Total     int64     `json:"total" jsonschema:"size of the whole body as far as known"`
	Truncated bool      `json:"truncated" jsonschema:"not all of the body was captured"`
	Running   bool      `json:"running,omitempty" jsonschema:"the body has not ended; more may come"`
	More      bool      `json:"more" jsonschema:"more of the readable body follows the range; ask with offset + length"`
	End       string    `json:"end,omitempty" jsonschema:"why the capture ended"`
}
