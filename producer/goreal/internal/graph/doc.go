// Package graph walks everything that can be reached from exposed values and
// writes it as a heap snapshot that DevTools reads.
//
// It owns: which values are nodes, how large they are, and the format of the
// file. It must not know sessions or engines; values are read by package mirror,
// each under its guard, one after the other. It starts no goroutine.
package graph
