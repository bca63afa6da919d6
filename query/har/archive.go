package har

// The types below are those of the specification; names that begin with an
// underscore are additions, most of them DevTools' own.

type creator struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// page groups the requests of one source.
type page struct {
	StartedDateTime string      `json:"startedDateTime"`
	ID              string      `json:"id"`
	Title           string      `json:"title"`
	PageTimings     pageTimings `json:"pageTimings"`
}

type pageTimings struct {
	OnContentLoad float64 `json:"onContentLoad"`
	OnLoad        float64 `json:"onLoad"`
}

type entry struct {
	Initiator           *initiator         `json:"_initiator,omitempty"`
	Priority            string             `json:"_priority,omitempty"`
	ResourceType        string             `json:"_resourceType"`
	WebSocketMessages   []webSocketMessage `json:"_webSocketMessages,omitempty"`
	EventSourceMessages []eventMessage     `json:"_eventSourceMessages,omitempty"`
	MessagesLost        uint64             `json:"_messagesLost,omitempty"`
	// Source, Generation, RequestID and Direction name the request in natscope,
	// RedirectOf the one before it in a chain of redirects.
	Source     string `json:"_source"`
	Generation string `json:"_generation"`
	RequestID  string `json:"_requestId"`
	RedirectOf string `json:"_redirectOf,omitempty"`
	Direction  string `json:"_direction"`
	Route      string `json:"_route,omitempty"`
	Trace      string `json:"_traceparent,omitempty"`
	// Incomplete says that the request was running when the archive was written.
	Incomplete      bool     `json:"_incomplete,omitempty"`
	Cache           struct{} `json:"cache"`
	Connection      string   `json:"connection,omitempty"`
	Pageref         string   `json:"pageref"`
	Request         request  `json:"request"`
	Response        response `json:"response"`
	ServerIPAddress string   `json:"serverIPAddress,omitempty"`
	StartedDateTime string   `json:"startedDateTime"`
	Time            float64  `json:"time"`
	Timings         timings  `json:"timings"`
	Comment         string   `json:"comment,omitempty"`
}

type initiator struct {
	Type  string `json:"type"`
	URL   string `json:"url,omitempty"`
	Stack *stack `json:"stack,omitempty"`
}

type stack struct {
	CallFrames []callFrame `json:"callFrames"`
}

// callFrame counts lines and columns from 0, as DevTools does.
type callFrame struct {
	FunctionName string `json:"functionName"`
	ScriptID     string `json:"scriptId"`
	URL          string `json:"url"`
	LineNumber   int    `json:"lineNumber"`
	ColumnNumber int    `json:"columnNumber"`
}

// webSocketMessage has its time in seconds since the Unix epoch.
type webSocketMessage struct {
	Type   string  `json:"type"`
	Time   float64 `json:"time"`
	Opcode int     `json:"opcode"`
	Data   string  `json:"data"`
}

type eventMessage struct {
	Time      float64 `json:"time"`
	EventName string  `json:"eventName"`
	EventID   string  `json:"eventId"`
	Data      string  `json:"data"`
}

type request struct {
	Method      string    `json:"method"`
	URL         string    `json:"url"`
	HTTPVersion string    `json:"httpVersion"`
	Cookies     []cookie  `json:"cookies"`
	Headers     []pair    `json:"headers"`
	QueryString []pair    `json:"queryString"`
	PostData    *postData `json:"postData,omitempty"`
	HeadersSize int64     `json:"headersSize"`
	BodySize    int64     `json:"bodySize"`
}

type response struct {
	Status       int      `json:"status"`
	StatusText   string   `json:"statusText"`
	HTTPVersion  string   `json:"httpVersion"`
	Cookies      []cookie `json:"cookies"`
	Headers      []pair   `json:"headers"`
	Content      content  `json:"content"`
	RedirectURL  string   `json:"redirectURL"`
	HeadersSize  int64    `json:"headersSize"`
	BodySize     int64    `json:"bodySize"`
	TransferSize int64    `json:"_transferSize"`
	Error        string   `json:"_error,omitempty"`
	Trailers     []pair   `json:"_trailers,omitempty"`
}

type pair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type cookie struct {
	Name     string `json:"name"`
	Value    string `json:"value"`
	Path     string `json:"path,omitempty"`
	Domain   string `json:"domain,omitempty"`
	Expires  string `json:"expires,omitempty"`
	HTTPOnly bool   `json:"httpOnly,omitempty"`
	Secure   bool   `json:"secure,omitempty"`
	SameSite string `json:"sameSite,omitempty"`
}

// postData is a request body. The specification knows text alone; bytes are
// base64 and say so in Encoding.
type postData struct {
	MimeType string `json:"mimeType"`
	Params   []pair `json:"params,omitempty"`
	Text     string `json:"text"`
	Encoding string `json:"_encoding,omitempty"`
	Comment  string `json:"comment,omitempty"`
}

type content struct {
	Size        int64   `json:"size"`
	Compression *int64  `json:"compression,omitempty"`
	MimeType    string  `json:"mimeType"`
	Text        *string `json:"text,omitempty"`
	Encoding    string  `json:"encoding,omitempty"`
	Comment     string  `json:"comment,omitempty"`
}

// timings are milliseconds, -1 for what does not apply; connect includes ssl.
type timings struct {
	Blocked float64 `json:"blocked"`
	DNS     float64 `json:"dns"`
	SSL     float64 `json:"ssl"`
	Connect float64 `json:"connect"`
	Send    float64 `json:"send"`
	Wait    float64 `json:"wait"`
	Receive float64 `json:"receive"`
}
