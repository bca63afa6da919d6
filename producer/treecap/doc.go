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
// Register shows a live Go value: its fields become the node's values, Update
// reads them again, Close takes it away. While it is registered, the tree
// resolves the node's ObjectRef to the value, and Edit changes what Writable
// allows to be changed. Packages below this one show what libraries have of
// their own: routes, modules, supervisors, the process.
//
// It owns: the live nodes, their numbers (from 1, never used twice), revisions,
// the table of live values, how a Go value is read without harm, and what of the
// tree the readers do not know yet. It must not know: NATS, queues, who sends
// edits, or how a tree is shown.
//
// # Goroutines
//
//  1. A flush, started by a timer after the first change. It ends by itself
//     when it has handed its records to the producer; Close waits for it.
//
//  2. A second reading of a registered value whose lock was taken, started by a
//     timer. It ends when it has read, or found the lock taken again, which sets
//     the next timer; closing the component or the tree ends that.
//
//  3. A setter, started by Edit, at most one for each component and maxEdits for
//     a tree. It ends when the application's function returns.
//
//  4. The call of a Watched function, started when the first person looks or the
//     last one has gone. It ends when the function has heard how things are.
//
// The producer calls for snapshots, and for values that somebody opens, on
// goroutines of its own. Opening a value takes the component's lock, which is
// tried for a second and not longer.
//
// # Locks
//
// Tree.sending is held while records are made and handed over, so that they
// leave in the order of their revisions. Tree.mu guards the nodes, is held for
// short, and is the only one that the application's methods take. The first
// comes before the second. A lock of the application is tried and not waited for,
// none of the tree's is held then. No function of the application runs under any
// of them, save for the methods by which errors, enumerations and secrets inside
// of a value say what they are (Error, String and LogValue).
package treecap
