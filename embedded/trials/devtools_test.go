package trials

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// devTools is a scripted DevTools on one connection.
type devTools struct {
	t    testing.TB
	ws   *websocket.Conn
	last int64

	mu    sync.Mutex
	all   []message
	ended error
}

// message is an answer or an event.
type message struct {
	ID     int64           `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// dial opens a DevTools connection to a target of a gateway, such as "dev" or "dev/orders-1".
func dial(t testing.TB, gateway, target string) *devTools {
	t.Helper()
	ws, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(gateway, "http")+"/devtools/page/"+target, nil)
	if err != nil {
		t.Fatalf("dial %s: %v", target, err)
	}
	d := &devTools{t: t, ws: ws}
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.read()
	}()
	t.Cleanup(func() {
		_ = ws.Close()
		<-done
	})
	return d
}

func (d *devTools) read() {
	for {
		_, raw, err := d.ws.ReadMessage()
		var m message
		if err == nil {
			err = json.Unmarshal(raw, &m)
		}
		d.mu.Lock()
		if err != nil {
			d.ended = err
		} else {
			d.all = append(d.all, m)
		}
		d.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// send sends a command and returns its number.
func (d *devTools) send(method string, params any) int64 {
	d.t.Helper()
	d.last++
	if err := d.ws.WriteJSON(map[string]any{"id": d.last, "method": method, "params": params}); err != nil {
		d.t.Fatalf("%s: %v", method, err)
	}
	return d.last
}

// call sends a command and waits for its answer.
func (d *devTools) call(method string, params any) message {
	d.t.Helper()
	id := d.send(method, params)
	var answer message
	until(d.t, patience, "an answer to "+method, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.ended != nil {
			d.t.Fatalf("the connection ended before %s was answered: %v", method, d.ended)
		}
		for i := len(d.all) - 1; i >= 0; i-- {
			if d.all[i].ID == id {
				answer = d.all[i]
				return true
			}
		}
		return false
	})
	return answer
}

// events returns the parameters of all events of a name that came so far.
func (d *devTools) events(method string) (out []json.RawMessage) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.all {
		if m.Method == method {
			out = append(out, m.Params)
		}
	}
	return out
}

// lost says why the connection ended, nil while it lives.
func (d *devTools) lost() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ended
}

// logged is one line of the Console.
type logged struct {
	Text string
	Time float64
}

// console returns the lines that the Console shows.
func (d *devTools) console() (out []logged) {
	for _, raw := range d.events("Runtime.consoleAPICalled") {
		var e struct {
			Args []struct {
				Value       any    `json:"value"`
				Description string `json:"description"`
			} `json:"args"`
			Timestamp float64 `json:"timestamp"`
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			d.t.Fatal(err)
		}
		var words []string
		for _, a := range e.Args {
			if s, ok := a.Value.(string); ok {
				words = append(words, s)
			} else {
				words = append(words, a.Description)
			}
		}
		out = append(out, logged{strings.Join(words, " "), e.Timestamp})
	}
	return out
}

// listed is one row of /json/list.
type listed struct {
	ID, Title, URL       string
	WebSocketDebuggerURL string
}

// list fetches /json/list of a gateway.
func list(t testing.TB, gateway string) (out []listed) {
	t.Helper()
	c := http.Client{Timeout: 10 * time.Second}
	defer c.CloseIdleConnections()
	res, err := c.Get(gateway + "/json/list")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// rows returns the titles of the rows of one source.
func rows(t testing.TB, gateway, id string) (titles []string) {
	t.Helper()
	for _, e := range list(t, gateway) {
		if e.ID == "dev."+id {
			titles = append(titles, e.Title)
		}
	}
	return titles
}
