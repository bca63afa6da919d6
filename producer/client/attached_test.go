package client

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// TestAttachedRuns runs the expression in Node, which has an inspector's binding in the place of one.
func TestAttachedRuns(t *testing.T) {
	script, err := Attached(Files())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(script, "import.meta") || strings.Contains(script, "\nimport ") || strings.Contains(script, "\nexport ") {
		t.Error("the expression has something that only modules have")
	}
	file := filepath.Join(t.TempDir(), "program.cjs")
	text := `
const texts = [];
globalThis.put = text => texts.push(JSON.parse(text).type);
const before = [require('node:http').ServerResponse.prototype.end, Symbol.for, fetch];
const said = ` + script + `(require, { binding: 'put', outgoing: true, incoming: true, cordis: true, details: false });
const port = globalThis[Symbol.for('natscope.port')];
setTimeout(() => {
	const patched = fetch !== before[2];
	port.stop();
	const after = [require('node:http').ServerResponse.prototype.end, Symbol.for, fetch];
	console.log(JSON.stringify([said, texts, 'put' in globalThis, patched, after.every((f, i) => f === before[i]), Symbol.for('natscope.port') in globalThis, port.status().faults]));
}, 50);`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("node", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := strings.TrimSpace(string(out)); got != `[{"late":false,"error":""},["hello"],false,true,true,false,0]` {
		t.Errorf("the program says %s", got)
	}
}

func TestAttachedNamesTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"import x from './other.js';\nexport function attach() {}\n": "attached/start.js:1",
		"import { a } from '../shared/gone.js';\n":                   "gone.js",
	} {
		_, err := Attached(fstest.MapFS{"attached/start.js": {Data: []byte(text)}, "shared/cordis.js": {Data: []byte("export const c = 1;\n")}})
		if !errors.Is(err, ErrModule) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
