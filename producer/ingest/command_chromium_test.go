package ingest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/tree"
)

// counter is a page with a component that can be edited and pointed at.
const counter = `
document.body.innerHTML = '<style>* { all: unset } div { display: block !important; margin: 99px } natscope-overlay { opacity: 0.5 !important; translate: 9px 9px !important; color-scheme: dark !important } natscope-overlay { display: none !important } ::backdrop { background: red !important; display: block !important }</style><main style="position:absolute;margin:0;left:40px;top:60px;width:200px;height:80px"><button id=b style="position:absolute;left:10px;top:10px;width:50px;height:20px">x</button></main>';
globalThis.clicks = 0;
document.querySelector('#b').addEventListener('click', () => clicks++);
globalThis.state = { count: 1, list: [{ n: 1 }], fixed: 'f' };
globalThis.app = natscope.component('App', {}, undefined, { element: () => document.querySelector('main') });
globalThis.counter = natscope.component('Counter', state, app, {
  set: {
    count(v) { if (typeof v !== 'number' || v < 0) throw new RangeError('count must be 0 or more'); state.count = v; counter.update(state); },
    list(v) { state.list = v; counter.update(state); },
  },
  element: document.querySelector('#b'),
  loc: 'counter.js:3',
});
return [app.id, counter.id];`

// value returns a value of a component as readers know it.
func value(s *fold.Space, id string, node tree.NodeID, name string) string {
	src := s.Source(subjects.SourceID(id))
	if src == nil || src.Tree.Node(node) == nil {
		return ""
	}
	return string(src.Tree.Node(node).Values[name])
}

// TestCommandsInChromium asks a real page, as DevTools would.
func TestCommandsInChromium(t *testing.T) {
	r := newRig(t)
	app := r.app(r.script())
	ctx := tab(t)
	id := r.open(ctx, app.URL)
	var ids []tree.NodeID
	run(t, ctx, counter, &ids)
	r.until("the component is known", func(s *fold.Space) bool { return value(s, id, ids[1], "count") == "1" })
	do := func(m realm.Method, params string) (string, error) {
		t.Helper()
		return r.command(id, realm.Request{Method: m, Params: json.RawMessage(params), Session: &realm.Session{Gateway: "gw", ID: "s"}})
	}
	must := func(m realm.Method, params string) string {
		t.Helper()
		result, err := do(m, params)
		if err != nil {
			t.Fatalf("%s %s: %v", m, params, err)
		}
		return result
	}
	node := fmt.Sprintf(`{"id":%d`, ids[1])

	t.Run("edit", func(t *testing.T) {
		must(realm.MethodEdit, node+`,"symbol":"count","value":5}`)
		must(realm.MethodEdit, node+`,"symbol":"list","path":[0,"n"],"value":"new"}`)
		s := r.until("the edits come back", func(s *fold.Space) bool { return value(s, id, ids[1], "count") == "5" })
		if n := s.Source(subjects.SourceID(id)).Tree.Node(ids[1]); strings.Join(n.Writable, " ") != "count list" || n.Loc != "counter.js:3" {
			t.Errorf("%+v", n.Node)
		}
		if got := must(realm.MethodInspect, node+`,"path":["list",0]}`); got != `{"value":{"n":"new"}}` {
			t.Error(got)
		}
		if _, err := do(realm.MethodEdit, node+`,"symbol":"count","value":-5}`); !errors.Is(err, realm.ErrFailed) || err.Error() != "count must be 0 or more" {
			t.Error(err)
		}
		if _, err := do(realm.MethodEdit, node+`,"symbol":"fixed","value":1}`); !errors.Is(err, realm.ErrRefused) {
			t.Error(err)
		}
	})
	overlay := func() (out struct {
		N           int
		Label       string
		X, Y, W, H  float64
		Transparent bool
		Style       string
	}) {
		t.Helper()
		run(t, ctx, `
			const hosts = document.querySelectorAll('natscope-overlay');
			if (hosts.length === 0) return { n: 0 };
			const [box, label] = hosts[0].shadowRoot.children;
			const b = box.getBoundingClientRect();
			return { n: hosts.length, label: label.textContent, x: b.x, y: b.y, w: b.width, h: b.height, transparent: document.elementFromPoint(b.x + 5, b.y + 5)?.id === 'b',
				style: [...['display', 'opacity', 'translate', 'pointerEvents', 'zIndex'].map(k => getComputedStyle(hosts[0])[k]), getComputedStyle(hosts[0], '::backdrop').display].join() };`, &out)
		return out
	}
	t.Run("highlight", func(t *testing.T) {
		must(realm.MethodHighlight, node+`}`)
		if o := overlay(); o.N != 1 || o.Label != "Counter  50 × 20" || o.X != 50 || o.Y != 70 || o.W != 50 || o.H != 20 || !o.Transparent || o.Style != "block,1,none,none,2147483647,none" {
			t.Errorf("%+v", o)
		}
		run(t, ctx, `document.querySelector('main').style.top = '160px'`, nil)
		natstest.Until(t, "the box follows its element", func() bool { return overlay().Y == 170 })
		run(t, ctx, `document.querySelector('main').style.top = '60px'`, nil)
		must(realm.MethodHighlight, fmt.Sprintf(`{"id":%d}`, ids[0]))
		if o := overlay(); o.N != 1 || o.Label != "App  200 × 80" {
			t.Errorf("%+v", o)
		}
		must(realm.MethodHighlight, `{"id":0}`)
		if o := overlay(); o.N != 0 {
			t.Errorf("%+v", o)
		}
	})
	t.Run("pick", func(t *testing.T) {
		sub, err := r.conn.SubscribeSync(subjects.EventsOf(space, "gw"))
		if err != nil {
			t.Fatal(err)
		}
		event := func(want string) {
			t.Helper()
			m, err := sub.NextMsg(10 * time.Second)
			if err != nil || !strings.Contains(string(m.Data), want) {
				t.Fatalf("%v, %v; want %s", m, err, want)
			}
		}
		must(realm.MethodPick, `{"active":true}`)
		if err := chromedp.Do(ctx, chromedp.MouseEvent("mouseMoved", 200, 120)); err != nil {
			t.Fatal(err)
		}
		event(`"highlighted","t":`)
		if o := overlay(); o.Label != "App  200 × 80" {
			t.Errorf("%+v", o)
		}
		if err := chromedp.Do(ctx, chromedp.MouseClickXY(60, 80)); err != nil {
			t.Fatal(err)
		}
		event(fmt.Sprintf(`"data":{"id":%d}`, ids[1]))
		event(`"picked"`)
		var clicks int
		run(t, ctx, `return clicks`, &clicks)
		if o := overlay(); clicks != 0 || o.N != 0 {
			t.Errorf("the page heard of %d clicks; %+v", clicks, o)
		}
		must(realm.MethodPick, `{"active":true}`)
		if err := chromedp.Do(ctx, chromedp.KeyEvent(kb.Escape)); err != nil {
			t.Fatal(err)
		}
		event(`"data":{"id":0}`)
		if err := chromedp.Do(ctx, chromedp.MouseClickXY(60, 80)); err != nil {
			t.Fatal(err)
		}
		run(t, ctx, `return clicks`, &clicks)
		if clicks != 1 {
			t.Errorf("after the pick the page heard of %d clicks", clicks)
		}
	})
	t.Run("the rest", func(t *testing.T) {
		if got := must(realm.MethodStoreGlobal, node+`,"symbol":"list"}`); got != `{"name":"$r"}` {
			t.Error(got)
		}
		must(realm.MethodLog, node+`}`)
		if _, err := do(realm.MethodOpen, `{"loc":"counter.js:3"}`); !errors.Is(err, realm.ErrRefused) {
			t.Errorf("a server that opens no files: %v", err)
		}
		run(t, ctx, `natscope.reveal(counter)`, nil)
		natstest.Until(t, "the reveal is published", func() bool {
			for _, m := range r.nats.Read(subjects.RecordStreamName(space)) {
				if strings.Contains(string(m.Data), fmt.Sprintf(`"topic":"natscope.reveal","data":{"id":%d}`, ids[1])) {
					return true
				}
			}
			return false
		})
	})
	t.Run("stop", func(t *testing.T) {
		must(realm.MethodHighlight, node+`}`)
		must(realm.MethodPick, `{"active":true}`)
		var left struct {
			Overlay, Global, Clicks int
		}
		run(t, ctx, `const same = $r === state.list; natscope.stop(); document.querySelector('#b').click();
			return { overlay: document.querySelectorAll('natscope-overlay').length, global: '$r' in globalThis ? 1 : same ? 0 : 2, clicks }`, &left)
		if left.Overlay != 0 || left.Global != 0 || left.Clicks != 2 {
			t.Errorf("%+v", left)
		}
	})
}
