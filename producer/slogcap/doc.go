// Package slogcap shows the lines of log/slog in the Console, and passes them
// on to the handler that the application had before.
//
// It owns the way from a slog.Record to a console message: the level becomes the
// type, the text the first argument, the attributes an object behind it, and the
// place of the call the stack. It must not know: NATS, queues, or how a message
// is shown.
//
// The package starts no goroutine. A line costs the application its encoding and
// one append to a queue. Whatever a value's own methods do, a panic of theirs
// stays inside, and nothing here logs.
package slogcap
