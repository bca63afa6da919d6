package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// follow reads a part and its source map, and prints what is wrong: a part that
// is no module, a name or text that has no line in its source, and a line of a
// source with code that is in no part.
const follow = `
import ts from 'typescript';
let text = '';
for await (const part of process.stdin) text += part;
const { parts, sources } = JSON.parse(text);
const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const decode = s => {
  const out = [];
  let n = 0, shift = 0;
  for (const c of s) {
    const d = digits.indexOf(c);
    n += (d & 31) << shift;
    shift += 5;
    if (d & 32) continue;
    out.push(n & 1 ? -(n >> 1) : n >> 1);
    n = shift = 0;
  }
  return out;
};
const words = (name, code) => {
  const file = ts.createSourceFile(name, code, ts.ScriptTarget.ESNext, true);
  for (const d of file.parseDiagnostics) console.log(name, 'is not JavaScript:', d.messageText);
  const lines = new Map();
  (function walk(n) {
    const list = n.getChildren(file).filter(c => c.kind !== ts.SyntaxKind.JSDoc);
    const line = file.getLineAndCharacterOfPosition(n.getStart(file)).line;
    if (list.length === 0 && /^[\w$'"` + "`" + `]/.test(n.getText(file))) lines.set(line, (lines.get(line) ?? '') + ' ' + n.getText(file));
    list.forEach(walk);
  })(file);
  return lines;
};
const seen = new Set();
for (const { name, code, map } of parts) {
  const { sources: from, mappings, ignoreList } = JSON.parse(map);
  if (ignoreList.length !== from.length) console.log(name, 'is not on the ignore list');
  const here = words(name, code);
  const of = from.map(f => words(f, sources[f.replace('../source/', '')]));
  let source = 0, line = 0;
  mappings.split(';').forEach((m, i) => {
    if (m === '') return;
    const [, ds, dl] = decode(m);
    source += ds;
    line += dl;
    const original = of[source].get(line) ?? '';
    seen.add(from[source].replace('../source/', '') + ':' + line);
    if (/^ (import|export) /.test(original) || original.includes(' import ')) return;
    if ((here.get(i) ?? '') !== original && original !== '') console.log(name, i + 1, here.get(i), 'is not', from[source], line + 1, original);
  });
}
for (const [name, code] of Object.entries(sources)) {
  if (['client.js', 'plugin.js'].includes(name)) continue;
  for (const [line, text] of words(name, code)) {
    if (!/^ (import|export)( |$)/.test(text) && !seen.has(name + ':' + line)) console.log(name, line + 1, text, 'is in no part');
  }
}
`

// TestBundleIsTheModules follows the source maps from every line of the parts to the modules, and back.
func TestBundleIsTheModules(t *testing.T) {
	b, err := NewBundle(Files())
	if err != nil {
		t.Fatal(err)
	}
	type part struct {
		Name string `json:"name"`
		Code string `json:"code"`
		Map  string `json:"map"`
	}
	var in struct {
		Parts   []part            `json:"parts"`
		Sources map[string]string `json:"sources"`
	}
	in.Sources = make(map[string]string)
	for name, src := range b.Sources {
		in.Sources[name] = string(src)
	}
	for name, code := range b.Files {
		if m := b.Files[name+".map"]; m != nil {
			in.Parts = append(in.Parts, part{name, string(code), string(m)})
		}
	}
	if len(in.Parts) < 6 || len(in.Sources) < 50 {
		t.Errorf("%d parts of %d modules", len(in.Parts), len(in.Sources))
	}
	text, _ := json.Marshal(in)
	cmd := exec.Command("node", "--input-type=module", "-e", follow)
	cmd.Stdin = bytes.NewReader(text)
	out, err := cmd.CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
	again, err := NewBundle(Files())
	if err != nil || again.Version != b.Version || !maps.EqualFunc(again.Files, b.Files, bytes.Equal) {
		t.Errorf("the same files make another bundle: %v", err)
	}
}

// TestBundleHasEachModuleOnce: a module with state would have two of it.
func TestBundleHasEachModuleOnce(t *testing.T) {
	b, err := NewBundle(Files())
	if err != nil {
		t.Fatal(err)
	}
	for name := range b.Sources {
		var in []string
		for file, code := range b.Files {
			if strings.Contains(string(code), "\nconst "+variable(name)+" = (") || strings.HasPrefix(string(code), "const "+variable(name)+" = (") {
				in = append(in, file)
			}
		}
		if len(in) != 1 && !slices.Contains(entries, name) {
			t.Errorf("%s is in %v", name, in)
		}
	}
	err = fs.WalkDir(Files(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasPrefix(name, "node/") && !strings.HasPrefix(name, "attached/") && b.Sources[name] == nil && name != "shared/types.js" && name != "shared/unsupported.js" {
			t.Errorf("no page can load %s", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestBundleRefusesWhatItDoesNotKnow(t *testing.T) {
	const ok = "export function f() {}\n"
	for what, text := range map[string]string{
		"a default export":               "export default 1;\n",
		"an export that varies":          "export let n = 1;\n",
		"a whole import":                 "import * as all from './x.js';\n",
		"itself":                         "import { f } from './live.js';\n",
		"a module that is gone":          "import { f } from './gone.js';\n",
		"an import of lines":             "import {\n  f,\n} from './senttree.js';\n",
		"an indented import":             "  import { f } from './senttree.js';\n",
		"an import without names":        "import './senttree.js';\n",
		"a name that is not exported":    "import { g } from './senttree.js';\n",
		"a name that is not exported on": "export { g } from './senttree.js';\n",
		"a call with another quote":      "export const load = () => import(\"./senttree.js\");\n",
		"a call of a template":           "export const load = name => import(`./${name}.js`);\n",
		"a call over lines":              "export const load = () => import(\n  './senttree.js');\n",
	} {
		files := fstest.MapFS{
			"client.js": {Data: []byte("import { f } from './browser/start.js';\nexport { f };\n")}, "plugin.js": {Data: []byte(ok)},
			"browser/start.js": {Data: []byte(ok)}, "browser/tools.js": {Data: []byte(ok)}, "browser/inspection.js": {Data: []byte(ok)},
			"shared/live.js": {Data: []byte(ok)}, "shared/realm.js": {Data: []byte(ok)}, "shared/sources.js": {Data: []byte(ok)}, "shared/senttree.js": {Data: []byte(ok)},
		}
		if _, err := NewBundle(files); err != nil {
			t.Fatal(err)
		}
		files["shared/live.js"] = &fstest.MapFile{Data: []byte(text)}
		if _, err := NewBundle(files); !errors.Is(err, ErrModule) {
			t.Errorf("%s: %v", what, err)
		}
		files["shared/live.js"] = &fstest.MapFile{Data: []byte(ok)}
		files["plugin.js"] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(text, "'./", "'./shared/"))}
		if _, err := NewBundle(files); !errors.Is(err, ErrModule) && !slices.Contains([]string{"itself", "a default export", "an export that varies"}, what) {
			t.Errorf("%s in an entry: %v", what, err)
		}
	}
}

// TestBundleRefusesASecondNameOfAnExport: a line tells only the first, and a page
// would find the other undefined.
func TestBundleRefusesASecondNameOfAnExport(t *testing.T) {
	files := fstest.MapFS{}
	for name, text := range map[string]string{
		"client.js": "", "plugin.js": "", "browser/start.js": "export const a = 1, b = 2;\n", "browser/tools.js": "import { b } from './start.js';\n",
		"browser/inspection.js": "", "shared/live.js": "", "shared/realm.js": "", "shared/sources.js": "", "shared/senttree.js": "",
	} {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	if _, err := NewBundle(files); !errors.Is(err, ErrModule) || !strings.Contains(err.Error(), "browser/tools.js:1: browser/start.js does not export b") {
		t.Errorf("%v", err)
	}
}
