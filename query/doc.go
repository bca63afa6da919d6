// Package query is how programs, people on a terminal and agents read the state
// that DevTools shows: the questions, their answers, and the client that asks
// them over NATS.
//
// It owns the types that travel, the names of things in answers, cursors, the
// table of verbs from which every door is made (NATS, HTTP, MCP, command line),
// and the Client. It must not know CDP, HTTP, or how state is kept: package
// query/engine answers from a replica, and the packages beside it are doors.
//
// What an answer names stays what it is: a NodeID or RequestID never leads to
// another thing, not even after the stream was made anew; it leads to an error
// that says so. Every answer is bounded. What does not fit is left for the next
// page, and what was no longer kept when it was asked for is counted in Missed.
//
// Nothing in this package starts a goroutine. A Client is safe for concurrent use.
package query
