package ingest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/tree"
)

// program is a Cordis program that runs in a page and in Node alike: plugins in
// plugins, one that fails, one that is disposed, layers and a service.
const program = `
import { Context, Service } from '%[1]s';
const ctx = new Context();
globalThis.ctx = ctx;
class Database extends Service {
  constructor(ctx) { super(ctx, 'database'); }
}
ctx.plugin(Database);
ctx.plugin({ name: 'web', apply(c) {
  c.plugin({ name: 'routes', inject: ['database'], apply(r) { r.isolate('database').on('custom', () => {}); } });
  c.extend({ tag: 1 }).on('custom', () => {});
} });
const gone = ctx.plugin({ name: 'gone', apply() {} });
ctx.plugin({ name: 'broken', apply() { throw new Error('on purpose'); } });
ctx.on('internal/error', () => {});
await new Promise(r => setTimeout(r, 50));
await gone.dispose();
ctx.plugin(natscope, { %[2]s });
await new Promise(r => setTimeout(r, 50));
`

// cordisModules serves the real Cordis to a page.
func cordisModules(t *testing.T, mux *http.ServeMux) (importMap string) {
	t.Helper()
	root, err := filepath.Abs("../client/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "@deepseek-ai/cordis/lib/index.js")); err != nil {
		t.Fatalf("this test needs the packages of the client; run npm ci in producer/client: %v", err)
	}
	mux.Handle("GET /modules/", http.StripPrefix("/modules/", http.FileServer(http.Dir(root))))
	imports := make(map[string]string)
	for name, file := range map[string]string{"@deepseek-ai/cordis": "@deepseek-ai/cordis/lib/index.js", "@deepseek-ai/cosmokit": "@deepseek-ai/cosmokit/lib/index.js"} {
		imports[name] = "/modules/" + file
	}
	data, _ := json.Marshal(map[string]any{"imports": imports})
	return string(data)
}

// shape writes a tree of the cordis profile as text.
func shape(e *tree.Entry) string {
	out := "C"
	if e.Kind == tree.KindFiber {
		out = fmt.Sprintf("F%d", e.UID())
	}
	var inner []string
	for _, c := range e.Children {
		inner = append(inner, shape(c))
	}
	if len(inner) > 0 {
		out += "(" + strings.Join(inner, " ") + ")"
	}
	return out
}

// cordisShape waits for a source's Cordis tree with so many nodes and returns its shape.
func (r *rig) cordisShape(id string, nodes int) string {
	r.t.Helper()
	var last string
	defer func() {
		if r.t.Failed() {
			r.t.Logf("the tree of %s is %s", id, last)
		}
	}()
	s := r.until(fmt.Sprintf("%d nodes of %s", nodes, id), func(s *fold.Space) bool {
		src := s.Source(subjects.SourceID(id))
		if src == nil || src.Tree.Profile != tree.ProfileCordis {
			return false
		}
		last = shape(src.Tree.Root)
		return src.Tree.Len() == nodes
	})
	src := s.Source(subjects.SourceID(id))
	if src.FaultCount > 0 {
		r.t.Errorf("faults of %s: %+v", id, src.Faults)
	}
	return shape(src.Tree.Root)
}

// TestCordisInPageAndNode runs one program in both and compares what readers get.
func TestCordisInPageAndNode(t *testing.T) {
	const nodes = 13
	r := newRig(t)
	mux := http.NewServeMux()
	imports := cordisModules(t, mux)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><title>Cordis</title><script type=importmap>%s</script>%s<script type=module>import * as natscope from '%s/client/plugin.js';%sglobalThis.ready = true</script>`,
			imports, r.script(), r.http.URL, fmt.Sprintf(program, "@deepseek-ai/cordis", ""))
	})
	app := httptest.NewServer(mux)
	t.Cleanup(app.Close)
	ctx := tab(t)
	id := r.open(ctx, app.URL+"/")
	defer func() {
		if t.Failed() {
			var state any
			run(t, ctx, `return { ready: globalThis.ready, ctx: typeof ctx, status: natscope.status() }`, &state)
			t.Logf("the page: %v", state)
		}
	}()
	inPage := r.cordisShape(id, nodes)

	// The live object of a Fiber, and the way back.
	l := r.look(id, "s")
	got := l.eval("ctx.registry.values().next().value.fibers[0] ?? [...ctx.registry.values()][0].fibers[Symbol.iterator]().next().value")
	if got["subtype"] != "node" || got["className"] != "Fiber" {
		t.Errorf("a fiber in the Console: %v", got)
	}
	var node struct {
		ID uint64 `json:"id"`
	}
	_ = json.Unmarshal([]byte(l.must("tree.nodeOf", fmt.Sprintf(`{"objectId":%q}`, got["objectId"]))), &node)
	var back struct {
		Object map[string]any `json:"object"`
	}
	_ = json.Unmarshal([]byte(l.must("tree.resolve", fmt.Sprintf(`{"id":%d}`, node.ID))), &back)
	if back.Object["className"] != "Fiber" {
		t.Errorf("node %d is %v", node.ID, back.Object)
	}
	var inspector string
	run(t, ctx, `ctx.inspector.publish('from.cordis', { a: 1 }); return await ctx.inspector.cordis.getTree().catch(e => e.message)`, &inspector)
	if !strings.Contains(inspector, "no query service") {
		t.Errorf("getTree says %q", inspector)
	}

	dir := t.TempDir()
	file := filepath.Join(dir, "program.mjs")
	client, _ := filepath.Abs("../client")
	url := "ws" + strings.TrimPrefix(r.http.URL, "http") + "/ingest"
	text := "import * as natscope from 'file://" + client + "/plugin.js';" + fmt.Sprintf(program,
		"file://"+client+"/node_modules/@deepseek-ai/cordis/lib/index.js", fmt.Sprintf("url: %q, token: %q, id: 'node-cordis'", url, token)) + "setInterval(() => {}, 1000);"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", file)
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // It was killed.
		if t.Failed() {
			t.Logf("node: %s", output.String())
		}
	})
	if inNode := r.cordisShape("node-cordis", nodes); inNode != inPage {
		t.Errorf("the page has\n%s\nNode has\n%s", inPage, inNode)
	}
	if d := r.source("node-cordis").Life.Descriptor; !strings.HasPrefix(d.Runtime, "Node") {
		t.Errorf("%+v", d)
	}
}
