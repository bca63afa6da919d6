// Package fxtree shows an application of go.uber.org/fx in a treecap tree: its
// modules, what constructors, decorators and supplied values each has, what was
// invoked, the lifecycle hooks, and of each whether it ran, how long that took
// and how it failed.
//
// It is a logger of fx events, since fx tells those to its logger only; the
// logger that the application had gets them as before.
//
// It owns: the nodes of the application. It must not know: what constructors make,
// or how a tree is shown. It starts no goroutine.
package fxtree
