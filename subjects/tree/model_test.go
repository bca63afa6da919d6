package tree

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/natscope/natscope/subjects/value"
)

// model is a strict client: it knows nodes by their BackendNodeIDs only, and
// refuses every change that does not fit what it knows.
type model struct {
	root  *modelNode
	nodes map[BackendNodeID]*modelNode
}

type modelNode struct {
	id       BackendNodeID
	content  Node
	parent   *modelNode
	children []*modelNode
}

// play replays the changes of one record.
func (m *model) play(changes []Change) error {
	late := false
	for i, c := range changes {
		var err error
		switch c.Kind {
		case Removed:
			if late {
				return fmt.Errorf("change %d: a removal behind an insertion or move", i)
			}
			err = m.removed(c)
		case Inserted:
			late, err = true, m.inserted(c)
		case Updated:
			err = m.updated(c)
		case Moved:
			late, err = true, m.moved(c)
		default:
			err = fmt.Errorf("unknown kind %d", c.Kind)
		}
		if err != nil {
			return fmt.Errorf("change %d: %w", i, err)
		}
	}
	return nil
}

// find returns the node that an entry stands for; nil stays nil.
func (m *model) find(e *Entry) (*modelNode, error) {
	if e == nil {
		return nil, nil
	}
	n := m.nodes[e.Backend]
	if n == nil {
		return nil, fmt.Errorf("node %d (%s) is not known", e.Backend, e.Name)
	}
	return n, nil
}

func (m *model) removed(c Change) error {
	n, err := m.find(c.Entry)
	if err != nil {
		return err
	}
	parent, err := m.find(c.Parent)
	if err != nil {
		return err
	}
	if n.parent != parent {
		return fmt.Errorf("node %d is removed from a parent that it does not have", n.id)
	}
	if err := sameTree(n, c.Entry); err != nil {
		return fmt.Errorf("the removed subtree is not what the client has: %w", err)
	}
	m.unlink(n)
	m.forget(n)
	return nil
}

func (m *model) unlink(n *modelNode) {
	if n.parent == nil {
		m.root = nil
		return
	}
	n.parent.children = slices.DeleteFunc(n.parent.children, func(x *modelNode) bool { return x == n })
	n.parent = nil
}

func (m *model) forget(n *modelNode) {
	delete(m.nodes, n.id)
	for _, c := range n.children {
		m.forget(c)
	}
}

// place finds where a node goes.
func (m *model) place(parent, previous *Entry) (*modelNode, int, error) {
	p, err := m.find(parent)
	if err != nil {
		return nil, 0, err
	}
	before, err := m.find(previous)
	if err != nil {
		return nil, 0, err
	}
	if before == nil {
		return p, 0, nil
	}
	i := slices.Index(p.children, before)
	if i < 0 {
		return nil, 0, fmt.Errorf("the previous node %d is no child of node %d", before.id, p.id)
	}
	return p, i + 1, nil
}

func (m *model) inserted(c Change) error {
	n, err := m.take(c.Entry)
	if err != nil {
		return err
	}
	if c.Parent == nil {
		if m.root != nil {
			return fmt.Errorf("a second root")
		}
		m.root = n
		return nil
	}
	p, at, err := m.place(c.Parent, c.Previous)
	if err != nil {
		return err
	}
	n.parent, p.children = p, slices.Insert(p.children, at, n)
	return nil
}

// take copies an inserted subtree as it is after the record.
func (m *model) take(e *Entry) (*modelNode, error) {
	if m.nodes[e.Backend] != nil {
		return nil, fmt.Errorf("node %d (%s) is inserted but known", e.Backend, e.Name)
	}
	n := &modelNode{id: e.Backend, content: e.Node}
	m.nodes[n.id] = n
	for _, c := range e.Children {
		x, err := m.take(c)
		if err != nil {
			return nil, err
		}
		x.parent = n
		n.children = append(n.children, x)
	}
	return n, nil
}

func (m *model) updated(c Change) error {
	n, err := m.find(c.Entry)
	if err != nil {
		return err
	}
	if !sameContent(&n.content, &c.Old) {
		return fmt.Errorf("node %d was not what the change says that it was", n.id)
	}
	n.content = c.Entry.Node
	return nil
}

func (m *model) moved(c Change) error {
	n, err := m.find(c.Entry)
	if err != nil {
		return err
	}
	from, err := m.find(c.Parent)
	if err != nil {
		return err
	}
	if n.parent != from || from == nil {
		return fmt.Errorf("node %d is moved from a parent that it does not have", n.id)
	}
	m.unlink(n)
	p, at, err := m.place(c.Entry.Parent, c.Previous)
	if err != nil {
		return err
	}
	for x := p; x != nil; x = x.parent {
		if x == n {
			return fmt.Errorf("node %d is moved below itself", n.id)
		}
	}
	n.parent, p.children = p, slices.Insert(p.children, at, n)
	return nil
}

// equals compares the client with the state.
func (m *model) equals(s *State) error {
	if (m.root == nil) != (s.Root == nil) {
		return fmt.Errorf("one of them has no tree")
	}
	if len(m.nodes) != s.Len() {
		return fmt.Errorf("the client has %d nodes, the state %d", len(m.nodes), s.Len())
	}
	if m.root == nil {
		return nil
	}
	return sameTree(m.root, s.Root)
}

func sameTree(n *modelNode, e *Entry) error {
	if n.id != e.Backend || !sameContent(&n.content, &e.Node) {
		return fmt.Errorf("the client has node %d %+v, the state node %d %+v", n.id, n.content, e.Backend, e.Node)
	}
	if len(n.children) != len(e.Children) {
		return fmt.Errorf("node %d (%s): the client has %d children, the state %d", n.id, e.Name, len(n.children), len(e.Children))
	}
	for i := range n.children {
		if err := sameTree(n.children[i], e.Children[i]); err != nil {
			return err
		}
	}
	return nil
}

// checkState checks everything that holds for every state.
func checkState(s *State, limits Limits) error {
	seen := make(map[NodeID]bool)
	backends := make(map[BackendNodeID]bool)
	var walk func(e, parent *Entry) error
	walk = func(e, parent *Entry) error {
		switch {
		case e.Parent != parent:
			return fmt.Errorf("node %d does not point to its parent", e.ID)
		case e.ID == 0 || e.Name == "" || e.Backend == 0 || e.Backend >= 1<<53:
			return fmt.Errorf("node %d %q has the backend id %d", e.ID, e.Name, e.Backend)
		case seen[e.ID] || backends[e.Backend]:
			return fmt.Errorf("node %d, backend id %d, is there twice", e.ID, e.Backend)
		case s.byID[e.ID] != e || s.byBackend[e.Backend] != e:
			return fmt.Errorf("node %d is not in the indexes", e.ID)
		case e.Node.Children != nil:
			return fmt.Errorf("node %d carries children of its own", e.ID)
		case limits.Depth > 0 && s.level(e) > limits.Depth:
			return fmt.Errorf("node %d is %d levels deep", e.ID, s.level(e))
		}
		seen[e.ID], backends[e.Backend] = true, true
		for _, c := range e.Children {
			if err := walk(c, e); err != nil {
				return err
			}
		}
		return nil
	}
	if s.Root != nil {
		if err := walk(s.Root, nil); err != nil {
			return err
		}
	}
	if err := checkNodes(s, limits); err != nil {
		return err
	}
	if err := checkHistory(&s.History, limits); err != nil {
		return err
	}
	if len(seen) != len(s.byID) || len(seen) != len(s.byBackend) {
		return fmt.Errorf("%d nodes, but %d and %d in the indexes", len(seen), len(s.byID), len(s.byBackend))
	}
	if limits.Nodes > 0 && len(seen) > limits.Nodes {
		return fmt.Errorf("%d nodes", len(seen))
	}
	return nil
}

// checkNodes checks that every node of a tree could come in a snapshot, and that
// a Cordis tree knows its names.
func checkNodes(s *State, limits Limits) error {
	if s.Root == nil {
		return nil
	}
	if err := checkerOf(s.Profile, limits).root(export(s.Root)); err != nil {
		return fmt.Errorf("the tree breaks the rules of its own profile: %w", err)
	}
	if s.names == nil {
		return nil
	}
	names := newCordisNames()
	s.Root.Walk(func(e *Entry) bool { names.add(&e.Node); return true })
	if !maps.Equal(names.objects, s.names.objects) || !maps.Equal(names.uids, s.names.uids) {
		return fmt.Errorf("the names are %v, want %v", *s.names, *names)
	}
	return nil
}

// checkHistory checks everything that holds for every history.
func checkHistory(h *History, limits Limits) error {
	if h.Count-h.Dropped != uint64(len(h.Commits)) {
		return fmt.Errorf("%d commits are kept, %d of %d were dropped", len(h.Commits), h.Dropped, h.Count)
	}
	if limits.Commits > 0 && len(h.Commits) > limits.Commits {
		return fmt.Errorf("%d commits are kept, the limit is %d", len(h.Commits), limits.Commits)
	}
	bytes := 0
	for i := range h.Commits {
		c := &h.Commits[i]
		if c.Seq != h.Dropped+1+uint64(i) || len(c.Changes) == 0 {
			return fmt.Errorf("commit %d behind %d has the number %d and %d changes", i, h.Dropped, c.Seq, len(c.Changes))
		}
		for _, x := range c.Changes {
			for _, v := range []json.RawMessage{x.From, x.To} {
				if _, err := value.Parse(v); v != nil && err != nil {
					return fmt.Errorf("commit %d: %s is no value: %w", c.Seq, v, err)
				}
				if len(v) > 8*maxHistoryValue {
					return fmt.Errorf("commit %d holds a value of %d bytes", c.Seq, len(v))
				}
			}
		}
		bytes += c.size()
	}
	if bytes != h.bytes || bytes > maxHistoryBytes {
		return fmt.Errorf("the history has %d bytes and counts %d", bytes, h.bytes)
	}
	return nil
}

// client is a state and a model that follows it.
type client struct {
	t      testing.TB
	state  State
	model  model
	seq    uint64
	limits Limits
	// spent is the time that Apply took.
	spent time.Duration
}

func newClient(t testing.TB) *client {
	return &client{t: t, model: model{nodes: make(map[BackendNodeID]*modelNode)}}
}

// try applies one record as a message of its own, and checks everything that can be checked.
func (c *client) try(topic string, payload any) ([]Change, error) {
	c.t.Helper()
	data, err := json.Marshal(payload)
	if err != nil {
		c.t.Fatal(err)
	}
	c.seq++
	start := time.Now()
	changes, err := c.state.Apply(topic, data, IDsOf(c.seq), c.limits, float64(c.seq))
	c.spent += time.Since(start)
	if err == nil && (topic == TopicBegin || topic == TopicNodes) {
		if len(changes) > 0 {
			c.t.Fatalf("%s has %d changes before the commit", topic, len(changes))
		}
		return nil, nil
	}
	if err != nil && len(changes) > 0 {
		c.t.Fatalf("a refused record has %d changes", len(changes))
	}
	if err := checkState(&c.state, c.limits); err != nil {
		c.t.Fatalf("after %s: %v", topic, err)
	}
	if err := c.model.play(changes); err != nil {
		c.t.Fatalf("after %s: %v\n%s", topic, err, describe(changes))
	}
	if err := c.model.equals(&c.state); err != nil {
		c.t.Fatalf("after %s: %v\n%s", topic, err, describe(changes))
	}
	return changes, err
}

// apply applies one record that must be accepted.
func (c *client) apply(topic string, payload any) []Change {
	c.t.Helper()
	changes, err := c.try(topic, payload)
	if err != nil {
		c.t.Fatal(err)
	}
	return changes
}

func (c *client) snapshot(root Node) []Change {
	c.t.Helper()
	return c.apply(TopicSnapshot, snapshotOf(c.state.Revision+1, root))
}

func (c *client) ops(ops ...Op) []Change {
	c.t.Helper()
	return c.apply(TopicOps, Ops{Revision: c.state.Revision + 1, Ops: ops})
}

func snapshotOf(revision uint64, root Node) Snapshot {
	return Snapshot{Version: SchemaVersion, Profile: ProfileComponent, Revision: revision, Root: &root}
}

// n makes a node whose name follows from its id.
func n(id NodeID, children ...Node) Node {
	return Node{ID: id, Name: "n" + fmt.Sprint(id), Children: children}
}

// shape writes a tree as its ids.
func shape(e *Entry) string {
	if e == nil {
		return "-"
	}
	s := fmt.Sprint(e.ID)
	if len(e.Children) > 0 {
		s += "("
		for i, c := range e.Children {
			if i > 0 {
				s += " "
			}
			s += shape(c)
		}
		s += ")"
	}
	return s
}

// describe writes changes for people.
func describe(changes []Change) string {
	s := ""
	for _, c := range changes {
		kind := map[ChangeKind]string{Removed: "-", Inserted: "+", Updated: "=", Moved: ">"}[c.Kind]
		s += fmt.Sprintf("%s%d ", kind, c.Entry.ID)
	}
	return s
}

// backends lists the BackendNodeIDs by node id.
func backends(s *State) map[NodeID]BackendNodeID {
	out := make(map[NodeID]BackendNodeID)
	for id, e := range s.byID {
		out[id] = e.Backend
	}
	return out
}

// content copies what a state is, to compare it later.
func content(s *State) string {
	b, err := json.Marshal(struct {
		Head     [3]any
		Backends map[NodeID]BackendNodeID
		Root     *Node
	}{[3]any{s.Revision, s.Commit, s.Truncated}, maps.Clone(backends(s)), exported(s)})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func exported(s *State) *Node {
	if s.Root == nil {
		return nil
	}
	return export(s.Root)
}
