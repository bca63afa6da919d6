// Package fold is the reducer that every reader of a space shares: it turns
// record messages, in stream order, into the state of all sources.
//
// It owns the order of generations, the sequence of every plane, gaps, faults
// and the dispatch of records to the packages that fold their payloads. It must
// not know NATS, storage, clocks or CDP: the same messages give the same state
// at every reader. It starts no goroutine; a Space is not safe for concurrent
// use.
package fold
