package v8

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/tree"
)

// everything is what natscope puts into programs that people run with it.
var everything = Inject{Network: true, Cordis: true}

// packages is where the packages of the JavaScript client are, Cordis among them.
func packages(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs("../client/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "@deepseek-ai/cordis")); err != nil {
		t.Fatalf("this test needs the packages of the client; run npm ci in producer/client: %v", err)
	}
	return dir
}

// run runs a program as natscope run does, with the packages of the client beside it.
func (w *world) run(name, script string, o Options) *program {
	w.t.Helper()
	n, err := NewNursery(10 * time.Second)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = n.Close() })
	o.Directory, o.Attached, o.HoldWorkers = n.Directory(), n.Attached, true
	w.attach(o)
	dir := w.t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Symlink(packages(w.t), filepath.Join(dir, "node_modules")); err != nil {
		w.t.Fatal(err)
	}
	p := &program{t: w.t, cmd: exec.Command("node", filepath.Join(dir, name)), dir: dir, lines: make(chan string, 1024), done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stderr = dir, n.Environ(os.Environ()), &errorsOf{p}
	p.stdin, _ = p.cmd.StdinPipe()
	stdout, _ := p.cmd.StdoutPipe()
	if err := p.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		for s := bufio.NewScanner(stdout); s.Scan(); {
			select {
			case p.lines <- s.Text():
			default: // nobody reads
			}
		}
		_ = p.cmd.Wait()
		p.code = p.cmd.ProcessState.ExitCode()
		close(p.done)
	}()
	w.t.Cleanup(p.kill)
	return p
}

// errorsOf writes what a program writes to its standard error.
type errorsOf struct{ p *program }

func (e *errorsOf) Write(b []byte) (int, error) {
	e.p.mu.Lock()
	defer e.p.mu.Unlock()
	return e.p.stderr.Write(b)
}

// said returns the next line of the program.
func (p *program) said() string {
	p.t.Helper()
	select {
	case l := <-p.lines:
		return l
	case <-time.After(20 * time.Second):
		p.t.Fatalf("the program says nothing; its errors: %s", p.errors())
		return ""
	}
}

// request finds a request of a source by a part of its address; the caller holds mu.
func (s *seen) request(part string, in bool) *network.Request {
	for _, r := range s.net.Requests {
		if strings.Contains(r.Start.Value.URL, part) && in == (r.Start.Value.Direction == network.Incoming) {
			return r
		}
	}
	return nil
}

// body is what was kept of a body; the caller holds mu.
func (s *seen) body(r *network.Request, d subjects.Direction) string {
	return s.bodies[r.Generation+"."+string(r.Start.Value.ID)+"."+string(d)]
}

// server answers every path, and asks another one by fetch and by http.
const server = `
import http from 'node:http';
const upstream = process.env.UPSTREAM;
const posted = () => new Promise((resolve, reject) => {
	const req = http.request(upstream + '/by-http', { method: 'POST', headers: { 'content-type': 'text/plain' } }, res => {
		let text = '';
		res.on('data', d => { text += d; }).on('end', () => resolve(text));
	}).on('error', reject);
	req.end('question');
});
const s = http.createServer(async (req, res) => {
	let body = '';
	for await (const d of req) body += d;
	const [a, b] = [await (await fetch(upstream + '/by-fetch', { headers: { authorization: 'Bearer hush' } })).text(), await posted()];
	res.setHeader('content-type', 'text/plain');
	res.write(a + ' ');
	res.end(b + ' ' + body);
}).listen(0, '127.0.0.1', () => console.log(s.address().port));
process.stdin.on('data', () => { s.closeAllConnections(); s.close(); process.stdin.destroy(); });
`

func upstream(t *testing.T) string {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "answer to %s", r.URL.Path) }))
	t.Cleanup(up.Close)
	return up.URL
}

// ask posts to the program and returns what it answers.
func post(t *testing.T, port, path, body string) string {
	t.Helper()
	res, err := http.Post("http://127.0.0.1:"+port+path, "text/plain", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var b strings.Builder
	_, _ = fmt.Fprint(&b, res.StatusCode, " ")
	for s := bufio.NewScanner(res.Body); s.Scan(); {
		b.WriteString(s.Text())
	}
	return b.String()
}

// TestRequestsOfAProgramThatDoesNotKnow sees what a program asks and answers, with bodies.
func TestRequestsOfAProgramThatDoesNotKnow(t *testing.T) {
	w := newWorld(t)
	t.Setenv("UPSTREAM", upstream(t))
	p := w.run("api.mjs", server, Options{Inject: Inject{Network: true, Redact: true}})
	port := p.said()
	if got := post(t, port, "/order?id=7", "seven"); got != "200 answer to /by-fetch answer to /by-http seven" {
		t.Errorf("the program answers %q", got)
	}
	w.until("all three requests ended, and what they answered is there", func() bool {
		s := w.named("api.mjs")
		if s == nil {
			return false
		}
		n := 0
		for _, r := range s.net.Requests {
			// Bodies travel on their own, in pieces, and may come after the end.
			if body := s.body(r, subjects.ResponseBody); r.Ending == network.Finished && (strings.HasSuffix(body, "seven") || r.Start.Value.Direction != network.Incoming && body != "") {
				n++
			}
		}
		return n == 3
	})
	w.mu.Lock()
	s := w.named("api.mjs")
	in, byFetch, byHTTP := s.request("/order?id=7", true), s.request("/by-fetch", false), s.request("/by-http", false)
	if in == nil || byFetch == nil || byHTTP == nil {
		w.mu.Unlock()
		t.Fatalf("%s", w.dump())
	}
	for _, c := range []struct {
		r        *network.Request
		req, res string
	}{{in, "seven", "answer to /by-fetch answer to /by-http seven"}, {byFetch, "", "answer to /by-fetch"}, {byHTTP, "question", "answer to /by-http"}} {
		if got, want := s.body(c.r, subjects.RequestBody)+"|"+s.body(c.r, subjects.ResponseBody), c.req+"|"+c.res; got != want {
			t.Errorf("%s has the bodies %q, want %q", c.r.Start.Value.URL, got, want)
		}
		if c.r.Response.Value.Status != 200 || c.r.EndedAt < c.r.Start.T || c.r.Start.T < 0 || c.r.Start.T > 60_000 {
			t.Errorf("%s: %+v from %v to %v", c.r.Start.Value.URL, c.r.Response.Value, c.r.Start.T, c.r.EndedAt)
		}
	}
	if !strings.HasPrefix(in.Start.Value.Client, "127.0.0.1:") || in.Start.Value.Method != "POST" {
		t.Errorf("the incoming request is %+v", in.Start.Value)
	}
	if text := fmt.Sprint(byFetch.Start.Value.Headers); !strings.Contains(text, "Bearer [redacted]") || strings.Contains(text, "hush") {
		t.Errorf("headers %s", text)
	}
	if len(byHTTP.Start.Value.Stack) == 0 || !strings.HasSuffix(byHTTP.Start.Value.Stack[0].URL, "/api.mjs") && !strings.HasPrefix(byHTTP.Start.Value.Stack[0].URL, "node:") {
		t.Errorf("stack %+v", byHTTP.Start.Value.Stack)
	}
	if len(w.sources) != 1 {
		t.Errorf("%d sources, want one for the process", len(w.sources))
	}
	w.mu.Unlock()
	p.tell("end")
	if code := p.exits(); code != 0 {
		t.Errorf("the program ends with %d: %s", code, p.errors())
	}
}

// cordisHost is a program that uses Cordis and does not know of natscope.
const cordisHost = `
import { Context } from '@deepseek-ai/cordis';
import { createInterface } from 'node:readline';
const root = new Context();
await root.plugin({ name: 'shop', apply(ctx) { ctx.plugin({ name: 'cart', apply() {} }); } });
globalThis.root = root;
globalThis.AsContext = class Context { own = 1; };
console.log('ready');
createInterface({ input: process.stdin }).on('line', l => { (0, eval)(l); });
`

// nodes counts the nodes of a tree by name; the caller holds mu.
func (s *seen) nodes() string {
	n := map[string]int{}
	if s.tree.Root != nil {
		s.tree.Root.Walk(func(e *tree.Entry) bool { n[e.Name]++; return true })
	}
	return fmt.Sprint(n)
}

// TestCordisOfAProgramThatDoesNotKnow shows the tree of a runtime, whose nodes are objects of the session.
func TestCordisOfAProgramThatDoesNotKnow(t *testing.T) {
	for name, start := range map[string]func(*world) *program{
		"natscope run": func(w *world) *program { return w.run("host.mjs", cordisHost, Options{Inject: everything}) },
		"natscope attach": func(w *world) *program {
			p := node(w.t, 0, "host.mjs", strings.Replace(cordisHost, "'@deepseek-ai/cordis'", "'"+packages(w.t)+"/@deepseek-ai/cordis/lib/index.js'", 1))
			p.said()
			w.attach(Options{Endpoints: []string{p.endpoint}, Inject: everything})
			return p
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p := start(w)
			w.until("the tree is there", func() bool { s := w.named("host.mjs"); return s != nil && s.nodes() == "map[Context:3 Fiber:2]" })
			a := newOffice(w).ask("host.mjs")
			a.do("runtime.enable", "{}")
			w.mu.Lock()
			top := w.named("host.mjs").tree.Root.ID
			w.mu.Unlock()
			if out := a.do("tree.resolve", fmt.Sprintf(`{"id":%d}`, top)); !strings.Contains(out, `"subtype":"node"`) {
				t.Errorf("the root resolves to %s", out)
			}
			out := a.do("runtime.evaluate", `{"expression":"root"}`)
			if !strings.Contains(out, `"subtype":"node"`) {
				t.Errorf("root is %s", out)
			}
			_, id, _ := strings.Cut(out, `"objectId":"`)
			id, _, _ = strings.Cut(id, `"`)
			if out := a.do("tree.nodeOf", `{"objectId":"`+id+`"}`); out != fmt.Sprintf(`{"id":%d}`, top) {
				t.Errorf("root is the node %s, want %d", out, top)
			}
			if out := a.do("runtime.evaluate", `{"expression":"new AsContext"}`); strings.Contains(out, "node") {
				t.Errorf("another class is %s", out)
			}
			a.do("tree.inspected", fmt.Sprintf(`{"id":%d}`, top))
			if out := a.eval("$0 === root", `,"includeCommandLineAPI":true`); out != "true" {
				t.Errorf("$0 === root is %s", out)
			}
			if out := a.eval("'$0' in globalThis || Object.keys(globalThis).some(k => k.includes('natscope'))", ""); out != "false" {
				t.Errorf("something is left in the program: %s", out)
			}
			a.do("debugger.enable", "{}")
			a.do("runtime.evaluate", `{"expression":"1+1//# sourceURL=mark.js"}`)
			for seen := 0; ; seen++ {
				data := a.wait("debugger.scriptParsed", func(string) bool { return true })
				if strings.Contains(data, "natscope:") || strings.Contains(data, "preload.cjs") {
					t.Errorf("a session is told of %.200s", data)
				}
				if strings.Contains(data, "mark.js") {
					break
				}
			}
			if errors := p.errors(); strings.Contains(errors, "Warning") {
				t.Errorf("the program's errors are %s", errors)
			}
			p.tell(`root.plugin({ name: 'later', apply() {} })`)
			w.until("the new plugin is there", func() bool { return w.named("host.mjs").nodes() == "map[Context:4 Fiber:3]" })
		})
	}
}

// patched tells in a program whether anything of it is another's.
const patched = `
import http from 'node:http';
import { createInterface } from 'node:readline';
const own = [fetch, Symbol.for, http.ServerResponse.prototype.write, http.ServerResponse.prototype.end, Object.getOwnPropertyDescriptor(Response.prototype, 'body').get, Response.prototype.text];
createInterface({ input: process.stdin }).on('line', () => {
	const now = [fetch, Symbol.for, http.ServerResponse.prototype.write, http.ServerResponse.prototype.end, Object.getOwnPropertyDescriptor(Response.prototype, 'body').get, Response.prototype.text];
	console.log(now.every((f, i) => f === own[i]) && !(Symbol.for('natscope.port') in globalThis));
});
console.log('ready');
`

// TestDetachingPutsEverythingBack takes out what was put into a program, when natscope says goodbye.
func TestDetachingPutsEverythingBack(t *testing.T) {
	w := newWorld(t)
	p := node(t, 0, "kept.mjs", patched)
	p.said()
	a := w.attach(Options{Endpoints: []string{p.endpoint}, Inject: everything})
	w.until("it opens", func() bool { return w.named("kept.mjs") != nil })
	p.tell("?")
	if got := p.said(); got != "false" {
		t.Errorf("nothing is in the program: %s", got)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := a.Close(ctx); err != nil {
		t.Fatal(err)
	}
	w.until("everything is as it was", func() bool { p.tell("?"); return p.said() == "true" })
	if out := p.errors(); strings.Contains(out, "Error") || strings.Contains(out, "Warning") {
		t.Errorf("the program's errors are %s", out)
	}
}

// TestNothingIsInjectedUnlessWanted leaves a program as it is, and one that refuses stays as it is.
func TestNothingIsInjectedUnlessWanted(t *testing.T) {
	w := newWorld(t)
	plain, frozen := node(t, 0, "plain.mjs", patched), node(t, 0, "frozen.mjs", "Object.freeze(Symbol); Object.freeze(globalThis); console.log('ready'); setInterval(() => console.log('runs'), 50)")
	plain.said()
	frozen.said()
	w.attach(Options{Endpoints: []string{plain.endpoint}})
	w.attach(Options{Endpoints: []string{frozen.endpoint}, Inject: everything})
	w.until("they open", func() bool { return w.named("plain.mjs") != nil && w.named("frozen.mjs") != nil })
	plain.tell("?")
	if got := plain.said(); got != "true" {
		t.Errorf("something is in the program: %s", got)
	}
	w.until("the frozen one runs and is observed", func() bool { return strings.Contains(w.named("frozen.mjs").log(), "runs") })
	if out := frozen.errors(); strings.Contains(out, "Error") {
		t.Errorf("the program's errors are %s", out)
	}
}

// TestRequestsOfAWorkerThread: each thread is a source of its own.
func TestRequestsOfAWorkerThread(t *testing.T) {
	w := newWorld(t)
	t.Setenv("UPSTREAM", upstream(t))
	w.run("pool.mjs", `
import { Worker } from 'node:worker_threads';
new Worker("fetch(process.env.UPSTREAM + '/from-thread').then(r => r.text()).then(t => { console.log(t); setTimeout(() => {}, 60000); })", { eval: true });
`, Options{Inject: everything})
	w.until("the request of the thread ended", func() bool {
		for _, s := range w.sources {
			if strings.HasPrefix(s.life.Descriptor.Name, "pool.mjs [worker") {
				r := s.request("/from-thread", false)
				return r != nil && r.Ending == network.Finished && s.body(r, subjects.ResponseBody) == "answer to /from-thread"
			}
		}
		return false
	})
}

// TestFloodOfRequestsIsBounded: a program that asks without end goes on, and each request is told, or counted as left out.
func TestFloodOfRequestsIsBounded(t *testing.T) {
	const requests = 10_000 // at once, which is more than the client keeps
	w := newWorld(t)
	p := w.run("flood.mjs", fmt.Sprintf(`
let n = 0;
const one = async () => { try { await (await fetch('data:text/plain,hello')).text(); } catch (e) { console.log(e.message); process.exit(3); } n++; };
await Promise.all(Array.from({ length: %d }, one));
await (await fetch('data:text/plain,last')).text();
console.log('done ' + n);
process.stdin.on('data', () => process.exit(0));
`, requests), Options{Inject: everything})
	w.patiently("the last request ended", func() bool {
		s := w.named("flood.mjs")
		r := (*network.Request)(nil)
		if s != nil {
			r = s.request("plain,last", false)
		}
		return r != nil && r.Ending == network.Finished
	})
	if got, want := p.said(), fmt.Sprint("done ", requests); got != want {
		t.Errorf("the program says %q, want %q", got, want)
	}
	w.mu.Lock()
	started, dropped := w.named("flood.mjs").started, w.named("flood.mjs").dropped
	w.mu.Unlock()
	t.Logf("%d requests were told, %d records dropped", started, dropped)
	if dropped == 0 || started+int(dropped) <= requests {
		t.Errorf("of %d requests %d were told, and %d records left out", requests+1, started, dropped)
	}
	// Node falls over answers that it still has for a connection that was closed.
	p.tell("end")
	if code := p.exits(); code != 0 {
		t.Errorf("it ends with %v: %s", p.cmd.ProcessState, p.errors())
	}
}

// TestLargeCommands: inspectors of Node hang up when a command comes in several frames.
func TestLargeCommands(t *testing.T) {
	w := newWorld(t)
	p := node(t, 0, "large.js", steered)
	w.attach(Options{Endpoints: []string{p.endpoint}})
	a := newOffice(w).ask("large.js")
	for _, n := range []int{10, 130, 20_000, 70_000, 600_000} {
		if got := a.eval("'"+strings.Repeat("x", n)+"'.length", ""); got != fmt.Sprint(n) {
			t.Errorf("a text of %d bytes has the length %s", n, got)
		}
	}
}
