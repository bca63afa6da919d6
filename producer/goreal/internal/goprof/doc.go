// Package goprof makes profiles of the running program in the forms that
// DevTools reads: CPU profiles, sampled allocations and the use of memory.
//
// It must not know sessions, scripts or engines: who asks gives a function that
// finds the script of a file. It starts no goroutine of its own; the runtime's
// profiler has some while it runs.
package goprof
