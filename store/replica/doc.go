// Package replica is the shared read side of a space: the fold of all its
// records in memory, as current as the stream, for stores, gateways and queries.
//
// It owns: loading the state that a store saved, following the record stream
// from there without a hole or a double, presence (which sources live), the
// eviction of disconnected sources, and reading bodies. It must not know CDP,
// HTTP or how state is written.
//
// Goroutines of one Replica, all ended by Close:
//  1. follow: connects to the streams, loads, applies every message in order and
//     calls the watchers. It may block on the network, never while it holds the lock.
//  2. presence: ticks a few times per heartbeat and lets silent sources die. It
//     never blocks on anything but the lock.
//  3. The questions about streams and their consumers, asked by follow and by
//     readers of bodies, several at once while none is answered. They end with the
//     first answer, or at their deadline, and whoever asked waits for that.
//
// The callbacks of NATS (messages, heartbeats, connection events) only enqueue.
//
// There is one lock. Watchers run under it and must take no lock that is held
// while View or Watch is called.
package replica
