// Package store keeps the state of a space: it folds every record and saves the
// result in the state bucket, so that late joiners need no history.
//
// It owns: the streams of a space, what is saved and when, which of several
// stores saves it, the removal of evicted sources, and what a store says to
// sources (admitted, resnapshot, and who has an id when two programs want it). It
// must not know CDP, HTTP or producers.
//
// Any number of stores may run. Each folds everything; the compare-and-set on
// the head of a source alone decides who saves it. A store that lost one waits
// a little longer next time, so that they do not fight, and takes over within
// a fraction of a second when the other one stops.
//
// Goroutines of one Store, all ended by Close:
//  1. write: saves what is dirty, a few times a second. It may block on the
//     network, never while it holds the replica's lock.
//  2. control: tells sources that they are admitted, and asks for the trees
//     that were lost. It may block on the network.
//  3. arbiter: asks programs that share an id whether they live, and tells one of
//     them to move (package follow has the rules), up to 32 at once in goroutines
//     of their own that it waits for. It may block on the network.
//  4. repair: creates streams again that a server lost. It may block on the
//     network, apart from the others so that nothing delays it.
//
// and those of its Replica.
package store
