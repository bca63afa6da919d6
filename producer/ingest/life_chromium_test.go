package ingest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
)

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
	copied := r.up(second)
	if copied == id {
		t.Errorf("the copy took the id %s", copied)
	}
	third := duplicate(t, second)
	if got := r.up(third); got == id || got == copied {
		t.Errorf("the copy of the copy took the id %s", got)
	}
	// A page knows its id before its opening is in the stream.
	r.until("three sources with two copies", func(s *fold.Space) bool { return len(s.Sources()) == 3 })
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
	r.until("the tree", func(s *fold.Space) bool {
		src := s.Source(subjects.SourceID(id))
		return src != nil && src.Tree.Len() == 2
	})
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
