package tree

import (
	"encoding/json"
	"fmt"
)

// staged is a snapshot of many records on its way.
type staged struct {
	head  Snapshot
	nodes []PlacedNode
	// ids holds the BackendNodeID of each node, should it turn out to be new:
	// it belongs to the message that brought the node, since the commit's own
	// message has not enough of them.
	ids map[NodeID]BackendNodeID
}

// Staging reports whether a snapshot of many records is on its way. Its nodes
// are in no storage yet, so a state must not be saved until it is done.
func (s *State) Staging() bool { return s.staged != nil }

// begin opens a snapshot of many records and abandons one that was open.
func (s *State) begin(data json.RawMessage) error {
	var head Snapshot
	if err := decode(TopicBegin, data, &head); err != nil {
		return err
	}
	if err := checkHead(TopicBegin, head); err != nil {
		return err
	}
	s.staged = &staged{head: head, ids: make(map[NodeID]BackendNodeID)}
	return nil
}

// stage adds nodes to the open snapshot, which is abandoned when they do not fit.
func (s *State) stage(data json.RawMessage, ids *IDs, limits Limits, shared *texts) error {
	var part Nodes
	if err := decode(TopicNodes, data, &part); err != nil {
		return err
	}
	st := s.staged
	if st == nil || st.head.Revision != part.Revision {
		return fmt.Errorf("%w: nodes of revision %d without their begin", ErrRevision, part.Revision)
	}
	s.staged = nil
	if limits = limits.of(st.head.Profile); limits.Nodes > 0 && len(st.nodes)+len(part.Nodes) > limits.Nodes {
		return fmt.Errorf("nodes: %w: more than %d nodes", ErrLimit, limits.Nodes)
	}
	if st.head.Profile == ProfileCordis {
		if err := exact(TopicNodes, data); err != nil {
			return fmt.Errorf("nodes: %w", err)
		}
	}
	for i := range part.Nodes {
		id, err := ids.Take()
		if err != nil {
			return fmt.Errorf("nodes: %w", err)
		}
		st.ids[part.Nodes[i].Node.ID] = id
		shared.node(&part.Nodes[i].Node)
	}
	st.nodes = append(st.nodes, part.Nodes...)
	s.staged = st
	return nil
}

// commit puts the open snapshot in force.
func (s *State) commit(data json.RawMessage, limits Limits) ([]Change, error) {
	var c Commit
	if err := decode(TopicCommit, data, &c); err != nil {
		return nil, err
	}
	st := s.staged
	if st == nil || st.head.Revision != c.Revision {
		return nil, fmt.Errorf("%w: commit of revision %d without its begin", ErrRevision, c.Revision)
	}
	s.staged = nil
	if c.Count != len(st.nodes) {
		return nil, fmt.Errorf("%w: commit of %d nodes, %d have come", ErrRevision, c.Count, len(st.nodes))
	}
	root, err := assemble(st.nodes)
	if err != nil {
		return nil, err
	}
	st.head.Root = root
	return s.applySnapshot(st.head, nil, func(n NodeID) (BackendNodeID, error) { return st.ids[n], nil }, limits)
}

// assemble nests a flat list of nodes. Children keep the list's order.
func assemble(list []PlacedNode) (*Node, error) {
	if len(list) == 0 || list[0].Parent != 0 {
		return nil, fmt.Errorf("%w: commit: the first node is not the root", ErrPayload)
	}
	children := make(map[NodeID][]NodeID, len(list))
	nodes := make(map[NodeID]*Node, len(list))
	for i := range list {
		n := &list[i].Node
		if n.ID == 0 || nodes[n.ID] != nil {
			return nil, fmt.Errorf("%w: commit: node %d is there twice or has no id", ErrPayload, n.ID)
		}
		if i > 0 && nodes[list[i].Parent] == nil {
			return nil, fmt.Errorf("%w: commit: node %d comes before its parent %d", ErrPayload, n.ID, list[i].Parent)
		}
		nodes[n.ID] = n
		children[list[i].Parent] = append(children[list[i].Parent], n.ID)
	}
	// From the last to the first, so that every node is whole before its parent copies it.
	for i := len(list) - 1; i >= 0; i-- {
		n := &list[i].Node
		n.Children = nil
		for _, c := range children[n.ID] {
			n.Children = append(n.Children, *nodes[c])
		}
	}
	return &list[0].Node, nil
}
