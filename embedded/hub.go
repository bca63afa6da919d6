package embedded

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrHub says that the server that Options.Hub names cannot be joined.
var ErrHub = errors.New("embedded: the hub cannot be joined")

// Hub is a NATS server elsewhere that the embedded one joins as a leaf: programs
// on this machine speak to the leaf, streams and state are the hub's.
type Hub struct {
	// URL is the hub's listener for leaves, such as "nats-leaf://nats.internal:7422"
	// or "tls://nats.internal:7422". Empty means that the embedded server is on its own.
	URL string
	// Domain is the JetStream domain that the hub's configuration names; empty
	// means "hub". A hub without a domain shows its streams to no leaf.
	Domain string
	// Credentials is a credentials file for the hub, NKey a file with an NKey seed; at most one of them.
	Credentials, NKey string
}

// hubWait is how long a hub may take to answer at the start.
const hubWait = 30 * time.Second

// remotes is what the server's configuration says of the hub.
func (h Hub) remotes() ([]*server.RemoteLeafOpts, error) {
	if h.URL == "" {
		return nil, nil
	}
	u, err := url.Parse(h.URL)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("%w: %.200q is no address such as nats-leaf://nats.internal:7422", ErrHub, h.URL)
	}
	if h.Credentials != "" && h.NKey != "" {
		return nil, fmt.Errorf("%w: a credentials file and an NKey exclude each other", ErrHub)
	}
	return []*server.RemoteLeafOpts{{URLs: []*url.URL{u}, Credentials: h.Credentials, Nkey: h.NKey}}, nil
}

// domain is where the streams are.
func (h Hub) domain() string {
	if h.Domain == "" {
		return "hub"
	}
	return h.Domain
}

// awaitHub returns when the streams of the hub can be reached through the leaf.
func (i *Instance) awaitHub(ctx context.Context, h Hub) error {
	js, err := jetstream.New(i.conn)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrHub, err)
	}
	ctx, cancel := context.WithTimeout(ctx, hubWait)
	defer cancel()
	for {
		try, end := context.WithTimeout(ctx, time.Second)
		_, err := js.AccountInfo(try)
		end()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(250 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%w: %s does not answer for the JetStream domain %q: %w; check the address of its listener for leaves, the credentials, and jetstream { domain } in its configuration", ErrHub, h.URL, h.domain(), err)
		}
	}
}
