package v8

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/subjects/realm"
)

// TestHundredThreads observes a program with 100 worker threads, debugs one of
// them and sees all go.
func TestHundredThreads(t *testing.T) {
	const threads = 100
	w := newWorld(t)
	p := node(t, 0, "crowd.js", steered)
	w.attach(Options{Endpoints: []string{p.endpoint}})
	w.until("it opens", func() bool { return w.named("crowd.js") != nil })
	p.tell(`const {Worker} = require('node:worker_threads'); globalThis.ws = Array.from({length: 100}, (_, i) => new Worker('globalThis.n = 0; require("node:worker_threads").parentPort.on("message", (m) => console.log(m)); setInterval(() => { n++ }, 100)', {eval: true, name: 'n' + i, resourceLimits: {maxYoungGenerationSizeMb: 1, maxOldGenerationSizeMb: 8, stackSizeMb: 1}}))`)
	open := func() int {
		n := 0
		for _, s := range w.sources {
			if strings.HasPrefix(s.life.Descriptor.Name, "crowd.js [worker ") && s.life.Opened && !s.life.Closed {
				n++
			}
		}
		return n
	}
	w.patiently("all threads are sources", func() bool { return open() == threads })
	p.tell(`for (const w of ws) w.postMessage('hello to ' + w.threadId)`)
	w.patiently("all are heard", func() bool {
		n := 0
		for _, s := range w.sources {
			if strings.Contains(s.log(), "hello to ") {
				n++
			}
		}
		return n == threads
	})
	o := newOffice(w)
	a, b := o.ask("crowd.js [worker 50] n49"), o.ask("crowd.js [worker 51] n50")
	a.do("debugger.enable", "")
	a.do("debugger.pause", "")
	a.paused()
	before := b.eval("n", "")
	natstest.Until(t, "another thread runs", func() bool { return b.eval("n", "") != before })
	a.do("debugger.resume", "")
	p.tell(`for (const w of ws) w.terminate()`)
	w.patiently("all threads went", func() bool { return open() == 0 })
	if s := w.named("crowd.js"); s.life.Closed {
		t.Error("the program went with them")
	}
}

// TestKilledUnderASession kills a program in the middle of a command and of a
// pause: what waits is answered at once, and its next run is the same source.
func TestKilledUnderASession(t *testing.T) {
	w, p, o, a := debuggee(t)
	a.breakAt(p, "const sum", "")
	a.eval("run = true", "")
	a.paused()
	port := p.port()
	waiting := make(chan error, 1)
	go func() {
		_, err := a.try("runtime.evaluate", `{"expression":"new Promise(() => {})","awaitPromise":true,"timeout":60000}`)
		_, err2 := a.try("debugger.stepOver", "")
		waiting <- errors.Join(err, err2)
	}()
	p.kill()
	select {
	case err := <-waiting:
		if err == nil || errors.Is(err, realm.ErrTimeout) {
			t.Errorf("a command to a dead program: %v", err)
		}
	case <-time.After(15 * time.Second):
		t.Fatal("a command to a dead program is not answered")
	}
	w.until("the source is gone", func() bool { return w.named("debugged.js").life.Closed })
	node(t, port, "debugged.js", debugged)
	w.until("it is back", func() bool { s := w.named("debugged.js"); return s.generations == 2 && !s.life.Closed })
	if got := o.ask("debugged.js").eval("typeof work", ""); got != "function" {
		t.Error(got)
	}
}

// TestProgramWithoutAFile debugs what node -e runs.
func TestProgramWithoutAFile(t *testing.T) {
	w := newWorld(t)
	p := node(t, 0, "", `globalThis.n = 0; setInterval(() => { n++; globalThis.last = n }, 20)`, "-e")
	w.attach(Options{Endpoints: []string{p.endpoint}})
	var name string
	w.until("it opens", func() bool {
		for _, s := range w.sources {
			name = s.life.Descriptor.Name
		}
		return name != ""
	})
	if name != "node" {
		t.Errorf("it is called %q", name)
	}
	a := newOffice(w).ask(name)
	a.do("debugger.enable", "")
	a.wait("debugger.scriptParsed", func(data string) bool {
		return strings.Contains(data, `"url":"[eval]"`) || strings.Contains(data, "evalmachine")
	})
	var r struct {
		Locations []any
	}
	if err := json.Unmarshal([]byte(a.do("debugger.setBreakpointByUrl", `{"url":"[eval]","lineNumber":0,"columnNumber":43}`)), &r); err != nil || len(r.Locations) == 0 {
		t.Errorf("a breakpoint without a file: %+v, %v", r, err)
	}
	if at := a.paused(); len(at.HitBreakpoints) != 1 {
		t.Errorf("%+v", at)
	}
}

// TestBreakpointInAFileThatNeverComes sets one, which hits nothing and disturbs nothing.
func TestBreakpointInAFileThatNeverComes(t *testing.T) {
	_, _, _, a := debuggee(t)
	var r struct {
		BreakpointID string
		Locations    []any
	}
	for _, at := range []string{`"url":"file:///never/loaded.js"`, `"urlRegex":"never-[0-9]+\\.js$"`} {
		if err := json.Unmarshal([]byte(a.do("debugger.setBreakpointByUrl", `{`+at+`,"lineNumber":3}`)), &r); err != nil || r.BreakpointID == "" || len(r.Locations) != 0 {
			t.Errorf("%s: %+v, %v", at, r, err)
		}
		a.moving()
		a.do("debugger.removeBreakpoint", fmt.Sprintf(`{"breakpointId":%q}`, r.BreakpointID))
	}
	if n := a.count("debugger.paused"); n != 0 {
		t.Errorf("it paused %d times", n)
	}
}

// TestLargeMessages asks for results up to 200 MB: they come whole up to the
// bound of an answer, beyond it the refusal says what to do, and the session and
// its events go on in either case.
func TestLargeMessages(t *testing.T) {
	w, p, _, a := debuggee(t)
	a.eval("globalThis.held = {kept: 42}", "")
	for _, size := range []int{1 << 20, 20 << 20} {
		out, err := a.try("runtime.evaluate", fmt.Sprintf(`{"expression":"'x'.repeat(%d)","returnByValue":true}`, size))
		if err != nil || len(out) < size {
			t.Errorf("a string of %d bytes: %d bytes, %v", size, len(out), err)
		}
	}
	for _, size := range []int{100 << 20} {
		out, err := a.try("runtime.evaluate", fmt.Sprintf(`{"expression":"'x'.repeat(%d)","returnByValue":true}`, size))
		if !errors.Is(err, realm.ErrTooLarge) {
			t.Errorf("a string of %d bytes: %d bytes, %v", size, len(out), err)
		}
	}
	if got := a.eval("held.kept", ""); got != "42" {
		t.Errorf("the session lost its world: %s", got)
	}
	// A script of 30 MB.
	a.eval(`globalThis.large = new Function('return 1; /*' + 'y'.repeat(30 << 20) + '*/')`, "")
	parsed := a.wait("debugger.scriptParsed", func(data string) bool {
		var s struct{ Length int }
		return json.Unmarshal([]byte(data), &s) == nil && s.Length > 30<<20
	})
	var script struct{ ScriptID string }
	_ = json.Unmarshal([]byte(parsed), &script)
	if out := a.do("debugger.getScriptSource", fmt.Sprintf(`{"scriptId":%q}`, script.ScriptID)); len(out) < 30<<20 {
		t.Errorf("a script of 30 MB has %d bytes", len(out))
	}
	// What the program logs is cut, for the session and for the record.
	a.eval(`console.log('z'.repeat(5 << 20)); console.log('v'.repeat(70 << 20)); console.log('after it')`, "")
	a.wait("runtime.consoleAPICalled", func(data string) bool {
		return strings.Contains(data, "zzz") && strings.Contains(data, "in all") && len(data) < 1<<20
	})
	a.wait("runtime.consoleAPICalled", func(data string) bool { return strings.Contains(data, "too long to be shown") })
	a.wait("runtime.consoleAPICalled", func(data string) bool { return strings.Contains(data, "after it") })
	w.until("the record goes on", func() bool { return w.named("debugged.js").says("after it") })
	// A string of 20 MB in a paused frame is described, not sent.
	a.breakAt(p, "const sum", "")
	a.eval("run = true; history.text = 'u'.repeat(20 << 20); 0", "")
	if at := a.paused().at(); at != "add:6" {
		t.Errorf("it paused at %s", at)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lost != 0 {
		t.Errorf("%d events were lost", a.lost)
	}
}

// TestInspectorRefuses attaches to what lists a target and lets nobody in to it,
// which is what hosts do that take one debugger only: the log says so, and why.
func TestInspectorRefuses(t *testing.T) {
	w := newWorld(t)
	s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/json/list":
			fmt.Fprint(out, `[{"id":"one","type":"node","title":"shy.js","url":"file:///shy.js"}]`)
		case "/json/version":
			fmt.Fprint(out, `{"Browser":"node.js/v20"}`)
		default:
			http.Error(out, "one debugger only", http.StatusConflict)
		}
	}))
	t.Cleanup(s.Close)
	var mu sync.Mutex
	var log strings.Builder
	w.attach(Options{Endpoints: []string{s.Listener.Addr().String()}, Logger: slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return log.Write(p)
	}), nil))})
	natstest.Until(t, "the log says that it cannot attach", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return strings.Contains(log.String(), "cannot attach") && strings.Contains(log.String(), "409 Conflict")
	})
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestAnotherDebugger pauses a program over its own port: sessions and the record
// go on beside that, and see what it does.
func TestAnotherDebugger(t *testing.T) {
	w, p, _, a := debuggee(t)
	l := straight(t, p, func(string, json.RawMessage) {})
	for _, m := range []string{"Runtime.enable", "Debugger.enable", "Debugger.pause"} {
		if _, err := l.call(t.Context(), m, nil); err != nil {
			t.Fatal(err)
		}
	}
	// What is evaluated before it is paused would be what is paused.
	natstest.Until(t, "the session hears of the pause", func() bool { return a.count("debugger.paused") == 1 })
	a.eval("console.log('while it is paused'); 0", "")
	w.until("what is logged meanwhile is there", func() bool { return w.named("debugged.js").says("while it is paused") })
	// All sessions with their debugger on share a pause: that one leaves does not end it.
	a.do("debugger.resume", "")
	a.moving()
	l.close()
}
