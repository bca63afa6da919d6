package cdpgw

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// shownEvents returns the data of the events of a stream that were told one by one.
func (c *client) shownEvents(id RequestID) []string {
	var out []string
	all, _, _ := c.snapshot()
	for _, r := range all {
		var e eventSourceMessageEvent
		if r.Method == "Network.eventSourceMessageReceived" && decoded(r.Params, &e) && e.RequestID == id {
			out = append(out, e.Data)
		}
	}
	return out
}

func (c *client) untilEvents(id RequestID, want ...string) {
	c.t.Helper()
	c.until(0, "the events "+strings.Join(want, ", "), func(received) bool { return slices.Equal(c.shownEvents(id), want) })
}

// Where rules look at bodies, that of an event stream does not come while it runs.
// Its events are told one by one then: those so far, those that follow, and again
// to who comes later; bytes that come after all bring none of them twice.
func TestEventsOfWithheldStreams(t *testing.T) {
	m := shop(t)
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	c.call("Network.enable", nil, nil)
	tell := func(data string) {
		m.net("orders", gen1, 52, network.TopicDataReceived, network.DataReceived{ID: "sse", Bytes: 8})
		m.net("orders", gen1, 52, network.TopicMessage, network.Message{ID: "sse", Event: "tick", Data: data})
	}
	m.net("orders", gen1, 50, network.TopicStart, network.Start{ID: "sse", URL: "http://a.test/", Type: "fetch"})
	m.net("orders", gen1, 51, network.TopicResponse, network.Response{ID: "sse", Status: 200, MIMEType: "text/event-stream", HasBody: true})
	tell("one")
	var r streamResult
	c.call("Network.streamResourceContent", map[string]any{"requestId": rid("sse")}, &r)
	tell("two")
	c.untilEvents(rid("sse"), "one", "two")
	tell("three")
	c.untilEvents(rid("sse"), "one", "two", "three")
	from := c.count()
	m.net("orders", gen1, 60, network.TopicEnd, network.End{ID: "sse", Bytes: 24, Captured: 24, Redacted: true})
	m.AddBody(responseBodyOf("sse"), []byte("data: [redacted]"), subjects.BodyComplete)
	c.event(from, "Network.loadingFinished", nil)
	c.sync()
	all, _, _ := c.snapshot()
	for _, e := range all {
		var d dataReceivedEvent
		if e.Method == "Network.dataReceived" && decoded(e.Params, &d) && d.RequestID == rid("sse") && len(d.Data) > 0 {
			t.Errorf("the events come again: %s", d.Data)
		}
	}
	c.untilEvents(rid("sse"), "one", "two", "three")
	c.valid()

	// A stream that was left early has no body at all.
	m.net("orders", gen1, 70, network.TopicStart, network.Start{ID: "left", URL: "http://a.test/", Type: "fetch"})
	m.net("orders", gen1, 71, network.TopicResponse, network.Response{ID: "left", Status: 200, MIMEType: "text/event-stream", HasBody: true})
	m.net("orders", gen1, 72, network.TopicMessage, network.Message{ID: "left", Data: "last"})
	m.net("orders", gen1, 73, network.TopicEnd, network.End{ID: "left", Bytes: 12, Truncated: true, Redacted: true, Canceled: true})
	m.AddBody(responseBodyOf("left"), nil, subjects.BodyTruncated)
	later := dial(t, server, "dev")
	later.call("Network.enable", nil, nil)
	later.call("Network.streamResourceContent", map[string]any{"requestId": rid("left")}, &r)
	later.untilEvents(rid("left"), "last")
	if len(r.BufferedData) > 0 {
		t.Errorf("%q", r.BufferedData)
	}
	// One whose body is there has its events in it.
	later.call("Network.streamResourceContent", map[string]any{"requestId": rid("sse")}, &r)
	later.sync()
	if got := later.shownEvents(rid("sse")); len(got) > 0 || string(r.BufferedData) != "data: [redacted]" {
		t.Errorf("%q and the events %q", r.BufferedData, got)
	}
	later.valid()
}

// An event whose bytes are late is not told besides.
func TestEventsWhoseBytesComeAreToldOnce(t *testing.T) {
	m := shop(t)
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	c.call("Network.enable", nil, nil)
	m.net("orders", gen1, 50, network.TopicStart, network.Start{ID: "sse", URL: "http://a.test/", Type: "fetch"})
	m.net("orders", gen1, 51, network.TopicResponse, network.Response{ID: "sse", Status: 200, MIMEType: "text/event-stream", HasBody: true})
	var r streamResult
	c.call("Network.streamResourceContent", map[string]any{"requestId": rid("sse")}, &r)
	m.net("orders", gen1, 52, network.TopicMessage, network.Message{ID: "sse", Data: "one"})
	m.AddBody(responseBodyOf("sse"), []byte("data: one\n\n"), "")
	c.until(0, "the bytes", func(e received) bool {
		var d dataReceivedEvent
		return e.Method == "Network.dataReceived" && decoded(e.Params, &d) && d.RequestID == rid("sse") && string(d.Data) == "data: one\n\n"
	})
	m.net("orders", gen1, 53, network.TopicMessage, network.Message{ID: "sse", Data: "two"})
	m.net("orders", gen1, 60, network.TopicEnd, network.End{ID: "sse", Bytes: 11, Captured: 11})
	m.AddBody(responseBodyOf("sse"), nil, subjects.BodyComplete)
	c.event(0, "Network.loadingFinished", nil)
	if got := c.shownEvents(rid("sse")); len(got) > 0 {
		t.Errorf("told besides: %q", got)
	}
	c.valid()
}

func decoded(params json.RawMessage, into any) bool { return json.Unmarshal(params, into) == nil }
