package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/subjects"
)

// told returns what events say, without those that frame them.
func told(events []query.Event) []string {
	var out []string
	for _, e := range events {
		switch e.Kind {
		case query.EventConsole:
			out = append(out, "log "+e.Console.Text)
		case query.EventRequest:
			out = append(out, e.Request.State+" "+e.Request.URL)
		case query.EventSource:
			if e.Removed {
				out = append(out, "removed "+string(e.SourceID))
			} else {
				out = append(out, e.Source.State+" "+string(e.SourceID))
			}
		case query.EventCommit:
			out = append(out, "commit "+strconv.FormatUint(e.Commit.Number, 10))
		case query.EventPublished:
			out = append(out, "event "+e.Event.Topic)
		default:
			out = append(out, e.Kind)
		}
	}
	return out
}

func TestWatchTellsEverything(t *testing.T) {
	m := newMemory(t, subjects.Limits{})
	e := newEngine(t, m)
	p := m.open("a")
	p.log("log", "before")
	p.call("r0", "/old", 200)
	w := must(t, e.Watch, query.WatchRequest{})
	if got := strings.Join(told(w.Events), ", "); got != "connected a, finished /old, log before, ready" {
		t.Fatalf("snapshot: %s", got)
	}
	p.log("log", "after")
	p.call("r1", "/new", 200)
	p.tree(1, 2)
	p.update(2, 2, 7)
	p.send(subjects.PlaneEvent, "cache", map[string]int{"hits": 3})
	m.Presence("a", false)
	m.Remove("a")
	w = must(t, e.Watch, query.WatchRequest{After: w.Next})
	if got := strings.Join(told(w.Events), ", "); got != "log after, running /new, running /new, finished /new, commit 1, commit 2, event cache, disconnected a, removed a" {
		t.Fatalf("then: %s", got)
	}
	if w = must(t, e.Watch, query.WatchRequest{After: w.Next}); len(w.Events) != 0 {
		t.Errorf("and then: %v", told(w.Events))
	}
}

// TestWatchIsOneStep: while a program writes, any number of watches see each
// line exactly once, first in the snapshot and then as an event.
func TestWatchIsOneStep(t *testing.T) {
	const lines = 3000
	m := newMemory(t, subjects.Limits{ConsoleEntries: lines})
	e := newEngine(t, m)
	p := m.open("a")
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			next := 0
			q := query.WatchRequest{Kinds: []string{query.EventConsole}, Last: query.MaxLast, WaitMS: 5000}
			for end := time.Now().Add(20 * time.Second); next < lines; {
				a, err := e.Watch(t.Context(), q)
				if err != nil || time.Now().After(end) {
					t.Errorf("at %d: %v", next, err)
					return
				}
				for _, ev := range a.Events {
					if ev.Kind != query.EventConsole {
						continue
					}
					n, _ := strconv.Atoi(ev.Console.Text)
					if n != next && next > 0 {
						t.Errorf("%d came, %d was next", n, next)
						return
					}
					next = n + 1
				}
				q.After = a.Next
			}
		})
	}
	for i := range lines {
		p.log("log", i)
	}
	group.Wait()
}

// TestWatchMovesBetweenGateways: a watch goes on at another engine over the same stream.
func TestWatchMovesBetweenGateways(t *testing.T) {
	m := newMemory(t, subjects.Limits{})
	here, there := newEngine(t, m), newEngine(t, m)
	p := m.open("a")
	must(t, there.Watch, query.WatchRequest{})
	w := must(t, here.Watch, query.WatchRequest{})
	p.log("log", "1")
	w = must(t, here.Watch, query.WatchRequest{After: w.Next})
	p.log("log", "2")
	p.log("log", "3")
	w = must(t, there.Watch, query.WatchRequest{After: w.Next})
	if got := told(w.Events); !slices.Equal(got, []string{"connected a", "log 2", "log 3"}) {
		t.Errorf("at the other gateway: %v", got)
	}
	// One that began later cannot know, and says so.
	late := newEngine(t, m)
	p.log("log", "4")
	w = must(t, late.Watch, query.WatchRequest{After: w.Next})
	if got := strings.Join(told(w.Events), ", "); !strings.HasPrefix(got, "reset, connected a") || !strings.Contains(got, "log 4") {
		t.Errorf("at a gateway that began later: %s", got)
	}
}

// TestSlowWatchIsReset: a watch that is slower than the journal is long learns that it missed something.
func TestSlowWatchIsReset(t *testing.T) {
	m := newMemory(t, subjects.Limits{ConsoleEntries: 10})
	e := newEngine(t, m)
	p := m.open("a")
	w := must(t, e.Watch, query.WatchRequest{})
	for i := range maxJournal + 100 {
		p.log("log", i)
	}
	w = must(t, e.Watch, query.WatchRequest{After: w.Next})
	if w.Events[0].Kind != query.EventReset || w.Events[0].Reason == "" {
		t.Fatalf("events: %v", told(w.Events))
	}
	p.log("log", "x")
	if w = must(t, e.Watch, query.WatchRequest{After: w.Next}); fmt.Sprint(told(w.Events)) != "[log x]" {
		t.Errorf("after the reset: %v", told(w.Events))
	}
}

func TestWatchWaits(t *testing.T) {
	m := newMemory(t, subjects.Limits{})
	e := newEngine(t, m)
	p := m.open("a")
	now := must(t, e.Watch, query.WatchRequest{After: query.Now})
	if len(now.Events) != 0 {
		t.Fatalf("a watch from now on begins with %v", told(now.Events))
	}
	done := make(chan query.WatchAnswer)
	go func() {
		a, _ := e.Watch(t.Context(), query.WatchRequest{After: now.Next, WaitMS: 10_000, Filter: "level == 'error'"})
		done <- a
	}()
	p.log("log", "no")
	p.log("error", "yes")
	select {
	case a := <-done:
		if fmt.Sprint(told(a.Events)) != "[log yes]" {
			t.Errorf("events: %v", told(a.Events))
		}
	case <-time.After(10 * time.Second):
		t.Error("the watch did not wake")
	}
}

func FuzzMark(f *testing.F) {
	f.Add("ABCDEFGH-1-lz5n1s00-7")
	f.Add("---")
	f.Fuzz(func(t *testing.T, s string) {
		m, err := parseMark(query.Mark(s))
		if err != nil {
			return
		}
		if again, err := parseMark(query.Mark(m.String())); err != nil || again != m {
			t.Errorf("%q: %+v, again %+v, %v", s, m, again, err)
		}
	})
}

// TestJournalEnds: when nobody has watched for a while, the state is not followed any more.
func TestJournalEnds(t *testing.T) {
	m := newMemory(t, subjects.Limits{})
	e := newEngine(t, m)
	p := m.open("a")
	w := must(t, e.Watch, query.WatchRequest{})
	if m.Watchers() != 1 {
		t.Fatal("a watch does not follow the state, so this test shows nothing")
	}
	e.journal.idle()
	if m.Watchers() != 1 {
		t.Error("it ended at once")
	}
	e.journal.mu.Lock()
	e.journal.used = time.Now().Add(-journalIdle)
	e.journal.mu.Unlock()
	e.journal.idle()
	if m.Watchers() != 0 {
		t.Error("it follows the state for ever")
	}
	p.log("log", "meanwhile")
	w = must(t, e.Watch, query.WatchRequest{After: w.Next})
	if got := strings.Join(told(w.Events), ", "); !strings.HasPrefix(got, "reset") || !strings.Contains(got, "log meanwhile") {
		t.Errorf("after it: %s", got)
	}
}
