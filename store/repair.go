package store

import (
	"context"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/natscope/natscope/store/replica"
)

// repairEvery is how often missing streams are looked for while the replica waits for something.
const repairEvery = 250 * time.Millisecond

// repair creates the streams again that a server lost, such as one that keeps
// them in memory and was restarted. It looks after every new connection, and
// while the replica does not get on.
func repair(ctx context.Context, o Options, js jetstream.JetStream, r *replica.Replica, log *slog.Logger) {
	connected := o.Conn.StatusChanged(nats.CONNECTED)
	defer o.Conn.RemoveStatusListener(connected)
	tick := time.NewTicker(repairEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-connected:
		case <-tick.C:
			if r.Status().Waiting == "" {
				continue
			}
		}
		if !o.Conn.IsConnected() {
			continue
		}
		if err := awaitStreams(ctx, js, o.Space, o.Storage, log); err != nil && ctx.Err() == nil {
			log.Error("the streams cannot be created", "error", err)
		}
	}
}
