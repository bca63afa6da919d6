// Package follow holds the rules of who lives and who has an id: which
// generation of a source a view follows, whether the source counts as connected,
// what a store says to programs that share an id, and how often it asks for what
// was lost.
//
// It owns the pure machines that say so: Presence, which every replica steps for
// each source, Holder, which every store steps for each id, and Repair, which
// every store steps for each loss. All are functions from a state and an event to
// a new state and what is to be done; they know no clock but the times that
// events carry. The package must not know NATS, the fold, storage or CDP. It
// starts no goroutine; values are safe to copy.
package follow
