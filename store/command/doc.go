// Package command brings commands to the live realms of sources, and their
// events back: the asking side of the command plane, for gateways and for query.
//
// It owns: requests with deadlines and their answers, also those in pieces, in
// one order with the events of sessions; the audit; sessions with their leases,
// opened when they are first needed. It must not know what commands mean, CDP,
// or who asks.
//
// # Goroutines
//
//  1. The callback of the one subscription of a NATS: it brings answers to whoever
//     waits and events to the listener. It ends with NATS.Close.
//  2. The toucher of Sessions, which keeps leases alive while sessions are open.
//     It ends with Sessions.Close.
package command
