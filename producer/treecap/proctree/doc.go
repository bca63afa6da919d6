// Package proctree shows the running process in a treecap tree, without anything
// to register: what it was built from, its memory, and its goroutines, grouped by
// where they were created and by what they wait for.
//
// What changes is read on demand only: by Refresh, and again and again while
// somebody has the process open in Elements, or Watch is on. A Process that nobody
// looks at has no goroutine, no timer and no buffers.
//
// Few goroutines are read from the text of runtime.Stack, which tells all about
// them and stops the program for about 6 µs each; more than maxTraced are read
// from runtime.GoroutineProfile, which hardly stops it, and tells where they
// started instead of who created them.
//
// It owns: the nodes of the process, and how goroutines are read and grouped. It
// must not know: who looks, or how a tree is shown.
//
// # Goroutines
//
//  1. The watch, while somebody looks or Watch is on. The last look, Watch(false) and Close end it.
package proctree
