package ingest

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestComponentFigures measures what a page pays whose components change with
// every frame: 200 of 10 001, each frame others. Seconds with natscope and
// without it alternate in one page.
//
//	go test ./producer/ingest -run TestComponentFigures -figures -v
func TestComponentFigures(t *testing.T) {
	r := newRig(t)
	app := r.app("")
	ctx := tab(t)
	measured(t, ctx)
	if err := chromedp.Do(ctx, chromedp.Navigate(app.URL+"/")); err != nil {
		t.Fatal(err)
	}
	rounds, frames := 1, 20
	if *figures {
		rounds, frames = 5, 120
	}
	run(t, ctx, `
		const { start } = await import('`+r.http.URL+`/client/client.js');
		const natscope = start({ url: '`+`ws' + '`+r.http.URL[4:]+`/ingest', token: '`+token+`', components: false });
		for (let i = 0; i < 500 && natscope.status().state !== 'up'; i++) await new Promise(r => setTimeout(r, 10));
		globalThis.bare = []; globalThis.shown = [];
		const root = natscope.component('App', {});
		for (let i = 0; i < 10000; i++) {
			const values = { n: 0, name: 'item ' + i };
			bare.push({ update: v => Object.assign(values, v) });
			const c = natscope.component('Item', values, root);
			shown.push({ update: v => { Object.assign(values, v); c.update(v) } });
		}
		await new Promise(r => setTimeout(r, 1000));
		let at = 0;
		globalThis.play = async (items, frames) => {
			const times = [];
			let last = performance.now();
			for (let f = 0; f < frames; f++) {
				await new Promise(requestAnimationFrame);
				const now = performance.now();
				times.push(now - last);
				last = now;
				for (let i = 0; i < 200; i++) items[at = (at + 37) % items.length].update({ n: f });
			}
			times.sort((a, b) => a - b);
			return { p50: times[frames >> 1], p95: times[Math.floor(frames * 0.95)], sum: times.reduce((a, b) => a + b) };
		};
	`, nil)
	cpu, p95 := make(map[string][]float64), make(map[string][]float64)
	measure := func(what, items string) {
		before := metrics(t, ctx)
		var got struct{ P95 float64 }
		run(t, ctx, fmt.Sprintf(`return play(%s, %d)`, items, frames), &got)
		cpu[what] = append(cpu[what], (metrics(t, ctx)["ThreadTime"]-before["ThreadTime"])*1000/float64(frames))
		p95[what] = append(p95[what], got.P95)
	}
	for range rounds {
		measure("1 bare", "bare")
		measure("2 nobody looks", "shown")
	}
	var st struct{ ID string }
	run(t, ctx, `return natscope.status()`, &st)
	r.look(st.ID, "s")
	for range rounds {
		measure("3 bare", "bare")
		measure("4 DevTools is open", "shown")
	}
	for _, what := range slices.Sorted(maps.Keys(cpu)) {
		t.Logf("%-20s %6.2f ms of the main thread for a frame, p95 of frames %.1f ms", what, middle(cpu[what]), middle(p95[what]))
	}
	if cpu["2 nobody looks"][0] <= 0 {
		t.Error("nothing was measured")
	}
}

func middle(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
