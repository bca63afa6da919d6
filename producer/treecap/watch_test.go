package treecap_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/natscope/natscope/producer/treecap"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
)

// A node hears of the first person who looks, through whichever gateway, and of the last one who goes.
func TestWatchCommand(t *testing.T) {
	r := newRig(t, subjects.Limits{})
	tr := treecap.New(r.p, treecap.Options{Interval: time.Hour})
	told := make(chan bool, 10)
	c := tr.Register(nil, "process", nil, treecap.Watched(func(on bool) {
		told <- on
		panic("the application's own trouble")
	}))
	tr.Root().Add("plain")
	r.sync(tr)
	root, _, _, src := r.tree()
	if !root.Children[0].Watched() || root.Children[1].Watched() || attr(root.Children[0], "watched") != "false" || !realm.Supports(src.Life.Descriptor.Capabilities, realm.MethodWatch) {
		t.Fatalf("the tree does not say what can be watched: %+v", root.Children[0].Node)
	}
	nc := r.s.Connect()
	ask := func(gateway string, id int, active bool, code realm.Code) {
		t.Helper()
		request := fmt.Sprintf(`{"method":"tree.watch","session":{"gateway":%q,"id":"s1"},"params":{"id":%d,"active":%v}}`, gateway, id, active)
		m, err := nc.Request(subjects.Command(space, r.p.ID(), r.p.Generation()), []byte(request), 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = realm.ParseAnswer(m.Data); (err != nil || code != "") && realm.CodeOf(err) != code {
			t.Errorf("%s: %v, want code %q", request, err, code)
		}
	}
	next := func(want bool) {
		t.Helper()
		select {
		case got := <-told:
			if got != want {
				t.Fatalf("told %v, want %v", got, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("not told %v", want)
		}
	}
	ask("gw-1", 2, true, "")
	next(true)
	ask("gw-2", 2, true, "")
	ask("gw-1", 2, true, "")
	ask("gw-1", 2, false, "")
	ask("gw-3", 2, false, "")
	ask("gw-1", 3, true, realm.CodeNotFound)
	ask("gw-1", 0, true, realm.CodeMalformed)
	if len(told) != 0 {
		t.Errorf("told %v while somebody looks", <-told)
	}
	ask("gw-2", 2, false, "")
	next(false)
	ask("gw-2", 2, true, "")
	next(true)
	c.Close()
	next(false)
	ask("gw-2", 2, true, realm.CodeNotFound)
	tr.Close()
}
