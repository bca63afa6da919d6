// Package agent lets agents ask the questions of package query, as tools of the
// Model Context Protocol.
//
// It owns the names and descriptions of the tools, answers that fit an agent's
// attention, and what is told to agents about using them. It must not know CDP,
// NATS, or how questions are answered.
//
// It starts no goroutine; those of the protocol's library end with their session.
package agent
