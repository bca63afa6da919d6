package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/source"
)

// One browser serves all tests, each with tabs of its own.
var chromium struct {
	once   sync.Once
	ctx    context.Context
	cancel []context.CancelFunc
	err    error
}

// tab opens a tab. A machine without Chromium fails, rather than passing without a look.
func tab(t *testing.T) context.Context {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: no browser")
	}
	chromium.once.Do(startChromium)
	if chromium.err != nil {
		t.Fatalf("these tests need Chromium (scripts/test installs it; -short leaves them out): %v", chromium.err)
	}
	ctx, cancel := chromedp.NewContext(chromium.ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func startChromium() {
	path, err := exec.LookPath("chromium")
	if err != nil {
		chromium.err = err
		return
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		// Tabs in the background are what half of these tests are about.
		chromedp.Flag("disable-features", "Translate,LocalNetworkAccessChecks"),
	)
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	chromium.cancel = append(chromium.cancel, cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	chromium.cancel = append(chromium.cancel, cancel)
	chromium.ctx = ctx
	chromium.err = chromedp.Do(ctx)
}

func stopChromium() {
	if chromium.ctx != nil && chromium.err == nil {
		_ = chromedp.Cancel(chromium.ctx)
	}
	for _, cancel := range slices.Backward(chromium.cancel) {
		cancel()
	}
}

// app is a web application on another port than the ingest, as real ones are.
func (r *rig) app(script string) *httptest.Server {
	mux := http.NewServeMux()
	page := func(title, more string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<!doctype html><title>%s</title><link rel=icon href=data:,>%s%s", title, script, more)
		}
	}
	mux.HandleFunc("GET /{$}", page("Home", ""))
	mux.HandleFunc("GET /calls", page("Calls", "<script src=/app.js></script>"+script))
	mux.HandleFunc("GET /app.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		fmt.Fprint(w, "addEventListener('natscope:ready', function ready() {\n  console.log('from the app');\n  fetch('/json');\n});\n")
	})
	mux.HandleFunc("GET /other", page("Other", ""))
	mux.HandleFunc("GET /json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		fmt.Fprint(w, `{"items":[1,2,3]}`)
	})
	mux.HandleFunc("POST /echo", func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("X-Two", "a")
		w.WriteHeader(201)
		_, _ = fmt.Fprint(w, "echo")
	})
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "id: %d\nevent: tick\ndata: line %d\ndata: more\n\n", i, i)
			w.(http.Flusher).Flush()
		}
	})
	mux.HandleFunc("GET /endless", func(w http.ResponseWriter, req *http.Request) {
		for req.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
			w.(http.Flusher).Flush()
		}
	})
	mux.HandleFunc("GET /hang", func(w http.ResponseWriter, req *http.Request) { <-req.Context().Done() })
	s := httptest.NewServer(mux)
	r.t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (r *rig) script() string {
	return `<script type="module" src="` + r.http.URL + `/client.js?token=` + token + `"></script>`
}

// run runs JavaScript, awaits its promise and decodes its value.
func run(t *testing.T, ctx context.Context, js string, v any) {
	t.Helper()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`(async () => JSON.stringify(await (async () => { `+js+` })()) ?? 'null')()`, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: %v", js, err)
	}
	if v != nil {
		if err := json.Unmarshal([]byte(text), v); err != nil {
			t.Fatalf("%s: %s: %v", js, text, err)
		}
	}
}

// open navigates and waits until the page is admitted; it returns the source's id.
func (r *rig) open(ctx context.Context, url string) string {
	r.t.Helper()
	if err := chromedp.Do(ctx, chromedp.Navigate(url)); err != nil {
		r.t.Fatal(err)
	}
	return r.up(ctx)
}

// up waits until the page of a tab is admitted and returns its source's id.
func (r *rig) up(ctx context.Context) string {
	r.t.Helper()
	var st struct{ State, ID, LastFault string }
	natstest.Until(r.t, "the page connects", func() bool {
		run(r.t, ctx, `return globalThis.natscope ? natscope.status() : {}`, &st)
		return st.State == "up"
	})
	return st.ID
}

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

// request waits until the request to a path has ended, and returns it.
func (r *rig) request(id, path string) *network.Request {
	r.t.Helper()
	var found *network.Request
	r.until("the request to "+path+" ends", func(s *fold.Space) bool {
		for _, q := range s.Source(subjects.SourceID(id)).Net.Requests {
			if strings.HasSuffix(q.Start.Value.URL, path) && q.Ending != network.Running {
				found = q
				return true
			}
		}
		return false
	})
	return found
}

// bodyOf returns the captured body of a request and why it ended.
func (r *rig) bodyOf(q *network.Request, dir subjects.Direction) (data, end string) {
	for _, m := range r.nats.Read(subjects.BodyStreamName(space)) {
		s, err := subjects.ParseBody(m.Subject)
		if err != nil || string(s.Generation) != q.Generation || s.Request != q.ID() || s.Direction != dir {
			continue
		}
		if c, err := subjects.ParseBodyChunk(subjects.Header(m.Header)); err == nil {
			data += string(m.Data)
			end = c.End
		}
	}
	return data, end
}

func TestPageFetches(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Limits.ResponseBodyBytes = 1 << 20 })
	app := r.app(r.script())
	ctx := tab(t)
	id := r.open(ctx, app.URL+"/")
	var result struct{ JSON, Echo, Stream, Aborted, Refused, Same string }
	run(t, ctx, `
		const out = {};
		out.json = JSON.stringify(await (await fetch('/json')).json());
		const echo = await fetch('/echo', {method: 'post', headers: {'X-One': '1'}, body: 'payload ü'});
		out.echo = echo.status + await echo.text();
		const events = await fetch('/events');
		let text = '';
		for await (const chunk of events.body.pipeThrough(new TextDecoderStream())) text += chunk;
		out.stream = String(text.length);
		const stop = new AbortController();
		const hang = fetch('/hang', {signal: stop.signal});
		stop.abort();
		out.aborted = await hang.catch(e => e.name);
		out.refused = await fetch('http://127.0.0.1:9/refused').catch(e => e.name);
		const endless = await fetch('/endless');
		const reader = endless.body.getReader();
		out.same = String(endless.body === endless.body && endless instanceof Response && endless.bodyUsed === false && endless.body.locked);
		let n = 0;
		while (n < 3 << 20) n += (await reader.read()).value.length;
		await reader.cancel();
		await fetch('/json?unread');
		return out;
	`, &result)
	if result.JSON != `{"items":[1,2,3]}` || result.Echo != "201echo" || result.Stream == "0" || result.Aborted != "AbortError" || result.Refused != "TypeError" || result.Same != "true" {
		t.Errorf("the page saw %+v", result)
	}

	q := r.request(id, "/json")
	if q.Ending != network.Finished || q.Response.Value.Status != 200 || q.Response.Value.MIMEType != "application/json" || q.Response.Value.Charset != "utf-8" || q.End.Bytes != 17 || q.Start.Value.Type != "fetch" {
		t.Errorf("/json: %+v %+v", q, q.End)
	}
	r.untilBody(q, subjects.ResponseBody, `{"items":[1,2,3]}`, subjects.BodyComplete)

	q = r.request(id, "/echo")
	if q.Start.Value.Method != "POST" || !q.Start.Value.HasBody || q.Response.Value.Status != 201 || q.BodyEnd == nil || q.BodyEnd.Value.Bytes != 10 {
		t.Errorf("/echo: %+v", q)
	}
	if !slices.ContainsFunc(q.Start.Value.Headers, func(h network.Header) bool { return strings.EqualFold(h[0], "x-one") && h[1] == "1" }) {
		t.Errorf("/echo: headers %v", q.Start.Value.Headers)
	}
	r.untilBody(q, subjects.RequestBody, "payload ü", subjects.BodyComplete)

	q = r.request(id, "/events")
	if len(q.Messages) != 3 || q.Messages[2].Value.Data != "line 2\nmore" || q.Messages[2].Value.Event != "tick" || q.Messages[2].Value.EventID != "2" {
		t.Errorf("/events: messages %+v", q.Messages)
	}
	if q = r.request(id, "/hang"); q.Ending != network.Canceled {
		t.Errorf("/hang ended as %q", q.Ending)
	}
	if q = r.request(id, "/refused"); q.Ending != network.Failed || q.Error.Text == "" {
		t.Errorf("/refused ended as %q", q.Ending)
	}
	q = r.request(id, "/endless")
	if q.Ending != network.FinishedTruncated || !q.End.Canceled || q.End.Captured != 1<<20 || q.End.Bytes < 3<<20 {
		t.Errorf("/endless: %+v", q.End)
	}
	if q = r.request(id, "/json?unread"); q.Ending != network.FinishedTruncated || q.End.Bytes != 0 {
		t.Errorf("unread: %q %+v", q.Ending, q.End)
	}
	var st struct {
		Faults    int
		LastFault string
	}
	if run(t, ctx, `return natscope.status()`, &st); st.Faults != 0 {
		t.Errorf("the client swallowed %+v", st)
	}
}

func (r *rig) untilBody(q *network.Request, dir subjects.Direction, data, end string) {
	r.t.Helper()
	natstest.Until(r.t, fmt.Sprintf("the %s body of %s", dir, q.Start.Value.URL), func() bool {
		d, e := r.bodyOf(q, dir)
		return d == data && e == end
	})
}

// TestCallSites is about the links that people click in Console and Network: they lead to the page's code.
func TestCallSites(t *testing.T) {
	r := newRig(t)
	app := r.app(r.script())
	ctx := tab(t)
	id := r.open(ctx, app.URL+"/calls") // with two script lines, which are one client
	q := r.request(id, "/json")
	src := r.state().Source(subjects.SourceID(id))
	if len(src.Console.Entries) != 1 || src.Net.Started != 1 {
		t.Fatalf("%d console entries and %d requests", len(src.Console.Entries), src.Net.Started)
	}
	for what, c := range map[string]struct {
		stack []network.Frame
		line  int
	}{"log": {src.Console.Entries[0].Message.Stack, 2}, "fetch": {q.Start.Value.Stack, 3}} {
		want := network.Frame{Function: "ready", URL: app.URL + "/app.js", Line: c.line}
		if len(c.stack) == 0 {
			t.Errorf("%s: no stack", what)
			continue
		}
		got := c.stack[0]
		if got.Column == 0 {
			t.Errorf("%s: no column", what)
		}
		if got.Column = 0; got != want {
			t.Errorf("%s: called from %+v, wanted %+v", what, got, want)
		}
	}
}

// TestForeignPage opens a page whose origin is not admitted, and then admits it.
func TestForeignPage(t *testing.T) {
	var app *httptest.Server
	foreign := func() string { return strings.Replace(app.URL, "127.0.0.1", "app.localhost", 1) }
	r := newRig(t)
	app = r.app(r.script())
	ctx := tab(t)
	if err := chromedp.Do(ctx, chromedp.Navigate(foreign()+"/")); err != nil {
		t.Fatal(err)
	}
	natstest.Until(t, "the script is refused", func() bool { return r.Stats().Rejected["origin"] > 0 })
	var state string
	if run(t, ctx, `return typeof natscope`, &state); state != "undefined" {
		t.Errorf("a foreign page runs natscope")
	}
	r.closeServer()
	r.replace(func(o *Options) { o.Origins = []string{foreign()} })
	r.open(ctx, foreign()+"/")
}

// TestTabs is cases B11 and B12: load, reload, duplicate, duplicate of the duplicate, reload of the first.
func TestTabs(t *testing.T) {
	r := newRig(t)
	app := r.app(r.script())
	first := tab(t)
	id := r.open(first, app.URL+"/")
	generation := r.source(id).Generation
	reload := func() {
		run(t, first, `setTimeout(() => location.reload())`, nil)
		natstest.Until(t, "a new generation", func() bool { return r.source(id).Generation > generation })
		if got := r.up(first); got != id {
			t.Errorf("the reload has the id %s, before it was %s", got, id)
		}
		generation = r.source(id).Generation
	}
	reload()
	if n := len(r.state().Sources()); n != 1 {
		t.Errorf("%d sources after a reload", n)
	}
	second := duplicate(t, first)
	if got := r.up(second); got == id {
		t.Errorf("the copy took the id %s", got)
	}
	third := duplicate(t, second)
	r.up(third)
	if n := len(r.state().Sources()); n != 3 {
		t.Errorf("%d sources with two copies", n)
	}
	reload()
	if n := len(r.state().Sources()); n != 3 {
		t.Errorf("%d sources after a reload beside two copies", n)
	}
}

// TestTabsWithoutLocks is case B13: what Web Locks cannot tell, the ingest does.
func TestTabsWithoutLocks(t *testing.T) {
	r := newRig(t)
	app := r.app(`<script>Object.defineProperty(Navigator.prototype, 'locks', {value: undefined})</script>` + r.script())
	first := tab(t)
	id := r.open(first, app.URL+"/")
	second := duplicate(t, first)
	if got := r.up(second); got != id+"-2" {
		t.Errorf("the copy has the id %s, wanted %s-2", got, id)
	}
	if got := r.up(first); got != id {
		t.Errorf("the first lost its id to the copy and has %s", got)
	}
}

// TestBackForwardCache is case B14.
func TestBackForwardCache(t *testing.T) {
	r := newRig(t)
	app := r.app(r.script())
	ctx := tab(t)
	id := r.open(ctx, app.URL+"/")
	run(t, ctx, `globalThis.mark = 'kept'; natscope.component('Kept', {n: 1})`, nil)
	r.until("the tree", func(s *fold.Space) bool { return s.Source(subjects.SourceID(id)).Tree.Len() == 2 })
	run(t, ctx, `setTimeout(() => location.href = '/other')`, nil)
	r.until("the other page takes the id", func(s *fold.Space) bool {
		return s.Source(subjects.SourceID(id)).Life.Descriptor.Title == "Other"
	})
	r.up(ctx)
	run(t, ctx, `setTimeout(() => history.back())`, nil)
	r.until("the page is back with its tree", func(s *fold.Space) bool {
		src := s.Source(subjects.SourceID(id))
		return src.Life.Descriptor.Title == "Home" && !src.Life.Closed && src.Tree.Len() == 2 && !src.Tree.Detached
	})
	var mark string
	if run(t, ctx, `return String(globalThis.mark)`, &mark); mark != "kept" {
		t.Errorf("the page was not in the back/forward cache (mark %q): natscope must not keep it out", mark)
	}
	if n := len(r.state().Sources()); n != 1 {
		t.Errorf("%d sources", n)
	}
}

// TestServerRestart keeps every line once through a restart of the ingest.
func TestServerRestart(t *testing.T) {
	r := newRig(t)
	app := r.app(r.script())
	ctx := tab(t)
	id := r.open(ctx, app.URL+"/")
	run(t, ctx, `natscope.component('Stays', {}); globalThis.i = 0; globalThis.timer = setInterval(() => console.log('line ' + i++), 5)`, nil)
	r.until("lines", func(s *fold.Space) bool { return len(texts(s.Source(subjects.SourceID(id)))) > 10 })
	r.closeServer()
	r.replace()
	natstest.Until(t, "the page is admitted again", func() bool { return r.Stats().Admitted == 1 })
	r.up(ctx)
	var sent int
	run(t, ctx, `clearInterval(timer); console.log('line ' + i++); return i`, &sent)
	last := fmt.Sprintf("line %d", sent-1)
	s := r.until("the last line", func(s *fold.Space) bool {
		src := s.Source(subjects.SourceID(id))
		return src != nil && slices.Contains(texts(src), last) && src.Tree.Len() == 2 && !src.Tree.Detached
	})
	got := texts(s.Source(subjects.SourceID(id)))
	for i, text := range got {
		if text != fmt.Sprintf("line %d", i) {
			t.Fatalf("line %d of %d is %q", i, len(got), text)
		}
	}
	if len(got) != sent || len(s.Sources()) != 1 {
		t.Errorf("%d of %d lines, %d sources", len(got), sent, len(s.Sources()))
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
