// Package mirror shows live Go values as remote objects: it reads them by
// reflection, without harm to the program that owns them, and without any
// JavaScript engine.
//
// It owns: what every kind of value looks like, guards and how a value is read
// under one, the keys and entries of maps, and where functions are defined. It
// must not know: engines, sessions, NATS.
//
// # Reading
//
// A read is shallow: under the guard, headers are copied (a string's, a slice's,
// an interface's, a number), then the guard is given back, and only then is
// anything formatted. At most a guard of the root and the locks inside of one
// value are held together, and a lock inside of another is tried and not waited
// for. A map that nothing guards is never iterated, since a write at the same
// time would end the process. A struct is never copied, since its locks would be.
//
// Methods of the program are not called for display, with these exceptions: an
// error's Error, a named number's String, and LogValue of a value that is no
// struct, which is how a secret hides itself. A panic in them stays inside.
//
// The package starts goroutines only in Locked, for a lock that cannot be tried:
// one for each guard at most, which ends when the lock is had.
package mirror
