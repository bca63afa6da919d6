package fold_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/natscope/natscope/store/fold"
)

// context writes a Context of a Cordis tree.
func context(id int, children ...string) string {
	return `{"id":` + itoa(id) + `,"kind":"context","name":"Context","object":"o` + itoa(id) + `","children":[` + strings.Join(children, ",") + `]}`
}

// fiber writes a Fiber, whose uid is its id, and its Context.
func fiber(id int, children ...string) string {
	return `{"id":` + itoa(id) + `,"kind":"fiber","name":"Fiber","object":"o` + itoa(id) + `","attrs":[["uid","` + itoa(id) + `"]],"children":[` + context(id+1, children...) + `]}`
}

func cordis(revision int, root string) string {
	return `{"version":1,"profile":"cordis","revision":` + itoa(revision) + `,"root":` + root + `}`
}

// TestCordisTree reads the trees of a host, a page and a source that has no Cordis.
func TestCordisTree(t *testing.T) {
	s := newStream(t)
	s.put("page", "g1", life, open("r"))
	s.put("page", "g1", trees, rec("snapshot", cordis(4, context(1, fiber(2), context(9)))))
	s.put("host", "g1", life, rec("open", `{"name":"Harness","kind":"host","realm":"h","origin":1}`))
	s.put("host", "g1", trees, rec("snapshot", cordis(1, context(1, fiber(2, fiber(4))))))
	s.put("plain", "g1", life, open("p"))
	s.put("plain", "g1", trees, snapshot(1, leaf))
	s.put("host", "g1", life, rec("close", `{"reason":"enough"}`))
	space, _ := s.fold()
	space.Source("page").Connected = true
	got, err := json.Marshal(fold.CordisTree(space.Sources()...))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"schemaVersion":1,` +
		`"host":{"source":{"sourceId":"host","kind":"host","label":"Harness"},"connection":{"state":"disconnected","reason":"enough"},"revision":1,"truncated":false,` +
		`"root":{"kind":"context","children":[{"kind":"fiber","uid":2,"children":[{"kind":"context","children":[{"kind":"fiber","uid":4,"children":[{"kind":"context","children":[]}]}]}]}]}},` +
		`"clients":[{"source":{"sourceId":"page","kind":"client","label":"Shop"},"connection":{"state":"connected"},"revision":4,"truncated":false,` +
		`"root":{"kind":"context","children":[{"kind":"fiber","uid":2,"children":[{"kind":"context","children":[]}]},{"kind":"context","children":[]}]}}]}`
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestCordisFault shows that a bad replacement is a fault that names the field and the node, and replaces nothing.
func TestCordisFault(t *testing.T) {
	s := newStream(t)
	s.put("a", "g1", life, open("r"))
	s.put("a", "g1", trees, rec("snapshot", cordis(1, context(1, fiber(2)))))
	s.put("a", "g1", trees, rec("snapshot", cordis(2, context(1, strings.Replace(fiber(2), `"uid"`, `"id"`, 1)))))
	s.put("a", "g1", trees, rec("ops", `{"revision":2,"ops":[{"op":"add","parent":1,"node":`+strings.Replace(fiber(4), "o4", "o2", 1)+`}]}`))
	space, changes := s.fold()
	if got := kinds(changes); got != "added opened tree fault:malformed fault:tree" {
		t.Errorf("changes %q", got)
	}
	src := space.Source("a")
	if src.Tree.Revision != 1 || src.Tree.Len() != 3 {
		t.Errorf("the tree has %d nodes at revision %d", src.Tree.Len(), src.Tree.Revision)
	}
	for i, says := range []string{"attrs of node 2", `object "o2" of node 4`} {
		if !strings.Contains(src.Faults[i].Text, says) {
			t.Errorf("fault %q does not say %q", src.Faults[i].Text, says)
		}
	}
}
