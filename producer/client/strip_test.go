package client

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os/exec"
	"strings"
	"testing"
)

// compare prints the names of modules whose tokens differ between two forms, as
// TypeScript reads them.
const compare = `
import ts from 'typescript';
let text = '';
for await (const part of process.stdin) text += part;
const tokens = code => {
  const file = ts.createSourceFile('x.js', code, ts.ScriptTarget.ESNext, true);
  const out = [];
  (function walk(n) {
    const list = n.getChildren(file).filter(c => c.kind !== ts.SyntaxKind.JSDoc);
    if (list.length === 0 && n.getText(file) !== '') out.push(n.getText(file) + '@' + file.getLineAndCharacterOfPosition(n.getStart(file)).line);
    list.forEach(walk);
  })(file);
  return out.join('\n');
};
for (const [name, a, b] of JSON.parse(text)) {
  if (tokens(a) !== tokens(b)) console.log(name);
}
`

// TestLeanModulesAreTheSame compares each module with its lean form, token by token and line by line.
func TestLeanModulesAreTheSame(t *testing.T) {
	var pairs [][3]string
	before, after := 0, 0
	err := fs.WalkDir(Files(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(Files(), name)
		lean := Lean(data)
		pairs = append(pairs, [3]string{name, string(data), string(lean)})
		before, after = before+len(data), after+len(lean)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, odd := range []string{
		"const a = 1 / 2 / 3; // x\nf(/[/\"]/, '//', \"/*\") /* y */ .z(`//${ /}/.test('`') /* in */ }`);",
		"let x = a /* b */+ /* c\n d */ c\nreturn_\n/re/.test(y)", "/** doc */ const /** @type {T} */ b = /** @type {any} */ (c);",
	} {
		pairs = append(pairs, [3]string{odd, odd, string(Lean([]byte(odd)))})
	}
	in, _ := json.Marshal(pairs)
	cmd := exec.Command("node", "--input-type=module", "-e", compare)
	cmd.Stdin = bytes.NewReader(in)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || len(out) > 0 {
		t.Errorf("modules that are not the same without comments (npm ci in producer/client comes first): %s%s %v", out, stderr.String(), err)
	}
	if after*4 > before*3 {
		t.Errorf("%d bytes of %d are left", after, before)
	}
	for _, p := range pairs {
		if strings.Contains(p[2], "@param") {
			t.Errorf("%s has comments left", p[0])
		}
	}
}

// FuzzLean checks that any input ends, and keeps its lines.
func FuzzLean(f *testing.F) {
	for _, s := range []string{"a // b", "`${`${1}`}`", "/[/]/", "'", "/*", "`${", "a /* \n */ b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := Lean([]byte(s))
		if a, b := bytes.Count(out, []byte("\n")), strings.Count(s, "\n"); a != b {
			t.Errorf("%q has %d line breaks, %q has %d", out, a, s, b)
		}
	})
}
