package tree

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
)

// TestRestore rebuilds a tree from its parts.
func TestRestore(t *testing.T) {
	k := exampleClient(t)
	var s State
	s.Root = nil
	k.state.Root.Walk(func(e *Entry) bool {
		parent := NodeID(0)
		if e.Parent != nil {
			parent = e.Parent.ID
		}
		if _, err := s.Restore(parent, e.Node, e.Backend); err != nil {
			t.Fatal(err)
		}
		return true
	})
	if err := checkState(&s, Limits{}); err != nil {
		t.Fatal(err)
	}
	s.Revision, s.Profile, s.History = k.state.Revision, k.state.Profile, k.state.History
	if !reflect.DeepEqual(s, k.state) {
		t.Errorf("the restored tree %s is not %s", content(&s), content(&k.state))
	}
	for name, f := range map[string]func() error{
		"a second root":     func() error { _, err := s.Restore(0, n(50), 500); return err },
		"an unknown parent": func() error { _, err := s.Restore(99, n(50), 500); return err },
		"a known id":        func() error { _, err := s.Restore(1, n(2), 500); return err },
		"a known backend":   func() error { _, err := s.Restore(1, n(50), s.Root.Backend); return err },
		"no id":             func() error { _, err := s.Restore(1, Node{Name: "x"}, 500); return err },
		"no backend":        func() error { _, err := s.Restore(1, n(50), 0); return err },
	} {
		if err := f(); !errors.Is(err, ErrPayload) {
			t.Errorf("%s gives the error %v", name, err)
		}
	}
	if s.Len() != k.state.Len() {
		t.Error("a refused entry was added")
	}
}

func TestEntry(t *testing.T) {
	k := exampleClient(t)
	seven := k.state.Node(7)
	if got := seven.Depth(); got != 4 {
		t.Errorf("depth %d, want 4", got)
	}
	if k.state.Backend(seven.Backend) != seven || k.state.Backend(1) != nil {
		t.Error("entries are not found by their backend ids")
	}
	visited := 0
	if k.state.Root.Walk(func(e *Entry) bool { visited++; return e.ID != 4 }) || visited != 4 {
		t.Errorf("a walk that was stopped visited %d nodes", visited)
	}
}

func TestAttrJSON(t *testing.T) {
	for _, a := range []Attr{{"a", ""}, {"ünï", "\"\n"}} {
		data, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		var got Attr
		if err := json.Unmarshal(data, &got); err != nil || got != a {
			t.Errorf("%v became %v: %v", a, got, err)
		}
	}
}

func TestLimitsOfProfiles(t *testing.T) {
	for _, c := range []struct {
		limits  Limits
		profile Profile
		want    Limits
	}{
		{Limits{}, ProfileComponent, Limits{Depth: maxDepth}},
		{Limits{Depth: -1}, ProfileComponent, Limits{Depth: maxDepth}},
		{Limits{Nodes: 9, CordisNodes: 5, Depth: 3}, ProfileComponent, Limits{Nodes: 9, CordisNodes: 5, Depth: 3}},
		{Limits{Nodes: 9, CordisNodes: 5, Depth: 3}, ProfileCordis, Limits{Nodes: 5, CordisNodes: 5, Depth: 3}},
		{Limits{Nodes: 4, CordisNodes: 5, Depth: 3}, ProfileCordis, Limits{Nodes: 4, CordisNodes: 5, Depth: 3}},
		{Limits{CordisNodes: 5, Depth: 1 << 40}, ProfileCordis, Limits{Nodes: 5, CordisNodes: 5, Depth: maxDepth}},
	} {
		if got := c.limits.of(c.profile); got != c.want {
			t.Errorf("%+v of %s are %+v, want %+v", c.limits, c.profile, got, c.want)
		}
	}
}
