package store

import (
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// TestHopeless: a store waits for servers that come back, and not for what nobody but its operator can change.
func TestHopeless(t *testing.T) {
	peers := func(why string) error {
		return &jetstream.APIError{Code: 400, ErrorCode: errPeers, Description: "no suitable peers for placement" + why}
	}
	for _, c := range []struct {
		name string
		err  error
		want bool
	}{
		{"a server of the cluster is away", peers(", peer offline"), false},
		{"one is away and one is full", peers(", peer offline, insufficient storage"), false},
		{"the servers are full", peers(", insufficient storage"), true},
		{"too many replicas", peers(""), true},
		{"storage", &jetstream.APIError{Code: 500, ErrorCode: errStorage}, true},
		{"memory", &jetstream.APIError{Code: 500, ErrorCode: errMemory}, true},
		{"settings", &jetstream.APIError{Code: 500, ErrorCode: errStreamConfig}, true},
		{"no leader yet", &jetstream.APIError{Code: 503, ErrorCode: 10008}, false},
		{"no answer", errors.New("timeout"), false},
	} {
		if got := hopeless(fmt.Errorf("store: %w", c.err)); got != c.want {
			t.Errorf("%s: hopeless is %v", c.name, got)
		}
	}
}
