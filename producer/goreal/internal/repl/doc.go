// Package repl gives what is typed into a console the rules of a console: names
// may be declared again, and await stands at the top level.
//
// It owns the rewriting of sources and the check that a source is not nested so
// deeply that parsing it would end the process. It must not know engines at
// run time, values or sessions. It starts no goroutine.
package repl
