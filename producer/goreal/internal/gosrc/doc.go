// Package gosrc finds the Go sources of the running program: which files were
// compiled into it, and where they are on this machine.
//
// It must not know scripts, sessions or engines. It starts no goroutine.
package gosrc
