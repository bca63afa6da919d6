package tree

import (
	"errors"
	"strings"
	"testing"

	"github.com/natscope/natscope/subjects/internal/wiretest"
)

func TestVectors(t *testing.T) {
	cases := wiretest.Cases(t, "tree.json")
	wiretest.Payloads(t, cases, map[string]any{TopicSnapshot: Snapshot{}, TopicOps: Ops{}, TopicBegin: Snapshot{}, TopicNodes: Nodes{}, TopicCommit: Commit{}},
		"begin:root", "nodes:nodes.node.children")
	k := newClient(t)
	for _, c := range cases {
		was := content(&k.state)
		_, err := k.try(c.Topic, c.Data)
		if c.Error == "" {
			if err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.Error) || !errors.Is(err, ErrPayload) && !errors.Is(err, ErrRevision) && !errors.Is(err, ErrLimit) {
			t.Errorf("%s: the error is %v, want one that says %q", c.Name, err, c.Error)
		}
		if content(&k.state) != was {
			t.Errorf("%s: a refused record changed the tree", c.Name)
		}
	}
	if got := shape(k.state.Root); got != "1(2(3(5(6))))" || k.state.Revision != 22 || k.state.Profile != ProfileCordis {
		t.Errorf("the tree is %s of revision %d", got, k.state.Revision)
	}
}
