package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// crowdPage has 10 000 components, of which every frame changes 200, and notes
// how long that took and how far the frames are apart.
const crowdPage = `<!doctype html><title>Crowd</title><link rel=icon href=data:,>
<script type=module>
const shown = [];
addEventListener('natscope:ready', () => {
  const app = natscope.component('App', {});
  for (let g = 0; g < 100; g++) {
    const group = natscope.component('Group', { g }, app);
    for (let i = 0; i < 99; i++) shown.push(natscope.component('Item', { i, n: 0 }, group));
  }
});
let n = 0;
let noted = [];
let last;
function frame(t) {
  const begin = performance.now();
  n++;
  for (let i = 0; i < 200 && shown.length > 0; i++) shown[(n * 200 + i) %% shown.length].update({ i, n });
  noted.push([performance.now() - begin, last === undefined ? 0 : t - last]);
  if (noted.length > 1000) noted.shift();
  last = t;
  requestAnimationFrame(frame);
}
requestAnimationFrame(frame);
globalThis.again = () => { noted = []; };
globalThis.frames = () => noted.length;
globalThis.figures = () => [0, 1].map(k => {
  const all = noted.map(x => x[k]).sort((a, b) => a - b);
  return { middle: all[all.length >> 1], most: all.at(-1), p95: all[Math.floor(all.length * 0.95)] };
});
</script>
%s`

// TestCrowdedPageKeepsItsFrames shows a page of 10 000 components of which some
// change in every frame: alone, with natscope while nobody looks, and with
// DevTools at its tree. Each time it goes on drawing, nothing in natscope fails,
// and DevTools follows. Times are told and not asserted.
func TestCrowdedPageKeepsItsFrames(t *testing.T) {
	x := startLive(t)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		script := ""
		if r.URL.Path != "/bare" {
			script = fmt.Sprintf("<script type=module src=%q></script>", x.ClientScript())
		}
		fmt.Fprintf(w, crowdPage, script)
	}))
	defer web.Close()
	b := browser(t)
	type figure struct{ Middle, P95, Most float64 }
	measure := func(p *page, what string) {
		t.Helper()
		eval[bool](p, `again(), true`)
		p.poll(what+" draws 120 frames", func() (bool, string) {
			n := eval[int](p, `frames()`)
			return n >= 120, fmt.Sprint(n, " frames")
		})
		f := eval[[]figure](p, `figures()`)
		t.Logf("%-12s updates of a frame: %5.2f ms, p95 %5.2f, most %5.2f; between frames: %5.1f ms, p95 %5.1f, most %5.1f",
			what, f[0].Middle, f[0].P95, f[0].Most, f[1].Middle, f[1].P95, f[1].Most)
	}
	measure(open(t, b, web.URL+"/bare"), "bare")
	p := open(t, b, web.URL)
	p.poll("the page is connected", func() (bool, string) {
		s := eval[string](p, `globalThis.natscope?.status().state ?? 'none'`)
		return s == "up", s
	})
	measure(p, "closed")
	d := openDevTools(t, b, x.DevTools())
	d.panel("elements")
	d.expand("clients", "client", "page", "App", "Group")
	measure(p, "open")
	before := strings.Join(d.tree(), "\n")
	d.poll("DevTools follows", func() (bool, string) {
		now := strings.Join(d.tree(), "\n")
		return now != before && strings.Contains(now, "<Item"), now
	})
	status := eval[struct {
		State, LastFault string
		Lost, Faults     int
	}](p, `natscope.status()`)
	if status.State != "up" || status.Faults != 0 {
		t.Errorf("%+v", status)
	}
	t.Logf("%+v", status)
	d.settle()
	d.screenshot("page-crowd")
	d.noErrors()
}
