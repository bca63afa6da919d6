// Package httpcap records the HTTP requests of a Go program, those that it makes
// (Transport, Default) and those that it serves (Handler): it tells a producer of
// every request when it starts, how long each phase takes, what the headers and
// bodies are and how it ends.
//
// It owns: the life of a captured request from its start to its one ending, the
// tees on request and response bodies, the timing by net/http/httptrace, the
// stack that made the request, and the removal of passwords from URLs.
//
// It must not know: NATS, queues, how records are folded or shown. It gives
// records to a producer.Producer, which never blocks.
//
// The application's view of a request is the same with and without capture:
// the same errors, the same bytes at the same pace, the same types where
// net/http promises one. Nothing is read that the application does not read,
// no body is buffered for its own sake, save one that the source's rules must
// check before it is told, within bounds; and a panic in this package is
// contained, counted as a lost record, and never reaches the application.
//
// A request body that is in memory (a bytes.Reader, bytes.Buffer or
// strings.Reader, as http.NewRequest wraps it) is recorded when the request
// starts, whether or not the server wants it: net/http sends such bodies in one
// piece with the headers, and a tee would take that from it. Every other body is
// recorded while it is sent.
//
// # WebSockets
//
// The messages of a WebSocket are read off its wire as they pass: of the body of
// a 101 response that a Transport returns, and of connections that the packages
// gorillacap and codercap accept or dial, or that a Handler with the option
// WithWebSockets hands out. Fragments are told as one message.
//
// # Endings
//
// Every request that starts ends exactly once: with an error when no response
// headers came, else with an end when the body was read to its end, closed
// early, or failed. An incoming request ends when its handler returns or
// panics: with an error when no headers had left, else with an end. A body that
// the application neither reads nor closes ends when the garbage collector finds
// it. A WebSocket ends with its connection.
//
// # Goroutines
//
// The package starts none. Its code runs on (1) the goroutine that calls
// RoundTrip and reads the body, serves a request, or uses a WebSocket, (2)
// goroutines of net/http that call the trace hooks and read the request body, (3) a goroutine of a timer, for a moment and
// at most once every 100 ms for each body that is being read; the timer is
// stopped when the request ends; and (4) the runtime's cleanup goroutine, for
// bodies that were dropped unread.
package httpcap
