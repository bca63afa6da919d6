// Package embedded runs the whole of natscope in one process: a nats-server
// with JetStream (or a connection to one elsewhere), the store, the gateway and
// the ingest of browser pages, behind one HTTP listener.
//
// It owns the order in which the parts start and stop, the data directory and
// the listeners. It must not know CDP, payloads or how state is folded.
//
// Goroutines: (1) the nats-server's own, ended by Shutdown and waited for; (2)
// one that serves HTTP, ended by closing the listener; (3) those of store,
// gateway and ingest, ended by their Close. Instance.Close ends all of them.
package embedded
