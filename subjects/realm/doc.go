// Package realm holds the commands that a source's live realm answers, and what
// the realm tells the sessions that asked: the payloads of the command, event
// and audit subjects.
//
// It owns the method names, the parameters and results of each, the error codes
// with their sentinels, and the capabilities by which a source says what it
// answers. It must not know subjects, NATS, CDP, or how a realm carries anything
// out. It starts no goroutine; every function is safe for concurrent use.
package realm
