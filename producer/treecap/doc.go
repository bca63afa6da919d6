// Package treecap shows the parts of a running program as a tree in Elements:
// modules, workers, connections, routes, whatever an application nests.
//
// The application builds the tree once and changes it as it lives; every method
// is safe for concurrent use, returns at once and does no I/O. Changes are
// gathered and sent together, at most once in each interval, as operations whose
// cost follows the number of nodes that changed and not the size of the tree.
// What was set twice is sent once; what was added and removed in between is not
// sent at all.
//
// It owns: the live nodes, their numbers (from 1, never used twice), revisions,
// and what of the tree the readers do not know yet. It must not know: NATS,
// queues, or how a tree is shown.
//
// # Goroutines
//
//  1. A flush, started by a timer after the first change. It ends by itself
//     when it has handed its records to the producer; Close waits for it.
//
// The producer calls for snapshots on a goroutine of its own.
//
// # Locks
//
// Tree.sending is held while records are made and handed over, so that they
// leave in the order of their revisions. Tree.mu guards the nodes, is held for
// short, and is the only one that the application's methods take. The first
// comes before the second.
package treecap
