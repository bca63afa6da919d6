package v8

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/subjects/realm"
)

// denoProgram is a program in TypeScript with a worker. It does what it is told on standard input.
const denoProgram = `interface Order { id: number; total: number }
const ticks = { n: 0 };
function price(order: Order): number {
  const tax = order.total * 0.19;
  return order.total + tax;
}
console.log("early", { a: 1, list: [1, 2, 3] });
const worker = new Worker(new URL("./thread.ts", import.meta.url), { type: "module" });
Object.assign(globalThis, { ticks, worker });
setInterval(() => { price({ id: ++ticks.n, total: 100 }); }, 20);
const decoder = new TextDecoder();
(async () => { for await (const chunk of Deno.stdin.readable) (0, eval)(decoder.decode(chunk)); })();
`

const denoThread = `let k = 0;
setInterval(() => { k++; (globalThis as any).k = k; if (k % 20 === 0) console.log("thread", { k }); }, 20);
`

// denoBinary is the Deno of the npm package.
func denoBinary(t testing.TB) string {
	t.Helper()
	found, _ := filepath.Glob("testdata/deno/node_modules/@deno/*/deno")
	if len(found) != 1 {
		t.Fatal("these tests need Deno: run npm ci in producer/v8/testdata/deno")
	}
	bin, err := filepath.Abs(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// denoFiles writes the program and returns its directory.
func denoFiles(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"shop.ts": denoProgram, "thread.ts": denoThread} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestDeno attaches to a program in Deno and its worker: console, evaluation,
// breakpoints, and the end.
func TestDeno(t *testing.T) {
	began := float64(time.Now().UnixMilli())
	w := newWorld(t)
	p := launch(t, denoFiles(t), denoBinary(t), []string{"run", "-A", "--inspect=127.0.0.1:0", "shop.ts"}, nil)
	w.attach(Options{Endpoints: []string{p.endpoint}})
	w.patiently("both are there, with what they logged", func() bool {
		s, th := w.named("shop.ts"), w.named("shop.ts worker [1]")
		return s != nil && th != nil && strings.Contains(s.log(), `log "early" {a: 1, list: Array(3)}`) && strings.Contains(th.log(), `log "thread" {k: `)
	})
	w.mu.Lock()
	s := w.named("shop.ts")
	if d := s.life.Descriptor; !strings.HasPrefix(d.Runtime, "Deno 2") || s.console.Entries[0].Wall < began {
		t.Errorf("%+v, logged at %v", d, s.console.Entries[0].Wall)
	}
	w.mu.Unlock()
	p.tell(`console.warn('told', new Map([[1, {x: 2}]]))`)
	w.until("a later message is there", func() bool { return strings.Contains(s.log(), `warning "told" Map(1) {1 => {…}}`) })

	o := newOffice(w)
	a := o.ask("shop.ts")
	a.do("runtime.enable", "")
	a.wait("runtime.consoleAPICalled", func(data string) bool {
		var m struct{ Timestamp float64 }
		return strings.Contains(data, `"early"`) && json.Unmarshal([]byte(data), &m) == nil && m.Timestamp > began
	})
	if got := a.eval("ticks.n > 0", "") + a.eval("await 1, 'later'", `,"replMode":true,"awaitPromise":true`); got != "truelater" {
		t.Error(got)
	}
	if _, err := a.try("runtime.evaluate", `{"expression":"for(;;);","timeout":300}`); err == nil {
		t.Error("an endless loop ended")
	}
	// The worker is evaluated in, by two sessions, and has no debugger.
	th, th2 := o.askOnly("shop.ts worker [1]", "runtime.evaluate"), o.askOnly("shop.ts worker [1]", "runtime.evaluate")
	before := th.eval("k", "")
	natstest.Until(t, "the worker runs", func() bool { return th2.eval("k", "") != before })
	if _, err := th.try("debugger.enable", ""); !errors.Is(err, realm.ErrUnsupported) {
		t.Errorf("a debugger of a worker of Deno: %v", err)
	}
	a.do("debugger.enable", "")
	a.do("debugger.setAsyncCallStackDepth", `{"maxDepth":8}`)
	var r struct{ Locations []any }
	out := a.do("debugger.setBreakpointByUrl", fmt.Sprintf(`{"urlRegex":"shop\\.ts$","lineNumber":%d}`, line(denoProgram, "const tax")))
	if err := json.Unmarshal([]byte(out), &r); err != nil || len(r.Locations) != 1 {
		t.Fatalf("the breakpoint is %s", out)
	}
	at := a.paused()
	if f := at.CallFrames[0]; f.FunctionName != "price" {
		t.Errorf("paused in %s", at.at())
	}
	// What Deno runs has other lines than what was written; DevTools reads the map that it has inside.
	for tries := 0; ; tries++ {
		got := described(t, a.do("debugger.evaluateOnCallFrame", fmt.Sprintf(`{"callFrameId":%q,"expression":"order.total + tax"}`, at.CallFrames[0].CallFrameID)))
		if got == "119" {
			break
		}
		if tries == 3 {
			t.Fatal(got)
		}
		a.do("debugger.stepOver", "")
		at = a.paused()
	}
	// Closing the session resumes the program.
	o.sessions.CloseSession(a.id)
	b := o.ask("shop.ts")
	before = b.eval("ticks.n", "")
	natstest.Until(t, "it runs on", func() bool { return b.eval("ticks.n", "") != before })
	before = th.eval("k", "")
	natstest.Until(t, "the worker is heard again", func() bool { return th.eval("k", "") != before })
	p.tell("Deno.exit(4)")
	if code := p.exits(); code != 4 {
		t.Errorf("exit code %d", code)
	}
	w.until("both are gone", func() bool { return s.life.Closed && w.named("shop.ts worker [1]").life.Closed })
	if _, err := b.try("runtime.evaluate", `{"expression":"1"}`); !errors.Is(err, realm.ErrGone) {
		t.Error(err)
	}
}

// TestRunOfDeno runs Deno as natscope run does: with all permissions it is seen
// from its first line on, and without it runs as ever.
func TestRunOfDeno(t *testing.T) {
	w := newWorld(t)
	n, err := NewNursery(20 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	w.attach(Options{Directory: n.Directory(), Attached: n.Attached})
	dir := t.TempDir()
	for _, name := range []string{"seen.ts", "unseen.ts"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(`const name: string = "first words"; console.log(name); Deno.exit(3);`), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"run", "-A", "seen.ts"}, {"run", "unseen.ts"}} {
		p := launch(t, dir, denoBinary(t), args, n.Environ(os.Environ()))
		if code := p.exits(); code != 3 {
			t.Errorf("%v: exit code %d: %s", args, code, p.errors())
		}
		if line := <-p.lines; line != "first words" {
			t.Errorf("%v: %q", args, line)
		}
	}
	w.until("what it logged is there", func() bool {
		s := w.named("seen.ts")
		return s != nil && s.life.Closed && strings.Contains(s.log(), "first words")
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.named("unseen.ts") != nil {
		t.Error("a program that permitted nothing was seen")
	}
}
