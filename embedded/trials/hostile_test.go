package trials

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
)

// limitedStorage is small, everybodyStays keeps more disconnected sources than there are names.
var (
	limitedStorage = subjects.Storage{RecordBytes: 64 << 20}
	everybodyStays = subjects.Limits{DisconnectedTrees: 100}
)

// closeSoon ends a producer whose server may be gone.
func closeSoon(p *producer.Producer) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = p.Close(ctx)
}

// flushed waits until everything that a producer recorded is acknowledged.
func flushed(t testing.TB, p *producer.Producer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := p.Flush(ctx); err != nil {
		t.Fatalf("%s: %v; %+v", p.ID(), err, p.Stats())
	}
}

// evil is a payload that panics when it is encoded.
type evil struct{}

func (evil) MarshalJSON() ([]byte, error) { panic("no") }

// liar says that it is JSON and is not.
type liar struct{}

func (liar) MarshalJSON() ([]byte, error) { return []byte(`{"a":`), nil }

// payloads is what programs record by mistake, and what has to be said of it.
func payloads() map[string]struct {
	value any
	// says is what stands in the record in its place.
	says string
} {
	type cycle struct{ Next *cycle }
	round := &cycle{}
	round.Next = round
	var deep any = 1
	for range 20_000 {
		deep = []any{deep}
	}
	return map[string]struct {
		value any
		says  string
	}{
		"NaN":               {math.NaN(), "NaN"},
		"infinity":          {math.Inf(-1), "-Inf"},
		"cycle":             {round, "cycle"},
		"cyclic map":        {cyclicMap(), "cycle"},
		"channel":           {make(chan int), "chan"},
		"function":          {func() {}, "func"},
		"panic":             {evil{}, "panic: no"},
		"not JSON":          {json.RawMessage(`{"a":`), "invalid"},
		"a lie":             {liar{}, "invalid"},
		"invalid UTF-8":     {"a\xffb", `a\ufffdb`},
		"raw invalid UTF-8": {json.RawMessage("\"a\xffb\""), "a\ufffdb"},
		"deep":              {deep, "natscope"},
		"raw deep":          {json.RawMessage(strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)), "natscope"},
		"huge string":       {strings.Repeat("x", 5<<20), `"bytes":52428`},
		"huge list":         {make([]int, 2<<20), `"bytes":41943`},
		"line breaks":       {json.RawMessage("{\n\"a\":\r\n1}"), `"a":`},
		"lone surrogate":    {json.RawMessage(`"\ud800"`), ""},
		"nothing":           {nil, "null"},
	}
}

func cyclicMap() map[string]any {
	m := make(map[string]any)
	m["m"] = m
	return m
}

// keeper keeps the newest event of each topic.
type keeper struct {
	view *view
	got  map[string][]string
}

func (k *keeper) Changed(_ *fold.Space, changes []fold.Change) {
	for _, c := range changes {
		if c.Kind == fold.EventPublished {
			k.got[c.Event.Topic] = append(k.got[c.Event.Topic], string(c.Event.Data))
		}
	}
}

// TestHostilePayloads: what no program should record becomes a valid record that
// says what was wrong, on every plane, and the connection lives.
func TestHostilePayloads(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	startStore(t, srv.url(), limitedStorage, subjects.Limits{})
	v := openView(t, "a reader", srv.url(), subjects.Limits{})
	k := &keeper{view: v, got: make(map[string][]string)}
	v.Watch(nil, k)
	p, err := producer.Start(producer.Options{Service: "hostile", Instance: "1", URL: srv.url()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeSoon(p) })
	all := payloads()
	for name, x := range all {
		p.Record(subjects.PlaneEvent, name, x.value)
		for _, plane := range []subjects.Plane{subjects.PlaneNet, subjects.PlaneConsole, subjects.PlaneTree, subjects.PlaneLife, "no-such-plane", "*"} {
			p.Record(plane, "unknown topic", x.value)
		}
	}
	p.Record(subjects.PlaneEvent, "", 1)
	p.Record(subjects.PlaneEvent, strings.Repeat("t\xff", 5000), 2)
	p.RecordAt(subjects.PlaneEvent, "times", math.NaN(), nil)
	p.RecordAt(subjects.PlaneEvent, "times", math.Inf(1), nil)
	if err := p.Publish("ok.*.>. .服务", 3); err != nil {
		t.Error(err)
	}
	for name, x := range all {
		switch name {
		case "line breaks", "nothing", "lone surrogate":
		default:
			if err := p.Publish("strict", x.value); err == nil {
				t.Errorf("Publish took the payload %q without a word", name)
			}
		}
	}
	flushed(t, p)
	stats := p.Stats()
	id := p.ID()
	explained(t, patience, func() (bool, string) {
		missing := "the source"
		v.source(id, func(s *fold.Source) {
			missing = ""
			for plane, ps := range stats.Planes {
				if x := s.Planes[plane]; ps.Recorded > 0 && (x == nil || x.Records != ps.Recorded) {
					missing += fmt.Sprintf(" of plane %s %+v, recorded %+v", plane, x, ps)
				}
			}
		})
		return missing == "", "all records are there:" + missing
	})
	v.source(id, func(s *fold.Source) {
		if s.FaultCount != 0 || s.Lost() != 0 {
			t.Errorf("%d lost, faults %+v", s.Lost(), s.Faults)
		}
	})
	v.View(func(*fold.Space) {
		for name, x := range all {
			got := strings.Join(k.got[name], " ")
			if len(k.got[name]) != 1 || !json.Valid([]byte(got)) || !strings.Contains(got, x.says) || len(got) > 512<<10 {
				t.Errorf("payload %q became %.200s, which does not say %q", name, got, x.says)
			}
		}
	})
	if stats.LastError != "" || !stats.Connected || stats.Reopened != 0 {
		t.Errorf("the connection suffered: %+v", stats)
	}
}

// TestMalformedMessages: a bad client publishes what it likes on the subjects of
// another source and of sources that do not exist. That changes nothing, is
// counted as a fault of the source, and harms no reader.
func TestMalformedMessages(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	st := startStore(t, srv.url(), limitedStorage, subjects.Limits{})
	views := []*view{watch("the store", st.Replica()), openView(t, "a reader", srv.url(), subjects.Limits{})}
	l := startLoad(t, srv.url(), "victim", 200)
	for _, v := range views {
		explained(t, patience, v.becomes(t, l))
	}
	l.finish(t)
	id, g := l.p.ID(), l.p.Generation()
	v := views[1]
	until(t, patience, "the reader has everything", func() bool { return v.newest(id) == l.n.Load() })
	before := withoutFaults(dumpOf(v.Replica))
	nc := connect(t, srv.url())
	good := nats.Header{subjects.HeaderVersion: {"1"}, subjects.HeaderSeq: {"1000000"}, subjects.HeaderCount: {"1"}}
	with := func(key, value string) nats.Header {
		h := nats.Header{}
		for k, v := range good {
			h[k] = v
		}
		h[key] = []string{value}
		return h
	}
	record := []byte(`{"t":1,"topic":"message","data":{}}` + "\n")
	bad := []struct {
		h    nats.Header
		data []byte
	}{
		{nil, nil}, {nil, record}, {good, nil}, {good, []byte("{")}, {good, []byte("\xff\xfe\n")}, {good, []byte("[]\n")},
		{good, append(record, record...)}, {good, []byte(`{"t":1}` + "\n")}, {good, []byte(`{"t":1e300,"topic":"x"}` + "\n")},
		{with(subjects.HeaderVersion, "2"), record}, {with(subjects.HeaderVersion, "x"), record},
		{with(subjects.HeaderSeq, "0"), record}, {with(subjects.HeaderSeq, "-1"), record}, {with(subjects.HeaderSeq, "18446744073709551615"), record},
		{with(subjects.HeaderCount, "99999999999"), record}, {with(subjects.HeaderCount, ""), record},
		{with(subjects.HeaderEncoding, "zstd"), record}, {with(subjects.HeaderEncoding, "gzip"), record}, {with(subjects.HeaderDropped, "many"), record},
	}
	planes := []subjects.Plane{subjects.PlaneLife, subjects.PlaneTree, subjects.PlaneNet, subjects.PlaneConsole}
	for _, plane := range planes {
		for _, m := range bad {
			for _, to := range []subjects.SourceID{id, "nobody"} {
				subject := subjects.RecordSubject{Space: subjects.DefaultSpace, Source: to, Generation: g, Plane: plane}.String()
				if err := nc.PublishMsg(&nats.Msg{Subject: subject, Header: m.h, Data: m.data}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, subject := range []string{"natscope.dev.rec.x", "natscope.dev.rec.X.Y.Z", "natscope.dev.rec.a.b.life.more", "natscope.dev.body.a.b.c.d", "natscope.dev.hb.victim-1", "natscope.dev.hb.X"} {
		if err := nc.Publish(subject, []byte("garbage")); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	want := uint64(len(planes) * len(bad))
	for _, v := range views {
		explained(t, patience, func() (ok bool, text string) {
			v.source(id, func(s *fold.Source) {
				ok, text = s.FaultCount == want, fmt.Sprintf("%s counts %d faults: %d, %+v", v.name, want, s.FaultCount, s.Faults)
			})
			return ok, text
		})
		if d := differ(before, withoutFaults(dumpOf(v.Replica))); d != "" {
			t.Errorf("%s: malformed messages changed something: %s", v.name, d)
		}
		explained(t, patience, func() (bool, string) {
			s := v.Status()
			return s.BadBeats == 1 && s.Stray > want, fmt.Sprintf("%s counts one bad heartbeat and the messages of nobody: %+v", v.name, s)
		})
		if s := v.Status(); s.Sources != 1 || s.Panics != 0 || s.Waiting != "" {
			t.Errorf("%s: %+v", v.name, s)
		}
		// The true producer goes on as if nothing had been.
		if !v.connected(id) {
			t.Errorf("%s: the victim is shown as gone", v.name)
		}
	}
	_ = l.p.Publish(numbered, l.n.Add(1))
	flushed(t, l.p)
	for _, v := range views {
		until(t, patience, v.name+" follows the true producer", func() bool { return v.newest(id) == l.n.Load() })
	}
}

// withoutFaults leaves out of a dump what malformed messages are meant to change.
func withoutFaults(lines []string) (out []string) {
	for _, l := range lines {
		if !strings.HasPrefix(l, "source ") && !strings.HasPrefix(l, "faults ") {
			out = append(out, l)
		}
	}
	return out
}
