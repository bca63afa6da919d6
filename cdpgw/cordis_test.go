package cdpgw

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/source"
	"github.com/natscope/natscope/subjects/tree"
)

// cordis is a space with a Cordis host, a Cordis page and a Go service.
func cordis(t testing.TB) *memory {
	m := newMemory(t, subjects.Limits{})
	m.open("host", gen1, source.Descriptor{Name: "bot", Kind: source.KindHost, Capabilities: []string{"tree"}})
	m.open("tab", gen1, source.Descriptor{Name: "console", Kind: source.KindClient})
	m.open("go", gen1, source.Descriptor{Name: "orders", Kind: source.KindHost})
	for i, id := range []subjects.SourceID{"host", "tab"} {
		root := &tree.Node{ID: 1, Kind: tree.KindContext, Name: "Context", Object: "o1", Children: []tree.Node{
			{ID: 2, Kind: tree.KindFiber, Name: "Fiber", Object: "o2", Attrs: []tree.Attr{{Name: "uid", Value: fmt.Sprint(i + 4)}}, Children: []tree.Node{
				{ID: 3, Kind: tree.KindContext, Name: "Context", Object: "o3"},
			}},
		}}
		m.Publish(id, gen1, subjects.PlaneTree, record(1, tree.TopicSnapshot, tree.Snapshot{Version: tree.SchemaVersion, Profile: tree.ProfileCordis, Revision: 3, Registry: "r", Root: root}))
		if f := m.Space().Source(id).Faults; len(f) > 0 {
			t.Fatal(f)
		}
	}
	m.snapshot("go", gen1, 1, &tree.Node{ID: 1, Name: "app"})
	return m
}

func TestCordisDomain(t *testing.T) {
	m := cordis(t)
	m.Presence("tab", false)
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	answer, _ := c.do("DSHInspector.getCordisTree", nil)
	const realm = `{"source":{"sourceId":"%s","kind":"%s","label":"%s"},"connection":%s,"revision":3,"truncated":false,"root":{"kind":"context","children":[{"kind":"fiber","uid":%d,"children":[{"kind":"context","children":[]}]}]}}`
	want := `{"tree":{"schemaVersion":1,"host":` + fmt.Sprintf(realm, "host", "host", "bot", `{"state":"connected"}`, 4) +
		`,"clients":[` + fmt.Sprintf(realm, "tab", "client", "console", `{"state":"disconnected","reason":"the source is gone"}`, 5) + `]}}`
	if string(answer.Result) != want {
		t.Errorf("the tree is\n%s, want\n%s", answer.Result, want)
	}
	var got sourcesParams
	c.call("DSHInspector.enable", nil, &got)
	b, _ := json.Marshal(got.Sources[0])
	if want := `{"sourceId":"host","generation":"` + string(gen1) + `","kind":"host","label":"bot","connected":true,"capabilities":["tree"],"expectedSequence":3,"dropped":0,"topics":{"life":1,"tree":1}}`; string(b) != want {
		t.Errorf("the first source is\n%s, want\n%s", b, want)
	}
	if len(got.Sources) != 3 || got.Sources[1].Connected || got.Sources[1].Kind != source.KindClient || got.Sources[2].Capabilities == nil {
		t.Errorf("sources %+v", got.Sources)
	}
	var again sourcesParams
	c.call("DSHInspector.getSources", nil, &again)
	if len(again.Sources) != 3 {
		t.Errorf("%d sources", len(again.Sources))
	}

	// A target of one source knows of no other.
	one := dial(t, server, "dev/go")
	if answer, _ := one.do("DSHInspector.getCordisTree", nil); string(answer.Result) != `{"tree":{"schemaVersion":1,"host":null,"clients":[]}}` {
		t.Errorf("the tree of a Go service is %s", answer.Result)
	}
	one.call("DSHInspector.getSources", nil, &got)
	if len(got.Sources) != 1 || got.Sources[0].Label != "orders" {
		t.Errorf("sources %+v", got.Sources)
	}
}

// However much changes, the list of sources goes out ten times a second at most,
// and the last one is that of the last change.
func TestSourcesChanged(t *testing.T) {
	m := cordis(t)
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	other := dial(t, server, "dev/host")
	c.call("DSHInspector.enable", nil, nil)
	other.call("DSHInspector.enable", nil, nil)
	begin := time.Now()
	const changes = 200
	for i := range changes {
		m.log("go", gen1, float64(i), "line")
	}
	want := uint64(changes + 2 + 1)
	c.until(0, "the list after the last change", func(r received) bool {
		var p sourcesParams
		return r.Method == "DSHInspector.sourcesChanged" && json.Unmarshal(r.Params, &p) == nil && p.Sources[2].ExpectedSequence == want
	})
	most := int(time.Since(begin)/sourcesEvery) + 1
	all, _, _ := c.snapshot()
	n := 0
	for _, r := range all {
		if r.Method != "" {
			n++
		}
	}
	if n < 1 || n > most {
		t.Errorf("%d events in %v, want at most %d", n, time.Since(begin), most)
	}
	c.call("DSHInspector.disable", nil, nil)
	m.log("go", gen1, 999, "line")
	m.Presence("go", false)
	c.sync()
	if after := c.count(); after != len(all)+2 {
		t.Errorf("%d messages after the domain was disabled, want its answer and one more", after-len(all))
	}
	other.sync()
	for _, r := range func() []received { all, _, _ := other.snapshot(); return all }() {
		if r.Method != "" {
			t.Errorf("a client of another source was told %s", r.raw)
		}
	}
}
