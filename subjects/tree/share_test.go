package tree

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unsafe"
)

// sameMemory reports whether two texts are one.
func sameMemory(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }

// fold applies one record that must fit.
func fold(t *testing.T, s *State, seq uint64, topic string, payload any) {
	t.Helper()
	data, err := json.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apply(topic, data, IDsOf(seq), Limits{}, 0); err != nil {
		t.Fatal(err)
	}
}

func TestEqualTextsShareMemory(t *testing.T) {
	make1 := func(id NodeID, key string) Node {
		return Node{
			ID: id, Kind: strings.Clone("worker"), Name: strings.Clone("Mailer"), Loc: strings.Clone("mail.go:12"),
			Attrs: []Attr{{strings.Clone("state"), strings.Clone("busy")}, {strings.Clone("key"), key}}, Writable: []string{strings.Clone("limit")},
			Values: map[string]json.RawMessage{"limit": json.RawMessage("1")},
		}
	}
	check := func(t *testing.T, a, b *Entry) {
		t.Helper()
		if !sameMemory(a.Kind, b.Kind) || !sameMemory(a.Name, b.Name) || !sameMemory(a.Loc, b.Loc) ||
			!sameMemory(a.Attrs[0].Name, b.Attrs[0].Name) || !sameMemory(a.Attrs[0].Value, b.Attrs[0].Value) || !sameMemory(a.Writable[0], b.Writable[0]) {
			t.Errorf("%+v and %+v have texts of their own", a.Node, b.Node)
		}
		if a.Attrs[1].Value == b.Attrs[1].Value {
			t.Errorf("different texts became equal: %q", a.Attrs[1].Value)
		}
	}
	t.Run("folded", func(t *testing.T) {
		var s State
		root := make1(1, "a")
		root.Children = []Node{make1(2, "b")}
		fold(t, &s, 1, TopicSnapshot, Snapshot{Version: SchemaVersion, Revision: 1, Root: &root})
		check(t, s.Node(1), s.Node(2))
		third, fourth := make1(3, "c"), make1(4, "d")
		fold(t, &s, 2, TopicOps, Ops{Revision: 2, Ops: []Op{{Op: OpAdd, Parent: 1, Node: &third}, {Op: OpAdd, Parent: 1, Node: &fourth}}})
		check(t, s.Node(3), s.Node(4))
	})
	t.Run("staged", func(t *testing.T) {
		var s State
		fold(t, &s, 1, TopicBegin, Snapshot{Version: SchemaVersion, Revision: 1})
		fold(t, &s, 2, TopicNodes, Nodes{Revision: 1, Nodes: []PlacedNode{{0, make1(1, "a")}, {1, make1(2, "b")}}})
		fold(t, &s, 3, TopicCommit, Commit{Revision: 1, Count: 2})
		check(t, s.Node(1), s.Node(2))
	})
	t.Run("restored", func(t *testing.T) {
		var s State
		const nodes = 1000
		names := make(map[*byte]bool)
		for id := NodeID(1); id <= nodes; id++ {
			e, err := s.Restore(min(id-1, 1), make1(id, fmt.Sprint(id)), BackendNodeID(id))
			if err != nil {
				t.Fatal(err)
			}
			names[unsafe.StringData(e.Name)] = true
		}
		// The race detector makes pools forget some of what they hold.
		if len(names) > nodes*2/3 {
			t.Errorf("%d nodes have %d copies of one name", nodes, len(names))
		}
	})
}

func TestSharedTextsStayThemselves(t *testing.T) {
	x := borrowTexts()
	defer x.free()
	for i := range 10 * sharedTexts {
		for _, s := range []string{fmt.Sprint("text ", i), "", strings.Repeat("x", sharedBytes+i%3)} {
			if got := x.one(s); got != s {
				t.Fatalf("%q became %q", s, got)
			}
		}
	}
}
