package cdpgw

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// Case F3, for a fetch: a response that is streamed brings all bytes once: those so far with the
// answer, the others with the events; sizes add up, and the end comes last.
func TestStreamResourceContent(t *testing.T) {
	m := shop(t)
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	c.call("Network.enable", nil, nil)
	m.net("orders", gen1, 50, network.TopicStart, network.Start{ID: "sse", URL: "http://a.test/", Type: "fetch"})
	m.net("orders", gen1, 51, network.TopicResponse, network.Response{ID: "sse", Status: 200, MIMEType: "text/event-stream", HasBody: true})
	part := func(text, end string) { m.AddBody(responseBodyOf("sse"), []byte(text), end) }
	bytes := func(n int64) {
		m.net("orders", gen1, 52, network.TopicDataReceived, network.DataReceived{ID: "sse", Bytes: n})
	}
	part("one ", "")
	bytes(4)
	c.sync()
	var r streamResult
	c.call("Network.streamResourceContent", map[string]any{"requestId": rid("sse")}, &r)
	if string(r.BufferedData) != "one " {
		t.Errorf("buffered %q", r.BufferedData)
	}
	from := c.count()
	bytes(4) // the records may be ahead of the body
	part("two ", "")
	c.until(from, "two", func(m received) bool { return strings.Contains(string(m.Params), `"data":"dHdvIA=="`) })
	part("three", "") // or behind it
	c.until(from, "three", func(m received) bool { return strings.Contains(string(m.Params), `"data":"dGhyZWU="`) })
	bytes(5)
	m.net("orders", gen1, 60, network.TopicEnd, network.End{ID: "sse", Bytes: 13, Captured: 13})
	c.sync()
	part("", subjects.BodyComplete)
	c.event(from, "Network.loadingFinished", nil)
	var sum int64
	all, _, _ := c.snapshot()
	for _, e := range all {
		var d dataReceivedEvent
		if e.Method == "Network.dataReceived" && json.Unmarshal(e.Params, &d) == nil && d.RequestID == rid("sse") {
			sum += d.DataLength
		}
	}
	if sum != 13 {
		t.Errorf("%d bytes were announced, want 13", sum)
	}
	if all[len(all)-1].Method != "Network.loadingFinished" {
		t.Errorf("the last message is %s", all[len(all)-1].raw)
	}
	// After its end the whole body is the answer.
	c.call("Network.streamResourceContent", map[string]any{"requestId": rid("sse")}, &r)
	if string(r.BufferedData) != "one two three" {
		t.Errorf("after the end: %q", r.BufferedData)
	}
	c.valid()
}

// A stream of which nothing has come yet is answered all the same, and ends with its domain.
func TestStreamOfNothing(t *testing.T) {
	m := shop(t)
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	c.call("Network.enable", nil, nil)
	m.net("orders", gen1, 50, network.TopicStart, network.Start{ID: "sse", URL: "http://a.test/"})
	m.net("orders", gen1, 51, network.TopicResponse, network.Response{ID: "sse", Status: 200, HasBody: true})
	var r streamResult
	c.call("Network.streamResourceContent", map[string]any{"requestId": rid("sse")}, &r)
	if len(r.BufferedData) != 0 {
		t.Errorf("%q", r.BufferedData)
	}
	c.fails("Network.streamResourceContent", map[string]any{"requestId": rid("sse")}, codeServer)
	c.call("Network.disable", nil, nil)
	c.sync()
}

// Case F3, for an EventSource, whose events are told one by one; and case F21.
func TestMessages(t *testing.T) {
	m := shop(t)
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	m.net("orders", gen1, 50, network.TopicStart, network.Start{ID: "es", URL: "http://a.test/", Type: "eventsource"})
	m.net("orders", gen1, 51, network.TopicMessage, network.Message{ID: "es", Event: "tick", EventID: "7", Data: "a\nb"})
	m.net("orders", gen1, 52, network.TopicStart, network.Start{ID: "ws", URL: "ws://a.test/", Type: "websocket"})
	m.net("orders", gen1, 53, network.TopicResponse, network.Response{ID: "ws", Status: 101})
	m.net("orders", gen1, 54, network.TopicMessage, network.Message{ID: "ws", Sent: true, Opcode: 1, Data: "hi"})
	c.call("Network.enable", nil, nil)
	m.net("orders", gen1, 55, network.TopicMessage, network.Message{ID: "ws", Opcode: 2, Data: "AAE=", Base64: true})
	m.net("orders", gen1, 55, network.TopicMessage, network.Message{ID: "ws", Opcode: 1, Data: "begin", Bytes: 500})
	m.net("orders", gen1, 55, network.TopicMessage, network.Message{ID: "ws", Opcode: 8, Code: 1008, Data: "policy"})
	m.net("orders", gen1, 56, network.TopicEnd, network.End{ID: "ws"})
	var es eventSourceMessageEvent
	c.event(0, "Network.eventSourceMessageReceived", &es)
	if es.EventName != "tick" || es.EventID != "7" || es.Data != "a\nb" {
		t.Errorf("%+v", es)
	}
	c.sync()
	var got []string
	all, _, _ := c.snapshot()
	for _, e := range all {
		if strings.HasPrefix(e.Method, "Network.webSocket") {
			got = append(got, strings.TrimPrefix(e.Method, "Network.webSocket"))
		}
	}
	if want := "Created WillSendHandshakeRequest HandshakeResponseReceived FrameSent FrameReceived FrameReceived FrameReceived FrameError Closed"; strings.Join(got, " ") != want {
		t.Errorf("%v", got)
	}
	var frames []string
	for _, e := range all {
		var p struct {
			Response     webSocketFrame
			ErrorMessage string
		}
		if strings.HasPrefix(e.Method, "Network.webSocketFrame") && json.Unmarshal(e.Params, &p) == nil {
			frames = append(frames, p.Response.PayloadData+p.ErrorMessage)
		}
	}
	if want := "hi|AAE=|begin… (the first 5 of 500 bytes)|A/Bwb2xpY3k=|Closed by the other side with code 1008 policy"; strings.Join(frames, "|") != want {
		t.Errorf("%q", frames)
	}
	c.valid()
}

// DevTools reads the events of a stream from its body unless the type is
// EventSource; told besides, each would be there twice.
func TestEventsOfServedStreamsAreToldOnce(t *testing.T) {
	m := shop(t)
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	c.call("Network.enable", nil, nil)
	m.net("orders", gen1, 50, network.TopicStart, network.Start{ID: "es", Direction: network.Incoming, URL: "http://a.test/", Type: "eventsource"})
	m.net("orders", gen1, 51, network.TopicMessage, network.Message{ID: "es", Data: "a"})
	c.sync()
	again := dial(t, server, "dev")
	again.call("Network.enable", nil, nil)
	for _, x := range []*client{c, again} {
		if got := x.netEvents(rid("es")); len(got) != 1 {
			t.Errorf("%q", got)
		}
	}
}
