package ingest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/source"
)

func TestPageShowsUp(t *testing.T) {
	r := newRig(t)
	app := r.app(r.script())
	ctx := tab(t)
	id := r.open(ctx, app.URL+"/")
	run(t, ctx, `
		console.log('hello %s', 'page', {a: {b: 1}}, NaN);
		console.warn('careful');
		console.assert(true, 'not this');
		console.count('n'); console.count('n');
		setTimeout(() => { throw new TypeError('uncaught one') });
		Promise.reject(new Error('unhandled one'));
		void fetch('http://127.0.0.1:9/unhandled');
		globalThis.cart = natscope.component('Cart', {count: 2, items: ['a', 'b'], open: true});
		globalThis.item = natscope.component('CartItem', {name: 'Tea', price: 3.5}, cart);
		natscope.publish('shop.cart', {total: 7});
		let refused; try { natscope.publish('shop.cart', {total: NaN}) } catch (e) { refused = e.message }
		if (!/payload.total is NaN/.test(refused)) throw new Error('published NaN: ' + refused);
	`, nil)
	s := r.until("console, exceptions and tree", func(s *fold.Space) bool {
		src := s.Source(subjects.SourceID(id))
		return src != nil && len(src.Console.Entries) >= 7 && src.Tree.Len() == 3
	})
	src := s.Source(subjects.SourceID(id))
	d := src.Life.Descriptor
	if d.Kind != source.KindClient || d.Title != "Home" || d.URL != app.URL+"/" || d.Visible == nil || !strings.HasPrefix(d.Runtime, "Chrome ") {
		t.Errorf("descriptor %+v", d)
	}
	checkConsole(t, src)
	cart := src.Tree.Root.Children[0]
	if cart.Name != "Cart" || fmt.Sprint(cart.Attrs) != "[{count 2} {open true}]" || string(cart.Values["items"]) != `["a","b"]` || cart.Children[0].Name != "CartItem" {
		t.Errorf("cart %+v", cart)
	}
	backend := cart.Backend
	run(t, ctx, `for (let i = 0; i < 1000; i++) cart.update({count: i}); item.remove(); natscope.component('CartItem', {name: 'Milk'}, cart)`, nil)
	s = r.until("the change", func(s *fold.Space) bool {
		c := s.Source(subjects.SourceID(id)).Tree.Root.Children[0]
		return len(c.Children) == 1 && fmt.Sprint(c.Attrs) == "[{count 999} {open true}]" && fmt.Sprint(c.Children[0].Attrs) == "[{name Milk}]"
	})
	src = s.Source(subjects.SourceID(id))
	if src.Tree.Root.Children[0].Backend != backend {
		t.Error("an update replaced the node")
	}
	if src.Tree.Commit > 5 || src.FaultCount > 0 {
		t.Errorf("a thousand updates took %d commits, and made the faults %+v", src.Tree.Commit, src.Faults)
	}
	run(t, ctx, `document.title = 'Changed'; history.pushState({}, '', '/client-side')`, nil)
	r.until("title and address", func(s *fold.Space) bool {
		d := s.Source(subjects.SourceID(id)).Life.Descriptor
		return d.Title == "Changed" && d.URL == app.URL+"/client-side"
	})
}

func checkConsole(t *testing.T, src *fold.Source) {
	t.Helper()
	var got []string
	for _, e := range src.Console.Entries {
		if m := e.Message; m != nil {
			args, _ := json.Marshal(m.Args)
			got = append(got, m.Type+" "+string(args))
			// The call came from a script that DevTools evaluated, which has no address of its own.
			for _, f := range m.Stack {
				if strings.Contains(f.URL, "/client/") {
					t.Errorf("the stack shows our own frame %+v", f)
				}
			}
		}
		if x := e.Exception; x != nil {
			var v struct{ Message string }
			_ = json.Unmarshal(x.Value, &v)
			got = append(got, x.Text+" "+v.Message)
		}
	}
	slices.Sort(got)
	want := []string{
		"Uncaught (in promise) Failed to fetch",
		"Uncaught (in promise) unhandled one",
		"Uncaught uncaught one",
		`count ["n: 1"]`,
		`count ["n: 2"]`,
		`log ["hello %s","page",{"a":{"__natscope":"dehydrated","type":"object","preview":"{b: 1}","size":1}},{"__natscope":"number","value":"NaN"}]`,
		`warning ["careful"]`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("console:\n%s\nwanted:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestPageIsUntouched compares a page beside an ingest that is not there with one without natscope, and after stop.
func TestPageIsUntouched(t *testing.T) {
	r := newRig(t)
	app := r.app(r.script())
	r.closeServer()
	ctx := tab(t)
	if err := chromedp.Do(ctx, chromedp.Navigate(app.URL+"/")); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Sum, Lost, Before, After int
		Native, Gone, Text       string
	}
	run(t, ctx, `
		for (let i = 0; i < 200 && !globalThis.natscope; i++) await new Promise(r => setTimeout(r, 10));
		const out = {sum: 0};
		for (let i = 0; i < 9000; i++) { console.debug('x', i); out.sum++ }
		out.text = await (await fetch('/json')).text();
		out.lost = natscope.status().lost;
		const c = natscope.component('X', {});
		natscope.stop();
		c.update({a: 1}); c.remove();
		out.native = [fetch, console.log, Response.prototype.text, Object.getOwnPropertyDescriptor(Response.prototype, 'body').get].map(f => /native code/.test(f)).join();
		out.gone = String(globalThis.natscope) + String(globalThis.natscopeReady);
		return out;
	`, &got)
	if got.Sum != 9000 || got.Text != `{"items":[1,2,3]}` {
		t.Errorf("the page was disturbed: %+v", got)
	}
	if got.Lost < 9000-8192-10 {
		t.Errorf("%d records are known as lost: queues are not bounded", got.Lost)
	}
	if got.Native != "true,true,true,true" || got.Gone != "undefinedundefined" {
		t.Errorf("stop left something: %+v", got)
	}
}

// TestRefusedPage says in the page's own console what is wrong.
func TestRefusedPage(t *testing.T) {
	r := newRig(t)
	app := r.app(`<script>globalThis.warned = []; const w = console.warn; console.warn = (...a) => { warned.push(a.join(' ')); w(...a) }</script>
		<script type="module" src="` + r.http.URL + `/client.js?token=wrong"></script>`)
	ctx := tab(t)
	if err := chromedp.Do(ctx, chromedp.Navigate(app.URL+"/")); err != nil {
		t.Fatal(err)
	}
	var warned []string
	natstest.Until(t, "the warning", func() bool {
		run(t, ctx, `return warned`, &warned)
		return len(warned) > 0
	})
	if len(warned) != 1 || !strings.Contains(warned[0], "token is missing or wrong") {
		t.Errorf("warnings %q", warned)
	}
	var state string
	if run(t, ctx, `return natscope.status().state`, &state); state != "stopped" {
		t.Errorf("the client goes on in state %s", state)
	}
}
