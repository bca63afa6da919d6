package ingest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
)

// TestOfflinePage loses its network for longer than its session lives: it comes
// back by itself, as the same source, on one connection, with each line once.
func TestOfflinePage(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Resume = 200 * time.Millisecond })
	app := r.app(r.script())
	ctx := tab(t)
	id := r.open(ctx, app.URL+"/")
	run(t, ctx, `globalThis.i = 0; console.log('line ' + i++); natscope.component('Stays', { a: 1 })`, nil)
	r.until("the first line", func(s *fold.Space) bool { return slices.Contains(texts(s.Source(subjects.SourceID(id))), "line 0") })
	// What a cable that is pulled does: no socket ends in order, and none opens.
	server := r.current.Load()
	r.current.Store(offline)
	r.cut()
	natstest.Until(t, "the session ends", func() bool { return r.Stats().Pages == 0 })
	run(t, ctx, `for (let k = 0; k < 50; k++) console.log('line ' + i++)`, nil)
	var state string
	natstest.Until(t, "the page tries", func() bool {
		run(t, ctx, `return natscope.status().state`, &state)
		return state == "waiting" || state == "connecting"
	})
	r.current.Store(server)
	run(t, ctx, `dispatchEvent(new Event('online'))`, nil)
	r.up(ctx)
	run(t, ctx, `console.log('line ' + i++)`, nil)
	s := r.until("the last line", func(s *fold.Space) bool {
		return slices.Contains(texts(s.Source(subjects.SourceID(id))), "line 51")
	})
	src := s.Source(subjects.SourceID(id))
	got := texts(src)
	for k, text := range got {
		if text != fmt.Sprintf("line %d", k) {
			t.Fatalf("line %d is %q", k, text)
		}
	}
	if len(got) != 52 || len(s.Sources()) != 1 || src.FaultCount > 0 {
		t.Errorf("%d lines, %d sources, faults %+v", len(got), len(s.Sources()), src.Faults)
	}
	if st := r.Stats(); st.Connections != 1 {
		t.Errorf("%d connections", st.Connections)
	}
}
