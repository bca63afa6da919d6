package cdpgw

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/source"
)

// keep makes the engine of a source tell a message to whoever enables Runtime.
func (w *world) keep(id subjects.SourceID, text string, wall float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.realms[id].kept = append(w.realms[id].kept, lineEvent(text, wall))
}

func lineEvent(text string, wall float64) string {
	return fmt.Sprintf(`{"type":"log","args":[{"type":"string","value":%q}],"executionContextId":1,"timestamp":%v}`, text, wall)
}

// lines are the texts of the console of a client, from its root and its children, in their order.
func (c *client) lines() (out []string) {
	all, _, _ := c.snapshot()
	for _, m := range all {
		if m.Method == "Runtime.consoleAPICalled" {
			var p consoleCalledEvent
			var text string
			_ = json.Unmarshal(m.Params, &p)
			_ = json.Unmarshal(p.Args[0].Value, &text)
			out = append(out, text)
		}
	}
	return out
}

// expect waits until the console has these lines and no others.
func (c *client) expect(what string, want ...string) {
	c.t.Helper()
	waitUntil(c.t, what, func() bool { return len(c.lines()) >= len(want) })
	c.sync()
	if got := c.lines(); !slices.Equal(got, want) {
		c.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// A child that is attached late adds what the root could not tell, and repeats nothing.
func TestLateChildRepeatsNothing(t *testing.T) {
	m, w, server := debugShop(t)
	for i := range maxChildren + 5 {
		id := subjects.SourceID(fmt.Sprint("n", i))
		w.start(id, gen1)
		m.open(id, gen1, source.Descriptor{Name: string(id), Kind: source.KindHost, Capabilities: engine})
	}
	const late = "n54"
	const origin = origin + 100.25
	m.open(late, gen2, source.Descriptor{Name: late, Kind: source.KindHost, Capabilities: engine, Origin: origin})
	w.start(late, gen2)
	for i, text := range []string{"first", "second"} {
		m.log(late, gen2, float64(i)+0.001, text)
		w.keep(late, text, origin+float64(i)+0.001)
	}
	c := dial(t, server, "dev")
	x := c.contexts()
	kids := c.attachAll()
	if kids[late] != "" {
		t.Fatal("the child is there at once")
	}
	c.expect("the root tells it", "from svc", "first", "second")
	w.keep(late, "third", origin+3)
	from := c.count()
	c.evaluate(x[late], "1")
	var e attachedToTargetEvent
	c.event(from, "Target.attachedToTarget", &e)
	c.inChild(e.SessionID, func() { c.call("Runtime.enable", nil, nil) })
	m.log(late, gen2, 3, "third")
	c.expect("the child adds what is new", "from svc", "first", "second", "third")
	// Live messages come whatever their time, since clocks are set back.
	w.emit(late, "runtime.consoleAPICalled", lineEvent("yesterday", origin-86_400_000))
	c.expect("and what comes", "from svc", "first", "second", "third", "yesterday")
	c.valid()
}

// natscope begins anew while a program goes on: the engine tells again what the
// client knows, from an earlier child or from records of the run before.
func TestNewGenerationOfALivingProgramRepeatsNothing(t *testing.T) {
	m, w, server := debugShop(t)
	const (
		origin                     = origin + 100.5
		gen3   subjects.Generation = "01h0000000000000000000000c"
	)
	begin := func(gen subjects.Generation, since float64) {
		w.start("node", gen)
		m.open("node", gen, source.Descriptor{Name: "node app", Kind: source.KindHost, Capabilities: engine, Realm: "v8:1", Origin: origin + since})
	}
	begin(gen2, 0)
	m.log("node", gen2, 1, "one")
	w.keep("node", "one", origin+1)
	c := dial(t, server, "dev")
	c.contexts()
	kid := c.attachAll()["node app"]
	c.inChild(kid, func() { c.call("Runtime.enable", nil, nil) })
	w.emit("node", "runtime.consoleAPICalled", lineEvent("two", origin+2))
	m.log("node", gen2, 2, "two")
	c.expect("one and two", "from node", "from svc", "one", "two")

	from := c.count()
	begin(gen3, 10)
	w.keep("node", "without a time", 0)
	for i, text := range []string{"one", "two", "three"} {
		m.Publish("node", gen3, subjects.PlaneConsole, record(float64(i)+1-10, console.TopicMessage, console.Message{Type: "log", Args: []json.RawMessage{encode(text)}, Again: true}))
		w.keep("node", text, origin+float64(i)+1)
	}
	var e attachedToTargetEvent
	c.event(from, "Target.attachedToTarget", &e)
	c.inChild(e.SessionID, func() { c.call("Runtime.enable", nil, nil) })
	c.expect("only three is new", "from node", "from svc", "one", "two", "without a time", "three")

	// Who comes now gets the records of the run before, and from the engine the rest.
	d := dial(t, server, "dev")
	d.contexts()
	kid = d.attachAll()["node app"]
	d.inChild(kid, func() { d.call("Runtime.enable", nil, nil) })
	d.expect("all of it once", "from node", "from svc", "one", "two", "without a time", "three")
	// And who has no children gets all from records.
	plain := dial(t, server, "dev")
	plain.contexts()
	plain.expect("all of it once, without children", "from node", "from svc", "one", "two", "three")
}
