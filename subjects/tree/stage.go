package tree

import (
	"encoding/json"
	"fmt"
)

// begin opens a snapshot of many records and abandons one that was open.
func (s *State) begin(data json.RawMessage) error {
	var head Snapshot
	if err := decode(TopicBegin, data, &head); err != nil {
		return err
	}
	if head.Version != SchemaVersion {
		return fmt.Errorf("%w: begin: version %d, this reader has version %d", ErrPayload, head.Version, SchemaVersion)
	}
	s.staged = &staged{head: head, ids: make(map[NodeID]BackendNodeID)}
	return nil
}

// stage adds nodes to the open snapshot.
func (s *State) stage(data json.RawMessage, ids *IDs, limits Limits) error {
	var part Nodes
	if err := decode(TopicNodes, data, &part); err != nil {
		return err
	}
	if s.staged == nil || s.staged.head.Revision != part.Revision {
		return fmt.Errorf("%w: nodes of revision %d without their begin", ErrRevision, part.Revision)
	}
	if limits.Nodes > 0 && len(s.staged.nodes)+len(part.Nodes) > limits.Nodes {
		s.staged = nil
		return fmt.Errorf("nodes: %w: more than %d nodes", ErrLimit, limits.Nodes)
	}
	for _, n := range part.Nodes {
		id, err := ids.Take()
		if err != nil {
			return err
		}
		s.staged.ids[n.Node.ID] = id
	}
	s.staged.nodes = append(s.staged.nodes, part.Nodes...)
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
	return s.applySnapshot(st.head, func(n NodeID) (BackendNodeID, error) { return st.ids[n], nil }, limits)
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
