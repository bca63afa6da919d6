// Package follow holds the rules of who lives and who has an id: which
// generation of a source a view follows, whether the source counts as connected,
// and what a store says to programs that share an id.
//
// It owns the two pure machines that say so: Presence, which every replica
// steps for each source, and Holder, which every store steps for each source.
// Both are functions from a state and an event to a new state and what is to be
// done; they know no clock but the times that events carry. The package must not
// know NATS, the fold, storage or CDP. It starts no goroutine; values are safe to
// copy.
package follow
