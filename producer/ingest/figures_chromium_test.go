package ingest

import (
	"flag"
	"testing"

	"github.com/chromedp/chromedp"
)

var figures = flag.Bool("figures", false, "measure what the client costs in a real page")

// TestPageFigures measures and asserts no times, which a machine that is busy would break:
//
//	go test ./producer/ingest -run TestPageFigures -figures -v
func TestPageFigures(t *testing.T) {
	r := newRig(t)
	app := r.app("")
	ctx := tab(t)
	if err := chromedp.Do(ctx, chromedp.Navigate(app.URL+"/")); err != nil {
		t.Fatal(err)
	}
	rounds := "20"
	if *figures {
		rounds = "300"
	}
	var got map[string]float64
	run(t, ctx, `
		const rounds = `+rounds+`;
		const { start } = await import('`+r.http.URL+`/client/client.js');
		const middle = list => list.sort((a, b) => a - b)[list.length >> 1];
		const timed = async f => { const out = []; for (let i = 0; i < rounds; i++) { const t = performance.now(); await f(i); out.push(performance.now() - t) } return middle(out) };
		const batch = async f => (await timed(() => { for (let i = 0; i < 100; i++) f(i) })) * 10; // µs a call
		const out = {};
		const log = i => console.debug('a line', i, { i });
		const get = async () => { await (await fetch('/json')).text() };
		out['bare console µs'] = await batch(log);
		out['bare fetch ms'] = await timed(get);
		const t = performance.now();
		const natscope = start({ url: '`+`ws' + '`+r.http.URL[4:]+`/ingest', token: '`+token+`', components: false });
		out['start ms'] = performance.now() - t;
		for (let i = 0; i < 500 && natscope.status().state !== 'up'; i++) await new Promise(r => setTimeout(r, 10));
		out['captured console µs'] = await batch(log);
		out['captured fetch ms'] = await timed(get);
		const nodes = Array.from({ length: 2048 }, (_, i) => natscope.component('Item', { i, name: 'x' }));
		out['update of a component µs'] = await batch(i => nodes[i].update({ i }));
		out.lost = natscope.status().lost;
		return out;
	`, &got)
	if got["start ms"] <= 0 || got["captured console µs"] <= 0 {
		t.Errorf("%v", got)
	}
	for what, v := range got {
		t.Logf("%-26s %8.2f", what, v)
	}
}
