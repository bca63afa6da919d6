package cdpgw

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/natscope/natscope/subjects/network"
)

type webSocketCreatedEvent struct {
	RequestID RequestID `json:"requestId"`
	URL       string    `json:"url"`
	Initiator initiator `json:"initiator"`
}

type webSocketRequestEvent struct {
	RequestID RequestID `json:"requestId"`
	Timestamp float64   `json:"timestamp"`
	WallTime  float64   `json:"wallTime"`
	Request   struct {
		Headers headers `json:"headers"`
	} `json:"request"`
}

type webSocketResponseEvent struct {
	RequestID RequestID         `json:"requestId"`
	Timestamp float64           `json:"timestamp"`
	Response  webSocketResponse `json:"response"`
}

type webSocketResponse struct {
	Status     int     `json:"status"`
	StatusText string  `json:"statusText"`
	Headers    headers `json:"headers"`
}

type webSocketFrameEvent struct {
	RequestID RequestID      `json:"requestId"`
	Timestamp float64        `json:"timestamp"`
	Response  webSocketFrame `json:"response"`
}

type webSocketFrame struct {
	Opcode      int    `json:"opcode"`
	Mask        bool   `json:"mask"`
	PayloadData string `json:"payloadData"`
}

type webSocketErrorEvent struct {
	RequestID    RequestID `json:"requestId"`
	Timestamp    float64   `json:"timestamp"`
	ErrorMessage string    `json:"errorMessage"`
}

type webSocketClosedEvent struct {
	RequestID RequestID `json:"requestId"`
	Timestamp float64   `json:"timestamp"`
}

// webSocket returns the events of one change of a WebSocket, which has a set of events of its own.
func (p projection) webSocket(c *network.Change) [][]byte {
	r := c.Request
	switch c.Topic {
	case network.TopicStart:
		return p.webSocketStart(r)
	case network.TopicResponse:
		return [][]byte{p.webSocketResponse(r)}
	case network.TopicMessage:
		return p.webSocketFrame(r, c.T, c.Message)
	case network.TopicEnd, network.TopicError:
		return p.webSocketEnd(r)
	}
	return nil
}

// replayWebSocket returns the events of a kept WebSocket.
func (p projection) replayWebSocket(r *network.Request) [][]byte {
	out := p.webSocketStart(r)
	if r.Response != nil {
		out = append(out, p.webSocketResponse(r))
	}
	for i := range r.Messages {
		out = append(out, p.webSocketFrame(r, r.Messages[i].T, &r.Messages[i].Value)...)
	}
	if r.Ending != network.Running {
		out = append(out, p.webSocketEnd(r)...)
	}
	return out
}

func (p projection) webSocketStart(r *network.Request) [][]byte {
	at := seconds(r, r.Start.T)
	sent := webSocketRequestEvent{RequestID: p.id(r), Timestamp: at, WallTime: at}
	sent.Request.Headers = headersOf(r.Start.Value.Headers)
	return [][]byte{
		encodeEvent("Network.webSocketCreated", webSocketCreatedEvent{RequestID: p.id(r), URL: r.Start.Value.URL, Initiator: p.initiatorOf(r)}),
		encodeEvent("Network.webSocketWillSendHandshakeRequest", sent),
	}
}

func (p projection) webSocketResponse(r *network.Request) []byte {
	v := r.Response.Value
	return encodeEvent("Network.webSocketHandshakeResponseReceived", webSocketResponseEvent{
		RequestID: p.id(r), Timestamp: seconds(r, r.Response.T),
		Response: webSocketResponse{Status: v.Status, StatusText: v.StatusText, Headers: headersOf(v.Headers)},
	})
}

// The opcodes of frames that matter here.
const (
	opcodeText  = 1
	opcodeClose = 8
)

// webSocketFrame returns the events of one frame. The protocol wants text as it
// is and everything else as base64. DevTools does not show the code of a close
// frame, so one that tells of trouble is also told as an error.
func (p projection) webSocketFrame(r *network.Request, t float64, m *network.Message) [][]byte {
	f := webSocketFrame{Opcode: m.Opcode, Mask: m.Sent, PayloadData: m.Data}
	if f.Opcode == 0 {
		f.Opcode = opcodeText
	}
	data := []byte(m.Data)
	if m.Base64 {
		if b, err := base64.StdEncoding.DecodeString(m.Data); err == nil {
			data = b
		}
	}
	switch {
	case f.Opcode == opcodeClose && m.Code > 0:
		data = append(binary.BigEndian.AppendUint16(nil, uint16(m.Code)), data...)
		f.PayloadData = base64.StdEncoding.EncodeToString(data)
	case f.Opcode != opcodeText:
		f.PayloadData = base64.StdEncoding.EncodeToString(data)
	case m.Bytes > int64(len(data)):
		f.PayloadData = fmt.Sprintf("%s… (the first %d of %d bytes)", data, len(data), m.Bytes)
	default:
		f.PayloadData = string(data)
	}
	method := "Network.webSocketFrameReceived"
	if m.Sent {
		method = "Network.webSocketFrameSent"
	}
	out := [][]byte{encodeEvent(method, webSocketFrameEvent{RequestID: p.id(r), Timestamp: seconds(r, t), Response: f})}
	if text := closeTrouble(m); text != "" {
		out = append(out, encodeEvent("Network.webSocketFrameError", webSocketErrorEvent{RequestID: p.id(r), Timestamp: seconds(r, t), ErrorMessage: text}))
	}
	return out
}

// closeTrouble says what a close frame reports, if that is more than a goodbye.
func closeTrouble(m *network.Message) string {
	switch {
	case m.Opcode != opcodeClose:
		return ""
	case m.Code == 0 || m.Code == 1000 || m.Code == 1001 || m.Code == 1005:
		return ""
	case m.Sent:
		return strings.TrimSpace(fmt.Sprintf("Closed by this side with code %d %s", m.Code, m.Data))
	}
	return strings.TrimSpace(fmt.Sprintf("Closed by the other side with code %d %s", m.Code, m.Data))
}

func (p projection) webSocketEnd(r *network.Request) [][]byte {
	at := seconds(r, r.EndedAt)
	var out [][]byte
	if r.Error != nil && r.Error.Text != "" {
		out = append(out, encodeEvent("Network.webSocketFrameError", webSocketErrorEvent{RequestID: p.id(r), Timestamp: at, ErrorMessage: r.Error.Text}))
	}
	return append(out, encodeEvent("Network.webSocketClosed", webSocketClosedEvent{RequestID: p.id(r), Timestamp: at}))
}
