package cdpgw

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
)

// Case A1: the burst with which DevTools opens a page target is answered
// completely and in order, and the events that belong to a command come before its answer.
func TestOpeningBurst(t *testing.T) {
	_, server := serve(t, shop(t))
	c := dial(t, server, "dev")
	raw, err := os.ReadFile("testdata/opening.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	names := make([]string, len(lines))
	for i, line := range lines {
		var cmd struct {
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		}
		if err := json.Unmarshal([]byte(line), &cmd); err != nil {
			t.Fatal(err)
		}
		names[i] = cmd.Method
		c.send(cmd.Method, cmd.Params)
	}
	c.until(0, "the last answer", func(m received) bool { return m.ID == int64(len(lines)) })
	all, _, _ := c.snapshot()
	next := int64(1)
	before := map[string][]string{}
	var events []string
	for _, m := range all {
		if m.ID == 0 {
			events = append(events, m.Method)
			continue
		}
		if m.ID != next {
			t.Fatalf("answer %d came where %d was due", m.ID, next)
		}
		next++
		name := names[m.ID-1]
		before[name], events = events, nil
		if m.Error != nil && (m.Error.Code != codeNotFound || m.Error.Message != "'"+name+"' wasn't found") && name != "DOM.resolveNode" && name != "DOM.getBoxModel" {
			t.Errorf("%s: %+v", name, m.Error)
		}
	}
	for name, want := range map[string]string{
		"Network.enable":        "Network.requestWillBeSent Network.responseReceived Network.dataReceived Network.loadingFinished",
		"Runtime.enable":        "Runtime.executionContextCreated Runtime.executionContextCreated Runtime.executionContextCreated Runtime.executionContextCreated Runtime.consoleAPICalled",
		"DOM.requestChildNodes": "",
		"Page.getResourceTree":  "",
		"DOM.enable":            "",
	} {
		if got := strings.Join(before[name], " "); got != want {
			t.Errorf("before the answer of %s: %s\nwant %s", name, got, want)
		}
	}
	c.valid()
}

func TestErrors(t *testing.T) {
	_, server := serve(t, shop(t))
	c := dial(t, server, "dev")
	for _, tc := range []struct {
		name, send string
		code       code
		message    string
		id         int64
	}{
		{"not JSON", `{"id":1,`, codeParse, "JSON: unexpected end of JSON input", 0},
		{"not an object", `[1]`, codeInvalidRequest, "Message must be an object: an array is not what was expected", 0},
		{"no id", `{"method":"DOM.enable"}`, codeInvalidRequest, "Message must have integer 'id' property", 0},
		{"id is text", `{"id":"1","method":"DOM.enable"}`, codeInvalidRequest, "Message must have integer 'id' property", 0},
		{"id is a fraction", `{"id":1.5,"method":"DOM.enable"}`, codeInvalidRequest, "Message must have integer 'id' property", 0},
		{"no method", `{"id":7}`, codeInvalidRequest, "Message must have string 'method' property", 7},
		{"method is a number", `{"id":8,"method":3}`, codeInvalidRequest, "Message must have string 'method' property", 8},
		{"unknown method", `{"id":9,"method":"Foo.bar"}`, codeNotFound, "'Foo.bar' wasn't found", 9},
		{"evaluation where nothing can evaluate", `{"id":10,"method":"Runtime.evaluate","params":{"expression":"1"}}`, codeServer, "This gateway only shows what sources recorded: it was started without a connection to them.", 10},
		{"bad params", `{"id":11,"method":"DOM.requestChildNodes","params":{"nodeId":"x"}}`, codeInvalidParams, "Invalid parameters", 11},
		{"params are a list", `{"id":12,"method":"DOM.requestChildNodes","params":[]}`, codeInvalidParams, "Invalid parameters", 12},
		{"unknown session", `{"id":13,"method":"DOM.enable","sessionId":"S"}`, codeSession, "Session with given id not found.", 13},
		{"domain error", `{"id":14,"method":"DOM.requestChildNodes","params":{"nodeId":99}}`, codeServer, "Could not find node with given id", 14},
	} {
		from := c.count()
		c.write(tc.send)
		m, _ := c.until(from, tc.name, func(m received) bool { return m.Error != nil })
		if m.Error.Code != tc.code || m.Error.Message != tc.message || m.ID != tc.id {
			t.Errorf("%s: id %d, %d %q, want id %d, %d %q", tc.name, m.ID, m.Error.Code, m.Error.Message, tc.id, tc.code, tc.message)
		}
	}
	c.sync()
}

// Case A4: unknown fields and values do no harm.
func TestUnknownFieldsAreIgnored(t *testing.T) {
	_, server := serve(t, shop(t))
	c := dial(t, server, "dev")
	c.call("Network.enable", map[string]any{"somethingNew": true}, nil)
	c.call("Overlay.setInspectMode", map[string]any{"mode": "aModeOfTheFuture"}, nil)
	c.sync()
}

// Case A12: two clients with the same ids at once get their own answers.
func TestConnectionsDoNotMix(t *testing.T) {
	_, server := serve(t, shop(t))
	a, b := dial(t, server, "dev"), dial(t, server, "dev")
	for range 50 {
		a.send("DOM.getDocument", nil)
		b.send("Page.getResourceTree", nil)
	}
	a.sync()
	b.sync()
	for name, x := range map[string]struct {
		c     *client
		field string
	}{"a": {a, `"root"`}, "b": {b, `"frameTree"`}} {
		all, _, _ := x.c.snapshot()
		for _, m := range all[:50] {
			if !strings.Contains(string(m.Result), x.field) {
				t.Fatalf("client %s got %.200s", name, m.raw)
			}
		}
	}
}

// Case I9: large commands are taken, up to 64 MiB. The largest that is not JSON is an error like any other.
func TestLargeMessages(t *testing.T) {
	_, server := serve(t, shop(t))
	c := dial(t, server, "dev")
	c.fails("Runtime.evaluate", map[string]string{"expression": strings.Repeat("x", 200<<10)}, codeServer)
	from := c.count()
	c.write(strings.Repeat("x", 10<<20))
	c.until(from, "error", func(m received) bool { return m.Error != nil && m.Error.Code == codeParse })
	if err := c.ws.WriteMessage(websocket.BinaryMessage, []byte(`{"id":77,"method":"DOM.enable"}`)); err != nil {
		t.Fatal(err)
	}
	c.until(from, "answer to a binary message", func(m received) bool { return m.ID == 77 })
}

// FuzzDispatch: no message ends a connection, and each gets exactly one answer.
func FuzzDispatch(f *testing.F) {
	for _, name := range []string{"DOM.getDocument", "DOM.requestChildNodes", "Runtime.getProperties", "DOM.performSearch", "Network.getResponseBody", "Page.enable"} {
		f.Add([]byte(`{"id":1,"method":"` + name + `","params":{"nodeId":1,"depth":-1,"objectId":"record:orders:1:2:-1","query":"<a","requestId":"orders.` + string(gen1) + `.r1"}}`))
	}
	f.Add([]byte(`{"id":1,"method":"DOM.pushNodeByPathToFrontend","params":{"path":"0,workspace,0,host"}}`))
	f.Add([]byte("\xff\x00"))
	g, err := New(Options{State: shop(f)})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = g.Close(f.Context()) })
	f.Fuzz(func(t *testing.T, message []byte) {
		s := offline(g, target{space: "dev"})
		s.handle([]byte(`{"id":1,"method":"DOM.getDocument"}`))
		s.handle([]byte(`{"id":2,"method":"Runtime.enable"}`))
		s.conn.queue.take()
		s.handle(message)
		s.conn.cancel()
		s.slow.Wait()
		out, _ := s.conn.queue.take()
		answers := 0
		for _, m := range out {
			var r received
			if err := json.Unmarshal(m.bytes(), &r); err != nil {
				t.Fatalf("not JSON: %q", m.bytes())
			}
			if r.Method == "" {
				answers++
			}
			if r.Method == "Inspector.detached" {
				t.Fatalf("%q ended the connection", message)
			}
		}
		if answers != 1 {
			t.Fatalf("%d answers to %q", answers, message)
		}
	})
}

// offline returns a session without a socket: what it sends stays in its queue.
func offline(g *Gateway, t target) *session {
	c := &conn{holds: func() bool { return true }, queue: newQueue(g.bounds)}
	c.ctx, c.cancel = context.WithCancel(g.ctx)
	return newSession(g, c, t)
}
