// Package cdpgw is the Chrome DevTools Protocol gateway: it lists a space and
// its sources as targets and serves each DevTools connection a projection of
// the folded state.
//
// It owns: discovery over HTTP, the WebSocket connections, sessions, and every
// identifier of the protocol (NodeID, RequestID, FrameID, execution contexts,
// object ids). It must not know how the state is followed or stored, or the
// query service, and NATS only as the way of commands (command.go). Nothing else
// in natscope knows CDP.
//
// Goroutines:
//  1. One reader per connection: the goroutine of its HTTP handler. It takes one
//     command after the other, runs each under the read lock of the state, and
//     ends when the socket fails or the gateway closes.
//  2. One writer per connection: sends what is queued, a burst in one socket
//     write, under a write deadline. It ends when the queue is closed.
//  3. One goroutine per slow command (a body that is still on its way, a streamed
//     response, a command to a source), at most maxSlow per connection, all ended
//     with the connection's context.
//  4. One goroutine per source that a connection highlights or picks in, while
//     there is something to tell it; it ends at most a second after the connection.
//  5. The callback of the sources' events, which ends with the Commander's stop.
//  6. One goroutine per source with a live realm whose session is being opened for
//     a connection, or whose event waits until the connection has room again.
//
// Commands to live realms (live_lane.go) are slow commands with an order: those of
// one connection to one realm are sent in the order in which they came, and each
// is answered when the realm has answered it.
//
// Locks, in the order in which they are taken: the state's lock (View by a
// reader, the write lock by whoever applies records), hub.mu, session.mu,
// overlayLanes.mu, liveState.mu, scriptTable.mu, queue.mu. None is held during a socket operation or while a
// source is asked, and no code below a View calls the state again. Since every
// command runs inside a View and every live change comes under the write lock, a
// session sees commands and changes in one order, and the order of its queue is
// the order on the wire. What a command sends gets its place in the queue under
// the locks and is encoded after them.
package cdpgw
