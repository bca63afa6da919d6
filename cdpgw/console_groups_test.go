package cdpgw

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/source"
)

// consoleLines returns type and first argument of the console events that a client got, or that it gets by asking.
func consoleLines(t *testing.T, events []received) string {
	t.Helper()
	var lines []string
	for _, e := range events {
		if e.Method != "Runtime.consoleAPICalled" {
			continue
		}
		var p consoleCalledEvent
		if err := json.Unmarshal(e.Params, &p); err != nil {
			t.Fatal(err)
		}
		line := p.Type
		if len(p.Args) > 0 {
			line += " " + string(p.Args[0].Value)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, ", ")
}

// A group that one source leaves open must not indent, or hide, what the others
// say; the source's own target keeps its groups, as long as its generation lives.
func TestOpenGroupOfOneSource(t *testing.T) {
	m := newMemory(t, subjects.Limits{})
	m.open("page", gen1, source.Descriptor{Name: "page", Kind: source.KindClient})
	m.open("orders", gen1, source.Descriptor{Name: "orders"})
	_, server := serve(t, m)
	all, one := dial(t, server, "dev"), dial(t, server, "dev/page")
	all.call("Runtime.enable", nil, nil)
	one.call("Runtime.enable", nil, nil)

	group := func(at float64, kind string, args ...json.RawMessage) {
		m.Publish("page", gen1, subjects.PlaneConsole, record(at, console.TopicMessage, console.Message{Type: kind, Args: args}))
	}
	group(10, "startGroup", json.RawMessage(`"cart"`))
	m.log("page", gen1, 11, "in the group")
	m.log("orders", gen1, 12, "beside it")
	group(13, "startGroupCollapsed")
	group(14, "endGroup")
	m.open("page", gen2, source.Descriptor{Name: "page", Kind: source.KindClient})
	m.log("page", gen2, 15, "after the reload")
	all.sync()
	one.sync()

	shared := `log "▾ cart", log "in the group", log "beside it", log "▾ ", log "after the reload"`
	own := `startGroup "cart", log "in the group", startGroupCollapsed, endGroup, endGroup, log "after the reload"`
	for _, c := range []struct {
		name   string
		client *client
		target string
		want   string
	}{{"space", all, "dev", shared}, {"source", one, "dev/page", own}} {
		live, _, _ := c.client.snapshot()
		if got := consoleLines(t, live); got != c.want {
			t.Errorf("%s, live:\n got %s\nwant %s", c.name, got, c.want)
		}
		if got := consoleLines(t, dial(t, server, c.target).call("Runtime.enable", nil, nil)); got != c.want {
			t.Errorf("%s, replayed:\n got %s\nwant %s", c.name, got, c.want)
		}
		c.client.valid()
	}
}
