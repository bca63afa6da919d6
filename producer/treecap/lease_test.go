package treecap

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/natscope/natscope/subjects/realm"
)

// A session that says nothing more stops looking when its lease ends, and only that one.
func TestWatchLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []bool
		n := &Node{t: &Tree{}}
		c := &Component{node: n}
		Watched(func(on bool) {
			n.t.mu.Lock()
			defer n.t.mu.Unlock()
			told = append(told, on)
		}).apply(c)
		w := c.watching
		renew := func(id string) {
			n.t.mu.Lock()
			defer n.t.mu.Unlock()
			w.leases[realm.Session{ID: id}] = time.Now().Add(realm.WatchLease)
			n.t.lookers(w)
		}
		after := func(d time.Duration, want ...bool) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			n.t.mu.Lock()
			defer n.t.mu.Unlock()
			if len(told) != len(want) || len(want) > 0 && told[len(told)-1] != want[len(want)-1] {
				t.Fatalf("told %v, want %v", told, want)
			}
		}
		renew("dead")
		renew("alive")
		after(realm.WatchLease-time.Second, true)
		renew("alive")
		after(2*time.Second, true)
		n.t.mu.Lock()
		if len(w.leases) != 1 {
			t.Errorf("%d sessions look", len(w.leases))
		}
		n.t.mu.Unlock()
		after(realm.WatchLease, true, false)
		renew("back")
		after(time.Second, true, false, true)
		n.t.mu.Lock()
		n.t.unwatch(w)
		n.t.mu.Unlock()
		after(realm.WatchLease, true, false, true, false)
	})
}
