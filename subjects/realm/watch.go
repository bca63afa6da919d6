package realm

import (
	"errors"
	"time"

	"github.com/natscope/natscope/subjects/tree"
)

// MethodWatch says whether somebody looks at what a node shows: WatchParams.
// Nodes that ask for it (tree.KindWatched) read what they show only meanwhile.
const MethodWatch Method = "tree.watch"

// WatchLease is how long a watch lasts that nobody repeats, so that a gateway
// that died leaves nothing running in the program.
const WatchLease = 30 * time.Second

// WatchParams say whether the session that asks looks at a node.
type WatchParams struct {
	// ID is the node.
	ID tree.NodeID `json:"id"`
	// Active begins or renews the watch; without it the watch ends.
	Active bool `json:"active,omitempty"`
}

func (p WatchParams) check() error {
	if p.ID == 0 {
		return errors.New("id is missing")
	}
	return nil
}
