package cdpgw

import (
	"encoding/json"
	"testing"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
)

// A line says to which request and trace it belongs.
func TestLineOfARequest(t *testing.T) {
	m := shop(t)
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	m.get("orders", gen1, 1, "rq7", 201, "")
	for _, x := range []console.Message{
		{Type: "log", Request: "rq7", Trace: trace}, {Type: "log", Request: "rq7"}, {Type: "log", Trace: trace},
		{Type: "log", Request: "gone"}, {Type: "log", Trace: "rubbish"}, {Type: "table", Request: "rq7"},
	} {
		x.Args = []json.RawMessage{json.RawMessage(`"line"`)}
		m.Publish("orders", gen1, subjects.PlaneConsole, record(5, console.TopicMessage, x))
	}
	_, server := serve(t, m)
	c := dial(t, server, "dev/orders")
	var got []string
	var first ObjectID
	for _, e := range c.call("Runtime.enable", nil, nil) {
		var p consoleCalledEvent
		if e.Method != "Runtime.consoleAPICalled" || json.Unmarshal(e.Params, &p) != nil || string(p.Args[0].Value) != `"line"` {
			continue
		}
		text := ""
		if len(p.Args) > 1 {
			text = p.Args[1].Description
			if first == "" {
				first = p.Args[1].ObjectID
			}
		}
		got = append(got, text)
	}
	want := []string{"GET /rq7 201 · 4bf92f35", "GET /rq7 201", "4bf92f35", "", "", ""}
	if string(encode(got)) != string(encode(want)) {
		t.Fatalf("%q\nwant %q", got, want)
	}
	var props getPropertiesResult
	c.call("Runtime.getProperties", map[string]any{"objectId": first, "ownProperties": true}, &props)
	text := ""
	for _, p := range props.Result {
		text += p.Name + "=" + string(p.Value.Value) + " "
	}
	if want := `method="GET" url="http://api.test/rq7" status=201 request="rq7" trace="4bf92f3577b34da6a3ce929d0e0e4736" traceparent="` + trace + `" `; text != want {
		t.Errorf("%s\nwant %s", text, want)
	}
	c.call("Runtime.getProperties", map[string]any{"objectId": first, "accessorPropertiesOnly": true}, nil)
	for _, bad := range []string{"link:orders:999", "link:nobody:1", "link:orders:x", "link"} {
		c.fails("Runtime.getProperties", map[string]any{"objectId": bad}, codeServer)
	}
	c.valid()
}
