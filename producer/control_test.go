package producer_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/source"
)

// ask sends a control request to the present generation.
func ask(t testing.TB, nc *nats.Conn, p *producer.Producer, request string) subjects.ControlAnswer {
	t.Helper()
	m, err := nc.Request(subjects.Control(space, p.ID(), p.Generation()), []byte(request), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var a subjects.ControlAnswer
	if err := json.Unmarshal(m.Data, &a); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestControl(t *testing.T) {
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{Memory: true})
	nc := s.Connect()
	p := start(t, producer.Options{URL: s.URL(), ID: "svc"})
	var asked atomic.Int64
	p.OnSnapshot(func() []subjects.Record {
		n := asked.Add(1)
		if n == 2 {
			panic("no snapshot today")
		}
		return []subjects.Record{{Topic: "snapshot", Data: fmt.Appendf(nil, `{"version":1,"profile":"component","revision":%d,"root":{"id":1,"name":"app"}}`, n)}}
	})
	flush(t, p)
	if a := ask(t, nc, p, `{"kind":"admitted"}`); !a.OK {
		t.Errorf("%+v", a)
	}
	natstest.Until(t, "it is admitted", func() bool { return p.Stats().Admitted })
	for i := range 3 {
		if a := ask(t, nc, p, `{"kind":"resnapshot","reason":"records were lost"}`); !a.OK {
			t.Errorf("%+v", a)
		}
		natstest.Until(t, "the tree is sent again", func() bool { return p.Stats().Snapshots == uint64(i+1) })
	}
	for _, bad := range []string{`{"kind":"dance"}`, `{`, ``, `[]`, `"x"`} {
		if a := ask(t, nc, p, bad); a.OK || a.Error == "" {
			t.Errorf("%s: %+v", bad, a)
		}
	}
	count(p, 0, 3)
	flush(t, p)
	if src := only(t, folded(t, s)); src.Tree.Revision != 3 {
		t.Errorf("tree revision %d", src.Tree.Revision)
	}
}

func TestIDTaken(t *testing.T) {
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{Memory: true})
	nc := s.Connect()
	p := start(t, producer.Options{URL: s.URL(), ID: "svc", Name: "the service"})
	p.OnSnapshot(func() []subjects.Record {
		return []subjects.Record{{Topic: "snapshot", Data: json.RawMessage(`{"version":1,"profile":"component","revision":1,"root":{"id":1,"name":"app"}}`)}}
	})
	title := "before"
	p.Update(source.Update{Title: &title})
	count(p, 0, 5)
	flush(t, p)
	old := p.Generation()
	for i, want := range []subjects.SourceID{"svc-2", "svc-3"} {
		if a := ask(t, nc, p, `{"kind":"id-taken","reason":"it answers"}`); !a.OK {
			t.Fatalf("%+v", a)
		}
		natstest.Until(t, "it opens again", func() bool { st := p.Stats(); return st.ID == want && st.Opened })
		count(p, 0, 5)
		flush(t, p)
		if st := p.Stats(); st.Reopened != uint64(i+1) || !strings.Contains(st.LastError, string(want)) {
			t.Errorf("%+v", st)
		}
	}
	if p.Generation() <= old {
		t.Errorf("generation %s follows %s", p.Generation(), old)
	}
	wantCount(t, numbers(t, s, "svc"), 5)
	wantCount(t, numbers(t, s, "svc-3"), 5)
	src := folded(t, s).Source("svc-3")
	if src.FaultCount != 1 || !strings.Contains(src.Faults[0].Text, "svc-2, so this one is svc-3") || src.Tree.Len() != 1 || src.Life.Descriptor.Title != "before" || src.Name() != "the service" {
		t.Errorf("faults %v, %d nodes, %+v", src.Faults, src.Tree.Len(), src.Life.Descriptor)
	}
	_, err := nc.Request(subjects.Control(space, "svc", old), nil, time.Second)
	if !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("the old generation still answers: %v", err)
	}
}

func TestHeartbeats(t *testing.T) {
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{Memory: true})
	nc := s.Connect()
	beats := make(chan subjects.Beat, 100)
	if _, err := nc.Subscribe(subjects.HeartbeatsOf(space), func(m *nats.Msg) {
		b, err := subjects.ParseBeat(m.Data)
		if err != nil {
			t.Errorf("%s: %v", m.Data, err)
		}
		beats <- b
	}); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	p := start(t, producer.Options{URL: s.URL(), Limits: subjects.Limits{Heartbeat: 20 * time.Millisecond}})
	count(p, 0, 10)
	p.Lost(subjects.PlaneNet, 3)
	flush(t, p)
	deadline := time.After(10 * time.Second)
	for n := 0; n < 5; {
		select {
		case b := <-beats:
			if b.Generation != p.Generation() {
				t.Fatalf("%+v", b)
			}
			if b.Seqs[subjects.PlaneEvent] == 10 && b.Seqs[subjects.PlaneLife] == 1 && b.Dropped[subjects.PlaneNet] == 3 {
				n++
			}
		case <-deadline:
			t.Fatal("no heartbeats with the right numbers")
		}
	}
}
