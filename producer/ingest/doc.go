// Package ingest admits browser pages over WebSocket and publishes for them.
//
// A page cannot be trusted with NATS credentials and should not carry a NATS
// client, so it speaks a small JSON protocol (message.go) to this package,
// which is its producer: the same frames, limits and arbitration as any other
// source. The package also serves the JavaScript client itself.
//
// It owns: who is admitted (token, Origin, version), which id a page gets, the
// session of one page across its reconnects, and the limits of one connection.
// It must not know: what payloads mean, stores, gateways, or CDP.
//
// Ids. A page brings the id that it would like to keep. It gets it, unless a
// page that still answers has it; then it gets the id with "-2", "-3", … A
// reload therefore keeps the id even when the old page's goodbye was lost, and
// a copied tab does not take it away.
//
// Sessions. A session is one producer.Producer. It ends at once when the page
// says goodbye, and after Options.Resume when its connection just ends; a
// connection of the same realm within that time goes on where the last one
// stopped, and nothing is published twice.
//
// Sessions of DevTools. The producer keeps their leases and order; what they
// ask is for the page, which holds the objects (pageRealm). Long answers come in parts.
//
// Commands. What the page says that it can do, its source can: commands go to
// the page's present connection with an id, and come back with it. They end
// with the connection, and with their own deadline.
//
// Goroutines:
//
//  1. One reader per connection, which is the HTTP handler's own goroutine; it
//     ends when the socket does. It never waits for NATS: everything that it
//     gives to the producer is enqueued.
//
//  2. One writer per connection, the only one that writes to the socket; the
//     reader ends it.
//
//  3. One closer per ending session, which flushes its producer; bounded by a
//     deadline and waited for by Server.Close.
//
//  4. One asker per question of a page to the query service, at most eight a
//     page; bounded by Limits.Query and waited for by Server.Close.
//
// Lock order: Server.mu before session.mu before conn.mu. No lock is held
// while a socket is written or a producer is started or closed.
package ingest
