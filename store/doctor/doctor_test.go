package doctor

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natscope/natscope/store"
	"github.com/natscope/natscope/store/internal/natstest"
	"github.com/natscope/natscope/subjects"
)

const space subjects.Space = "dev"

// examine runs all checks, listening only as long as a test can afford.
func examine(t *testing.T, conn *nats.Conn) []Finding {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return Examine(ctx, conn, space, 300*time.Millisecond)
}

// find returns the worst finding of a check.
func find(t *testing.T, found []Finding, check string) Finding {
	t.Helper()
	rank := map[Level]int{OK: 1, Warn: 2, Fail: 3}
	var worst Finding
	for _, f := range found {
		if f.Check == check && rank[f.Level] > rank[worst.Level] {
			worst = f
		}
	}
	if worst.Check == "" {
		t.Fatalf("no finding about %s in %+v", check, found)
	}
	return worst
}

func runStore(t *testing.T, s *natstest.Server) *store.Store {
	t.Helper()
	st, err := store.Start(context.Background(), store.Options{Conn: s.Connect(), Space: space})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopStore(t, st) })
	return st
}

func stopStore(t *testing.T, st *store.Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := st.Close(ctx); err != nil {
		t.Errorf("close the store: %v", err)
	}
}

func TestHealthy(t *testing.T) {
	s := natstest.Start(t)
	runStore(t, s)
	js := s.JetStream()
	src := natstest.NewSource(t, js, space, "orders")
	src.Open()
	conn := s.Connect()
	var found []Finding
	natstest.Until(t, 10*time.Second, "a clean bill of health", func() bool {
		stop := make(chan struct{})
		go func() {
			defer close(stop)
			src.Beat()
			for range 2 {
				<-time.After(100 * time.Millisecond)
				src.Beat()
			}
		}()
		found = examine(t, conn)
		<-stop
		for _, f := range found {
			if f.Level != OK {
				return false
			}
		}
		return true
	})
	if f := find(t, found, "sources"); f.Text != "1 saved, 1 of them alive, 1 heard" {
		t.Errorf("sources: %s", f.Text)
	}
}

func TestNoJetStream(t *testing.T) {
	found := examine(t, natstest.StartWithout(t).Connect())
	if f := find(t, found, "JetStream"); f.Level != Fail || !strings.Contains(f.Fix, "-js") {
		t.Errorf("got %+v", f)
	}
}

func TestNothingThere(t *testing.T) {
	found := examine(t, natstest.Start(t).Connect())
	for _, name := range []string{"NATSCOPE_REC_dev", "NATSCOPE_BODY_dev", "NATSCOPE_AUDIT_dev", "KV_NATSCOPE_STATE_dev"} {
		if f := find(t, found, "stream "+name); f.Level != Fail || !strings.Contains(f.Fix, "natscope store") {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func TestNoStoreRuns(t *testing.T) {
	s := natstest.Start(t)
	js := s.JetStream()
	stopStore(t, runStore(t, s))
	natstest.NewSource(t, js, space, "orders").Open()
	found := examine(t, s.Connect())
	if f := find(t, found, "stores"); f.Level != Fail || !strings.Contains(f.Fix, "natscope store") {
		t.Errorf("got %+v", f)
	}
}

func TestDangerousStream(t *testing.T) {
	s := natstest.Start(t)
	js := s.JetStream()
	ctx := context.Background()
	if err := store.EnsureStreams(ctx, js, space, subjects.Storage{}); err != nil {
		t.Fatal(err)
	}
	c := subjects.RecordStream(space, subjects.Storage{})
	c.AllowRollup, c.AllowMsgSchedules = true, true
	if _, err := js.UpdateStream(ctx, c); err != nil {
		t.Fatal(err)
	}
	f := find(t, examine(t, s.Connect()), "stream NATSCOPE_REC_dev")
	if f.Level != Fail || !strings.Contains(f.Text, "wipe") || !strings.Contains(f.Text, "publish as another") {
		t.Errorf("got %+v", f)
	}
}

func TestDifferencesSeeEachSetting(t *testing.T) {
	rec, st := subjects.RecordStream(space, subjects.Storage{}), subjects.StateStream(space, subjects.Storage{})
	if d := append(differences(rec, rec), differences(st, st)...); len(d) != 0 {
		t.Errorf("what we make differs from what we want: %q", d)
	}
	for name, change := range map[string]func(*jetstream.StreamConfig){
		"subjects":  func(c *jetstream.StreamConfig) { c.Subjects = nil },
		"retention": func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy },
		"discard":   func(c *jetstream.StreamConfig) { c.Discard = 1 - c.Discard },
		"direct":    func(c *jetstream.StreamConfig) { c.AllowDirect = false },
		"atomic":    func(c *jetstream.StreamConfig) { c.AllowAtomicPublish = !c.AllowAtomicPublish },
		"history":   func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 5 },
		"size":      func(c *jetstream.StreamConfig) { c.MaxMsgSize = 100 },
		"sealed":    func(c *jetstream.StreamConfig) { c.Sealed = true },
	} {
		got := st
		change(&got)
		if d := differences(got, st); len(d) != 1 {
			t.Errorf("%s: found %q", name, d)
		}
	}
}

func TestMalformedHeartbeats(t *testing.T) {
	s := natstest.Start(t)
	runStore(t, s)
	conn := s.Connect()
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		for range 5 {
			_ = conn.Publish(subjects.Heartbeat(space, "orders"), []byte("{"))
			<-time.After(50 * time.Millisecond)
		}
	}()
	if f := find(t, examine(t, conn), "heartbeats"); f.Level != Warn {
		t.Errorf("got %+v", f)
	}
	<-stop
}

func TestOlder(t *testing.T) {
	for _, c := range []struct {
		v    string
		want bool
	}{{"2.11.9", true}, {"2.12.0", false}, {"2.15.2", false}, {"3.0.0", false}, {"1.99.99", true}, {"2.12.0-RC.1", false}, {"", false}, {"dev", false}} {
		if got := older(c.v, "2.12.0"); got != c.want {
			t.Errorf("older(%q) = %v", c.v, got)
		}
	}
}
