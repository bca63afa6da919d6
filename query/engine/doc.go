// Package engine answers the questions of package query from a replica of the
// state of a space.
//
// It owns how state becomes answers: selecting sources, paging, searching,
// reading bodies, and the journal of recent events that watches read. It must
// not know NATS subjects, HTTP or CDP.
//
// It starts no goroutine of its own; with a Commander there is the one that keeps
// sessions alive, which Close ends. The journal follows the state from the
// first watch until a while after the last one, and is filled by whoever applies
// records; a timer of the runtime ends it.
//
// Locks: the journal's lock is taken under the state's, never the other way round.
package engine
