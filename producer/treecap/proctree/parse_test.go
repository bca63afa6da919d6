package proctree

import (
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestParse(t *testing.T) {
	const trace = `goroutine 1 [running]:
main.main()
	/src/my app/main.go:12 +0x1d

goroutine 7 gp=0xc000 m=nil [select, 5 minutes, locked to thread]:
runtime.gopark(0xc0001, 0x2?)
	/go/src/runtime/proc.go:462 +0xce
net/http.(*persistConn).writeLoop(0xc0000be480)
	/go/src/net/http/transport.go:2600 +0xe7
created by net/http.(*Transport).dialConn in goroutine 51
	/go/src/net/http/transport.go:1950 +0x1785

goroutine 8 [chan receive (nil chan), 12 minutes]:
main.wait({0x1, 0x2}, ...)
	/src/my app/main.go:30 +0x2b
created by main.start.func1
	/src/my app/main.go:20 +0x44

goroutine 9 [IO wait (scan)]:
internal/poll.runtime_pollWait(0x7f, 0x72)
	/go/src/runtime/netpoll.go:351 +0x85
created by main.start.func1 in goroutine 1
	/src/my app/main.go:20

what is this?

goroutine x
goroutine 10 [
goroutine 11 []:

goroutine 12 [runnable]:

goroutine 13 [select]:
github.com/nats-io/nats%2ego.(*Conn).readLoop(0xc0001)
	/go/nats.go:10 +0x1
created by github.com/nats-io/nats%2ego.Options.Connect in goroutine 1
	/go/nats.go:20
`
	c := newCensus()
	c.parse([]byte(trace))
	for g, want := range map[group]summary{
		{"main", "", "running"}: {1, 0, map[string]int{"main.main": 1}},
		{"net/http.(*Transport).dialConn", "/go/src/net/http/transport.go:1950", "select"}: {1, 5 * time.Minute, map[string]int{"net/http.(*persistConn).writeLoop": 1}},
		{"main.start.func1", "/src/my app/main.go:20", "chan receive (nil chan)"}:          {1, 12 * time.Minute, map[string]int{"main.wait": 1}},
		{"main.start.func1", "/src/my app/main.go:20", "IO wait"}:                          {1, 0, map[string]int{"internal/poll.runtime_pollWait": 1}},
		{"github.com/nats-io/nats.go.Options.Connect", "/go/nats.go:20", "select"}:         {1, 0, map[string]int{"github.com/nats-io/nats.go.(*Conn).readLoop": 1}},
		{"main", "", "runnable"}: {1, 0, map[string]int{"": 1}},
	} {
		s := c.groups[g]
		if s == nil {
			t.Errorf("%v is missing", g)
			continue
		}
		if s.count != want.count || s.longest != want.longest || len(s.at) != 1 {
			t.Errorf("%v is %+v, want %+v", g, *s, want)
		}
		for f := range want.at {
			if s.at[f] != 1 {
				t.Errorf("%v is at %v, want %s", g, s.at, f)
			}
		}
	}
	if len(c.groups) != 6 {
		t.Errorf("%d groups: %v", len(c.groups), c.groups)
	}
}

// FuzzParse reads any text: nothing is counted that has no header, and names stay short and valid.
func FuzzParse(f *testing.F) {
	buf := make([]byte, 1<<20)
	f.Add(buf[:runtime.Stack(buf, true)])
	f.Add([]byte("goroutine 1 [a, 99999999999999 minutes]:\ncreated by \n\t +0x"))
	f.Add([]byte("goroutine 1 [\xff]:\n((\n\ngoroutine 2 [x]:\ncreated by a in goroutine \n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := newCensus()
		c.parse(data)
		total := c.other
		for g, s := range c.groups {
			total += s.count
			for _, text := range []string{g.site, g.loc, g.state, s.where()} {
				if len(text) > 3*maxName || !utf8.ValidString(text) {
					t.Fatalf("%q is in %v", text, g)
				}
			}
			if g.state == "" || s.count < 1 || s.longest < 0 || len(s.at) > mostFunctions {
				t.Fatalf("%v is %+v", g, *s)
			}
		}
		if n := strings.Count(string(data), "goroutine "); total > n {
			t.Fatalf("%d goroutines in a text that has %d", total, n)
		}
	})
}
