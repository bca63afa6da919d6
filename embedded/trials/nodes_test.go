package trials

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/natscope/natscope/subjects/tree"
)

// natsOptions are those of a server.
type natsOptions = server.Options

// differentNodes returns the first node that has another BackendNodeID, or nothing.
func differentNodes(before, after map[string]tree.BackendNodeID) string {
	for name, id := range before {
		if after[name] != id {
			return fmt.Sprintf("node %q had the id %d and has %d; of %d nodes there are %d", name, id, after[name], len(before), len(after))
		}
	}
	if len(after) != len(before) {
		return fmt.Sprintf("there were %d nodes and are %d", len(before), len(after))
	}
	return ""
}

var backendID = regexp.MustCompile(`"backendNodeId":(\d+)`)

// backendIDs lists the BackendNodeIDs of a document.
func backendIDs(document string) string {
	ids := backendID.FindAllString(document, -1)
	slices.Sort(ids)
	return strings.Join(ids, " ")
}
