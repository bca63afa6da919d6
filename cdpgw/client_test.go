package cdpgw

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/gorilla/websocket"
	"github.com/natscope/natscope/cdpgw/access"
	"github.com/natscope/natscope/subjects"
)

// patience is how long tests wait for what must come.
const patience = 10 * time.Second

// serve starts a gateway over a state on a real socket.
func serve(t testing.TB, state State, options ...func(*Options)) (*Gateway, *httptest.Server) {
	t.Helper()
	o := Options{State: state, Space: "dev"}
	for _, f := range options {
		f(&o)
	}
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(g.Handler())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := g.Close(ctx); err != nil {
			t.Error(err)
		}
		server.Close()
	})
	return g, server
}

// received is a message from the gateway.
type received struct {
	ID     int64           `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *protocolError  `json:"error"`
	// SessionID is set for what belongs to a child.
	SessionID ChildID `json:"sessionId"`
	raw       []byte
}

// client is a scripted DevTools.
type client struct {
	t    testing.TB
	ws   *websocket.Conn
	last int64
	// sent are the methods of the commands, by their ids.
	sent map[int64]string
	// in is the child to which commands go; empty for the root.
	in ChildID

	mu     sync.Mutex
	all    []received
	ended  error
	arrive chan struct{}
}

// dial connects to a target: "dev" or "dev/orders".
func dial(t testing.TB, server *httptest.Server, path string) *client {
	t.Helper()
	return dialPath(t, server, targetPath+path)
}

func dialPath(t testing.TB, server *httptest.Server, path string) *client {
	t.Helper()
	ws, resp, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(server.URL, "http")+path, nil)
	if err != nil {
		t.Fatalf("dial %s: %v (%v)", path, err, resp)
	}
	c := &client{t: t, ws: ws, sent: make(map[int64]string), arrive: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.read()
	}()
	t.Cleanup(func() {
		_ = ws.Close()
		<-done
	})
	return c
}

func (c *client) read() {
	for {
		_, raw, err := c.ws.ReadMessage()
		c.mu.Lock()
		if err != nil {
			c.ended = err
		} else {
			m := received{raw: raw}
			if err := json.Unmarshal(raw, &m); err != nil {
				c.t.Errorf("the gateway sent what is not JSON: %v: %.200s", err, raw)
			}
			c.all = append(c.all, m)
		}
		close(c.arrive)
		c.arrive = make(chan struct{})
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// snapshot returns what came so far, and a channel that closes when more comes.
func (c *client) snapshot() ([]received, <-chan struct{}, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[:len(c.all):len(c.all)], c.arrive, c.ended
}

// until waits for a message from position from on that f accepts, and returns it with its position.
func (c *client) until(from int, what string, f func(received) bool) (received, int) {
	c.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for i := from; ; {
		all, arrive, ended := c.snapshot()
		for ; i < len(all); i++ {
			if f(all[i]) {
				return all[i], i
			}
		}
		if ended != nil {
			c.t.Fatalf("the connection ended before %s: %v", what, ended)
		}
		select {
		case <-arrive:
		case <-deadline.C:
			c.t.Fatalf("no %s after %v; %d messages came, the last: %.300s", what, patience, len(all), tail(all))
		}
	}
}

func tail(all []received) []byte {
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1].raw
}

// write sends a raw message.
func (c *client) write(message string) {
	c.t.Helper()
	if err := c.ws.WriteMessage(websocket.TextMessage, []byte(message)); err != nil {
		c.t.Fatal(err)
	}
}

// send sends a command and returns its id.
func (c *client) send(method string, params any) int64 {
	c.t.Helper()
	c.last++
	c.sent[c.last] = method
	m := map[string]any{"id": c.last, "method": method, "params": params}
	if c.in != "" {
		m["sessionId"] = c.in
	}
	b, err := json.Marshal(m)
	if err != nil {
		c.t.Fatal(err)
	}
	c.write(string(b))
	return c.last
}

// inChild calls f with commands going to a child.
func (c *client) inChild(id ChildID, f func()) {
	c.in = id
	defer func() { c.in = "" }()
	f()
}

// do sends a command and returns its answer and the events that came from its sending to its answer.
func (c *client) do(method string, params any) (received, []received) {
	c.t.Helper()
	from := c.count()
	id := c.send(method, params)
	answer, at := c.until(from, "answer to "+method, func(m received) bool { return m.ID == id })
	all, _, _ := c.snapshot()
	return answer, all[from:at]
}

// call is do for a command that must succeed; the result is decoded into out, if that is not nil.
func (c *client) call(method string, params, out any) []received {
	c.t.Helper()
	answer, events := c.do(method, params)
	if answer.Error != nil {
		c.t.Fatalf("%s: %s", method, answer.Error.Message)
	}
	if out != nil {
		if err := json.Unmarshal(answer.Result, out); err != nil {
			c.t.Fatalf("%s: %v in %.300s", method, err, answer.Result)
		}
	}
	return events
}

// fails is do for a command that must fail.
func (c *client) fails(method string, params any, code code) *protocolError {
	c.t.Helper()
	answer, _ := c.do(method, params)
	if answer.Error == nil {
		c.t.Fatalf("%s succeeded: %s", method, answer.Result)
	}
	if answer.Error.Code != code {
		c.t.Fatalf("%s: code %d, want %d (%s)", method, answer.Error.Code, code, answer.Error.Message)
	}
	return answer.Error
}

// event waits for an event from position from on and decodes its parameters.
func (c *client) event(from int, method string, params any) int {
	c.t.Helper()
	m, at := c.until(from, method, func(m received) bool { return m.Method == method })
	if params != nil {
		if err := json.Unmarshal(m.Params, params); err != nil {
			c.t.Fatal(err)
		}
	}
	return at + 1
}

// count returns how many messages came so far.
func (c *client) count() int {
	all, _, _ := c.snapshot()
	return len(all)
}

// sync makes sure that everything queued so far has come.
func (c *client) sync() {
	c.t.Helper()
	c.call("Inspector.enable", nil, nil)
}

// methodsOf lists the methods of events.
func methodsOf(events []received) []string {
	out := make([]string, len(events))
	for i, e := range events {
		out[i] = e.Method
	}
	return out
}

// valid checks every event and every result that came against the protocol's
// definition, and the events against the types of cdproto.
func (c *client) valid() {
	c.t.Helper()
	all, _, _ := c.snapshot()
	for _, m := range all {
		if m.Method == "" {
			if method := c.sent[m.ID]; method != "" && m.Error == nil {
				for _, bad := range protocolOf(c.t).result(method, m.Result) {
					c.t.Errorf("the result of %s: %s: %.300s", method, bad, m.Result)
				}
			}
			continue
		}
		for _, bad := range protocolOf(c.t).event(m.Method, m.Params) {
			c.t.Errorf("%s: %.300s", bad, m.Params)
		}
		if !slices.Contains(protocolEvents, m.Method) {
			c.t.Errorf("%s is missing in /json/protocol", m.Method)
		}
		if _, err := cdproto.UnmarshalMessage(&cdproto.Message{Method: cdproto.MethodType(m.Method), Params: []byte(m.Params)}); err != nil {
			c.t.Errorf("%s is not what cdproto expects: %v: %.300s", m.Method, err, m.Params)
		}
	}
}

func TestHarness(t *testing.T) {
	_, server := serve(t, newMemory(t, subjects.Limits{}), func(o *Options) { o.Access = access.Policy{} })
	dial(t, server, "dev").sync()
	resp, err := http.Get(server.URL + "/json/version")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}
