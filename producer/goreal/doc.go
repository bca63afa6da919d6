// Package goreal makes a Go program a live realm: its values can be looked at,
// and its functions called, from the Console of DevTools while it runs.
//
//	r := goreal.New(p, goreal.Options{})
//	r.Expose("store", store, goreal.Locked(&store.mu))
//
// Then store.Orders[7].Items.map(i => i.Price) works in the Console. Values are
// live: they are read when they are looked at, under their guards (Guard), and
// nothing is copied before. JavaScript runs in an engine inside of the program,
// with bounds for time, memory and depth; what breaks a bound is ended, and the
// program goes on.
//
// It owns: what is exposed, sessions with their handles, the order and the
// bounds of evaluations, the console of the realm with the live arguments of
// log lines, sources, profiles. Below it, mirror reads Go values, js holds the
// engine, repl rewrites input, gosrc finds sources, and goprof makes profiles.
// It must not know: NATS, gateways, how anything is shown.
//
// # Goroutines
//
//  1. The evaluator, while there is something to evaluate: one for the realm,
//     shared by its sessions, as their globals are. One that nothing can end is
//     left behind, at most maxStuck of them, and another takes its place.
//  2. The reader of each session, while it has something to read: Go values are
//     shown without the evaluator, so that they can be expanded while it is busy.
//  3. The watch of an evaluation that takes longer than 10 ms; it ends with it.
//  4. A Go function called from the Console, which is left alone when it does
//     not return; and what package mirror starts for locks.
//
// None of them lives while no session is open. Of memory, the realm itself has
// about a kilobyte then; the engine, half a megabyte, is made with the first
// evaluation and let go of a while after the last session.
//
// # Locks
//
// Realm.mu, world.mu, lane.mu, handles.mu and session.mu guard fields only: they
// are held for short, and while one is held nothing is called that takes another,
// waits or belongs to the program.
package goreal
