// Package js runs JavaScript in which live Go values are objects. It is the only
// one that knows the engine.
//
// It owns: the runtime with its fences, how Go values look from JavaScript and
// JavaScript values from Go, calls of Go functions, the console and the command
// line API, remote objects of JavaScript values, and evaluation without side
// effects. It must not know: sessions, handles, NATS.
//
// # Goroutines
//
// An Engine is used by one goroutine at a time, which its owner provides; only
// Interrupt and Abort may be called meanwhile. A Go function runs on a goroutine
// of its own, which is left alone when the function does not return in time. A
// JavaScript function that Go was given runs where its engine runs: on the
// goroutine that waits for the Go function, or through Host.Post.
package js
