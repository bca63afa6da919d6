// Package producer is what an application imports to become a source: it takes
// observations from any goroutine and brings them into JetStream, each exactly
// once, in order, without ever making the application wait.
//
// It owns: the life of a source (claim, open, update, close, generations, heartbeats),
// the bounded queues in front of the network, the frames and their chain of
// expected sequences, the answers to control requests, and the carrying out of
// commands, bounded and contained, alone and in sessions. It must not know: how records are folded,
// stored or shown, or any particular kind of capture.
//
// # How records travel
//
// Record, RecordAt, Publish and Body.Write append to a queue under one short
// lock and return; no lock is ever held during I/O. There is one queue for each
// plane and one for bodies. A lane takes from each queue: it has one message in
// flight at a time, which names the last message that its generation stored on
// that plane. So a message that is sent twice is stored once, and records that
// come while a message is in flight travel together in the next one. Nothing of
// a generation is sent before its opening record is acknowledged.
//
// Every queue is bounded by count and bytes. The console, net and event planes
// drop their oldest records, which spend their numbers, so that every reader
// sees how many are missing. The tree plane discards what waits and asks the
// tree (OnSnapshot) for its newest state. Bodies are cut, which marks them
// truncated. Stats and heartbeats carry the counts.
//
// # Goroutines
//
//  1. The loop, one for each producer, started by Start. It alone owns the
//     connection, the lanes and all timers, and is the only one that sends. It
//     ends in Close, after the last acknowledgement or when Close's context ends.
//  2. The dialler, while there is no connection yet. It ends with the
//     connection, or when the loop ends, which cancels its dial.
//  3. The snapshotter, while an OnSnapshot function runs: at most one. It ends
//     when the function returns.
//  4. The calls of Options.Alive, at most eight. Each ends when the function returns.
//  5. The functions of OnCommand, at most 32. Each ends when the function returns;
//     the loop's end tells them to and waits a second.
//  6. One for each session that is open at the realm of Serve, at most 64. It ends
//     with the session, at the latest a lease after the last sign of its asker.
//  7. The callbacks of nats.go (control, commands, claims). They never block and
//     end with their subscriptions, which the loop removes when it ends.
//
// None of them keeps a process from exiting.
package producer
