package ingest

import (
	"context"
	"flag"
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// figures makes the tests of this package that measure take as long as figures need.
// They assert no times, which a machine that is busy would break.
var figures = flag.Bool("figures", false, "measure what the client costs in a real page")

// TestCallFigures measures what console calls and fetches take of a page's main
// thread, in processor time, until everything is sent. Rounds with natscope and
// without it alternate in one page; between the bursts of a round the page
// returns to its event loop, as pages do.
//
//	go test ./producer/ingest -run TestCallFigures -figures -v
func TestCallFigures(t *testing.T) {
	r := newRig(t)
	app := r.app("")
	ctx := tab(t)
	measured(t, ctx)
	if err := chromedp.Do(ctx, chromedp.Navigate(app.URL+"/")); err != nil {
		t.Fatal(err)
	}
	rounds, calls := 1, 50
	if *figures {
		rounds, calls = 7, 1000
	}
	run(t, ctx, `
		const { start } = await import('`+r.http.URL+`/client/client.js');
		const tick = ms => new Promise(done => setTimeout(done, ms));
		const deep = (n, f) => n > 0 ? deep(n - 1, f) : f();
		globalThis.begin = async () => {
			start({ url: '`+`ws' + '`+r.http.URL[4:]+`/ingest', token: '`+token+`', components: false });
			for (let i = 0; i < 500 && natscope.status().state !== 'up'; i++) await tick(10);
		};
		globalThis.end = async () => { const { lost } = natscope.status(); natscope.stop(); await tick(100); return lost; };
		globalThis.calls = {
			text: async n => { for (let i = 0; i < n; i += 50) { deep(5, () => { for (let k = 0; k < 50; k++) console.debug('a line', i) }); await tick(1) } await tick(300) },
			object: async n => { for (let i = 0; i < n; i += 50) { deep(5, () => { for (let k = 0; k < 50; k++) console.debug('a line', { id: i, name: 'tea', tags: ['a', 'b'], price: { amount: 3.5 } }) }); await tick(1) } await tick(300) },
			fetch: async n => { for (let i = 0; i < n / 10; i++) await (await fetch('/json')).text(); await tick(300) },
		};
	`, nil)
	got := make(map[string][]float64)
	var lost float64
	for range rounds {
		for _, with := range []bool{false, true} {
			if with {
				run(t, ctx, `await begin()`, nil)
			}
			for _, what := range []string{"text", "object", "fetch"} {
				before := metrics(t, ctx)
				run(t, ctx, fmt.Sprintf(`await calls.%s(%d)`, what, calls), nil)
				n := float64(calls)
				if what == "fetch" {
					n /= 10
				}
				key := fmt.Sprintf("%s %v", what, with)
				got[key] = append(got[key], (metrics(t, ctx)["ThreadTime"]-before["ThreadTime"])*1e6/n)
			}
			if with {
				run(t, ctx, `return await end()`, &lost)
			}
		}
	}
	for _, what := range []string{"text", "object", "fetch"} {
		t.Logf("%-7s %7.1f µs of the main thread with natscope, %7.1f µs without", what, middle(got[what+" true"]), middle(got[what+" false"]))
	}
	if lost != 0 {
		t.Errorf("%v records were lost by a page that returns to its event loop", lost)
	}
}

// measured makes a tab count the processor time of its main thread, and turns off
// what a browser does for those who debug it: a console call costs ten times as
// much while its own DevTools look.
func measured(t *testing.T, ctx context.Context) {
	t.Helper()
	for _, disable := range []cdp.Command[cdp.Empty, cdp.Empty]{runtime.Disable, log.Disable, network.Disable} {
		if _, err := chromedp.Call(ctx, disable, cdp.Empty{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := chromedp.Call(ctx, performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks}); err != nil {
		t.Fatal(err)
	}
}

// metrics returns what a tab counts, times in seconds.
func metrics(t *testing.T, ctx context.Context) map[string]float64 {
	t.Helper()
	res, err := chromedp.Call(ctx, performance.GetMetrics, cdp.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]float64)
	for _, m := range res.Metrics {
		out[m.Name] = m.Value
	}
	return out
}
