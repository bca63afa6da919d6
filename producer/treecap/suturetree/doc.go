// Package suturetree shows the supervisors and services of
// github.com/thejerf/suture/v4 in a treecap tree: which of them run, how often
// they were started, how they failed, and when a supervisor backs off.
//
// A Supervisor is made by New instead of suture.New and used like the
// suture.Supervisor that it holds, which does all the supervising. Services are
// wrapped for it, in a way that keeps their names, their nesting and what its
// event hook is told.
//
// It owns: the nodes of supervisors and services. It must not know: what services
// do, or how a tree is shown.
//
// # Goroutines
//
//  1. One for each ServeBackground, which passes the result on. It ends with the
//     supervisor.
package suturetree
