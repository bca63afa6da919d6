package v8

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/natscope/natscope/subjects/realm"
)

func FuzzCutStrings(f *testing.F) {
	for _, seed := range []string{`{"a":"b"}`, `["😀😀😀","\ud83d\ude00\ud83d\ude00","\\\\\\\"\"\"","\u00e9\n"]`, `"`, `{"a":"\`, `"\ud83d"`} {
		f.Add(seed, 3)
	}
	f.Fuzz(func(t *testing.T, in string, most int) {
		// Long enough to be cut at all: 100 bytes more than the bound are let be.
		long := strings.ReplaceAll(in, "a", strings.Repeat("\\ud83d\\ude00é\\n", 40))
		out := cutStrings(json.RawMessage(long), max(most%1000, 0))
		if json.Valid([]byte(long)) && !json.Valid(out) {
			t.Errorf("%q became %q", long, out)
		}
		if utf8.ValidString(long) && !utf8.Valid(out) {
			t.Errorf("%q became %q, which is not UTF-8", long, out)
		}
		_ = fit("Debugger.paused", out)
		_ = mapApart(out)
		_ = topFrames(out)
	})
}

func FuzzSubstitute(f *testing.F) {
	f.Add(`{"id":7,"result":{"result":{"type":"string","value":"xx`, `xxx"}}}`)
	f.Add(`{"method":"NodeWorker.receivedMessageFromWorker","params":{"sessionId":"3","message":"{\"id\":9,\"result\":{`, `}"}}`)
	f.Fuzz(func(t *testing.T, head, tail string) {
		if out := substitute([]byte(head), []byte(tail), 1<<30); out != nil && !json.Valid(out) {
			t.Errorf("%q", out)
		}
	})
}

func TestSubstitute(t *testing.T) {
	for _, c := range []struct{ head, tail, want string }{
		{`{"id":7,"result":{"result":{"type":"string","value":"xx`, `xx"}}}`, `"id":7`},
		{`{"id":7,"result":{"result":{"type":"string","value":"xx`, `xx"}},"sessionId":"A1"}`, `"sessionId":"A1"`},
		{`{"method":"NodeWorker.receivedMessageFromWorker","params":{"sessionId":"3","message":"{\"id\":9,\"result\":{`, `}"}}`, `\"id\":9`},
		{`{"method":"Runtime.consoleAPICalled","params":{"type":"warning","args":[{"type":"string","value":"x`, `x"}],"executionContextId":4,"timestamp":1}}`, `"executionContextId":4`},
		{`{"method":"Debugger.paused","params":{`, `}}`, ``},
	} {
		got := string(substitute([]byte(c.head), []byte(c.tail), 1e9))
		if !strings.Contains(got, c.want) || (got == "") != (c.want == "") || c.want != "" && !strings.Contains(got, "1000000000 bytes") {
			t.Errorf("%s: %s", c.head, got)
		}
	}
}

// TestLongEventsOfAPause sees that a program that is paused is known to be: in a
// recursion of thousands of frames, and at a text of megabytes that is thrown.
func TestLongEventsOfAPause(t *testing.T) {
	_, p, _, a := debuggee(t)
	p.tell(`globalThis.deep = function deep(n) { if (n === 0) debugger; else deep(n - 1) }`)
	p.tell(`setTimeout(() => deep(5000), 1)`)
	at := a.paused()
	if n := len(at.CallFrames); n < 100 || n > 5000 || at.CallFrames[0].FunctionName != "deep" {
		t.Errorf("%d frames", n)
	}
	a.do("debugger.resume", "")
	a.do("debugger.setPauseOnExceptions", `{"state":"all"}`)
	p.tell(`setTimeout(() => { try { throw 'é\n'.repeat(1e6) } catch {} }, 1)`)
	if at := a.paused(); at.Reason != "exception" {
		t.Errorf("paused for %q", at.Reason)
	}
	a.do("debugger.resume", "")
	a.moving()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lost != 0 {
		t.Errorf("%d events were lost", a.lost)
	}
}

// TestLongSourceMapInside loads the map that a script of megabytes has inside.
func TestLongSourceMapInside(t *testing.T) {
	_, _, _, a := debuggee(t)
	text := `{"version":3,"sources":["a.ts"],"sourcesContent":["` + strings.Repeat("x", 2<<20) + `"],"mappings":"AAAA"}`
	expression, _ := json.Marshal("globalThis.mapped = 1\n//# sourceURL=mapped.js\n//# sourceMappingURL=data:application/json;base64," + base64.StdEncoding.EncodeToString([]byte(text)))
	if _, err := a.try("runtime.evaluate", fmt.Sprintf(`{"expression":%s}`, expression)); err == nil {
		t.Fatal("a command of 3 MB gets through; load the script so")
	}
	a.eval(`(0, eval)('globalThis.mapped = 1\n//# sourceURL=mapped.js\n//# source' + 'MappingURL=data:application/json;base64,' + Buffer.from('{"version":3,"sources":["a.ts"],"sourcesContent":["' + 'x'.repeat(2 << 20) + '"],"mappings":"AAAA"}').toString('base64'))`, "")
	parsed := a.wait("debugger.scriptParsed", func(data string) bool { return strings.Contains(data, "mapped.js") })
	var script struct{ SourceMapURL string }
	if err := json.Unmarshal([]byte(parsed), &script); err != nil || !strings.HasPrefix(script.SourceMapURL, insideMap) {
		t.Fatalf("%.300s", parsed)
	}
	params, _ := json.Marshal(realm.LoadResourceParams{URL: script.SourceMapURL})
	var r realm.LoadResourceResult
	if err := json.Unmarshal([]byte(a.do(string(realm.MethodLoadResource), string(params))), &r); err != nil || r.Content != text {
		t.Errorf("%.300s: %v", r.Content, err)
	}
	if _, err := a.try(string(realm.MethodLoadResource), `{"url":"natscope-inside:1"}`); err == nil {
		t.Error("a script without a map has one")
	}
}

func TestMapInside(t *testing.T) {
	for in, want := range map[string]string{
		"x\n//# sourceMappingURL=data:application/json;base64,e30=":          "{}",
		"x\n//# sourceMappingURL=data:application/json;base64,e30=\n ":       "{}",
		"x\n//# sourceMappingURL=data:application/json,%7B%7D":               "{}",
		"x\n//# sourceMappingURL=data:application/json;base64,!!":            "error",
		"x\n//# sourceMappingURL=data:":                                      "error",
		"x\n//# sourceMappingURL=x.map":                                      "error",
		"x\n//# sourceMappingURL=data:application/json;base64,/////w==":      "error",
		"/*sourceMappingURL=data:a,b*/\n//# sourceMappingURL=data:a,{}":      "{}",
		"x\n//# sourceMappingURL=data:application/json;charset=utf-8,%7B%7D": "{}",
	} {
		got, err := mapInside(in)
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}
