package cdpgw

import (
	"net/netip"
	"net/url"
	"strings"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/realm"
)

// projection turns requests into events. Times are seconds: timestamps count on
// the wall clock too, so that the requests of all sources share one axis.
type projection struct {
	hub    *hub
	source *fold.Source
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
	case "script":
		return "Script"
	case "stylesheet":
		return "Stylesheet"
	case "image":
		return "Image"
	case "font":
		return "Font"
	case "media":
		return "Media"
	case "ping":
		return "Ping"
	}
	return "Other"
}

// headers are the header lines of a message, lines of one name joined by a line break.
type headers map[string]string

// headerOf returns the first value of a header, or nothing.
func headerOf(list []network.Header, name string) string {
	for _, line := range list {
		if strings.EqualFold(line[0], name) {
			return line[1]
		}
	}
	return ""
}

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
	if c.Topic != network.TopicStart && p.source.Net.Continued(r) {
		// The id belongs to the request that the redirect led to.
		return nil
	}
	switch c.Topic {
	case network.TopicStart:
		return p.start(r)
	case network.TopicResponse:
		return p.response(r)
	case network.TopicDataReceived:
		return [][]byte{p.data(r, c.T, c.Data.Bytes, c.Data.Wire)}
	case network.TopicMessage:
		if typeOf(r.Start.Value) == "EventSource" {
			return [][]byte{p.message(r, c.T, c.Message)}
		}
	case network.TopicEnd, network.TopicError:
		if amended(r) {
			return [][]byte{p.responseReceived(r, false), p.end(r)}
		}
		return [][]byte{p.end(r)}
	}
	return nil
}

// replay returns the events of a kept request, as if it happened now.
func (p projection) replay(r *network.Request) [][]byte {
	if typeOf(r.Start.Value) == "WebSocket" {
		return p.replayWebSocket(r)
	}
	out := p.start(r)
	if p.source.Net.Continued(r) {
		return out
	}
	if r.Response != nil {
		out = append(out, p.response(r)...)
	}
	if r.Received.Bytes > 0 {
		out = append(out, p.data(r, r.LastData, r.Received.Bytes, r.Received.Wire))
	}
	if typeOf(r.Start.Value) == "EventSource" {
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

// start returns the events of a new request: the one before it in a chain of
// redirects ends with them, and its cookies are told.
func (p projection) start(r *network.Request) [][]byte {
	var out [][]byte
	v := r.Start.Value
	at := seconds(r, r.Start.T)
	documentURL := v.DocumentURL
	if documentURL == "" {
		documentURL = frameURL(p.hub.space.Name, p.source)
	}
	e := requestWillBeSentEvent{
		RequestID: p.id(r), LoaderID: r.Generation, DocumentURL: documentURL,
		Request: requestInfo{
			URL: urlOf(p.source, v), Method: v.Method, Headers: headersOf(v.Headers), HasPostData: v.HasBody && v.BodyBytes != 0,
			MixedContentType: "none", InitialPriority: "Medium", ReferrerPolicy: "strict-origin-when-cross-origin",
		},
		Timestamp: at, WallTime: at, Initiator: p.initiatorOf(r), Type: typeOf(v), FrameID: frameOf(p.source.ID),
	}
	if before := p.source.Net.Before(r); before != nil && before.Response != nil {
		info := p.responseOf(before)
		e.RedirectResponse = &info
		out = append(out, p.extra(before)...)
		e.RedirectHasExtraInfo = len(out) > 0
	}
	out = append(out, encodeEvent("Network.requestWillBeSent", e))
	if hasCookies(v.Headers) {
		out = append(out, p.requestExtra(r, v.Headers))
	}
	return out
}

// urlOf returns the address of a request. An incoming one may be known by its
// path alone, of which DevTools can make no name.
func urlOf(src *fold.Source, v network.Start) string {
	if !strings.HasPrefix(v.URL, "/") {
		return v.URL
	}
	host := headerOf(v.Headers, "Host")
	if host == "" {
		host = string(src.ID)
	}
	return "http://" + host + v.URL
}

// initiatorOf tells where a request was made. Of one that the source served it
// tells who asked, in the only words that DevTools shows in the row itself.
func (p projection) initiatorOf(r *network.Request) initiator {
	v := r.Start.Value
	switch {
	case v.Direction == network.Incoming && v.Client != "":
		return initiator{Type: "parser", URL: "incoming from " + v.Client}
	case v.Direction == network.Incoming:
		return initiator{Type: "parser", URL: "incoming"}
	case len(v.Stack) == 0:
		return initiator{Type: "other"}
	}
	out := initiator{Type: "script", Stack: stackOf(p.source.ID, r.Generation, v.Stack)}
	if realm.Supports(p.source.Life.Descriptor.Capabilities, "debugger.enable") {
		// The files may be a child's. Of a script that the session of the request has not told
		// of DevTools shows nothing at all; an address and a line it finds in every session.
		top := out.Stack.CallFrames[0]
		out.Type, out.URL, out.LineNumber = "parser", top.URL, top.LineNumber
	}
	return out
}

// sentHeaders are the headers of a request as far as they are known now.
func sentHeaders(r *network.Request) []network.Header {
	if r.Response != nil && len(r.Response.Value.RequestHeaders) > 0 {
		return r.Response.Value.RequestHeaders
	}
	return r.Start.Value.Headers
}

// response returns the events of headers that came. DevTools lists cookies only of
// responses that announce extra information, and other clients wait for all of
// what is announced.
func (p projection) response(r *network.Request) [][]byte {
	out := p.extra(r)
	return append(out, p.responseReceived(r, len(out) > 0))
}

// extra returns the extra information that goes with the response to a request with cookies.
func (p projection) extra(r *network.Request) [][]byte {
	sent := sentHeaders(r)
	switch {
	case hasCookies(r.Start.Value.Headers):
		return [][]byte{p.responseExtra(r)}
	case hasCookies(sent):
		return [][]byte{p.requestExtra(r, sent), p.responseExtra(r)}
	}
	return nil
}

func (p projection) responseReceived(r *network.Request, extra bool) []byte {
	return encodeEvent("Network.responseReceived", responseReceivedEvent{
		RequestID: p.id(r), LoaderID: r.Generation, Timestamp: seconds(r, r.Response.T), Type: typeOf(r.Start.Value),
		Response: p.responseOf(r), HasExtraInfo: extra, FrameID: frameOf(p.source.ID),
	})
}

func (p projection) responseOf(r *network.Request) responseInfo {
	v := r.Response.Value
	address := or(v.URL, urlOf(p.source, r.Start.Value))
	out := responseInfo{
		URL: address, Status: v.Status, StatusText: r.StatusText(), Headers: headersOf(append(v.Headers[:len(v.Headers):len(v.Headers)], notes(r)...)),
		MimeType: v.MIMEType, Charset: v.Charset, ConnectionReused: v.Reused, RemoteIPAddress: v.RemoteIP, RemotePort: v.RemotePort,
		EncodedDataLength: float64(headBytes(v)), Timing: timingOf(r), ResponseTime: r.Origin + r.Response.T, Protocol: v.Protocol, SecurityState: securityOf(address),
	}
	if out.RemoteIPAddress == "" && r.Start.Value.Client != "" {
		if at, err := netip.ParseAddrPort(r.Start.Value.Client); err == nil {
			out.RemoteIPAddress, out.RemotePort = at.Addr().String(), int(at.Port())
		}
	}
	if out.SecurityDetails = securityDetailsOf(v.TLS); v.TLS != nil {
		out.SecurityState = "secure"
	}
	// Without them DevTools warns of provisional headers.
	out.RequestHeaders = headersOf(sentHeaders(r))
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

func (p projection) data(r *network.Request, t float64, n, wire int64) []byte {
	return encodeEvent("Network.dataReceived", dataReceivedEvent{RequestID: p.id(r), Timestamp: seconds(r, t), DataLength: n, EncodedDataLength: encodedBytes(n, wire)})
}

func (p projection) message(r *network.Request, t float64, m *network.Message) []byte {
	return eventSourceMessage(p.id(r), r, t, m)
}

func eventSourceMessage(id RequestID, r *network.Request, t float64, m *network.Message) []byte {
	return encodeEvent("Network.eventSourceMessageReceived", eventSourceMessageEvent{
		RequestID: id, Timestamp: seconds(r, t), EventName: or(m.Event, "message"), EventID: m.EventID, Data: m.Data,
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
	if typeOf(r.Start.Value) == "WebSocket" {
		return encodeEvent("Network.webSocketClosed", webSocketClosedEvent{RequestID: p.id(r), Timestamp: p.source.Life.Wall(t) / 1000})
	}
	return p.failed(r, (p.source.Life.Wall(t))/1000, "natscope stopped following this request: newer ones took its place", false)
}

func (p projection) failed(r *network.Request, at float64, text string, canceled bool) []byte {
	return encodeEvent("Network.loadingFailed", loadingFailedEvent{RequestID: p.id(r), Timestamp: at, Type: typeOf(r.Start.Value), ErrorText: text, Canceled: canceled})
}
