package ingest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/tree"
)

// component waits for a component with a name and returns it.
func (r *rig) component(id, name string) *tree.Entry {
	r.t.Helper()
	var found *tree.Entry
	r.until("the component "+name, func(s *fold.Space) bool {
		found = nil
		src := s.Source(subjects.SourceID(id))
		if src == nil || src.Tree.Root == nil {
			return false
		}
		src.Tree.Root.Walk(func(e *tree.Entry) bool {
			if e.Name == name {
				found = e
			}
			return true
		})
		return found != nil
	})
	return found
}

// TestRunespectInAPage shows the components of an agent that speaks on the page's window.
func TestRunespectInAPage(t *testing.T) {
	r := newRig(t)
	agent, err := os.ReadFile("../client/test/agent.js")
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /agent.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = w.Write(agent)
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<!doctype html><title>Runes</title>`+r.script()+`<script type=module>
			import { Agent } from '/agent.js';
			// The bus is the window, as it is for the real agent.
			const bus = { log: [], connect: tag => ({
				send: m => window.postMessage({ ...m, __rsFrom: tag }, location.origin),
				onMessage: f => addEventListener('message', e => e.source === window && e.data.__rsFrom !== tag && f(e.data)),
				close() {},
			}) };
			globalThis.__runespect_tier0 = true;
			globalThis.agent = new Agent(bus, undefined, { app: a => { a.put(1, 'Shop', null, { total: 3 }); a.put(2, 'Cart', 1, { items: [1, 2] }); } });
		</script>`)
	})
	app := httptest.NewServer(mux)
	t.Cleanup(app.Close)
	ctx := tab(t)
	id := r.open(ctx, app.URL+"/")
	shop := r.component(id, "Shop")
	if len(shop.Children) != 1 || string(shop.Values["total"]) != "3" || strings.Join(shop.Writable, " ") != "total" {
		t.Errorf("%+v", shop.Node)
	}
	if _, err := r.command(id, realm.Request{Method: realm.MethodEdit, Params: []byte(fmt.Sprintf(`{"id":%d,"symbol":"total","value":9}`, shop.ID))}); err != nil {
		t.Error(err)
	}
	r.until("the edit comes back as ops of the agent", func(s *fold.Space) bool { return value(s, id, shop.ID, "total") == "9" })
	text, err := r.command(id, realm.Request{Method: realm.MethodInspect, Params: []byte(fmt.Sprintf(`{"id":%d,"path":["items"]}`, shop.Children[0].ID))})
	if err != nil || text != `{"value":[1,2]}` {
		t.Errorf("%s, %v", text, err)
	}

	// The other way: a panel elsewhere follows a page over natscope.
	run(t, ctx, `globalThis.heard = []; const t = natscope.runespect(); t.onMessage(m => heard.push(m.kind)); t.send({ source: 'runespect', kind: 'hello', n: 1 })`, nil)
	natstest.Until(t, "the agent's message is a record", func() bool {
		for _, m := range r.nats.Read(subjects.RecordStreamName(space)) {
			if strings.Contains(string(m.Data), `"topic":"runespect","data":{"source":"runespect","kind":"hello","n":1}`) {
				return true
			}
		}
		return false
	})
	if _, err := r.command(id, realm.Request{Method: methodRunespect, Params: []byte(`{"message":{"source":"runespect","kind":"request"}}`)}); err != nil {
		t.Error(err)
	}
	var heard []string
	if run(t, ctx, `return heard`, &heard); strings.Join(heard, " ") != "request" {
		t.Errorf("the agent heard %v", heard)
	}
}

// TestSvelteNames shows the components that Svelte's development build marks at its elements.
func TestSvelteNames(t *testing.T) {
	r := newRig(t)
	app := r.app(`<body><main><h1></h1><ul><li></li><li></li></ul></main><footer></footer><script>
		const mark = (selector, file, line) => document.querySelectorAll(selector).forEach(e => { e.__svelte_meta = { loc: { file, line, column: 1 } } });
		mark('main, h1, ul, footer', 'src/App.svelte', 3);
		mark('li', 'src/lib/Item.svelte', 5);
	</script>` + r.script())
	ctx := tab(t)
	id := r.open(ctx, app.URL+"/")
	top := r.component(id, "App")
	item := r.component(id, "Item")
	if top.Loc != "src/App.svelte:3" || item.Loc != "src/lib/Item.svelte:5" || len(top.Values) != 0 {
		t.Errorf("%+v %+v", top.Node, item.Node)
	}
	run(t, ctx, `const nav = document.createElement('nav'); nav.__svelte_meta = { loc: { file: 'src/Nav.svelte', line: 1 } }; document.querySelector('ul').append(nav)`, nil)
	nav := r.component(id, "Nav")
	if _, err := r.command(id, realm.Request{Method: realm.MethodHighlight, Params: []byte(fmt.Sprintf(`{"id":%d}`, nav.ID))}); err != nil {
		t.Error(err)
	}
	// What the page shows itself comes first.
	run(t, ctx, `natscope.component('Own', { a: 1 })`, nil)
	r.component(id, "Own")
	s := r.state()
	if src := s.Source(subjects.SourceID(id)); src.Tree.Len() != 2 || src.FaultCount > 0 {
		t.Errorf("%d nodes, faults %+v", src.Tree.Len(), src.Faults)
	}
}
