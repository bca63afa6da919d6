package source

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/natscope/natscope/subjects/internal/wiretest"
)

func TestVectors(t *testing.T) {
	cases := wiretest.Cases(t, "life.json")
	wiretest.Payloads(t, cases, map[string]any{TopicOpen: Descriptor{}, TopicUpdate: Update{}, TopicNotice: Notice{}, TopicClose: Close{}})
	var s State
	for _, c := range cases {
		before := s
		err := s.Apply(c.T, c.Topic, c.Data)
		if c.Error == "" && err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		if c.Error == "" {
			continue
		}
		if !errors.Is(err, ErrPayload) || !strings.Contains(err.Error(), c.Error) {
			t.Errorf("%s: the error is %v, want one that says %q", c.Name, err, c.Error)
		}
		if !reflect.DeepEqual(s, before) {
			t.Errorf("%s: a refused record changed the state", c.Name)
		}
	}
}

// TestLife follows one source from its start to its end.
func TestLife(t *testing.T) {
	var s State
	apply := func(at float64, topic, data string) {
		t.Helper()
		if err := s.Apply(at, topic, json.RawMessage(data)); err != nil {
			t.Fatal(err)
		}
	}
	apply(2, TopicOpen, `{"name":"Shop","kind":"client","realm":"r","origin":1000,"url":"/a","title":"A","visible":true}`)
	if !s.Opened || s.OpenedAt != 2 || s.Wall(5) != 1005 || s.Descriptor.Kind != KindClient {
		t.Errorf("opened as %+v", s)
	}
	apply(3, TopicUpdate, `{"url":"/b","visible":false}`)
	apply(3, TopicUpdate, `null`)
	if d := s.Descriptor; d.URL != "/b" || d.Title != "A" || d.Visible == nil || *d.Visible {
		t.Errorf("updated to %+v", d)
	}
	apply(3, TopicUpdate, `{"capabilities":["tree.edit"]}`)
	apply(3, TopicUpdate, `{"title":"A"}`)
	if c := s.Descriptor.Capabilities; len(c) != 1 || c[0] != "tree.edit" {
		t.Errorf("it can do %q", c)
	}
	apply(3, TopicUpdate, `{"capabilities":[]}`)
	if c := s.Descriptor.Capabilities; len(c) != 0 {
		t.Errorf("it can still do %q", c)
	}
	apply(4, TopicClose, `{"reason":"done"}`)
	if !s.Closed || s.ClosedAt != 4 || s.Reason != "done" {
		t.Errorf("closed as %+v", s)
	}
	apply(1, TopicOpen, `{"name":"Shop","kind":"host","realm":"r2","origin":2000}`)
	if s.Closed || s.Reason != "" || s.Descriptor.URL != "" || s.Descriptor.Kind != KindHost {
		t.Errorf("opened again as %+v", s)
	}
}

// FuzzApply shows that no record makes a reader panic, and that a refused one changes nothing.
func FuzzApply(f *testing.F) {
	for _, c := range wiretest.Cases(f, "life.json") {
		f.Add(c.Topic, []byte(c.Data))
	}
	f.Fuzz(func(t *testing.T, topic string, data []byte) {
		s := State{Descriptor: Descriptor{Name: "before", Realm: "r"}, Opened: true}
		before := s
		if err := s.Apply(1, topic, data); err != nil {
			if !errors.Is(err, ErrPayload) || !reflect.DeepEqual(s, before) {
				t.Fatalf("%v, and the state is %+v", err, s)
			}
			return
		}
		if w := s.Wall(1e15); w != w || w > 1e16 || s.Descriptor.Realm == "" {
			t.Fatalf("the state is %+v", s)
		}
	})
}

func TestWho(t *testing.T) {
	for want, d := range map[string]Descriptor{
		`"Orders", process 7 on web-1`:      {Name: "Orders", PID: 7, Hostname: "web-1", URL: "http://x/"},
		`"Shop", page http://shop.test/`:    {Name: "Shop", Kind: KindClient, URL: "http://shop.test/"},
		`""`:                                {},
		`"` + strings.Repeat("é", 50) + `"`: {Name: strings.Repeat("é", 80)},
	} {
		if got := d.Who(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := (Descriptor{Name: "x" + strings.Repeat("é", 80), Hostname: "\xff"}).Who(); !utf8.ValidString(got) {
		t.Errorf("%q is not UTF-8", got)
	}
}
