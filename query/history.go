package query

import (
	"encoding/json"
	"time"

	"github.com/natscope/natscope/subjects"
)

// HistoryRequest asks for what changed in trees.
type HistoryRequest struct {
	Page
	Node NodeID `json:"node,omitempty" jsonschema:"only changes of this node"`
}

// HistoryAnswer lists commits in the order of time.
type HistoryAnswer struct {
	Commits []Commit `json:"commits" jsonschema:"the commits, the oldest first"`
	Paged
}

// Commit is what one flush of a source changed in its tree.
type Commit struct {
	Source   subjects.SourceID `json:"source" jsonschema:"id of the source"`
	Number   uint64            `json:"number" jsonschema:"counts the commits of the source, from 1"`
	Time     time.Time         `json:"time,omitzero" jsonschema:"when"`
	Flush    uint64            `json:"flush,omitempty" jsonschema:"number that the source gave the flush"`
	Snapshot bool              `json:"snapshot,omitempty" jsonschema:"found by comparing a whole tree with the one before it"`
	Changes  []Change          `json:"changes" jsonschema:"the changes in order"`
	Left     int               `json:"left,omitempty" jsonschema:"changes of the commit that are not in the answer"`
}

// Change is one change of one node.
type Change struct {
	Op     string          `json:"op" jsonschema:"add, update, remove or move"`
	Node   NodeID          `json:"node" jsonschema:"id of the node"`
	Name   string          `json:"name" jsonschema:"name of the node"`
	Nodes  int             `json:"nodes,omitempty" jsonschema:"nodes of the subtree that came, went or moved"`
	Part   string          `json:"part,omitempty" jsonschema:"what of the node changed: value, attr, text or loc"`
	Symbol string          `json:"symbol,omitempty" jsonschema:"name of the value or attribute"`
	From   json.RawMessage `json:"from,omitempty" jsonschema:"the value before; absent if there was none"`
	To     json.RawMessage `json:"to,omitempty" jsonschema:"the value after; absent if there is none"`
}
