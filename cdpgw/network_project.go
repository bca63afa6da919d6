package cdpgw

import (
	"net/url"
	"strings"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// projection turns requests into events. Times are seconds: timestamps count on
// the wall clock too, so that the requests of all sources share one axis.
type projection struct {
	hub    *hub
	source *fold.Source
}

type requestWillBeSentEvent struct {
	RequestID            RequestID    `json:"requestId"`
	LoaderID             string       `json:"loaderId"`
	DocumentURL          string       `json:"documentURL"`
	Request              requestInfo  `json:"request"`
	Timestamp            float64      `json:"timestamp"`
	WallTime             float64      `json:"wallTime"`
	Initiator            initiator    `json:"initiator"`
	RedirectHasExtraInfo bool         `json:"redirectHasExtraInfo"`
	Type                 resourceType `json:"type"`
	FrameID              FrameID      `json:"frameId"`
	HasUserGesture       bool         `json:"hasUserGesture"`
}

type requestInfo struct {
	URL              string  `json:"url"`
	Method           string  `json:"method"`
	Headers          headers `json:"headers"`
	HasPostData      bool    `json:"hasPostData,omitempty"`
	MixedContentType string  `json:"mixedContentType"`
	InitialPriority  string  `json:"initialPriority"`
	ReferrerPolicy   string  `json:"referrerPolicy"`
}

type initiator struct {
	Type  string      `json:"type"`
	Stack *stackTrace `json:"stack,omitempty"`
}

type responseReceivedEvent struct {
	RequestID    RequestID    `json:"requestId"`
	LoaderID     string       `json:"loaderId"`
	Timestamp    float64      `json:"timestamp"`
	Type         resourceType `json:"type"`
	Response     responseInfo `json:"response"`
	HasExtraInfo bool         `json:"hasExtraInfo"`
	FrameID      FrameID      `json:"frameId"`
}

type responseInfo struct {
	URL               string          `json:"url"`
	Status            int             `json:"status"`
	StatusText        string          `json:"statusText"`
	Headers           headers         `json:"headers"`
	MimeType          string          `json:"mimeType"`
	Charset           string          `json:"charset"`
	RequestHeaders    headers         `json:"requestHeaders"`
	ConnectionReused  bool            `json:"connectionReused"`
	ConnectionID      float64         `json:"connectionId"`
	RemoteIPAddress   string          `json:"remoteIPAddress,omitempty"`
	RemotePort        int             `json:"remotePort,omitempty"`
	EncodedDataLength float64         `json:"encodedDataLength"`
	Timing            *resourceTiming `json:"timing,omitempty"`
	ResponseTime      float64         `json:"responseTime"`
	Protocol          string          `json:"protocol,omitempty"`
	SecurityState     string          `json:"securityState"`
}

type dataReceivedEvent struct {
	RequestID         RequestID `json:"requestId"`
	Timestamp         float64   `json:"timestamp"`
	DataLength        int64     `json:"dataLength"`
	EncodedDataLength int64     `json:"encodedDataLength"`
	Data              []byte    `json:"data,omitempty"`
}

type loadingFinishedEvent struct {
	RequestID         RequestID `json:"requestId"`
	Timestamp         float64   `json:"timestamp"`
	EncodedDataLength float64   `json:"encodedDataLength"`
}

type loadingFailedEvent struct {
	RequestID RequestID    `json:"requestId"`
	Timestamp float64      `json:"timestamp"`
	Type      resourceType `json:"type"`
	ErrorText string       `json:"errorText"`
	Canceled  bool         `json:"canceled"`
}

type eventSourceMessageEvent struct {
	RequestID RequestID `json:"requestId"`
	Timestamp float64   `json:"timestamp"`
	EventName string    `json:"eventName"`
	EventID   string    `json:"eventId"`
	Data      string    `json:"data"`
}

// resourceType is a type of resource in the protocol's words.
type resourceType string

// typeOf maps what asked for a request. Requests that a source served are shown
// as documents: the filter "Doc" of the Network panel shows exactly those, and
// "Fetch/XHR" the requests that sources made.
func typeOf(s network.Start) resourceType {
	if s.Direction == network.Incoming {
		return "Document"
	}
	switch s.Type {
	case "fetch":
		return "Fetch"
	case "xhr":
		return "XHR"
	case "eventsource":
		return "EventSource"
	case "websocket":
		return "WebSocket"
	case "document":
		return "Document"
	}
	return "Other"
}

// headers are the header lines of a message, lines of one name joined by a line break.
type headers map[string]string

func headersOf(list []network.Header) headers {
	h := make(headers, len(list))
	first := make(map[string]string, len(list))
	for _, line := range list {
		name, ok := first[strings.ToLower(line[0])]
		if !ok {
			first[strings.ToLower(line[0])] = line[0]
			h[line[0]] = line[1]
			continue
		}
		h[name] += "\n" + line[1]
	}
	return h
}

// change returns the events of one change of a request.
func (p projection) change(c *network.Change) [][]byte {
	r := c.Request
	if typeOf(r.Start.Value) == "WebSocket" {
		return p.webSocket(c)
	}
	switch c.Topic {
	case network.TopicStart:
		return [][]byte{p.start(r)}
	case network.TopicResponse:
		return [][]byte{p.response(r)}
	case network.TopicDataReceived:
		return [][]byte{p.data(r, c.T, c.Data.Bytes, c.Data.Wire)}
	case network.TopicMessage:
		if r.Start.Value.Type == "eventsource" {
			return [][]byte{p.message(r, c.T, c.Message)}
		}
	case network.TopicEnd, network.TopicError:
		return [][]byte{p.end(r)}
	}
	return nil
}

// replay returns the events of a kept request, as if it happened now.
func (p projection) replay(r *network.Request) [][]byte {
	if typeOf(r.Start.Value) == "WebSocket" {
		return p.replayWebSocket(r)
	}
	out := [][]byte{p.start(r)}
	if r.Response != nil {
		out = append(out, p.response(r))
	}
	if r.Received.Bytes > 0 {
		out = append(out, p.data(r, r.LastData, r.Received.Bytes, r.Received.Wire))
	}
	if r.Start.Value.Type == "eventsource" {
		for i := range r.Messages {
			out = append(out, p.message(r, r.Messages[i].T, &r.Messages[i].Value))
		}
	}
	if r.Ending != network.Running {
		out = append(out, p.end(r))
	}
	return out
}

func (p projection) id(r *network.Request) RequestID { return requestID(p.source.ID, r) }

// seconds converts a time on the source's clock to seconds since the Unix epoch.
func seconds(r *network.Request, t float64) float64 { return (r.Origin + t) / 1000 }

func (p projection) start(r *network.Request) []byte {
	v := r.Start.Value
	at := seconds(r, r.Start.T)
	documentURL := v.DocumentURL
	if documentURL == "" {
		documentURL = frameURL(p.hub.space.Name, p.source)
	}
	return encodeEvent("Network.requestWillBeSent", requestWillBeSentEvent{
		RequestID: p.id(r), LoaderID: r.Generation, DocumentURL: documentURL,
		Request: requestInfo{
			URL: v.URL, Method: v.Method, Headers: headersOf(v.Headers), HasPostData: v.HasBody && v.BodyBytes != 0,
			MixedContentType: "none", InitialPriority: "Medium", ReferrerPolicy: "strict-origin-when-cross-origin",
		},
		Timestamp: at, WallTime: at, Initiator: initiatorOf(p.source.ID, v), Type: typeOf(v), FrameID: frameOf(p.source.ID),
	})
}

func initiatorOf(id subjects.SourceID, v network.Start) initiator {
	if len(v.Stack) == 0 || v.Direction == network.Incoming {
		return initiator{Type: "other"}
	}
	return initiator{Type: "script", Stack: stackOf(id, v.Stack)}
}

func (p projection) response(r *network.Request) []byte {
	return encodeEvent("Network.responseReceived", responseReceivedEvent{
		RequestID: p.id(r), LoaderID: r.Generation, Timestamp: seconds(r, r.Response.T), Type: typeOf(r.Start.Value),
		Response: responseOf(r), FrameID: frameOf(p.source.ID),
	})
}

func responseOf(r *network.Request) responseInfo {
	v := r.Response.Value
	out := responseInfo{
		URL: or(v.URL, r.Start.Value.URL), Status: v.Status, StatusText: v.StatusText, Headers: headersOf(v.Headers),
		MimeType: v.MIMEType, Charset: v.Charset, ConnectionReused: v.Reused, RemoteIPAddress: v.RemoteIP, RemotePort: v.RemotePort,
		EncodedDataLength: float64(headBytes(v)), Timing: timingOf(r), ResponseTime: r.Origin + r.Response.T, Protocol: v.Protocol, SecurityState: securityOf(or(v.URL, r.Start.Value.URL)),
	}
	// Without them DevTools warns of provisional headers.
	if out.RequestHeaders = headersOf(v.RequestHeaders); len(v.RequestHeaders) == 0 {
		out.RequestHeaders = headersOf(r.Start.Value.Headers)
	}
	return out
}

// headBytes is about how many bytes the head of a response took. Sources count
// bodies only, and DevTools shows of small answers hardly more than their heads.
func headBytes(v network.Response) int64 {
	if len(v.Headers) == 0 {
		return 0
	}
	n := len("HTTP/1.1 200 \r\n\r\n") + len(v.StatusText)
	for _, line := range v.Headers {
		n += len(line[0]) + len(line[1]) + len(": \r\n")
	}
	return int64(n)
}

// encodedBytes is how many bytes n bytes of a body took; wire is 0 where the source did not see that.
func encodedBytes(n, wire int64) int64 {
	if wire == 0 {
		return n
	}
	return wire
}

func securityOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "unknown"
	}
	switch u.Scheme {
	case "https", "wss":
		return "secure"
	case "http", "ws":
		return "insecure"
	}
	return "unknown"
}

// resourceTiming holds the phases of a request in milliseconds after RequestTime, -1 for none.
type resourceTiming struct {
	RequestTime              float64 `json:"requestTime"`
	ProxyStart               float64 `json:"proxyStart"`
	ProxyEnd                 float64 `json:"proxyEnd"`
	DNSStart                 float64 `json:"dnsStart"`
	DNSEnd                   float64 `json:"dnsEnd"`
	ConnectStart             float64 `json:"connectStart"`
	ConnectEnd               float64 `json:"connectEnd"`
	SSLStart                 float64 `json:"sslStart"`
	SSLEnd                   float64 `json:"sslEnd"`
	WorkerStart              float64 `json:"workerStart"`
	WorkerReady              float64 `json:"workerReady"`
	WorkerFetchStart         float64 `json:"workerFetchStart"`
	WorkerRespondWithSettled float64 `json:"workerRespondWithSettled"`
	SendStart                float64 `json:"sendStart"`
	SendEnd                  float64 `json:"sendEnd"`
	PushStart                float64 `json:"pushStart"`
	PushEnd                  float64 `json:"pushEnd"`
	ReceiveHeadersStart      float64 `json:"receiveHeadersStart"`
	ReceiveHeadersEnd        float64 `json:"receiveHeadersEnd"`
}

// timingOf returns the phases of a request. Where the source measured none, the
// whole time until the headers counts as waiting. The protocol's connection
// phase includes TLS.
func timingOf(r *network.Request) *resourceTiming {
	t := network.Timing{DNSStart: -1, DNSEnd: -1, ConnectStart: -1, ConnectEnd: -1, TLSStart: -1, TLSEnd: -1, SendStart: -1, SendEnd: -1, HeadersStart: -1, HeadersEnd: -1}
	if m := r.Response.Value.Timing; m != nil {
		t = *m
	}
	out := &resourceTiming{
		RequestTime: seconds(r, r.Start.T), ProxyStart: -1, ProxyEnd: -1, WorkerStart: -1, WorkerReady: -1, WorkerFetchStart: -1, WorkerRespondWithSettled: -1,
		DNSStart: t.DNSStart, DNSEnd: t.DNSEnd, ConnectStart: t.ConnectStart, ConnectEnd: max(t.ConnectEnd, t.TLSEnd), SSLStart: t.TLSStart, SSLEnd: t.TLSEnd,
	}
	out.SendStart = t.SendStart
	if out.SendStart < 0 {
		out.SendStart = max(out.ConnectEnd, out.DNSEnd, 0)
	}
	// DevTools takes 0 for "never", and all the time until the answer for a wait to be sent.
	out.SendStart = max(out.SendStart, 0.001)
	out.SendEnd = max(t.SendEnd, out.SendStart)
	out.ReceiveHeadersEnd = t.HeadersEnd
	if out.ReceiveHeadersEnd < 0 {
		out.ReceiveHeadersEnd = max(r.Response.T-r.Start.T, out.SendEnd)
	}
	out.ReceiveHeadersStart = t.HeadersStart
	if out.ReceiveHeadersStart < 0 {
		out.ReceiveHeadersStart = out.ReceiveHeadersEnd
	}
	return out
}

func (p projection) data(r *network.Request, t float64, n, wire int64) []byte {
	return encodeEvent("Network.dataReceived", dataReceivedEvent{RequestID: p.id(r), Timestamp: seconds(r, t), DataLength: n, EncodedDataLength: encodedBytes(n, wire)})
}

func (p projection) message(r *network.Request, t float64, m *network.Message) []byte {
	return encodeEvent("Network.eventSourceMessageReceived", eventSourceMessageEvent{
		RequestID: p.id(r), Timestamp: seconds(r, t), EventName: or(m.Event, "message"), EventID: m.EventID, Data: m.Data,
	})
}

// end returns the one event that ends a request. Once headers have come, the
// request is finished however its body ended: the part that was read is there to see.
func (p projection) end(r *network.Request) []byte {
	at := seconds(r, r.EndedAt)
	if r.End != nil {
		wire := encodedBytes(r.End.Bytes, r.End.Wire)
		if r.Response != nil {
			wire += headBytes(r.Response.Value)
		}
		return encodeEvent("Network.loadingFinished", loadingFinishedEvent{RequestID: p.id(r), Timestamp: at, EncodedDataLength: float64(wire)})
	}
	text := "The request failed."
	if r.Error != nil && r.Error.Text != "" {
		text = r.Error.Text
	}
	return p.failed(r, at, text, r.Ending == network.Canceled)
}

// evicted ends a request whose end nobody will see, because newer ones took its place.
func (p projection) evicted(r *network.Request, t float64) []byte {
	return p.failed(r, (p.source.Life.Wall(t))/1000, "natscope stopped following this request: newer ones took its place", false)
}

func (p projection) failed(r *network.Request, at float64, text string, canceled bool) []byte {
	return encodeEvent("Network.loadingFailed", loadingFailedEvent{RequestID: p.id(r), Timestamp: at, Type: typeOf(r.Start.Value), ErrorText: text, Canceled: canceled})
}
