package trials

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/natscope/natscope/store/state"
	"github.com/natscope/natscope/subjects"
)

// saved is up to where the state bucket covers the record stream; 0 while there is nothing.
func saved(t testing.TB, js jetstream.JetStream) uint64 {
	t.Helper()
	s, err := js.Stream(t.Context(), subjects.StateStreamName(subjects.DefaultSpace))
	if err != nil {
		return 0
	}
	m, err := s.GetLastMsgForSubject(t.Context(), subjects.StateSubject(subjects.DefaultSpace, state.CursorSource, state.CursorPart))
	if err != nil {
		return 0
	}
	var c state.Cursor
	if err := json.Unmarshal(m.Data, &c); err != nil {
		t.Fatalf("the cursor %s: %v", m.Data, err)
	}
	return uint64(c.Covered)
}

// goesOn waits until the state covers everything that is in the record stream now.
func goesOn(t testing.TB, js jetstream.JetStream, within time.Duration, after string) time.Duration {
	t.Helper()
	s, err := js.Stream(t.Context(), subjects.RecordStreamName(subjects.DefaultSpace))
	if err != nil {
		t.Fatal(err)
	}
	target := s.CachedInfo().State.LastSeq
	return explained(t, within, func() (bool, string) {
		now := saved(t, js)
		return now >= target, fmt.Sprintf("the state covers message %d after %s; it covers %d", target, after, now)
	})
}

// TestStoresDieInTurn: two stores keep a space while sources publish. One after
// the other is killed or frozen, and the other goes on. In the end a reader that
// comes late has what one has that was there from the start.
func TestStoresDieInTurn(t *testing.T) {
	srv := startServer(t)
	js := jetStream(t, srv.url())
	config := storeConfig{URL: srv.url()}
	stores := []*process{spawn(t, "store", config, nil), spawn(t, "store", config, nil)}
	v := openView(t, "a reader from the start", srv.url(), subjects.Limits{})
	loads := []*load{startLoad(t, srv.url(), "orders", 500), startLoad(t, srv.url(), "billing", 100)}
	for _, l := range loads {
		explained(t, patience, v.becomes(t, l))
	}
	goesOn(t, js, patience, "the start")
	for i := range 4 {
		k := i % 2
		stores[k].kill()
		t.Logf("saved again %v after a store was killed", goesOn(t, js, 3*time.Second, "a store was killed"))
		stores[k] = spawn(t, "store", config, nil)
	}
	for k := range 2 {
		stores[k].freeze()
		t.Logf("saved again %v after a store was frozen", goesOn(t, js, 3*time.Second, "a store was frozen"))
		// The frozen one misses a good deal before it goes on where it stood.
		from, _ := stream(t, js)
		until(t, patience, "the stream moves on", func() bool { now, _ := stream(t, js); return now > from+200 })
		stores[k].thaw()
		goesOn(t, js, 3*time.Second, "the frozen store is back")
	}
	for _, l := range loads {
		l.finish(t)
		v.verify(t, l)
	}
	goesOn(t, js, 3*time.Second, "the end")
	want := dumpOf(v.Replica)
	for _, s := range stores {
		s.terminate(10 * time.Second)
		if d := differ(want, dumpOf(openView(t, "a late reader", srv.url(), subjects.Limits{}).Replica)); d != "" {
			t.Errorf("a late reader holds something else: %s", d)
		}
	}
}

// stream returns the last and the first sequence of the record stream.
func stream(t testing.TB, js jetstream.JetStream) (last, first uint64) {
	t.Helper()
	s, err := js.Stream(t.Context(), subjects.RecordStreamName(subjects.DefaultSpace))
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().State.LastSeq, s.CachedInfo().State.FirstSeq
}
