// Package shop is the demo of natscope, and the example of how to instrument a
// Go service: a small coffee shop with an HTTP API, a web page, and workers that
// call the API over HTTP.
//
// Everything that makes it visible in DevTools is one line each, in Start: a
// producer.Producer, an http.Client whose transport is httpcap.Transport, an
// http.Server whose handler is httpcap.Handler, WebSockets by gorillacap, a
// slog.Logger whose handler is slogcap.New, a live realm made by goreal.New, in
// which ledger.go exposes what the Console can ask, and a component tree made by
// treecap.New, in which muxtree shows the routes and proctree the process. The
// rest of the package is an ordinary service. pricing.go is how a live Go value
// is shown, with settings that can be edited in DevTools.
//
// It owns: the shop (inventory, API, page), its workers and their schedule. It
// must not know: stores, gateways, or whether NATS is there; without NATS the
// shop works and shows nothing. Nothing in it is random: the n-th job of a
// worker always does the same, and Options.Interval sets the pace.
//
// # Goroutines
//
// (1) The HTTP server's accept loop and (2) one for each of its connections,
// ended by Close, which also ends the event streams and WebSockets, with (6) one
// for each of the latter that reads. (3) One for each worker,
// (4) the packing room, and (5) one for each parcel that is being packed; they
// end with the shop's context, which Close cancels and waits for. The producer
// and the tree have their own.
package shop
