package tree

import (
	"encoding/json"
	"testing"
)

// input is a source with a Cordis tree of one plugin.
func input(t *testing.T, id, kind string, connected bool) CordisInput {
	k := newClient(t)
	k.apply(TopicSnapshot, cordisOf(3, ctx(1, fib(2))))
	return CordisInput{Source: CordisSource{ID: id, Kind: kind, Label: "the " + id}, Connected: connected, Tree: &k.state}
}

func TestCordisReader(t *testing.T) {
	gone, lives, page := input(t, "gone", "host", false), input(t, "lives", "host", true), input(t, "page", "client", true)
	gone.Reason = "it stopped"
	other := newClient(t)
	other.snapshot(example())
	component := CordisInput{Source: CordisSource{ID: "x", Kind: "host"}, Connected: true, Tree: &other.state}

	tree := Cordis(gone, component, CordisInput{Source: CordisSource{ID: "empty", Kind: "client"}, Tree: new(State)}, page, lives)
	if tree.Host == nil || tree.Host.Source.ID != "lives" || len(tree.OtherHosts) != 1 || tree.OtherHosts[0].Source.ID != "gone" || len(tree.Clients) != 1 {
		t.Fatalf("the tree is %+v", tree)
	}
	if got := tree.OtherHosts[0].Connection; got != (CordisConnection{State: "disconnected", Reason: "it stopped"}) {
		t.Errorf("the connection is %+v", got)
	}
	if got := tree.Host.Connection; got != (CordisConnection{State: "connected"}) || tree.Host.Revision != 3 {
		t.Errorf("the host is %+v", tree.Host)
	}
	// The first of several that are gone is the host, and so is the first of several that live.
	if tree := Cordis(gone, input(t, "b", "host", false)); tree.Host.Source.ID != "gone" || tree.OtherHosts[0].Connection.Reason == "" {
		t.Errorf("the tree is %+v", tree)
	}
	if tree := Cordis(lives, input(t, "b", "host", true)); tree.Host.Source.ID != "lives" || len(tree.OtherHosts) != 1 {
		t.Errorf("the tree is %+v", tree)
	}
	if data, err := json.Marshal(Cordis()); err != nil || string(data) != `{"schemaVersion":1,"host":null,"clients":[]}` {
		t.Errorf("nothing is %s, %v", data, err)
	}
}

// TestCordisReaderIsDetached shows that what was read stays as it was.
func TestCordisReaderIsDetached(t *testing.T) {
	k := cordisClient(t)
	in := CordisInput{Source: CordisSource{ID: "a", Kind: "client"}, Connected: true, Tree: &k.state}
	before := Cordis(in)
	want, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	k.ops(drop(4), add(7, 0, fib(20)))
	if got, _ := json.Marshal(before); string(got) != string(want) {
		t.Errorf("the value was\n%s\nand is\n%s", want, got)
	}
	if got, _ := json.Marshal(Cordis(in)); string(got) == string(want) {
		t.Error("the tree changed and reads the same")
	}
	k.state.Reset(false)
	if got := Cordis(in).Clients[0]; got.Connection.State != CordisDisconnected || got.Connection.Reason == "" || len(got.Root.Children) == 0 {
		t.Errorf("the tree of the former realm is %+v", got)
	}
	k.apply(TopicSnapshot, cordisOf(1, ctx(1)))
	if got := Cordis(in).Clients[0]; got.Connection.State != CordisConnected || len(got.Root.Children) != 0 {
		t.Errorf("the tree of the new realm is %+v", got)
	}
}
