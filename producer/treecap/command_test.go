package treecap_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/natscope/natscope/producer/treecap"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
)

// TestEditCommand edits a value from outside, as a gateway does.
func TestEditCommand(t *testing.T) {
	r := newRig(t, subjects.Limits{})
	tr := treecap.New(r.p, treecap.Options{Interval: time.Hour})
	tr.Register(nil, "point", &point{})
	r.sync(tr)
	can := func() bool {
		_, _, _, src := r.tree()
		return slices.Contains(src.Life.Descriptor.Capabilities, string(realm.MethodEdit))
	}
	if can() {
		t.Error("a program without anything to edit says that it can")
	}
	s := &settings{Limit: 5}
	release := make(chan struct{})
	tr.Register(nil, "settings", s, append(s.writable(), treecap.Writable("hangs", func(any) error { <-release; return nil }))...)
	r.sync(tr)
	if !can() {
		t.Error("the source does not say that it can edit")
	}
	root, _, _, _ := r.tree()
	point, id := root.Children[0].ID, root.Children[1].ID
	nc := r.s.Connect()
	for _, c := range []struct {
		params string
		code   realm.Code
		says   string
	}{
		{fmt.Sprintf(`{"id":%d,"symbol":"Limit","value":"7"}`, id), "", ""},
		{fmt.Sprintf(`{"id":%d,"symbol":"Limit","value":700}`, id), realm.CodeRefused, "700 is not between 1 and 100"},
		{fmt.Sprintf(`{"id":%d,"symbol":"Limit","path":["x"],"value":7}`, id), realm.CodeRefused, "edited as a whole"},
		{fmt.Sprintf(`{"id":%d,"symbol":"Other","value":7}`, id), realm.CodeRefused, "it has"},
		{fmt.Sprintf(`{"id":%d,"symbol":"X","value":7}`, point), realm.CodeRefused, "nothing of this component can be edited"},
		{`{"id":999,"symbol":"X","value":7}`, realm.CodeNotFound, "read the tree again"},
		{`{"symbol":"X","value":7}`, realm.CodeMalformed, "id is missing"},
		{fmt.Sprintf(`{"id":%d,"symbol":"hangs","value":7}`, id), realm.CodeTimeout, "the setter did not return in time"},
		{fmt.Sprintf(`{"id":%d,"symbol":"hangs","value":7}`, id), realm.CodeBusy, "hangs was left as it is"},
	} {
		request := `{"method":"tree.edit","deadlineMs":2000,"params":` + c.params + `}`
		m, err := nc.Request(subjects.Command(space, r.p.ID(), r.p.Generation()), []byte(request), 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		_, err = realm.ParseAnswer(m.Data)
		if (err == nil) != (c.code == "") {
			t.Errorf("%s: %v", c.params, err)
		}
		// An edit that was never tried must not be reported as one that may have happened.
		if err != nil && (realm.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %s %v, want %s that says %q", c.params, realm.CodeOf(err), err, c.code, c.says)
		}
	}
	r.sync(tr)
	root, _, _, _ = r.tree()
	if e := root.Children[1]; string(e.Values["Limit"]) != "7" || attr(e, "Limit") != "7" {
		t.Errorf("shown is %s", e.Values["Limit"])
	}
	close(release)
	tr.Close()
}
