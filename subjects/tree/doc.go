// Package tree holds component trees: the payloads of the tree plane and their
// fold.
//
// It owns the node, snapshots and ops, the rules of both profiles, the history of
// commits, the value that readers of Cordis trees get, the diff between a snapshot
// and the tree that it replaces, and the allocation of BackendNodeIDs. It must
// not know subjects, NATS, CDP's wire messages or how a tree is shown. It
// starts no goroutine; a State is not safe for concurrent use.
package tree
