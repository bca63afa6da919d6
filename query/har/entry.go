package har

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/natscope/natscope/subjects/network"
)

// entryOf turns one request into an entry.
func entryOf(r *Request, b bodies) entry {
	q := &r.Request
	v := &q.Start.Value
	e := entry{
		Initiator: initiatorOf(v), Priority: "Medium", ResourceType: resourceType(v), MessagesLost: q.MessagesLost,
		Source: string(r.Source), Generation: q.Generation, RequestID: string(v.ID), RedirectOf: string(v.RedirectOf), Direction: string(v.Direction),
		Route: v.Route, Trace: v.Trace, Incomplete: q.Ending == network.Running, Pageref: pageID(r.Source),
		Request: requestOf(r, b.request), Response: responseOf(r, b.response), StartedDateTime: stamp(r.began()), Timings: timingsOf(q),
	}
	e.Time = e.Timings.total()
	if p := q.Response; p != nil {
		e.Route = or(p.Value.Route, e.Route)
		e.ServerIPAddress = p.Value.RemoteIP
		if p.Value.RemotePort > 0 {
			e.Connection = strconv.Itoa(p.Value.RemotePort)
		}
	}
	if v.Type == "websocket" {
		e.WebSocketMessages = webSocketMessages(r)
	} else {
		e.EventSourceMessages = eventMessages(r)
	}
	if e.Incomplete {
		e.Comment = "incomplete: the request was running when the archive was written"
	}
	return e
}

func requestOf(r *Request, b body) request {
	q := &r.Request
	v := &q.Start.Value
	sent := v.Headers
	if q.Response != nil && len(q.Response.Value.RequestHeaders) > 0 {
		sent = q.Response.Value.RequestHeaders
	}
	out := request{
		Method: v.Method, URL: v.URL, HTTPVersion: httpVersion(q), Cookies: requestCookies(sent), Headers: pairs(sent), QueryString: queryOf(v.URL),
		HeadersSize: -1, BodySize: 0,
	}
	if v.HasBody {
		out.BodySize = v.BodyBytes
	}
	if q.BodyEnd != nil {
		out.BodySize = q.BodyEnd.Value.Bytes
	}
	if b.there || b.comment != "" {
		kind := value(sent, "Content-Type")
		out.PostData = &postData{MimeType: kind, Text: b.text, Comment: b.comment}
		if b.base64 {
			out.PostData.Encoding = "base64"
		} else if strings.HasPrefix(strings.ToLower(kind), "application/x-www-form-urlencoded") {
			out.PostData.Params = params(b.text)
		}
	}
	return out
}

func responseOf(r *Request, b body) response {
	q := &r.Request
	out := response{HTTPVersion: httpVersion(q), Cookies: []cookie{}, Headers: []pair{}, HeadersSize: -1, BodySize: -1, TransferSize: -1, Content: content{MimeType: "x-unknown", Comment: b.comment}}
	switch {
	case q.Error != nil:
		out.Error = or(q.Error.Text, "the request failed")
	case q.End != nil && q.End.Error != "":
		out.Error = q.End.Error
	case q.End != nil && q.End.Canceled:
		out.Error = "the application stopped reading"
	}
	if q.Response == nil {
		return out
	}
	v := &q.Response.Value
	out.Status, out.StatusText, out.Headers, out.Cookies = v.Status, q.StatusText(), pairs(v.Headers), responseCookies(v.Headers)
	out.RedirectURL = value(v.Headers, "Location")
	if kind := or(value(v.Headers, "Content-Type"), v.MIMEType); kind != "" {
		out.Content.MimeType = kind
	}
	passed, wire := q.Received.Bytes, q.Received.Wire
	if q.End != nil {
		passed, wire = q.End.Bytes, q.End.Wire
		out.Trailers = pairs(q.End.Trailers)
	}
	out.BodySize = passed
	if wire > 0 {
		out.BodySize = wire
	}
	out.TransferSize = out.BodySize
	out.Content.Size = passed
	if b.there {
		out.Content.Text = &b.text
		if b.base64 {
			out.Content.Encoding = "base64"
		}
		if b.complete {
			out.Content.Size = b.size
		}
		if saved := out.Content.Size - out.BodySize; b.complete && saved > 0 {
			out.Content.Compression = &saved
		}
	}
	return out
}

// resourceType is the type in DevTools' words; requests that a source served are
// documents there.
func resourceType(v *network.Start) string {
	if v.Direction == network.Incoming {
		return "document"
	}
	switch v.Type {
	case "fetch", "xhr", "eventsource", "websocket", "document":
		return v.Type
	}
	return "other"
}

func initiatorOf(v *network.Start) *initiator {
	if v.Direction == network.Incoming {
		return &initiator{Type: "other", URL: v.Client}
	}
	if len(v.Stack) == 0 {
		return &initiator{Type: "other"}
	}
	s := &stack{CallFrames: make([]callFrame, len(v.Stack))}
	for i, f := range v.Stack {
		address := f.URL
		if strings.HasPrefix(address, "/") {
			address = (&url.URL{Scheme: "file", Path: address}).String()
		}
		s.CallFrames[i] = callFrame{FunctionName: f.Function, URL: address, LineNumber: f.Line - 1, ColumnNumber: max(f.Column-1, 0)}
	}
	return &initiator{Type: "script", Stack: s}
}

// httpVersion is the protocol as archives name it.
func httpVersion(q *network.Request) string {
	if q.Response == nil || q.Response.Value.Protocol == "" {
		return "unknown"
	}
	switch p := q.Response.Value.Protocol; p {
	case "h2", "h2c":
		return "HTTP/2.0"
	case "h3":
		return "h3"
	default:
		return strings.ToUpper(p)
	}
}

func pairs(list []network.Header) []pair {
	out := make([]pair, len(list))
	for i, h := range list {
		out[i] = pair{h[0], h[1]}
	}
	return out
}

// values returns all values of a header, value the first one.
func values(list []network.Header, name string) (out []string) {
	for _, h := range list {
		if strings.EqualFold(h[0], name) {
			out = append(out, h[1])
		}
	}
	return out
}

func value(list []network.Header, name string) string {
	if all := values(list, name); len(all) > 0 {
		return all[0]
	}
	return ""
}

func queryOf(address string) []pair {
	_, query, ok := strings.Cut(address, "?")
	if !ok {
		return []pair{}
	}
	query, _, _ = strings.Cut(query, "#")
	return params(query)
}

// params splits what a form or a query holds, in its order. What cannot be
// unescaped stays as it is.
func params(text string) []pair {
	out := []pair{}
	for part := range strings.SplitSeq(text, "&") {
		if part == "" {
			continue
		}
		name, v, _ := strings.Cut(part, "=")
		out = append(out, pair{unescape(name), unescape(v)})
	}
	return out
}

func unescape(s string) string {
	plain, err := url.QueryUnescape(s)
	if err != nil {
		return s
	}
	return strings.ToValidUTF8(plain, "\uFFFD")
}

func requestCookies(list []network.Header) []cookie {
	out := []cookie{}
	for _, line := range values(list, "Cookie") {
		for part := range strings.SplitSeq(line, ";") {
			// Each by itself: one that cannot be read must not hide the others.
			if parsed, err := http.ParseCookie(part); err == nil {
				for _, c := range parsed {
					out = append(out, cookie{Name: c.Name, Value: c.Value})
				}
			}
		}
	}
	return out
}

func responseCookies(list []network.Header) []cookie {
	out := []cookie{}
	for _, line := range values(list, "Set-Cookie") {
		c, err := http.ParseSetCookie(line)
		if err != nil {
			continue
		}
		x := cookie{Name: c.Name, Value: c.Value, Path: c.Path, Domain: c.Domain, HTTPOnly: c.HttpOnly, Secure: c.Secure}
		if !c.Expires.IsZero() {
			x.Expires = c.Expires.UTC().Format(time.RFC3339)
		}
		switch c.SameSite {
		case http.SameSiteLaxMode:
			x.SameSite = "Lax"
		case http.SameSiteStrictMode:
			x.SameSite = "Strict"
		case http.SameSiteNoneMode:
			x.SameSite = "None"
		}
		out = append(out, x)
	}
	return out
}

// webSocketMessages returns the frames: text as it is, everything else as base64.
func webSocketMessages(r *Request) []webSocketMessage {
	out := make([]webSocketMessage, 0, len(r.Request.Messages))
	for i := range r.Request.Messages {
		m := &r.Request.Messages[i].Value
		x := webSocketMessage{Type: "receive", Time: r.wall(r.Request.Messages[i].T) / 1000, Opcode: max(m.Opcode, 1), Data: m.Data}
		if m.Sent {
			x.Type = "send"
		}
		data := []byte(m.Data)
		if m.Base64 {
			if b, err := base64.StdEncoding.DecodeString(m.Data); err == nil {
				data = b
			}
		}
		if m.Code > 0 {
			data = append(binary.BigEndian.AppendUint16(nil, uint16(m.Code)), data...)
		}
		if x.Opcode == 1 {
			x.Data = strings.ToValidUTF8(string(data), "\uFFFD")
		} else {
			x.Data = base64.StdEncoding.EncodeToString(data)
		}
		out = append(out, x)
		// The code of a close frame is shown nowhere, so trouble is told once more.
		if m.Code > 0 && m.Code != 1000 && m.Code != 1001 && m.Code != 1005 {
			out = append(out, webSocketMessage{Type: "error", Time: x.Time, Opcode: -1, Data: strings.TrimSpace(fmt.Sprintf("closed with code %d %s", m.Code, m.Data))})
		}
	}
	return out
}

func eventMessages(r *Request) []eventMessage {
	var out []eventMessage
	for i := range r.Request.Messages {
		m := &r.Request.Messages[i].Value
		out = append(out, eventMessage{Time: r.wall(r.Request.Messages[i].T) / 1000, EventName: or(m.Event, "message"), EventID: m.EventID, Data: m.Data})
	}
	return out
}

// timingsOf splits the time of a request into phases that follow each other.
func timingsOf(q *network.Request) timings {
	out := timings{Blocked: -1, DNS: -1, SSL: -1, Connect: -1}
	end := q.EndedAt - q.Start.T
	if q.Ending == network.Running {
		end = max(q.LastData-q.Start.T, 0)
	}
	if q.Response == nil {
		out.Blocked = max(end, 0)
		return out
	}
	headers := max(q.Response.T-q.Start.T, 0)
	t := q.Response.Value.Timing
	if t == nil {
		out.Wait, out.Receive = headers, max(end-headers, 0)
		return out
	}
	phase := func(start, end float64) float64 {
		if start < 0 || end < start {
			return -1
		}
		return end - start
	}
	out.DNS, out.SSL = phase(t.DNSStart, t.DNSEnd), phase(t.TLSStart, t.TLSEnd)
	out.Connect = phase(t.ConnectStart, max(t.ConnectEnd, t.TLSEnd))
	out.Send = max(phase(t.SendStart, t.SendEnd), 0)
	if t.HeadersEnd >= 0 {
		headers = t.HeadersEnd
	}
	first := -1.0
	for _, start := range []float64{t.DNSStart, t.ConnectStart, t.SendStart} {
		if start >= 0 && (first < 0 || start < first) {
			first = start
		}
	}
	out.Blocked = first
	out.Wait = max(headers-max(first, 0)-max(out.DNS, 0)-max(out.Connect, 0)-out.Send, 0)
	out.Receive = max(end-headers, 0)
	return out
}

// total is the time of an entry: the sum of its phases, of which connect includes ssl.
func (t timings) total() float64 {
	sum := t.Send + t.Wait + t.Receive
	for _, x := range []float64{t.Blocked, t.DNS, t.Connect} {
		sum += max(x, 0)
	}
	return sum
}
