package producer_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/subjects"
)

func TestOverflowDropsTheOldestAndSaysSo(t *testing.T) {
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{Memory: true})
	s.Stop()
	p := start(t, producer.Options{URL: s.URL(), Limits: subjects.Limits{QueueRecords: 100}})
	count(p, 0, 1000)
	p.Lost(subjects.PlaneEvent, 7)
	count(p, 1000, 1010)
	s.Run()
	s.Streams(space, subjects.Storage{Memory: true})
	flush(t, p)
	got := numbers(t, s, p.ID())
	if len(got) != 100 || got[0] != 910 || got[99] != 1009 {
		t.Errorf("%d records: %v", len(got), got)
	}
	src := folded(t, s).Sources()[0]
	if pl := src.Planes[subjects.PlaneEvent]; pl.Dropped != 917 || pl.Missed != 0 || pl.Next != 1018 {
		t.Errorf("plane %+v", pl)
	}
	if d := p.Stats().Planes[subjects.PlaneEvent].Dropped; d != 917 {
		t.Errorf("Stats count %d dropped", d)
	}
}

func TestTreeOverflowAsksForASnapshot(t *testing.T) {
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{Memory: true})
	s.Stop()
	p := start(t, producer.Options{URL: s.URL(), Limits: subjects.Limits{QueueRecords: 50}})
	var asked int
	p.OnSnapshot(func() []subjects.Record {
		asked++
		return []subjects.Record{{Topic: "snapshot", Data: json.RawMessage(`{"version":1,"profile":"component","revision":5000,"root":{"id":1,"name":"app"}}`)}}
	})
	for i := range 5000 {
		p.RecordAt(subjects.PlaneTree, "ops", 0, fmt.Appendf(nil, `{"revision":%d,"ops":[]}`, i+1))
	}
	s.Run()
	s.Streams(space, subjects.Storage{Memory: true})
	flush(t, p)
	p.RecordAt(subjects.PlaneTree, "ops", 0, json.RawMessage(`{"revision":5001,"ops":[{"op":"add","parent":1,"node":{"id":2,"name":"n"}}]}`))
	flush(t, p)
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	src := only(t, folded(t, s))
	if src.Tree.Revision != 5001 || src.Tree.Len() != 2 {
		t.Errorf("tree revision %d with %d nodes", src.Tree.Revision, src.Tree.Len())
	}
}

func TestHostileNamesAndPayloads(t *testing.T) {
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{Memory: true})
	names := []string{"a.b", "a b", "a:b", "服务", "*", ">", strings.Repeat("x", 5000), "a..b", "A", "a", "bad\xffutf8", "\n"}
	ids := make(map[subjects.SourceID]string)
	for _, n := range names {
		p := start(t, producer.Options{URL: s.URL(), Service: n, Instance: n})
		ids[p.ID()] = strings.ToValidUTF8(n, "\uFFFD")
		for _, topic := range names {
			if err := p.Publish(topic, n == "a"); (err == nil) != (len(topic) <= 256) {
				t.Errorf("Publish(%.20q): %v", topic, err)
			}
		}
		p.RecordAt(subjects.PlaneEvent, "", 0, json.RawMessage(`{"a":`))
		p.RecordAt(subjects.PlaneEvent, "lines", 0, json.RawMessage("{\n\"a\":\n\t[1,\r\n2]}"))
		p.RecordAt(subjects.PlaneEvent, "utf8", 0, json.RawMessage("\"\xff\xfe\""))
		p.RecordAt(subjects.PlaneEvent, "empty", 0, nil)
		p.RecordAt(subjects.PlaneEvent, "deep", 0, json.RawMessage(strings.Repeat("[", 5000)+strings.Repeat("]", 5000)))
		p.RecordAt(subjects.PlaneEvent, "inject", 0, json.RawMessage(`1,"topic":"other"`))
		p.Record(subjects.PlaneEvent, "func", func() {})
		p.Record(subjects.PlaneEvent, "panic", panics{})
		flush(t, p)
	}
	sp := folded(t, s)
	if len(sp.Sources()) != len(names) {
		t.Errorf("%d sources for %d names: %v", len(sp.Sources()), len(names), slices.Sorted(maps.Values(ids)))
	}
	for _, src := range sp.Sources() {
		for _, f := range src.Faults {
			t.Errorf("%s: %s", src.ID, f.Text)
		}
		if src.Name() != ids[src.ID] {
			t.Errorf("name %.40q, want %.40q", src.Name(), ids[src.ID])
		}
	}
	topics := make(map[string]string)
	for _, m := range s.Read(subjects.RecordStreamName(space)) {
		f, err := subjects.DecodeFrame(m.Header, m.Data)
		if err != nil {
			t.Fatalf("%s: %v", m.Subject, err)
		}
		for _, r := range f.Records {
			topics[r.Topic] = string(r.Data)
		}
	}
	for topic, want := range map[string]string{
		"unnamed": "not valid JSON", "lines": "[1,", "utf8": "\uFFFD", "deep": "not valid JSON",
		"inject": "not valid JSON", "func": "unsupported type", "panic": "panic: no",
	} {
		if !strings.Contains(topics[topic], want) {
			t.Errorf("topic %s: %.100s, want %s", topic, topics[topic], want)
		}
	}
}

type panics struct{}

func (panics) MarshalJSON() ([]byte, error) { panic("no") }
