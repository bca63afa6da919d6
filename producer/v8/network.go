package v8

import (
	"encoding/base64"
	"encoding/json"
	"net"
	"net/url"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// The bounds of observing requests.
const (
	// maxRunning is how many requests of one source run at once in the observer's eyes; the oldest is given up.
	maxRunning = 4096
	// maxPostData is how many bytes of a request body come with its start.
	maxPostData = 1 << 20
	// maxFetched is the largest response body that is fetched from a browser for disconnected viewers.
	maxFetched = 4 << 20
	// maxHeld is how many events of a page that is being loaded are held.
	maxHeld = 1024
	// maxFrame is how many bytes of one WebSocket message or server-sent event are kept.
	maxFrame = 64 << 10
)

// headers are an engine's headers: repeated ones are joined by line breaks.
type headers map[string]string

// lines makes header lines, in the order of their names since the engine has none.
func (h headers) lines() []network.Header {
	if len(h) == 0 {
		return nil
	}
	var out []network.Header
	for name, all := range h {
		for _, v := range strings.Split(all, "\n") {
			out = append(out, network.Header{strings.ToValidUTF8(name, "\ufffd"), strings.ToValidUTF8(v, "\ufffd")})
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return strings.ToLower(out[i][0]) < strings.ToLower(out[j][0]) })
	return out
}

func (h headers) get(name string) string {
	for k, v := range h {
		if strings.EqualFold(k, name) {
			return v
		}
	}
	return ""
}

// response is an engine's response.
type response struct {
	URL            string  `json:"url"`
	Status         int     `json:"status"`
	StatusText     string  `json:"statusText"`
	Headers        headers `json:"headers"`
	RequestHeaders headers `json:"requestHeaders"`
	MimeType       string  `json:"mimeType"`
	Charset        string  `json:"charset"`
	Protocol       string  `json:"protocol"`
	RemoteIP       string  `json:"remoteIPAddress"`
	RemotePort     int     `json:"remotePort"`
	Reused         bool    `json:"connectionReused"`
	Timing         *struct {
		RequestTime  float64 `json:"requestTime"`
		DNSStart     float64 `json:"dnsStart"`
		DNSEnd       float64 `json:"dnsEnd"`
		ConnectStart float64 `json:"connectStart"`
		ConnectEnd   float64 `json:"connectEnd"`
		SSLStart     float64 `json:"sslStart"`
		SSLEnd       float64 `json:"sslEnd"`
		SendStart    float64 `json:"sendStart"`
		SendEnd      float64 `json:"sendEnd"`
		HeadersStart float64 `json:"receiveHeadersStart"`
		HeadersEnd   float64 `json:"receiveHeadersEnd"`
	} `json:"timing"`
}

// running is a request that has not ended.
type running struct {
	id    network.RequestID
	order uint64
	// shift turns the engine's time of the request into the source's, in milliseconds; start is when it began.
	shift, start float64
	// sent and got are the headers of the wire, when the engine tells them apart.
	sent, got   headers
	responded   bool
	bytes, wire int64
	socket      bool
}

// networkReader makes records of an engine's Network events.
type networkReader struct {
	x *observer
	// last numbers the requests of a generation.
	last    uint64
	running map[string]*running
	// document is the request of a page that is being loaded, and held what was
	// told of it: it belongs to the generation that begins when it arrives.
	document string
	held     []event
}

// networkEvent has the fields of all Network events that make records.
type networkEvent struct {
	RequestID   string  `json:"requestId"`
	FrameID     string  `json:"frameId"`
	Timestamp   float64 `json:"timestamp"`
	WallTime    float64 `json:"wallTime"`
	Type        string  `json:"type"`
	DocumentURL string  `json:"documentURL"`
	Request     *struct {
		URL         string  `json:"url"`
		Method      string  `json:"method"`
		Headers     headers `json:"headers"`
		PostData    *string `json:"postData"`
		HasPostData bool    `json:"hasPostData"`
	} `json:"request"`
	Initiator *struct {
		Stack *stackTrace `json:"stack"`
	} `json:"initiator"`
	RedirectResponse *response       `json:"redirectResponse"`
	Response         json.RawMessage `json:"response"`
	Headers          headers         `json:"headers"`
	DataLength       int64           `json:"dataLength"`
	EncodedLength    int64           `json:"encodedDataLength"`
	ErrorText        string          `json:"errorText"`
	Canceled         bool            `json:"canceled"`
	EventName        string          `json:"eventName"`
	EventID          string          `json:"eventId"`
	Data             string          `json:"data"`
	URL              string          `json:"url"`
	ErrorMessage     string          `json:"errorMessage"`
}

// id is the id of a request in records; empty if it is not running.
func (n *networkReader) id(requestID string) network.RequestID {
	if r := n.running[requestID]; r != nil {
		return r.id
	}
	return ""
}

// event takes one event.
func (n *networkReader) event(method string, params json.RawMessage) {
	p := n.x.producer()
	var e networkEvent
	if p == nil || json.Unmarshal(params, &e) != nil || e.RequestID == "" || n.hold(method, params, &e) {
		return
	}
	n.take(p, method, &e)
}

// hold keeps what belongs to a page that is not there yet, and reports whether it did.
func (n *networkReader) hold(method string, params json.RawMessage, e *networkEvent) bool {
	if e.RequestID != n.document {
		if method != "Network.requestWillBeSent" || e.Type != "Document" || e.FrameID != n.x.target.ID || !n.x.engine.isBrowser() {
			return false
		}
		n.arrived() // The page that was on its way does not come.
		n.document = e.RequestID
	}
	n.held = append(n.held, event{method: method, params: params})
	if method == "Network.loadingFailed" || len(n.held) >= maxHeld {
		n.arrived()
	}
	return true
}

// arrived makes records of what is held.
func (n *networkReader) arrived() {
	held := n.held
	n.document, n.held = "", nil
	p := n.x.producer()
	for _, h := range held {
		var e networkEvent
		if p != nil && json.Unmarshal(h.params, &e) == nil {
			n.take(p, h.method, &e)
		}
	}
}

// take makes records of one event.
func (n *networkReader) take(p *producer.Producer, method string, e *networkEvent) {
	if method == "Network.requestWillBeSent" || method == "Network.webSocketCreated" {
		n.begin(p, method, e)
		return
	}
	r := n.running[e.RequestID]
	if r == nil {
		return
	}
	t := r.at(e.Timestamp, p)
	switch method {
	case "Network.requestWillBeSentExtraInfo":
		r.sent = e.Headers
	case "Network.responseReceivedExtraInfo":
		r.got = e.Headers
	case "Network.responseReceived":
		var res response
		if json.Unmarshal(e.Response, &res) == nil {
			n.respond(p, r, t, &res)
		}
	case "Network.dataReceived":
		r.bytes += e.DataLength
		r.wire += e.EncodedLength
		put(p, t, network.TopicDataReceived, network.DataReceived{ID: r.id, Bytes: e.DataLength, Wire: e.EncodedLength})
	case "Network.eventSourceMessageReceived":
		data, whole := head(e.Data)
		put(p, t, network.TopicMessage, network.Message{ID: r.id, Event: e.EventName, EventID: e.EventID, Data: data, Bytes: whole})
	case "Network.loadingFinished":
		if e.EncodedLength > 0 {
			r.wire = e.EncodedLength
		}
		n.finish(p, e.RequestID, r, t)
	case "Network.loadingFailed":
		n.fail(p, e.RequestID, r, t, e)
	default:
		n.socketEvent(p, method, r, t, e)
	}
}

// begin records the start of a request.
func (n *networkReader) begin(p *producer.Producer, method string, e *networkEvent) {
	if n.running == nil {
		n.running = make(map[string]*running)
	}
	var redirect network.RequestID
	old := n.running[e.RequestID]
	if old != nil {
		if e.RedirectResponse == nil {
			return
		}
		t := old.at(e.Timestamp, p)
		n.respond(p, old, t, e.RedirectResponse)
		put(p, t, network.TopicEnd, network.End{ID: old.id, Bytes: old.bytes, Wire: old.wire})
		redirect = old.id
	}
	n.last++
	r := &running{id: network.RequestID("v" + strconv.FormatUint(n.last, 36)), order: n.last}
	now := p.Now()
	switch {
	case e.WallTime > 0:
		r.shift = (e.WallTime-e.Timestamp)*1000 - n.x.origin
	case old != nil:
		r.shift = old.shift
	case e.Timestamp > 0:
		r.shift = now - e.Timestamp*1000
	}
	r.start = r.at(e.Timestamp, p)
	n.running[e.RequestID] = r
	n.evict(p)
	if method == "Network.webSocketCreated" {
		r.socket = true
		put(p, now, network.TopicStart, network.Start{ID: r.id, Method: "GET", URL: cut(e.URL, 64<<10), Type: "websocket", Stack: e.stack()})
		r.start = now
		return
	}
	q := e.Request
	if q == nil || q.URL == "" {
		delete(n.running, e.RequestID)
		return
	}
	put(p, r.start, network.TopicStart, network.Start{
		ID: r.id, Method: q.Method, URL: cut(n.address(q.URL, q.Headers), 64<<10), Headers: q.Headers.lines(), Type: requestType(e.Type),
		HasBody: q.HasPostData || q.PostData != nil, DocumentURL: cut(e.DocumentURL, 4096), Stack: e.stack(), RedirectOf: redirect,
		Trace: q.Headers.get("traceparent"),
	})
	if q.PostData != nil {
		b := p.Body(r.id, subjects.RequestBody)
		b.Write([]byte(*q.PostData))
		b.End(subjects.BodyComplete, int64(len(*q.PostData)))
		put(p, r.start, network.TopicRequestBodyEnd, network.BodyEnd{ID: r.id, Bytes: int64(len(*q.PostData)), Captured: b.Captured(), Truncated: b.Truncated()})
	}
}

// address repairs what Node tells: its URL lacks the port that the Host header has.
func (n *networkReader) address(text string, h headers) string {
	if n.x.engine.isBrowser() {
		return text
	}
	u, err := url.Parse(text)
	host := h.get("host")
	if err != nil || u.Port() != "" || host == "" {
		return text
	}
	if name, port, err := net.SplitHostPort(host); err == nil && port != "" && name == u.Hostname() {
		u.Host = host
	}
	return u.String()
}

func (e *networkEvent) stack() []network.Frame {
	if e.Initiator == nil {
		return nil
	}
	return e.Initiator.Stack.frames()
}

// at turns an engine's time into the source's. Events without one happen now.
func (r *running) at(timestamp float64, p *producer.Producer) float64 {
	if timestamp <= 0 || r.shift == 0 {
		return p.Now()
	}
	return timestamp*1000 + r.shift
}

// respond records the headers of a response.
func (n *networkReader) respond(p *producer.Producer, r *running, t float64, res *response) {
	r.responded = true
	out := network.Response{
		ID: r.id, Status: res.Status, StatusText: res.StatusText, Headers: res.Headers.lines(), URL: "", MIMEType: res.MimeType, Charset: res.Charset,
		Protocol: res.Protocol, RemoteIP: strings.Trim(res.RemoteIP, "[]"), RemotePort: res.RemotePort, Reused: res.Reused, RequestHeaders: res.RequestHeaders.lines(), HasBody: true,
	}
	if r.got != nil {
		out.Headers = r.got.lines()
	}
	if r.sent != nil {
		out.RequestHeaders = r.sent.lines()
	}
	if out.MIMEType == "" {
		out.MIMEType, _, _ = strings.Cut(res.Headers.get("content-type"), ";")
	}
	if g := res.Timing; g != nil && g.RequestTime > 0 {
		// The engine's phases count from requestTime, ours from the start.
		d := g.RequestTime*1000 + r.shift - r.start
		at := func(ms float64) float64 {
			if ms < 0 {
				return -1
			}
			return max(ms+d, 0)
		}
		out.Timing = &network.Timing{
			DNSStart: at(g.DNSStart), DNSEnd: at(g.DNSEnd), ConnectStart: at(g.ConnectStart), ConnectEnd: at(g.ConnectEnd), TLSStart: at(g.SSLStart), TLSEnd: at(g.SSLEnd),
			SendStart: at(g.SendStart), SendEnd: at(g.SendEnd), HeadersStart: at(g.HeadersStart), HeadersEnd: at(g.HeadersEnd),
		}
	}
	put(p, t, network.TopicResponse, out)
}

// finish records the end of a request, with its body if the engine gives it.
func (n *networkReader) finish(p *producer.Producer, requestID string, r *running, t float64) {
	delete(n.running, requestID)
	end := network.End{ID: r.id, Bytes: r.bytes, Wire: r.wire}
	if !n.x.engine.isBrowser() || r.bytes > maxFetched || r.bytes == 0 && r.wire == 0 {
		end.Truncated = r.bytes > 0
		put(p, t, network.TopicEnd, end)
		return
	}
	// The answer comes on the connection's reader, where a producer may be used but nothing of this one.
	n.x.peer.start("Network.getResponseBody", map[string]string{"requestId": requestID}, func(result json.RawMessage, err error) {
		var b struct {
			Body   string `json:"body"`
			Base64 bool   `json:"base64Encoded"`
		}
		if err == nil {
			err = json.Unmarshal(result, &b)
		}
		data := []byte(b.Body)
		if b.Base64 && err == nil {
			data, err = base64.StdEncoding.DecodeString(b.Body)
		}
		if err != nil {
			// Such as a body that the browser has thrown away already.
			end.Truncated = end.Bytes > 0
			put(p, t, network.TopicEnd, end)
			return
		}
		body := p.Body(end.ID, subjects.ResponseBody)
		body.Write(data)
		body.End(subjects.BodyComplete, int64(len(data)))
		end.Bytes, end.Captured, end.Truncated = int64(len(data)), body.Captured(), body.Truncated()
		put(p, t, network.TopicEnd, end)
	})
}

// fail records that a request failed, before its headers or after them.
func (n *networkReader) fail(p *producer.Producer, requestID string, r *running, t float64, e *networkEvent) {
	delete(n.running, requestID)
	text := or(e.ErrorText, "failed")
	if r.responded {
		put(p, t, network.TopicEnd, network.End{ID: r.id, Bytes: r.bytes, Wire: r.wire, Truncated: true, Error: cut(text, 4096), Canceled: e.Canceled})
		return
	}
	put(p, t, network.TopicError, network.Error{ID: r.id, Text: cut(text, 4096), Canceled: e.Canceled})
}

// socketEvent records what happens on a WebSocket.
func (n *networkReader) socketEvent(p *producer.Producer, method string, r *running, t float64, e *networkEvent) {
	if !r.socket {
		return
	}
	switch method {
	case "Network.webSocketWillSendHandshakeRequest":
		if e.WallTime > 0 {
			r.shift = (e.WallTime-e.Timestamp)*1000 - n.x.origin
		}
	case "Network.webSocketHandshakeResponseReceived":
		var res response
		if json.Unmarshal(e.Response, &res) == nil {
			n.respond(p, r, t, &res)
		}
	case "Network.webSocketFrameSent", "Network.webSocketFrameReceived":
		var f struct {
			Opcode  float64 `json:"opcode"`
			Payload string  `json:"payloadData"`
		}
		if json.Unmarshal(e.Response, &f) != nil {
			return
		}
		data, whole := head(f.Payload)
		if f.Opcode != 1 {
			whole = whole / 4 * 3
		}
		put(p, t, network.TopicMessage, network.Message{ID: r.id, Sent: method == "Network.webSocketFrameSent", Opcode: int(f.Opcode), Data: data, Base64: f.Opcode != 1, Bytes: whole})
	case "Network.webSocketClosed":
		delete(n.running, e.RequestID)
		if r.responded {
			put(p, t, network.TopicEnd, network.End{ID: r.id})
			return
		}
		put(p, t, network.TopicError, network.Error{ID: r.id, Text: "the handshake failed"})
	}
}

// evict gives up the oldest request when there are too many.
func (n *networkReader) evict(p *producer.Producer) {
	if len(n.running) <= maxRunning {
		return
	}
	var oldest string
	for id, r := range n.running {
		if oldest == "" || r.order < n.running[oldest].order {
			oldest = id
		}
	}
	r := n.running[oldest]
	delete(n.running, oldest)
	put(p, p.Now(), network.TopicEnd, network.End{ID: r.id, Bytes: r.bytes, Wire: r.wire, Truncated: true, Error: "more than " + strconv.Itoa(maxRunning) + " requests run at once; this one is not observed any more"})
}

// requestType turns an engine's word for what asked into that of records.
func requestType(t string) string {
	switch t = strings.ToLower(t); t {
	case "fetch", "xhr", "eventsource", "websocket", "document":
		return t
	}
	return "other"
}

// head returns the beginning of a text, and the size of the whole when that is more.
func head(s string) (string, int64) {
	if len(s) <= maxFrame {
		return strings.ToValidUTF8(s, "\ufffd"), 0
	}
	at := maxFrame
	for at > 0 && !utf8.RuneStart(s[at]) {
		at--
	}
	return strings.ToValidUTF8(s[:at], "\ufffd"), int64(len(s))
}

// put makes a net record.
func put(p *producer.Producer, t float64, topic string, payload any) {
	data, err := json.Marshal(payload)
	if err == nil {
		p.RecordAt(subjects.PlaneNet, topic, t, data)
	}
}
