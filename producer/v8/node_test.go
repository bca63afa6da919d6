package v8

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/source"
)

// steered runs what a test writes to its standard input.
const steered = `require('node:readline').createInterface({input: process.stdin}).on('line', (l) => { (0, eval)(l); });
globalThis.require = require;
console.log('early', {a: 1, list: [1, 2, 3]});
`

func TestNodeIsASource(t *testing.T) {
	w := newWorld(t)
	p := node(t, 0, "shop.js", steered)
	w.attach(Options{Endpoints: []string{p.endpoint}})
	w.until("the source opens and tells what was logged before", func() bool {
		s := w.named("shop.js")
		return s != nil && strings.Contains(s.log(), `log "early" {a: 1, list: Array(3)}`)
	})
	w.mu.Lock()
	s := w.named("shop.js")
	d := s.life.Descriptor
	w.mu.Unlock()
	if d.PID != p.cmd.Process.Pid || d.Kind != source.KindHost || !strings.HasPrefix(d.Runtime, "node v") || d.URL != "file://"+filepath.Join(p.dir, "shop.js") || d.Hostname == "" {
		t.Errorf("descriptor %+v", d)
	}
	if want := "shop-js-test-" + strconv.Itoa(p.port()); !strings.HasPrefix(string(s.id), want) {
		t.Errorf("id %s, want %s…", s.id, want)
	}
	for _, c := range []struct{ js, want string }{
		{`console.warn('%s is', 'it', 10n, -0, NaN, undefined, null, Symbol('s'))`, `warning "%s is" "it" 10n -0 NaN undefined null Symbol(s)`},
		{`console.log({a: {b: {c: 1}}, d: new Date(0), e: /x/gi, f() {}, g: new Map([[1, {z: 1}]])})`, `log {a: {…}, d: 1970-01-01T00:00:00.000Z, e: /x/gi, f: ƒ f(), g: Map(1)}`},
		{`console.log(Object.fromEntries(Array.from({length: 9}, (_, i) => ['k' + i, i])))`, `log {k0: 0, k1: 1, k2: 2, k3: 3, k4: 4, …}`},
		{`console.log(new Map([['k', [1, 2]], [2, new Set([1])]]), new Set(['v', {q: 1}]))`, `log Map(2) {"k" => Array(2), 2 => Set(1)} Set(2) {"v", {…}}`},
		{`console.log([1, , 3], new Array(4), new Uint8Array(3), new ArrayBuffer(8))`, `log Array(3) [1, undefined, 3] Array(4) [undefined, undefined, undefined, undefined] Uint8Array(3) ArrayBuffer(8)`},
		{`console.log(new (class Point { x = 1; get y() { throw new Error('looked'); } })())`, `log Point {x: 1}`},
		{`console.error(new TypeError('bad\nthing'))`, `error TypeError: bad thing`},
		{`console.log(Array.from({length: 500}, (_, i) => i))`, `log Array(500) [0, 1, 2, 3, 4, …]`},
		{`console.log('x'.repeat(20000).length, new Proxy({}, {ownKeys() { throw 1 }}))`, `log 20000 Proxy(Object)`},
		{`console.table([{a: 1}]); console.assert(false, 'no'); console.count('c'); console.group('g')`, "table Array(1) [{…}]\nassert \"no\"\ncount \"c: 1\"\nstartGroup \"g\""},
	} {
		p.tell(c.js)
		w.until("the console has "+c.want+", instead of\n"+w.text("shop.js"), func() bool { return strings.Contains(s.log(), c.want) })
	}
	w.mu.Lock()
	last := s.console.Entries[len(s.console.Entries)-1]
	if len(last.Message.Stack) == 0 || last.Wall < float64(time.Now().Add(-time.Minute).UnixMilli()) || last.Wall > float64(time.Now().UnixMilli()+1000) {
		t.Errorf("the last message is %+v at %v", last.Message, last.Wall)
	}
	w.mu.Unlock()
	p.tell(`setTimeout(() => { throw new RangeError('out') })`)
	w.until("the exception is there", func() bool { return strings.Contains(s.log(), "Uncaught RangeError: out") })
	if code := p.exits(); code != 1 {
		t.Errorf("the program ended with %d: %s", code, p.errors())
	}
	w.until("the source says goodbye", func() bool { return s.life.Closed && s.life.Reason == "the program ended" })
}

// text is the console of a source.
func (w *world) text(name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.named(name); s != nil {
		return s.log()
	}
	return "no source"
}

// TestRestartKeepsTheID restarts a program on its port, and then one that was there before natscope.
func TestRestartKeepsTheID(t *testing.T) {
	w := newWorld(t)
	p := node(t, 0, "a.js", steered)
	w.attach(Options{Endpoints: []string{p.endpoint}})
	w.until("it opens", func() bool { return w.named("a.js") != nil })
	p.tell("process.exit(7)")
	if code := p.exits(); code != 7 {
		t.Errorf("exit code %d", code)
	}
	node(t, p.port(), "a.js", steered)
	w.until("it opens again", func() bool { return len(w.sources) == 1 && w.named("a.js").generations == 2 })
	w.until("its console is there", func() bool { return strings.Count(w.named("a.js").log(), "early") == 2 })
}

// TestNewNatscopeTellsNothingTwice ends natscope and starts another one while the
// program lives: what the engine tells again is there once, and what was logged
// meanwhile is there too.
func TestNewNatscopeTellsNothingTwice(t *testing.T) {
	w := newWorld(t)
	p := node(t, 0, "lasting.js", steered)
	o := Options{Endpoints: []string{p.endpoint}}
	say := func(text string) {
		t.Helper()
		p.tell("console.log('" + text + "'); console.error({" + text + ": 1}); console.table([1])")
		p.tell("console.warn('end of " + text + "'); process.stdout.write('said " + text + "\\n')")
		for line := range p.lines {
			if line == "said "+text {
				return
			}
		}
	}
	first := w.attach(o)
	w.until("it opens", func() bool { return w.named("lasting.js") != nil && w.named("lasting.js").says("early") })
	say("one")
	w.until("the first natscope tells", func() bool { return strings.Contains(w.named("lasting.js").log(), "end of one") })
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	say("two")
	w.attach(o)
	w.until("the second natscope tells what it missed", func() bool { return strings.Contains(w.named("lasting.js").log(), "end of two") })
	say("three")
	w.until("and what comes", func() bool { return strings.Contains(w.named("lasting.js").log(), "end of three") })
	w.mu.Lock()
	defer w.mu.Unlock()
	s, want := w.named("lasting.js"), []string{`log "early" {a: 1, list: Array(3)}`}
	for _, text := range []string{"one", "two", "three"} {
		want = append(want, `log "`+text+`"`, `error {`+text+`: 1}`, `table Array(1) [1]`, `warning "end of `+text+`"`)
	}
	var got []string
	for line := range strings.Lines(s.log()) {
		got = append(got, strings.TrimSpace(line))
	}
	if len(w.sources) != 1 || s.generations != 2 || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%d sources, %d generations, %d lines:\n%s\nwanted\n%s", len(w.sources), s.generations, len(got), strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestExitIsNotHeldUp sees that a program ends at once although it is observed.
func TestExitIsNotHeldUp(t *testing.T) {
	w := newWorld(t)
	p := node(t, 0, "short.js", steered)
	w.attach(Options{Endpoints: []string{p.endpoint}})
	w.until("it opens", func() bool { return w.named("short.js") != nil })
	p.tell(`console.log('last words'); process.exit(0)`)
	if code := p.exits(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	w.until("the last words are there", func() bool { s := w.named("short.js"); return s.life.Closed && strings.Contains(s.log(), "last words") })
}

func TestWorkerThreadsAreSources(t *testing.T) {
	w := newWorld(t)
	p := node(t, 0, "pool.js", steered)
	w.attach(Options{Endpoints: []string{p.endpoint}, HoldWorkers: true})
	w.until("it opens", func() bool { return w.named("pool.js") != nil })
	p.tell(`const {Worker} = require('node:worker_threads'); globalThis.ws = [1, 2].map((n) => new Worker('console.log("born"); setInterval(() => console.log("thread", ' + n + ', {x: [1]}), 50)', {eval: true, name: 'n' + n}))`)
	w.until("both threads are there", func() bool {
		a, b := w.named("pool.js [worker 1] n1"), w.named("pool.js [worker 2] n2")
		return a != nil && b != nil && strings.HasPrefix(a.log(), `log "born"`) && strings.Contains(a.log(), `log "thread" 1 {x: Array(1)}`) && strings.Contains(b.log(), `log "thread" 2`)
	})
	p.tell(`ws[0].terminate()`)
	w.until("one has gone", func() bool {
		return w.named("pool.js [worker 1] n1").life.Closed && !w.named("pool.js [worker 2] n2").life.Closed
	})
	p.tell(`process.exit(0)`)
	if code := p.exits(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	w.until("all are gone", func() bool { return w.named("pool.js [worker 2] n2").life.Closed && w.named("pool.js").life.Closed })
}

func TestNodeNetwork(t *testing.T) {
	w := newWorld(t)
	p := node(t, 0, "net.js", steered, "--experimental-network-inspection")
	w.attach(Options{Endpoints: []string{p.endpoint}})
	w.until("it opens", func() bool { return w.named("net.js") != nil })
	p.tell(`const http = require('node:http'); const s = http.createServer((q, r) => r.end('hi')).listen(0, '127.0.0.1', () => { http.get('http://127.0.0.1:' + s.address().port + '/x?y=1', (r) => { r.resume(); http.get('http://127.0.0.1:1/').on('error', () => console.log('refused')) }) })`)
	w.until("both requests ended", func() bool {
		s := w.named("net.js")
		return len(s.net.Requests) == 2 && s.net.Requests[0].Ending == network.Finished && s.net.Requests[1].Ending == network.Failed
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.named("net.js").net.Requests[0]
	if !strings.HasSuffix(r.Start.Value.URL, "/x?y=1") || strings.Count(r.Start.Value.URL, ":") != 2 || r.Response.Value.Status != 200 || r.EndedAt < r.Start.T {
		t.Errorf("%+v, %+v", r.Start, r.Response)
	}
}

// TestDirectory attaches to what files name.
func TestDirectory(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	w.attach(Options{Directory: dir})
	p := node(t, 0, "filed.js", steered)
	if err := os.WriteFile(filepath.Join(dir, "1"), []byte("ws://"+p.endpoint+"/x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.until("it opens", func() bool {
		s := w.named("filed.js")
		return s != nil && strings.HasPrefix(string(s.id), "filed-js-test")
	})
	q := node(t, 0, "filed.js", steered)
	if err := os.WriteFile(filepath.Join(dir, "2"), []byte(q.endpoint), 0o600); err != nil {
		t.Fatal(err)
	}
	w.until("another one of that name opens beside it", func() bool { return len(w.sources) == 2 })
}

// TestFloodOfMessages logs faster than records can be made, and sees that the
// program is not kept waiting and that what is missing is counted.
func TestFloodOfMessages(t *testing.T) {
	w := newWorld(t)
	p := node(t, 0, "flood.js", steered)
	w.attach(Options{Endpoints: []string{p.endpoint}})
	w.until("it opens", func() bool { return w.named("flood.js") != nil })
	p.tell(`for (let i = 0; i < 2000; i++) console.debug({i, text: 'x'.repeat(200), deep: {a: {b: 1}}}); console.log('done')`)
	w.until("the last message is there", func() bool { return w.named("flood.js").says("done") })
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.named("flood.js").console.Entries); n < 500 {
		t.Errorf("of 2000 messages %d are there", n)
	}
}
