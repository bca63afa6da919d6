package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/dop251/goja"
)

// bundle reads the modules of the frontend, as texts, into ns.modules.
const bundle = `(() => {
  const texts = {}, seen = new Set();
  const load = async url => {
    if (seen.has(url)) return;
    seen.add(url);
    const text = await (await fetch(url)).text().catch(() => '');
    texts[url] = text;
    await Promise.all([...text.matchAll(/(?:from|import)\s*\(?\s*["'](\.[^"']+\.js)["']/g)].map(m => load(new URL(m[1], url).href)));
  };
  load(new URL('entrypoints/devtools_app/devtools_app.js', location.href).href).then(() => ns.modules = Object.values(texts), e => ns.failed = String(e));
  return true;
})()`

var (
	sent  = regexp.MustCompile(`\.callFunction(?:JSON)?\(\s*((?:async )?function\b|[\w$]+)`)
	ident = regexp.MustCompile(`^[\w$]+$`)
)

// sentFunctions returns the functions that a module sends to programs as text.
// ends are found by the engine: the shortest text that it compiles.
func sentFunctions(module string) (found, broken []string) {
	for _, m := range sent.FindAllStringSubmatchIndex(module, -1) {
		at, word := m[2], module[m[2]:m[3]]
		if !strings.HasSuffix(word, "function") {
			if !ident.MatchString(word) {
				continue
			}
			head := "function " + word + "("
			at = strings.LastIndex(module[:m[0]], head)
			if next := strings.Index(module[m[0]:], head); at < 0 && next >= 0 {
				at = m[0] + next
			}
			if at < 0 || at < m[0]-20000 || at > m[0]+20000 {
				continue // an argument that was handed on
			}
		}
		text := module[at:min(at+8000, len(module))]
		if f, ok := wholeFunction(text); ok {
			found = append(found, f)
		} else if text = text[:min(300, len(text))]; !strings.Contains(text, ".#") {
			// One with private names works inside of its class only: another of that short name is sent.
			broken = append(broken, text)
		}
	}
	return found, broken
}

func wholeFunction(text string) (string, bool) {
	for i := 0; i < len(text); i++ {
		if text[i] != '}' {
			continue
		}
		if _, err := goja.Compile("", "("+text[:i+1]+")", false); err == nil {
			return text[:i+1], true
		}
	}
	return "", false
}

// TestFunctionsOfDevTools calls what the installed DevTools sends to programs as
// text with a Go value: all of it is JavaScript that the realm's engine reads.
func TestFunctionsOfDevTools(t *testing.T) {
	i, _ := startDepot(t)
	d := openDevTools(t, browser(t), i.DevTools())
	eval[bool](d.page, js(bundle))
	var modules []string
	d.poll("the modules of the frontend", func() (bool, string) {
		if failed := eval[string](d.page, js("ns.failed ?? ''")); failed != "" {
			return false, failed
		}
		return eval[bool](d.page, js("!!ns.modules")), ""
	})
	modules = eval[[]string](d.page, js("ns.modules.filter(t => t.includes('.callFunction'))"))
	functions := make(map[string]bool)
	for _, m := range modules {
		found, broken := sentFunctions(m)
		for _, f := range found {
			functions[f] = true
		}
		for _, f := range broken {
			t.Errorf("the engine does not read %s", f)
		}
	}
	if len(functions) < 5 {
		t.Fatalf("only %d functions were found in %d modules", len(functions), len(modules))
	}
	t.Logf("%d functions in %d modules", len(functions), len(modules))
	c := debugURL(t, devtoolsSocket(i.DevTools()))
	c.do("Runtime.enable", "{}")
	var context struct{ Context struct{ UniqueID string } }
	for context.Context.UniqueID == "" || !strings.Contains(c.do("Runtime.evaluate", fmt.Sprintf(`{"expression":"typeof depot","uniqueContextId":%q}`, context.Context.UniqueID)), `"object"`) {
		if err := json.Unmarshal([]byte(c.wait("Runtime.executionContextCreated", "")), &context); err != nil {
			t.Fatal(err)
		}
	}
	for f := range functions {
		var o struct{ Result struct{ ObjectID string } }
		raw := c.do("Runtime.evaluate", fmt.Sprintf(`{"expression":"depot.Parcels[7]","uniqueContextId":%q}`, context.Context.UniqueID))
		if err := json.Unmarshal([]byte(raw), &o); err != nil || o.Result.ObjectID == "" {
			t.Fatalf("%s: %v", raw, err)
		}
		p, _ := json.Marshal(map[string]any{"objectId": o.Result.ObjectID, "functionDeclaration": f, "silent": true, "arguments": []any{map[string]string{"value": "[]"}}})
		// With other arguments than it wants a function may throw; it must have run, though.
		if answer := c.do("Runtime.callFunctionOn", string(p)); strings.Contains(answer, "SyntaxError") || !strings.Contains(answer, `"result"`) {
			t.Errorf("%.300s\n%s", f, answer)
		}
	}
}

// devtoolsSocket is the address of the socket that a DevTools address names.
func devtoolsSocket(address string) string {
	_, at, _ := strings.Cut(address, "?ws=")
	return "ws://" + at
}
