package ingest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/tree"
)

// svelte serves an application as Svelte's own compiler builds it for development.
func (r *rig) svelte() *httptest.Server {
	r.t.Helper()
	if _, err := os.Stat("../client/node_modules/svelte"); err != nil {
		r.t.Fatalf("this test needs the packages of the client; run npm ci in producer/client: %v", err)
	}
	out, err := exec.Command("node", "../client/testdata/svelte/build.js").Output()
	if err != nil {
		r.t.Fatal(err)
	}
	var built struct {
		Root         string
		Modules, Map map[string]string
	}
	if err := json.Unmarshal(out, &built); err != nil {
		r.t.Fatal(err)
	}
	imports, err := json.Marshal(map[string]any{"imports": built.Map})
	if err != nil {
		r.t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /modules/", http.StripPrefix("/modules/", http.FileServer(http.Dir(built.Root))))
	mux.HandleFunc("GET /src/", func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		fmt.Fprint(w, built.Modules[req.URL.Path])
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><title>Svelte</title><link rel=icon href=data:,><script type=importmap>%s</script>%s<body><div id=app></div><div class=island></div><div class=island></div><script type=module src=/src/main.js></script>`, imports, r.script())
	})
	s := httptest.NewServer(mux)
	r.t.Cleanup(s.Close)
	return s
}

// outline writes a tree as names with their children in parentheses.
func outline(e *tree.Entry) string {
	if e == nil {
		return ""
	}
	var below []string
	for _, c := range e.Children {
		below = append(below, outline(c))
	}
	if len(below) == 0 {
		return e.Name
	}
	return e.Name + "(" + strings.Join(below, " ") + ")"
}

// untilOutline waits until the tree of a source is as it should be.
func (r *rig) untilOutline(id, want string) *tree.Entry {
	r.t.Helper()
	var root *tree.Entry
	got := ""
	defer func() {
		if r.t.Failed() {
			r.t.Logf("the tree is %s", got)
		}
	}()
	r.until("the tree "+want, func(s *fold.Space) bool {
		src := s.Source(subjects.SourceID(id))
		if src == nil {
			return false
		}
		root = src.Tree.Root
		got = outline(root)
		return got == want
	})
	return root
}

// TestSvelteApplication shows the components of what Svelte's compiler makes:
// each instance by itself, in the components that use it, also those without an
// element of their own, and what they render for others.
func TestSvelteApplication(t *testing.T) {
	r := newRig(t)
	app := r.svelte()
	ctx := tab(t)
	id := r.open(ctx, app.URL+"/")
	const islands = " Bare(Item Item) Bare(Item Item)"
	root := r.untilOutline(id, "page(App(Card(Item) Item Item Provider(Item))"+islands+")")
	shop := root.Children[0]
	for e, want := range map[*tree.Entry]string{shop: "src/App.svelte:9", shop.Children[0]: "src/Card.svelte:5", shop.Children[1]: "src/Item.svelte:5", shop.Children[3]: "src/App.svelte:15", root.Children[1]: "src/Bare.svelte"} {
		if e.Loc != want || len(e.Values) != 0 {
			t.Errorf("%s is at %s with %v, want %s", e.Name, e.Loc, e.Values, want)
		}
	}
	one, two := shop.Children[1], shop.Children[2]
	if text, err := r.command(id, realm.Request{Method: realm.MethodHighlight, Params: []byte(fmt.Sprintf(`{"id":%d}`, two.ID))}); err != nil {
		t.Errorf("%s, %v", text, err)
	}
	natstest.Until(t, "the second item is highlighted", func() (there bool) {
		run(t, ctx, `
			const box = document.querySelector('natscope-overlay')?.shadowRoot.children[0].getBoundingClientRect();
			const item = document.querySelectorAll('ul li')[1].getBoundingClientRect();
			return box && item.height > 0 && ['x', 'y', 'width', 'height'].every(k => box[k] === item[k])`, &there)
		return there
	})

	run(t, ctx, `document.querySelector('#add').click()`, nil)
	root = r.untilOutline(id, "page(App(Card(Item) Item Item Item Provider(Item))"+islands+")")
	shop = root.Children[0]
	if shop.Children[1].ID != one.ID || shop.Children[2].ID != two.ID {
		t.Error("components that stay have other numbers")
	}
	run(t, ctx, `document.querySelector('#drop').click(); document.querySelector('#toggle').click()`, nil)
	root = r.untilOutline(id, "page(App(Card(Item) Item Item)"+islands+")")
	if root.Children[0].Children[1].ID != two.ID {
		t.Error("the item that stays has another number")
	}
	run(t, ctx, `document.querySelector('#toggle').click()`, nil)
	r.untilOutline(id, "page(App(Card(Item) Item Item Provider(Item))"+islands+")")
	if src := r.state().Source(subjects.SourceID(id)); src.FaultCount > 0 {
		t.Errorf("faults %+v", src.Faults)
	}
	var st struct {
		Faults    int
		LastFault string
	}
	if run(t, ctx, `return natscope.status()`, &st); st.Faults != 0 {
		t.Errorf("the client swallowed %+v", st)
	}
}
