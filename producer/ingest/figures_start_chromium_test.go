package ingest

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"
)

// traced is what is needed of an event of a trace; times are in microseconds.
type traced struct {
	Name, Ph string
	Tdur     float64
	Tid, Pid int
	Args     struct {
		Data struct{ URL string }
	}
}

// TestStartFigures measures what loading the client takes of a page's main
// thread, in processor time as the browser's own trace has it: compiling and
// running the modules, and the calls of them in the first 0.7 seconds.
//
//	go test ./producer/ingest -run TestStartFigures -figures -v
func TestStartFigures(t *testing.T) {
	r := newRig(t)
	app := r.app(r.script())
	ctx := tab(t)
	var events []traced
	done := make(chan struct{}, 1)
	err := chromedp.Listen(ctx, func(ev any) {
		switch e := ev.(type) {
		case *tracing.EventDataCollected:
			for _, v := range e.Value {
				var x traced
				text, _ := json.Marshal(v)
				_ = json.Unmarshal(text, &x) // Other events have other arguments.
				events = append(events, x)
			}
		case *tracing.EventTracingComplete:
			done <- struct{}{}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	rounds := 1
	if *figures {
		rounds = 15
	}
	var load, later []float64
	for range rounds {
		if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
			t.Fatal(err)
		}
		events = nil
		if _, err := chromedp.Call(ctx, tracing.Start, tracing.StartParams{TransferMode: "ReportEvents", TraceConfig: &tracing.TraceConfig{IncludedCategories: []string{"devtools.timeline", "v8"}}}); err != nil {
			t.Fatal(err)
		}
		r.open(ctx, app.URL+"/")
		run(t, ctx, `await new Promise(r => setTimeout(r, 700))`, nil)
		if _, err := chromedp.Call(ctx, tracing.End, cdp.Empty{}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			t.Fatal("the trace did not end")
		}
		l, c := started(events)
		load, later = append(load, l), append(later, c)
	}
	t.Logf("%.2f ms to load, %.2f ms in calls after that", middle(load), middle(later))
	if middle(load) <= 0 {
		t.Error("nothing was measured")
	}
}

// started sums the milliseconds of the thread that runs the client: what loading takes, and what later calls do.
func started(events []traced) (load, later float64) {
	ours := func(e traced) bool { return strings.Contains(e.Args.Data.URL, "/client/") }
	var pid, tid int
	for _, e := range events {
		if e.Name == "FunctionCall" && ours(e) {
			pid, tid = e.Pid, e.Tid
		}
	}
	for _, e := range events {
		switch {
		case e.Ph != "X" || e.Pid != pid || e.Tid != tid:
		case e.Name == "v8.compileModule" && ours(e), e.Name == "v8.evaluateModule":
			load += e.Tdur / 1000
		case e.Name == "FunctionCall" && ours(e):
			later += e.Tdur / 1000
		}
	}
	return load, later
}
